// cuda::pipeline of a block with two stages, cuda::barrier with copies, and the thread-local pipeline.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cstdio>
#include <vector>
namespace cg = cooperative_groups;

template <int kStages>
__global__ void staged(const int* in, int* out, int batches) {
  __shared__ int buffer[kStages][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int compute = 0, fetch = 0; compute < batches; ++compute) {
    for (; fetch < batches && fetch < compute + kStages; ++fetch) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buffer[fetch % kStages], in + fetch * 64, sizeof(int) * 64, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    out[compute * 64 + threadIdx.x] = buffer[compute % kStages][63 - threadIdx.x] + 1;
    pipe.consumer_release();
  }
}

__global__ void with_barrier(const int* in, int* out) {
  __shared__ int tile[64];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    cuda::memcpy_async(block, tile, in + round * 64, cuda::aligned_size_t<16>(sizeof(int) * 64), bar);
    auto token = bar.arrive();
    bar.wait(std::move(token));
    out[round * 64 + threadIdx.x] = tile[(threadIdx.x + 1) % 64];
    bar.arrive_and_wait();
  }
}

__global__ void per_thread(const int4* in, int4* out) {
  __shared__ int4 slot[2][32];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(&slot[0][threadIdx.x], &in[threadIdx.x], sizeof(int4), pipe);
  pipe.producer_commit();
  pipe.producer_acquire();
  cuda::memcpy_async(&slot[1][threadIdx.x], &in[32 + threadIdx.x], sizeof(int4), pipe);
  pipe.producer_commit();
  cuda::pipeline_consumer_wait_prior<1>(pipe);
  out[threadIdx.x] = slot[0][threadIdx.x];
  pipe.consumer_release();
  cuda::pipeline_consumer_wait_prior<0>(pipe);
  out[32 + threadIdx.x] = slot[1][threadIdx.x];
  pipe.consumer_release();
}

int main() {
  const int n = 512;
  std::vector<int> h(n), a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) h[i] = i;
  int *in, *out;
  cudaMalloc(&in, n * 4);
  cudaMalloc(&out, n * 4);
  cudaMemcpy(in, h.data(), n * 4, cudaMemcpyHostToDevice);
  staged<2><<<1, 64>>>(in, out, 8);
  cudaMemcpy(a.data(), out, n * 4, cudaMemcpyDeviceToHost);
  with_barrier<<<1, 64>>>(in, out);
  cudaMemcpy(b.data(), out, n * 4, cudaMemcpyDeviceToHost);
  per_thread<<<1, 32>>>((const int4*)in, (int4*)out);
  cudaMemcpy(c.data(), out, n * 4, cudaMemcpyDeviceToHost);
  bool ok = cudaGetLastError() == cudaSuccess;
  for (int i = 0; i < n; ++i) ok = ok && a[i] == i / 64 * 64 + 63 - i % 64 + 1;
  for (int i = 0; i < 192; ++i) ok = ok && b[i] == i / 64 * 64 + (i + 1) % 64;
  for (int i = 0; i < 256; ++i) ok = ok && c[i] == i;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
