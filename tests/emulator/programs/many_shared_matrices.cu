// Twelve kernels, each with 44 KiB of its own static shared memory, and a wgmma of matrices in it. The kernels' memory
// together is more than the 256 KiB that a matrix descriptor's 18 bits of an address reach; each kernel's own is not.
#include <cuda_bf16.h>

#include <cstdint>
#include <cstdio>
#include <utility>

__device__ uint64_t descriptor(const void* p) {  // K-major, no swizzle: 16 bytes of eight rows, the next ones, the next rows
  const uint64_t at = static_cast<uint32_t>(__cvta_generic_to_shared(p)) & 0x3ffff;
  return at >> 4 | uint64_t{128 >> 4} << 16 | uint64_t{256 >> 4} << 32;
}

// Row i of A holds i and zeros, column j of B j + 1 and zeros: D is i * (j + 1) + which.
template <int which>
__global__ void outer_product(float* out) {
  __shared__ alignas(1024) __nv_bfloat16 other[20 * 1024], a[64 * 16], b[8 * 16];
  const int thread = threadIdx.x;
  for (int i = thread; i < 20 * 1024; i += 128) other[i] = __float2bfloat16(-1);
  for (int i = thread; i < 64 * 16; i += 128) a[i] = __float2bfloat16(0);
  for (int i = thread; i < 8 * 16; i += 128) b[i] = __float2bfloat16(0);
  __syncthreads();
  if (thread < 64) a[thread / 8 * 128 + thread % 8 * 8] = __float2bfloat16(thread);
  if (thread < 8) b[thread * 8] = __float2bfloat16(thread + 1);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  float d[4] = {which, which, which, which};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(descriptor(a)), "l"(descriptor(b)));
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i)
    out[(thread / 32 * 16 + thread % 32 / 4 + i / 2 * 8) * 8 + thread % 4 * 2 + i % 2] = d[i];
}

int wrong = 0;
template <int which>
void check(float* out) {
  outer_product<which><<<1, 128>>>(out);
  if (cudaDeviceSynchronize() != cudaSuccess) ++wrong;
  for (int i = 0; i < 64 * 8; ++i) wrong += out[i] != static_cast<float>(i / 8 * (i % 8 + 1) + which);
}

template <int... which>
void check_all(float* out, std::integer_sequence<int, which...>) { (check<which>(out), ...); }

int main() {
  float* out;
  cudaMallocManaged(&out, 64 * 8 * sizeof(float));
  check_all(out, std::make_integer_sequence<int, 12>());
  std::printf(wrong ? "FAIL: %d\n" : "PASS\n", wrong);
  return wrong != 0;
}
