// wgmma of 8-bit floats: both types on either side, A from shared memory and from registers, sums begun and
// continued. Compared with a plain product; small whole numbers are exact.
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

constexpr int kRows = 64, kColumns = 8, kDepth = 128;

__host__ __device__ float a_value(int row, int k) { return float((row * 3 + k * 5) % 15 - 7); }
__host__ __device__ float b_value(int column, int k) { return float((column * 5 + k * 3) % 9 - 4) * 0.25f; }

/// 16-byte piece p of row r lies at p ^ (r % 8).
template <class E>
__device__ void put(uint8_t* tile, int row, int k, float value) {
  const E element(value);
  tile[row * kDepth + ((k / 16) ^ (row % 8)) * 16 + k % 16] = element.__x;
}
__device__ uint64_t matrix(const void* start) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(start));
  return static_cast<uint64_t>((address & 0x3ffff) / 16) | uint64_t{1024 / 16} << 32 | uint64_t{1} << 62;
}

#define SHARED_A(TYPES)                                                                                       \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"                                                    \
               "wgmma.mma_async.sync.aligned.m64n8k32.f32." TYPES " {%0, %1, %2, %3}, %4, %5, p, 1, 1;\n}"     \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                               \
               : "l"(matrix(a + k)), "l"(matrix(b + k)), "r"(int(k > 0)))
#define REGISTER_A(TYPES)                                                                                      \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %9, 0;\n"                                                    \
               "wgmma.mma_async.sync.aligned.m64n8k32.f32." TYPES                                              \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1;\n}"                                          \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                               \
               : "r"(word(0, k)), "r"(word(8, k)), "r"(word(0, k + 16)), "r"(word(8, k + 16)),                 \
                 "l"(matrix(b + k)), "r"(int(k > 0)))

template <class A, class B, int kWhich>
__global__ void multiply(float* c) {
  __shared__ __align__(1024) uint8_t a[kRows * kDepth], b[kColumns * kDepth];
  for (int i = threadIdx.x; i < kRows * kDepth; i += blockDim.x) put<A>(a, i / kDepth, i % kDepth, a_value(i / kDepth, i % kDepth));
  for (int i = threadIdx.x; i < kColumns * kDepth; i += blockDim.x) put<B>(b, i / kDepth, i % kDepth, b_value(i / kDepth, i % kDepth));
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, near = threadIdx.x % 4;
  auto word = [&](int below, int k) {  // four elements of A, along k
    uint32_t packed = 0;
    for (int i = 0; i < 4; ++i) packed |= static_cast<uint32_t>(A(a_value(row + below, k + near * 4 + i)).__x) << (8 * i);
    return packed;
  };
  float d[4] = {1000, 1000, 1000, 1000};  // the first product replaces it
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int k = 0; k < kDepth; k += 32) {
    if constexpr (kWhich == 0) SHARED_A("e4m3.e4m3");
    if constexpr (kWhich == 1) SHARED_A("e4m3.e5m2");
    if constexpr (kWhich == 2) SHARED_A("e5m2.e5m2");
    if constexpr (kWhich == 3) REGISTER_A("e4m3.e4m3");
    if constexpr (kWhich == 4) REGISTER_A("e5m2.e4m3");
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) c[(row + i / 2 * 8) * kColumns + near * 2 + i % 2] = d[i];
}

template <class A, class B, int kWhich>
bool check(float* c) {
  multiply<A, B, kWhich><<<1, 128>>>(c);
  if (cudaDeviceSynchronize() != cudaSuccess) return false;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      float want = 0;
      for (int k = 0; k < kDepth; ++k) want += float(A(a_value(row, k))) * float(B(b_value(column, k)));
      if (c[row * kColumns + column] != want) {
        printf("FAIL in %d at %d,%d: %f, not %f\n", kWhich, row, column, c[row * kColumns + column], want);
        return false;
      }
    }
  return true;
}

int main() {
  float* c;
  cudaMallocManaged(&c, kRows * kColumns * sizeof(float));
  using E4 = __nv_fp8_e4m3;
  using E5 = __nv_fp8_e5m2;
  if (!check<E4, E4, 0>(c) || !check<E4, E5, 1>(c) || !check<E5, E5, 2>(c) || !check<E4, E4, 3>(c) || !check<E5, E4, 4>(c)) return 1;
  printf("PASS\n");
}
