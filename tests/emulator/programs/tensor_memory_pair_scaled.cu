// Block-scaled products of a pair of blocks, M = 256: A, its scale factors and D are split by rows, B by columns. Each
// block holds the scale factors of all of B's columns (PTX ISA 9.0, 9.7.16.5.1, 9.7.16.10.5 and 9.7.16.10.7).
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

constexpr int kM = 256, kN = 64, kRows = kM / 2, kColumns = kN / 2, kRowBytes = 32, kScaleBytes = 512;
constexpr int kScalesA = 64, kScalesB = 68, kAllocated = 128;  // columns of tensor memory
enum Kind { kNv4, kMx4, kMx8 };

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void meet_cluster() { asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); }
/// Rows of 16-byte pieces, without swizzling: eight rows are 128 bytes, and the next piece along K lies behind them.
__device__ uint64_t descriptor(const void* tile, uint64_t between_eight_rows) {
  return (shared_address(tile) & 0x3ffff) >> 4 | uint64_t{128 >> 4} << 16 | between_eight_rows >> 4 << 32 | uint64_t{1} << 46;
}
__device__ void put_rows(uint8_t* tile, const uint8_t* from, int rows) {
  for (int i = threadIdx.x; i < rows * 2; i += blockDim.x) {
    const int row = i / 2, piece = i % 2;
    *reinterpret_cast<uint4*>(tile + row / 8 * 256 + piece * 128 + row % 8 * 16) = *reinterpret_cast<const uint4*>(from + row * kRowBytes + piece * 16);
  }
}
#define MULTIPLY(kind)                                                                                                            \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\ntcgen05.mma.cta_group::2." kind " [%0], %1, %2, %3, [%4], [%5], p;\n}" :: \
                   "r"(d), "l"(descriptor(tile_a, 256)), "l"(descriptor(tile_b, 256)), "r"(instruction), "r"(d + kScalesA),       \
               "r"(d + kScalesB), "r"(0))

template <int kKind>
__global__ void __cluster_dims__(2, 1, 1) multiply(const uint8_t* a, const uint8_t* b, const uint8_t* scales_a, const uint8_t* scales_b, float* c) {
  __shared__ __align__(1024) uint8_t tile_a[kRows * kRowBytes], tile_b[kColumns * kRowBytes], of_a[kScaleBytes], of_b[kScaleBytes];
  __shared__ uint64_t barrier;
  __shared__ uint32_t address;
  const uint32_t warp = threadIdx.x / 32;
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  put_rows(tile_a, a + rank * kRows * kRowBytes, kRows);
  put_rows(tile_b, b + rank * kColumns * kRowBytes, kColumns);
  for (int i = threadIdx.x; i < kScaleBytes; i += blockDim.x) {
    of_a[i] = scales_a[rank * kScaleBytes + i];
    of_b[i] = scales_b[i];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)) : "memory");
  meet_cluster();
  if (warp == 0)
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&address)), "r"(kAllocated) : "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  meet_cluster();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const uint32_t d = address;
  if (rank == 0 && threadIdx.x == 0) {
    // e2m1 by e2m1 with scales in e4m3 or in powers of two; e4m3 by e4m3 (PTX ISA 9.0, tables 43 and 44)
    const uint32_t instruction = (kKind == kMx8 ? 0u : 1u << 7 | 1u << 10) | kN >> 3 << 17 | (kKind == kNv4 ? 0u : 1u << 23) | kM >> 7 << 27;
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(d + kScalesA), "l"(descriptor(of_a, 128)) : "memory");
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(d + kScalesB), "l"(descriptor(of_b, 128)) : "memory");
    if constexpr (kKind == kNv4)
      MULTIPLY("kind::mxf4nvf4.block_scale.scale_vec::4X");
    else if constexpr (kKind == kMx4)
      MULTIPLY("kind::mxf4.block_scale.scale_vec::2X");
    else
      MULTIPLY("kind::mxf8f6f4.block_scale.scale_vec::1X");
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "h"(static_cast<uint16_t>(3)) : "memory");
  }
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(shared_address(&barrier)) : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  for (int column = 0; column < kN; ++column) {
    uint32_t word;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(d + (warp * 32 << 16) + column));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    c[(rank * kRows + threadIdx.x) * kN + column] = __uint_as_float(word);
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(d), "r"(kAllocated));
  meet_cluster();
}

template <int kKind>
int wrong_results(const char* name) {
  constexpr int kK = kKind == kMx8 ? 32 : 64, kScales = kKind == kNv4 ? 4 : kKind == kMx4 ? 2 : 1;
  static const float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};              // e2m1
  static const uint8_t kE4m3[] = {0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c};  // the same numbers
  uint8_t *a, *b, *scales_a, *scales_b;
  float* c;
  cudaMallocManaged(&a, kM * kRowBytes);
  cudaMallocManaged(&b, kN * kRowBytes);
  cudaMallocManaged(&scales_a, 2 * kScaleBytes);
  cudaMallocManaged(&scales_b, kScaleBytes);
  cudaMallocManaged(&c, kM * kN * sizeof *c);
  auto code = [](int row, int k, int side) { return (row * 3 + k * 5 + row * k + side) % 16; };  // bit 3 is the sign
  auto value = [&](int row, int k, int side) { return kValues[code(row, k, side) & 7] * (code(row, k, side) & 8 ? -1 : 1); };
  auto power = [](int row, int s, int side) { return (row + s * 2 + side) % 4 - 1; };  // scale factors 0.5 to 4
  auto fill = [&](uint8_t* to, int rows, int side) {
    std::memset(to, 0, rows * kRowBytes);
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < kK; ++k) {
        const int bits = code(row, k, side);
        if (kKind == kMx8)
          to[row * kRowBytes + k] = static_cast<uint8_t>(kE4m3[bits & 7] | (bits & 8) << 4);
        else
          to[row * kRowBytes + k / 2] |= static_cast<uint8_t>(bits << k % 2 * 4);
      }
  };
  fill(a, kM, 0);
  fill(b, kN, 1);
  // Row r of 128: lane r % 32, word r / 32.
  auto fill_scales = [&](uint8_t* to, int rows, int first, int side) {
    std::memset(to, 0, kScaleBytes);
    for (int row = 0; row < rows; ++row)
      for (int s = 0; s < kScales; ++s)
        to[row % 32 * 16 + row / 32 * 4 + s] = static_cast<uint8_t>(kKind == kNv4 ? 0x38 + 8 * power(first + row, s, side) : 127 + power(first + row, s, side));
  };
  fill_scales(scales_a, kRows, 0, 0);
  fill_scales(scales_a + kScaleBytes, kRows, kRows, 0);
  fill_scales(scales_b, kN, 0, 1);
  multiply<kKind><<<2, 128>>>(a, b, scales_a, scales_b, c);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  for (int row = 0; row < kM; ++row)
    for (int column = 0; column < kN; ++column) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) {
        const int s = k / (kK / kScales);
        sum += std::ldexp(value(row, k, 0) * value(column, k, 1), power(row, s, 0) + power(column, s, 1));
      }
      wrong += c[row * kN + column] != sum;
    }
  if (wrong) std::printf("%s: %d wrong\n", name, wrong);
  return wrong;
}

int main() {
  const int wrong = wrong_results<kNv4>("mxf4nvf4") + wrong_results<kMx4>("mxf4") + wrong_results<kMx8>("mxf8f6f4");
  std::puts(wrong ? "FAIL" : "PASS");
}
