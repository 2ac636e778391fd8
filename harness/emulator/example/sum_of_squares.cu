// 1² + 2² + … + n² on the GPU: every block adds up its part in shared memory, then adds that to the total.
// The file is ordinary CUDA. nvcc compiles it for a GPU, and capstone-emulate for the CPU.
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

constexpr int kThreads = 256;

__global__ void sum_of_squares(const int* values, int n, unsigned long long* total) {
  __shared__ unsigned long long partial[kThreads];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = i < n ? static_cast<unsigned long long>(values[i]) * values[i] : 0;
  for (int half = kThreads / 2; half > 0; half /= 2) {
#ifndef FORGET_THE_BARRIER  // without it a thread may read a sum that its neighbour has not written yet
    __syncthreads();
#endif
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(total, partial[0]);
}

int main() {
  const int n = 1000;
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[i] = i + 1;

  int* device_values = nullptr;
  unsigned long long* device_total = nullptr;
  cudaMalloc(&device_values, n * sizeof(int));
  cudaMalloc(&device_total, sizeof(unsigned long long));
  cudaMemcpy(device_values, values.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemset(device_total, 0, sizeof(unsigned long long));

  sum_of_squares<<<(n + kThreads - 1) / kThreads, kThreads>>>(device_values, n, device_total);

  unsigned long long total = 0;
  cudaMemcpy(&total, device_total, sizeof total, cudaMemcpyDeviceToHost);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
    std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(error));
    return 1;
  }
  cudaFree(device_values);
  cudaFree(device_total);

  const unsigned long long expected = 1ull * n * (n + 1) * (2 * n + 1) / 6;
  std::printf("sum of the first %d squares: %llu (expected: %llu)\n", n, total, expected);
  return total == expected ? 0 : 1;
}
