// What public code still uses: __shared__ variables at namespace scope, device properties that CUDA 13 removed,
// the bank size of shared memory.
#include <cstdio>

__shared__ int tile[32];
namespace inner {
__shared__ float row[4][8], factor;
__device__ float scaled(int i) { return row[i / 8][i % 8] * factor; }
}  // namespace inner

__device__ int turned(int i) { return tile[31 - i]; }
__device__ int hidden(const int* tile, int i) { return tile[i]; }

__global__ void reverse(int* out) {
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = turned(threadIdx.x) + hidden(tile, 0);
}

__global__ void scale(float* out) {
  {
    float tile = threadIdx.x;
    out[threadIdx.x] = tile;
  }
  out[threadIdx.x] += 1;
}

namespace inner {
__global__ void fill(float* out) {
  row[threadIdx.x / 8][threadIdx.x % 8] = threadIdx.x;
  if (threadIdx.x == 0) factor = 0.5f;
  __syncthreads();
  out[threadIdx.x] = scaled(31 - threadIdx.x);
}
}  // namespace inner

int main() {
  cudaDeviceProp properties = {};
  struct cudaDeviceProp other;
  bool right = cudaGetDeviceProperties(&properties, 0) == cudaSuccess && cudaGetDeviceProperties(&other, 0) == cudaSuccess;
  right = right && properties.clockRate > 0 && properties.memoryClockRate > 0 && other.computeMode == 0 &&
          other.warpSize == 32 && properties.major == other.major;
  cudaSharedMemConfig config;
  cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte);
  right = right && cudaDeviceGetSharedMemConfig(&config) == cudaSuccess && config == cudaSharedMemBankSizeFourByte;

  int* out;
  float* scaled;
  cudaMallocManaged(&out, 32 * sizeof(int));
  cudaMallocManaged(&scaled, 64 * sizeof(float));
  reverse<<<1, 32>>>(out);
  inner::fill<<<1, 32>>>(scaled);
  scale<<<1, 32>>>(scaled + 32);
  right = right && cudaDeviceSynchronize() == cudaSuccess;
  for (int i = 0; i < 32; ++i)
    right = right && out[i] == 31 - i && scaled[i] == (31 - i) * 0.5f && scaled[32 + i] == i + 1;
  printf(right ? "PASS\n" : "FAIL\n");
}
