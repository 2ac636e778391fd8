// A product as on Hopper: TMA loads of swizzled tiles, wgmma from shared memory, one warp group.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cudaTypedefs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int BM = 64, BN = 64, BK = 64;

__device__ __forceinline__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ uint64_t encode(uint64_t x) { return (x & 0x3FFFF) >> 4; }
__device__ uint64_t make_descriptor(const __nv_bfloat16* p) {
  uint64_t d = encode(smem(p));
  d |= encode(16) << 16;
  d |= encode(1024) << 32;
  d |= 1ull << 62;  // 128-byte swizzle
  return d;
}
__device__ void wgmma64(float d[32], const __nv_bfloat16* a, const __nv_bfloat16* b) {
  uint64_t da = make_descriptor(a), db = make_descriptor(b);
  asm volatile(
      "{\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, %34, %35, %36, %37, %38;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
        "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]),
        "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(da), "l"(db), "n"(1), "n"(1), "n"(1), "n"(0), "n"(0));
}

__global__ void __launch_bounds__(128) gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                                            float* c, int n, int k) {
  __shared__ alignas(1024) __nv_bfloat16 a[BM * BK], b[BN * BK];
  __shared__ alignas(8) uint64_t full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(&full)), "r"(1));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  float d[32] = {};
  int phase = 0;
  for (int at = 0; at < k; at += BK, phase ^= 1) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(&full)), "r"((BM + BN) * BK * 2) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(smem(a)),
                   "l"(&map_a), "r"(smem(&full)), "r"(at), "r"(blockIdx.y * BM) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(smem(b)),
                   "l"(&map_b), "r"(smem(&full)), "r"(at), "r"(blockIdx.x * BN) : "memory");
    }
    uint32_t ready = 0;
    while (!ready)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(ready) : "r"(smem(&full)), "r"(phase) : "memory");
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
    for (int kk = 0; kk < BK; kk += 16) wgmma64(d, a + kk, b + kk);
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(0) : "memory");
    __syncthreads();
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = blockIdx.y * BM + warp * 16 + lane / 4, column = blockIdx.x * BN + lane % 4 * 2;
  for (int w = 0; w < BN / 8; ++w)
    for (int i = 0; i < 4; ++i) c[(row + i / 2 * 8) * n + column + w * 8 + i % 2] = d[w * 4 + i];
}

static PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
#else
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
  return result == cudaDriverEntryPointSuccess ? (PFN_cuTensorMapEncodeTiled_v12000)function : nullptr;
}

static CUtensorMap make_map(__nv_bfloat16* p, int rows, int columns, int box_rows) {
  CUtensorMap map;
  cuuint64_t extents[] = {cuuint64_t(columns), cuuint64_t(rows)}, strides[] = {columns * sizeof(__nv_bfloat16)};
  cuuint32_t box[] = {BK, cuuint32_t(box_rows)}, steps[] = {1, 1};
  CUresult r = encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, p, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r != CUDA_SUCCESS) {
    printf("cannot make the tensor map\n");
    exit(1);
  }
  return map;
}

int main() {
  const int m = 128, n = 64, k = 128;
  std::vector<__nv_bfloat16> a(m * k), b(n * k);
  for (int i = 0; i < m * k; ++i) a[i] = __float2bfloat16(float(i * 7 % 11 - 5));
  for (int i = 0; i < n * k; ++i) b[i] = __float2bfloat16(float(i * 5 % 7 - 3));
  __nv_bfloat16 *da, *db;
  float* dc;
  cudaMalloc(&da, a.size() * 2);
  cudaMalloc(&db, b.size() * 2);
  cudaMalloc(&dc, m * n * 4);
  cudaMemcpy(da, a.data(), a.size() * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), b.size() * 2, cudaMemcpyHostToDevice);
  gemm<<<dim3(n / BN, m / BM), 128>>>(make_map(da, m, k, BM), make_map(db, n, k, BN), dc, n, k);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::vector<float> c(m * n);
  cudaMemcpy(c.data(), dc, m * n * 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float want = 0;
      for (int x = 0; x < k; ++x) want += __bfloat162float(a[i * k + x]) * __bfloat162float(b[j * k + x]);
      if (c[i * n + j] != want) {
        printf("FAIL at %d,%d: %f, not %f\n", i, j, c[i * n + j], want);
        return 1;
      }
    }
  printf("PASS\n");
}
