// A single-pass scan: blocks wait for their predecessors by reading volatile flags.
#include <cstdio>
#include <vector>

constexpr int kThreads = 128;
__device__ int next_tile;

__global__ void scan(const int* in, int* out, volatile int* flags, volatile int* sums, int n) {
  __shared__ int tile_of_block, before;
  __shared__ int data[kThreads];
  if (threadIdx.x == 0) tile_of_block = atomicAdd(&next_tile, 1);
  __syncthreads();
  const int tile = tile_of_block, i = tile * kThreads + threadIdx.x;
  data[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < kThreads; d *= 2) {
    int add = threadIdx.x >= d ? data[threadIdx.x - d] : 0;
    __syncthreads();
    data[threadIdx.x] += add;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    int sum = 0;
    if (tile > 0) {
      while (flags[tile - 1] == 0) {
      }
      __threadfence();
      sum = sums[tile - 1];
    }
    sums[tile] = sum + data[kThreads - 1];
    __threadfence();
    flags[tile] = 1;
    before = sum;
  }
  __syncthreads();
  if (i < n) out[i] = before + data[threadIdx.x];
}

int main() {
  const int n = 5000, tiles = (n + kThreads - 1) / kThreads;
  std::vector<int> h(n), r(n);
  for (int i = 0; i < n; ++i) h[i] = i % 10 - 3;
  int *in, *out, *flags, *sums;
  cudaMalloc(&in, n * 4);
  cudaMalloc(&out, n * 4);
  cudaMalloc(&flags, tiles * 4);
  cudaMalloc(&sums, tiles * 4);
  cudaMemcpy(in, h.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemset(flags, 0, tiles * 4);
  scan<<<tiles, kThreads>>>(in, out, flags, sums, n);
  cudaMemcpy(r.data(), out, n * 4, cudaMemcpyDeviceToHost);
  int sum = 0;
  for (int i = 0; i < n; ++i)
    if (r[i] != (sum += h[i])) return printf("FAIL at %d: %d, not %d\n", i, r[i], sum);
  puts("PASS");
}
