// What the emulator's speed is measured by: emulator_cases CASE REPEATS prints "seconds a repeat" and "amount a repeat", the best of the
// repeats. A CUDA program like any other: it can be built for a GPU, or for any other emulator, and compared.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "products.cuh"

__global__ void nothing() {}
__global__ void barriers(int n) {
  for (int i = 0; i < n; ++i) __syncthreads();
}
__global__ void shuffles(int n, int* out) {
  int v = threadIdx.x;
  for (int i = 0; i < n; ++i) v += __shfl_xor_sync(0xffffffffu, v, 1);
  if (v == -1) *out = v;  // never: the sum must not be left out
}
__global__ void atomics(int* out, int n) {
  for (int i = 0; i < n; ++i) atomicAdd(out + threadIdx.x, 1);
}

constexpr int kTile = 16;

// 64 x 64 a block, 8 x 8 a thread, 8 deep.
__global__ void __launch_bounds__(64) register_tile(const float* a, const float* b, float* c, int n) {
  __shared__ float as[8][64], bs[8][64];
  const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64, r = threadIdx.x / 8 * 8, s = threadIdx.x % 8 * 8;
  float sum[8][8] = {};
  for (int k0 = 0; k0 < n; k0 += 8) {
    for (int i = threadIdx.x; i < 512; i += 64) {
      as[i % 8][i / 8] = a[(row0 + i / 8) * n + k0 + i % 8];
      bs[i / 64][i % 64] = b[(k0 + i / 64) * n + column0 + i % 64];
    }
    __syncthreads();
    for (int k = 0; k < 8; ++k)
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sum[i][j] += as[k][r + i] * bs[k][s + j];
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) c[(row0 + r + i) * n + column0 + s + j] = sum[i][j];
}

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 3;
  constexpr int n = 512;
  float *a, *b, *c;
  int* out;
  cudaMalloc(&a, n * n * 4);
  cudaMalloc(&b, n * n * 4);
  cudaMalloc(&c, n * n * 4);
  cudaMalloc(&out, 4096);
  std::vector<float> ones(n * n, 1.0f);
  cudaMemcpy(a, ones.data(), n * n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(b, ones.data(), n * n * 4, cudaMemcpyHostToDevice);
  struct Case {
    const char* name;
    double amount;
    std::function<void()> run;
    bool product;
  };
  const double flops = 2.0 * n * n * n;
  const std::vector<Case> cases{
      {"launch", 1000, [&] { for (int i = 0; i < 1000; ++i) nothing<<<1, 32>>>(); }, false},
      {"empty_threads", 65536.0 * 256, [&] { nothing<<<65536, 256>>>(); }, false},
      {"barriers", 64.0 * 256 * 1000, [&] { barriers<<<64, 256>>>(1000); }, false},
      {"shuffles", 64.0 * 256 * 1000, [&] { shuffles<<<64, 256>>>(1000, out); }, false},
      {"atomics", 64.0 * 256 * 1000, [&] { atomics<<<64, 256>>>(out, 1000); }, false},
      {"sgemm_naive", flops, [&] { naive<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n); }, true},
      {"sgemm_tiled", flops, [&] { tiled<kTile><<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(a, b, c, n); }, true},
      {"sgemm_register_tile", flops, [&] { register_tile<<<dim3(n / 64, n / 64), 64>>>(a, b, c, n); }, true}};
  for (const Case& one : cases) {
    if (std::strcmp(one.name, wanted) != 0) continue;
    double best = 1e9;
    for (int i = 0; i <= repeats; ++i) {  // the first is warm-up
      const auto begun = std::chrono::steady_clock::now();
      one.run();
      cudaDeviceSynchronize();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      if (i > 0 && seconds < best) best = seconds;
    }
    if (one.product) {
      std::vector<float> got(n * n);
      cudaMemcpy(got.data(), c, n * n * 4, cudaMemcpyDeviceToHost);
      for (float v : got)
        if (v != float(n)) return std::puts("wrong product"), 1;
    }
    std::printf("%.9g %.9g\n", best, one.amount);
    return 0;
  }
  std::puts("no such case");
  return 2;
}
