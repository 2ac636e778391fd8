// A tile of a product whose operands tensor copies bring: the argument 0 is right, and so is 3, where threads
// rearrange the tile. 1 and 2 multiply a tile that lies in another layout than the descriptor says.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cudaTypedefs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int kM = 128, kN = 32, kK = 64;

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void begin_barrier(uint64_t* b) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(b)) : "memory"); }
__device__ void await(uint64_t* b) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(shared_address(b)) : "memory");
}
__device__ void load_tile(const CUtensorMap* map, void* to, uint64_t* full) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];" ::"r"(shared_address(to)), "l"(map), "r"(shared_address(full)) : "memory");
}
__device__ uint64_t descriptor(const void* tile, uint64_t mode) {
  return (shared_address(tile) & 0x3ffff) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 46 | mode << 61;
}

__global__ void tile(int mistake, const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* out) {
  __shared__ __align__(1024) __nv_bfloat16 a[kM * kK], b[kN * kK];
  __shared__ uint64_t full, done;
  __shared__ uint32_t address;
  const int thread = threadIdx.x, warp = thread / 32;
  if (warp == 0) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(&address)) : "memory");
  if (thread == 0) {
    begin_barrier(&full);
    begin_barrier(&done);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&full)), "r"((kM + kN) * kK * 2) : "memory");
    load_tile(&map_a, a, &full);
    load_tile(&map_b, b, &full);
  }
  __syncthreads();
  await(&full);
  if (mistake == 3) {  // the tile came without swizzling
    uint4 row[8];
    for (int i = 0; i < 8; ++i) row[i] = reinterpret_cast<uint4*>(a)[thread * 8 + i];
    for (int i = 0; i < 8; ++i) reinterpret_cast<uint4*>(a)[thread * 8 + (i ^ thread % 8)] = row[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  const uint32_t d = address;
  if (thread == 0) {
    const uint32_t instruction = 1 << 4 | 1 << 7 | 1 << 10 | kN >> 3 << 17 | kM >> 4 << 24;
    for (int k = 0; k < kK; k += 16)
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
                   "l"(descriptor(a, mistake == 2 ? 4 : 2) + k / 8), "l"(descriptor(b, 2) + k / 8), "r"(instruction), "r"(k));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(&done)) : "memory");
  }
  await(&done);
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  for (int column = 0; column < kN; ++column) {
    uint32_t word;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(d + (warp * 32 << 16) + column));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    out[thread * kN + column] = __uint_as_float(word);
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(d));
}

CUtensorMap make_map(__nv_bfloat16* p, int rows, CUtensorMapSwizzle swizzle) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
#else
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
  CUtensorMap map;
  const cuuint64_t extents[] = {kK, cuuint64_t(rows)}, strides[] = {kK * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {kK, cuuint32_t(rows)}, steps[] = {1, 1};
  if (result != cudaDriverEntryPointSuccess ||
      reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, p, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                                                    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    std::exit(2);
  return map;
}

int main(int, char** arguments) {
  const int mistake = std::atoi(arguments[1]);
  __nv_bfloat16 *a, *b;
  float* out;
  cudaMallocManaged(&a, kM * kK * 2);
  cudaMallocManaged(&b, kN * kK * 2);
  cudaMallocManaged(&out, kM * kN * 4);
  auto left = [](int i) { return static_cast<float>(i * 7 % 11 - 5); };
  auto right = [](int i) { return static_cast<float>(i * 5 % 7 - 3); };
  for (int i = 0; i < kM * kK; ++i) a[i] = __float2bfloat16(left(i));
  for (int i = 0; i < kN * kK; ++i) b[i] = __float2bfloat16(right(i));
  tile<<<1, 128>>>(mistake, make_map(a, kM, mistake % 2 ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B), make_map(b, kN, CU_TENSOR_MAP_SWIZZLE_128B), out);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  for (int row = 0; row < kM; ++row)
    for (int column = 0; column < kN; ++column) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += left(row * kK + k) * right(column * kK + k);
      if (out[row * kN + column] != sum) return std::puts("FAIL"), 1;
    }
  std::puts("PASS");
}
