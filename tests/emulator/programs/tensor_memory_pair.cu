// tcgen05 of a pair of blocks (.cta_group::2): one thread multiplies for both. A and D are split by rows, B by columns
// (PTX ISA 9.0, 9.7.16.5.1; layouts A and B of 9.7.16.10.5). Four steps along K, descriptors advanced inside a
// swizzled row; the commit tells the barriers of both blocks. Also with a sparse A: each block's tensor memory holds the
// indices of its own rows, laid out as in figure 263.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int kN = 64, kK = 64;

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
/// 128-byte swizzle: 16-byte piece p of row r lies at p ^ (r % 8).
__device__ uint64_t descriptor(const void* tile) {
  return (shared_address(tile) & 0x3ffff) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 46 | uint64_t{2} << 61;
}
__device__ void put_rows(__nv_bfloat16* tile, const __nv_bfloat16* from, int rows) {
  for (int i = threadIdx.x; i < rows * kK; i += blockDim.x) {
    const int row = i / kK, k = i % kK;
    tile[row * kK + ((k / 8) ^ (row % 8)) * 8 + k % 8] = from[i];
  }
}

/// Which two of four elements the row's group has (9.7.16.10.8.2).
__host__ __device__ uint32_t indices(int row, int group) {
  constexpr uint32_t kMeaningful[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110};
  return kMeaningful[(row * 3 + group) % 7];
}
/// The word of `lane` for step `step` along K, 32 elements: rows r and r + 8, four groups each.
__device__ uint32_t metadata(uint32_t rank, uint32_t lane, int step) {
  uint32_t word = 0;
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 4; ++i)
      word |= indices(rank * 128 + lane / 16 * 16 + half * 8 + lane % 8, step * 8 + lane / 8 % 2 * 4 + i) << (half * 16 + i * 4);
  return word;
}

/// @tparam kSparse  the first half of each of A's rows holds its elements that are not 0
template <int kM, bool kSparse>
__global__ void __cluster_dims__(2, 1, 1) multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  constexpr int kRows = kM / 2, kColumns = kM == 256 ? kN : kN / 2;  // of D in one block's tensor memory
  __shared__ __align__(1024) __nv_bfloat16 tile_a[kRows * kK], tile_b[kN / 2 * kK];
  __shared__ uint64_t barrier;
  __shared__ uint32_t address;
  const uint32_t warp = threadIdx.x / 32;
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  put_rows(tile_a, a + rank * kRows * kK, kRows);
  put_rows(tile_b, b + rank * (kN / 2) * kK, kN / 2);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)) : "memory");
  meet_cluster();
  if (warp == 0)
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(shared_address(&address)) : "memory");
  if (kSparse) {  // columns 64 and 65
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    asm volatile("tcgen05.st.sync.aligned.32x32b.x2.b32 [%0], {%1, %2};" ::"r"(address + (warp * 32 << 16) + 64),
                 "r"(metadata(rank, threadIdx.x, 0)), "r"(metadata(rank, threadIdx.x, 1)));
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  meet_cluster();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const uint32_t d = address;
  if (rank == 0 && threadIdx.x == 0) {
    const uint32_t instruction = 1 << 4 | 1 << 7 | 1 << 10 | kN >> 3 << 17 | kM >> 4 << 24;  // f32 = bf16 x bf16
    for (int step = 0; kSparse && step < 2; ++step)  // the step is the metadata's selector
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\ntcgen05.mma.sp.cta_group::2.kind::f16 [%0], %1, %2, [%4], %3, p;\n}" ::"r"(d),
                   "l"(descriptor(tile_a) + step * 32 / 16), "l"(descriptor(tile_b) + step * 64 / 16), "r"(instruction | 1 << 2 | step),
                   "r"(d + 64), "r"(step));
    for (int k = 0; !kSparse && k < kK; k += 16)
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
                   "l"(descriptor(tile_a) + k * 2 / 16), "l"(descriptor(tile_b) + k * 2 / 16), "r"(instruction), "r"(k));
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "h"(static_cast<uint16_t>(3)) : "memory");
  }
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(shared_address(&barrier)) : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  for (int column = 0; column < kColumns; ++column) {
    uint32_t word;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(d + (warp * 32 << 16) + column));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    // layout B: the second half of the columns lies in lanes 64 to 127
    const int row = rank * kRows + threadIdx.x % kRows, at = column + threadIdx.x / kRows * kColumns;
    c[row * kN + at] = __uint_as_float(word);
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (warp == 0) {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 128;" ::"r"(d));
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
  }
  meet_cluster();
}

constexpr int kWords = 32;

/// Block `sender` copies 32 words into both blocks and names the barrier of block `told`: that barrier gets the bytes of
/// both copies, the other one gets none (PTX ISA 9.0, cp.async.bulk.tensor, .multicast::cluster with .cta_group::2).
__global__ void __cluster_dims__(2, 1, 1)
    multicast(const __grid_constant__ CUtensorMap map, uint32_t sender, uint32_t told, int* out) {
  __shared__ __align__(128) int words[kWords];
  __shared__ uint64_t barrier;
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const uint32_t bytes = rank == told ? 2 * sizeof words : 0;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes) : "memory");
  }
  meet_cluster();
  if (rank == sender && threadIdx.x == 0) {
    uint32_t named;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(named) : "r"(shared_address(&barrier)), "r"(told));
    asm volatile(
        "cp.async.bulk.tensor.1d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2}], [%3], %4;" ::"r"(shared_address(words)),
        "l"(&map), "r"(0), "r"(named), "h"(static_cast<uint16_t>(3))
        : "memory");
  }
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(shared_address(&barrier)) : "memory");
  meet_cluster();  // the block that was told knows that both copies are there
  out[rank * kWords + threadIdx.x] = words[threadIdx.x];
}

int wrong_words() {
  int *from, *to;
  cudaMallocManaged(&from, kWords * sizeof *from);
  cudaMallocManaged(&to, 2 * kWords * sizeof *to);
  for (int i = 0; i < kWords; ++i) from[i] = i * i + 1;
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);
  CUtensorMap map;
  cuuint64_t extent[] = {kWords}, stride[] = {kWords * sizeof *from};
  cuuint32_t box[] = {kWords}, step[] = {1};
  if (!encode ||
      ((PFN_cuTensorMapEncodeTiled_v12000)encode)(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 1, from, extent, stride, box, step,
                                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    return 1;
  int wrong = 0;
  for (uint32_t sender = 0; sender < 2; ++sender)
    for (uint32_t told = 0; told < 2; ++told) {
      for (int i = 0; i < 2 * kWords; ++i) to[i] = 0;
      multicast<<<2, kWords>>>(map, sender, told, to);
      if (cudaDeviceSynchronize() != cudaSuccess) return 1;
      for (int i = 0; i < 2 * kWords; ++i) wrong += to[i] != from[i % kWords];
    }
  return wrong;
}

template <int kM, bool kSparse = false>
int wrong_results() {
  __nv_bfloat16 *a, *b;
  float* c;
  cudaMallocManaged(&a, kM * kK * sizeof *a);
  cudaMallocManaged(&b, kN * kK * sizeof *b);
  cudaMallocManaged(&c, kM * kN * sizeof *c);
  auto left = [](int row, int k) { return static_cast<float>((row * 3 + k * 5) % 13 - 6); };
  auto right = [](int column, int k) { return static_cast<float>((column * 7 + k) % 11 - 5) * 0.5f; };
  for (int i = 0; i < kM * kK; ++i) a[i] = __float2bfloat16(left(i / kK, i % kK));
  for (int i = 0; i < kN * kK; ++i) b[i] = __float2bfloat16(right(i / kK, i % kK));
  multiply<kM, kSparse><<<2, 128>>>(a, b, c);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int row = 0; row < kM; ++row)
    for (int column = 0; column < kN; ++column) {
      float sum = 0;
      for (int k = 0; !kSparse && k < kK; ++k) sum += left(row, k) * right(column, k);
      for (int k = 0; kSparse && k < kK / 2; ++k)
        sum += left(row, k) * right(column, k / 2 * 4 + (indices(row, k / 2) >> k % 2 * 2 & 3));
      wrong += c[row * kN + column] != sum;
    }
  return wrong;
}

int main() {
  const int large = wrong_results<256>(), small = large ? 0 : wrong_results<128>();
  const int sparse = wrong_results<256, true>(), words = wrong_words();
  if (large || small || sparse || words)
    std::printf("M = 256: %d wrong, M = 128: %d wrong, sparse: %d wrong, multicast: %d wrong\n", large, small, sparse, words);
  std::puts(large || small || sparse || words ? "FAIL" : "PASS");
}
