// The first rungs of a bf16 product on Blackwell, at ragged sizes: TMA into swizzled tiles, tcgen05.mma into tensor
// memory, an epilogue through tcgen05.ld. In the first rung one thread loads and multiplies in turn; in the second a
// warp loads, a warp multiplies, and four warps write, through two stages of tiles.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cudaTypedefs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kM = 128, kN = 32, kK = 64;
constexpr uint32_t kStageBytes = (kM + kN) * kK * 2;
// f32 = bf16 x bf16, both K-major (PTX ISA 9.0, table 42)
constexpr uint32_t kInstruction = 1 << 4 | 1 << 7 | 1 << 10 | kN >> 3 << 17 | kM >> 4 << 24;

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void begin_barrier(uint64_t* b) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(b)) : "memory"); }
__device__ void await(uint64_t* b, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(shared_address(b)), "r"(parity) : "memory");
}
__device__ void fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
__device__ void load_tile(const CUtensorMap* map, void* to, uint64_t* full, int k, int row) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
               "l"(map), "r"(shared_address(full)), "r"(k), "r"(row) : "memory");
}
__device__ uint64_t descriptor(const void* tile) {  // K-major, 128-byte swizzle
  return (shared_address(tile) & 0x3ffff) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 46 | uint64_t{2} << 61;
}

struct Stage {
  __nv_bfloat16 a[kM * kK], b[kN * kK];
};
__device__ void load_stage(const CUtensorMap* a, const CUtensorMap* b, Stage& stage, uint64_t* full, int k) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(full)), "r"(kStageBytes) : "memory");
  load_tile(a, stage.a, full, k, blockIdx.y * kM);
  load_tile(b, stage.b, full, k, blockIdx.x * kN);
}
/// Four instructions of 16 along K, then the barrier is told.
__device__ void multiply_stage(const Stage& stage, uint32_t d, bool first, uint64_t* done) {
  for (int k = 0; k < kK; k += 16)
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
                 "l"(descriptor(stage.a) + k / 8), "l"(descriptor(stage.b) + k / 8), "r"(kInstruction), "r"(static_cast<int>(!first || k > 0)));
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(done)) : "memory");
}
/// A row of D for each thread of four warps.
__device__ void write_rows(uint32_t d, float* c, int m, int n) {
  const int row = blockIdx.y * kM + threadIdx.x;
  for (int at = 0; at < kN; at += 4) {
    uint32_t r[4];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(d + (threadIdx.x / 32 * 32 << 16) + at));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int i = 0; i < 4; ++i)
      if (row < m && blockIdx.x * kN + at + i < n) c[row * n + blockIdx.x * kN + at + i] = __uint_as_float(r[i]);
  }
}
__device__ void allocate(uint32_t* place) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(place)) : "memory");
}
__device__ void release(uint32_t d) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(d));
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}

__global__ void __launch_bounds__(128) one_thread(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int m, int n, int k) {
  __shared__ __align__(1024) Stage stage;
  __shared__ uint64_t full, empty, done;  // the others wait for one phase only, which must be the first
  __shared__ uint32_t address;
  if (threadIdx.x < 32) allocate(&address);
  if (threadIdx.x == 0) {
    begin_barrier(&full);
    begin_barrier(&empty);
    begin_barrier(&done);
  }
  __syncthreads();
  const int steps = (k + kK - 1) / kK;
  if (threadIdx.x == 0)
    for (int step = 0; step < steps; ++step) {
      load_stage(&a, &b, stage, &full, step * kK);
      await(&full, step & 1);
      const bool last = step + 1 == steps;
      multiply_stage(stage, address, step == 0, last ? &done : &empty);
      if (!last) await(&empty, step & 1);
    }
  await(&done, 0);
  fence_after();
  write_rows(address, c, m, n);
  __syncthreads();
  if (threadIdx.x < 32) release(address);
}

__global__ void __launch_bounds__(192) specialised(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int m, int n, int k) {
  __shared__ __align__(1024) Stage stages[2];
  __shared__ uint64_t full[2], empty[2], done;
  __shared__ uint32_t address;
  const int warp = threadIdx.x / 32;
  if (warp == 5) allocate(&address);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      begin_barrier(&full[i]);
      begin_barrier(&empty[i]);
    }
    begin_barrier(&done);
  }
  __syncthreads();
  const int steps = (k + kK - 1) / kK;
  if (threadIdx.x == 128)
    for (int step = 0; step < steps; ++step) {
      if (step >= 2) await(&empty[step % 2], (step / 2 - 1) & 1);
      load_stage(&a, &b, stages[step % 2], &full[step % 2], step * kK);
    }
  if (threadIdx.x == 160)
    for (int step = 0; step < steps; ++step) {
      await(&full[step % 2], step / 2 & 1);
      multiply_stage(stages[step % 2], address, step == 0, step + 1 < steps ? &empty[step % 2] : &done);
    }
  __syncwarp();
  if (warp < 4) {
    await(&done, 0);
    fence_after();
    write_rows(address, c, m, n);
    fence_before();
  }
  __syncthreads();
  if (warp == 5) release(address);
}

static CUtensorMap make_map(__nv_bfloat16* p, int rows, int columns, int box_rows) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
#else
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
  CUtensorMap map;
  cuuint64_t extents[] = {cuuint64_t(columns), cuuint64_t(rows)}, strides[] = {columns * sizeof(__nv_bfloat16)};
  cuuint32_t box[] = {kK, cuuint32_t(box_rows)}, steps[] = {1, 1};
  if (result != cudaDriverEntryPointSuccess ||
      reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, p, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                                                    CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
    std::printf("cannot make the tensor map\n");
    std::exit(1);
  }
  return map;
}

int main() {
  const int m = 150, n = 40, k = 200;
  __nv_bfloat16 *a, *b;
  float* c;
  cudaMallocManaged(&a, m * k * 2);
  cudaMallocManaged(&b, n * k * 2);
  cudaMallocManaged(&c, m * n * 4);
  std::vector<float> left(m * k), right(n * k);
  for (int i = 0; i < m * k; ++i) a[i] = __float2bfloat16(left[i] = float(i * 7 % 11 - 5));
  for (int i = 0; i < n * k; ++i) b[i] = __float2bfloat16(right[i] = float(i * 5 % 7 - 3));
  const CUtensorMap map_a = make_map(a, m, k, kM), map_b = make_map(b, n, k, kN);
  const dim3 grid((n + kN - 1) / kN, (m + kM - 1) / kM);
  int wrong = 0;
  for (int rung = 0; rung < 2; ++rung) {
    for (int i = 0; i < m * n; ++i) c[i] = -1;
    if (rung == 0)
      one_thread<<<grid, 128>>>(map_a, map_b, c, m, n, k);
    else
      specialised<<<grid, 192>>>(map_a, map_b, c, m, n, k);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int x = 0; x < k; ++x) sum += left[i * k + x] * right[j * k + x];
        wrong += c[i * n + j] != sum;
      }
  }
  if (wrong) std::printf("%d wrong\n", wrong);
  std::puts(wrong ? "FAIL" : "PASS");
}
