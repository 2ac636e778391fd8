// A reduction in one cooperative launch: partial sums of blocks, grid.sync(), the last step in block 0.
#include <cooperative_groups.h>
#include <cstdio>
#include <vector>
namespace cg = cooperative_groups;

__global__ void reduce(const float* in, float* partial, float* out, int n) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  extern __shared__ float shared[];
  float sum = 0;
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) sum += in[i];
  shared[block.thread_rank()] = sum;
  cg::sync(block);
  for (unsigned half = block.size() / 2; half > 0; half /= 2) {
    if (block.thread_rank() < half) shared[block.thread_rank()] += shared[block.thread_rank() + half];
    cg::sync(block);
  }
  if (block.thread_rank() == 0) partial[blockIdx.x] = shared[0];
  cg::sync(grid);
  if (grid.thread_rank() == 0) {
    float total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) total += partial[b];
    *out = total;
  }
}

#define CHECK(call)                                                              \
  do {                                                                           \
    cudaError_t error = (call);                                                  \
    if (error != cudaSuccess) {                                                  \
      printf("%s: %s\n", #call, cudaGetErrorString(error));                      \
      return 1;                                                                  \
    }                                                                            \
  } while (0)

int main() {
  int n = 10000, threads = 128, per_sm = 0;
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  if (!prop.cooperativeLaunch) return 1;
  size_t bytes = threads * sizeof(float);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, reduce, threads, bytes));
  int blocks = per_sm * prop.multiProcessorCount < 12 ? per_sm * prop.multiProcessorCount : 12;
  std::vector<float> host(n, 0.5f);
  float *in, *partial, *out, result;
  CHECK(cudaMalloc(&in, n * sizeof(float)));
  CHECK(cudaMalloc(&partial, blocks * sizeof(float)));
  CHECK(cudaMalloc(&out, sizeof(float)));
  CHECK(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  void* args[] = {(void*)&in, (void*)&partial, (void*)&out, (void*)&n};
  CHECK(cudaLaunchCooperativeKernel((void*)reduce, dim3(blocks), dim3(threads), args, bytes, 0));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&result, out, sizeof(float), cudaMemcpyDeviceToHost));
  bool too_large = cudaLaunchCooperativeKernel((void*)reduce, dim3(100000), dim3(threads), args, bytes, 0) == cudaErrorCooperativeLaunchTooLarge;
  cudaGetLastError();
  printf(result == 5000.f && too_large ? "PASS\n" : "FAIL %f %d\n", result, too_large);
}
