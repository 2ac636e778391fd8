// Races around synchronisation other than __syncthreads(): each correct kernel is not reported, and the same
// kernel without its wait is. One file holds all kernels; x[0] says which one runs, x[1] whether the wait is
// there.
#include <gtest/gtest.h>

#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

constexpr int kInputs = 4096, kOutputs = 512;

const std::string kSource = R"(
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cudaTypedefs.h>
namespace cg = cooperative_groups;

__device__ unsigned smem(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void mbarrier_init(uint64_t* b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(b)), "r"(count));
}
__device__ void mbarrier_arrive(uint64_t* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(b)) : "memory"); }
__device__ void mbarrier_expect(uint64_t* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(b)), "r"(bytes) : "memory");
}
__device__ void mbarrier_wait(uint64_t* b, int phase) {
  unsigned ready = 0;
  while (!ready)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(ready) : "r"(smem(b)), "r"(phase) : "memory");
}
__device__ void load_bulk(void* to, const void* from, int bytes, uint64_t* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(smem(to)), "l"(from),
               "r"(bytes), "r"(smem(b)) : "memory");  // bulk load
}
__device__ void store_bulk(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(smem(from)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void named_barrier(const float* x, float* y, bool wait) {  // two warps fill, two warps read
  __shared__ float tile[64];
  if (threadIdx.x < 64) {
    tile[threadIdx.x] = x[threadIdx.x];
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    if (wait) asm volatile("bar.sync 1, 128;" ::: "memory");
    y[threadIdx.x] = tile[127 - threadIdx.x];
  }
}
__global__ void tile_of_two_warps(const float* x, float* y, bool wait) {
  __shared__ float s[128];
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  s[threadIdx.x] = x[threadIdx.x];
  if (wait) tile.sync();
  y[threadIdx.x] = s[threadIdx.x ^ 63] + cg::reduce(tile, 1.f, cg::plus<float>());
}
__global__ void block_barrier(const float* x, float* y, bool wait) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ float tile[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  tile[threadIdx.x] = x[threadIdx.x];
  auto token = bar.arrive();
  if (wait) bar.wait(std::move(token));
  y[threadIdx.x] = tile[127 - threadIdx.x];
}
__global__ void copy_with_barrier(const float* x, float* y, bool wait) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) float tile[128];
  auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  block.sync();
  cuda::memcpy_async(block, tile, x, sizeof tile, bar);
  if (wait) bar.arrive_and_wait();
  y[threadIdx.x] = tile[127 - threadIdx.x];
}
__global__ void pipeline_of_a_thread(const float* x, float* y, bool wait) {
  __shared__ float tile[128];
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], sizeof(float), pipe);
  pipe.producer_commit();
  if (wait) pipe.consumer_wait();
  y[threadIdx.x] = tile[threadIdx.x];
  pipe.consumer_release();
}
__global__ void pipeline_of_a_block(const float* x, float* y, bool wait) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) float tile[2][128];
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int i = 0; i < 2; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, tile[i], x + i * 128, sizeof tile[i], pipe);
    pipe.producer_commit();
  }
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (wait || i < 1) pipe.consumer_wait();
    sum += tile[i % 2][127 - threadIdx.x];
    pipe.consumer_release();
    pipe.producer_acquire();
    cuda::memcpy_async(block, tile[i % 2], x + i * 128, sizeof tile[i % 2], pipe);
    pipe.producer_commit();
  }
  y[threadIdx.x] = sum;
}
__global__ void hand_made_mbarrier(const float* x, float* y, bool wait) {
  __shared__ uint64_t full;
  __shared__ float tile[32];
  if (threadIdx.x == 0) mbarrier_init(&full, 32);
  __syncthreads();
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = x[threadIdx.x];
    mbarrier_arrive(&full);
  } else {
    if (wait) mbarrier_wait(&full, 0);
    y[threadIdx.x] = tile[threadIdx.x % 32];
  }
}
__global__ void unannounced_mbarrier(const float* x, float* y, bool wait) {  // used before all know that it is initialised
  __shared__ uint64_t full;
  if (threadIdx.x == 0) mbarrier_init(&full, blockDim.x);
  if (wait) __syncthreads();
  mbarrier_arrive(&full);
  y[threadIdx.x] = x[threadIdx.x];
}
__global__ void bulk_load(const float* x, float* y, bool wait) {
  __shared__ uint64_t full;
  __shared__ alignas(128) float tile[128];
  if (threadIdx.x == 0) mbarrier_init(&full, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_expect(&full, sizeof tile);
    load_bulk(tile, x, sizeof tile, &full);
  }
  if (wait) mbarrier_wait(&full, 0);
  y[threadIdx.x] = tile[127 - threadIdx.x];
}
__global__ void one_waits_for_all(const float* x, float* y, bool wait) {
  __shared__ uint64_t full;
  __shared__ alignas(128) float tile[128];
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_expect(&full, sizeof tile);
    load_bulk(tile, x, sizeof tile, &full);
    if (wait) mbarrier_wait(&full, 0);
  }
  __syncthreads();
  y[threadIdx.x] = tile[127 - threadIdx.x];
}
__global__ void refilled_stage(const float* x, float* y, bool wait) {  // thread 0 loads the next tile into the same place
  __shared__ uint64_t full[3], empty;
  __shared__ alignas(128) float tile[128];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) mbarrier_init(&full[i], 1);
    mbarrier_init(&empty, blockDim.x);
  }
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x == 0) {
      if (wait && i) mbarrier_wait(&empty, (i - 1) & 1);
      mbarrier_expect(&full[i], sizeof tile);
      load_bulk(tile, x + i * 128, sizeof tile, &full[i]);
    }
    mbarrier_wait(&full[i], 0);
    sum += tile[127 - threadIdx.x];
    mbarrier_arrive(&empty);
  }
  y[threadIdx.x] = sum;
}
__global__ void bulk_store(const float* x, float* y, bool wait) {
  __shared__ alignas(128) float tile[128];
  for (int i = 0; i < 2; ++i) {
    tile[threadIdx.x] = x[threadIdx.x] + i;
    __syncthreads();
    if (threadIdx.x == 0) {
      store_bulk(y + i * 128, tile, sizeof tile);
      if (wait) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
}
__global__ void tensor_copy(const __grid_constant__ CUtensorMap map, float* y, bool wait) {
  __shared__ uint64_t full;
  __shared__ alignas(128) float tile[8 * 16];
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_expect(&full, sizeof tile);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(smem(tile)),
                 "l"(&map), "r"(smem(&full)), "r"(16), "r"(8) : "memory");
  }
  __syncthreads();
  if (wait) mbarrier_wait(&full, 0);
  y[threadIdx.x] = tile[127 - threadIdx.x];
}
__global__ void whole_grid(const float* x, float* y, bool wait) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x];
  if (wait) cg::this_grid().sync();
  else __syncthreads();
  const float other = y[(gridDim.x - 1 - blockIdx.x) * blockDim.x + threadIdx.x];
  if (wait) cg::this_grid().sync();
  y[blockIdx.x * blockDim.x + threadIdx.x] = other;
}
__global__ void __cluster_dims__(2, 1, 1) cluster_reads(const float* x, float* y, bool wait) {
  __shared__ float tile[64];
  auto cluster = cg::this_cluster();
  cluster.sync();
  tile[threadIdx.x] = x[threadIdx.x] + cluster.block_rank();
  if (wait) cluster.sync();
  y[blockIdx.x * 64 + threadIdx.x] = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1)[63 - threadIdx.x];
  cluster.sync();
}
__global__ void __cluster_dims__(2, 1, 1) cluster_writes(const float* x, float* y, bool wait) {
  __shared__ float tile[64];
  auto cluster = cg::this_cluster();
  cluster.sync();
  tile[threadIdx.x] = 0;
  if (wait) cluster.sync();  // or the other block's value may come before the 0
  cluster.map_shared_rank(tile, cluster.block_rank() ^ 1)[63 - threadIdx.x] = x[threadIdx.x];
  cluster.sync();
  y[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x];
}
__device__ int turn;
__global__ void atomic_reference(const float* x, float* y, bool wait) {
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(turn);
  if (blockIdx.x == 0) {
    y[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) flag.store(1, cuda::memory_order_release);
  } else {
    while (wait && flag.load(cuda::memory_order_acquire) == 0) {}
    y[64 + threadIdx.x] = y[threadIdx.x];
  }
}
__device__ uint64_t matrix(const void* p) { return uint64_t(smem(p) >> 4) | 8ull << 16 | 16ull << 32; }
__global__ void warp_group_multiply(const float* x, float* y, bool wait) {  // A and B in shared memory, not swizzled
  __shared__ alignas(128) uint32_t a[64 * 8], b[8 * 8];
  for (int i = threadIdx.x; i < 64 * 8; i += 128) a[i] = 0x3f803f80;
  if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80;
  if (wait) __syncthreads();
  float d[4] = {};
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a)), "l"(matrix(b)));
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
  y[threadIdx.x] = d[0] + x[threadIdx.x];
}
__global__ void accumulators(const float* x, float* y, bool wait) {  // two groups; the second goes on with the first's results
  __shared__ alignas(128) uint32_t a[64 * 8], b[8 * 8];
  for (int i = threadIdx.x; i < 64 * 8; i += 128) a[i] = 0x3f803f80;
  if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80;
  __syncthreads();
  float d[4] = {};
  for (int i = 0; i < 2; ++i) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a)), "l"(matrix(b)));  // multiply
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  }
  for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(d[i]) :: "memory");  // as libraries do to keep the compiler in order
  if (wait) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(0) : "memory");
  else asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(1) : "memory");  // the last one is on its way
  y[threadIdx.x] = d[threadIdx.x % 4] + x[threadIdx.x];  // accumulators
}
__global__ void ptx_flag(const float* x, float* y, bool wait) {  // a release carries what came before it, a relaxed store does not
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      y[0] = x[0];
      if (wait) asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(&turn) : "memory");
      else asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(&turn) : "memory");
    }
  } else if (threadIdx.x == 0) {
    for (int seen = 0; !seen;) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(&turn) : "memory");
    y[1] = y[0];
  }
}
__global__ void swap_loop(const float* x, float* y, bool wait) {  // the plain read belongs to the loop, one without a loop does not
  unsigned* word = (unsigned*)y;
  if (threadIdx.x == 0 && blockIdx.x == 0) y[0] = x[2];
  if (blockIdx.x) return;
  __syncthreads();
  if (wait) {
    unsigned old = *word, assumed;
    do {
      assumed = old;
      old = atomicCAS(word, assumed, assumed + 1);
    } while (assumed != old);
  } else {
    atomicAdd(word, 1u);
    y[1 + threadIdx.x] = y[0];
  }
}
__device__ void multiply(float (&d)[4], const uint32_t* a, const uint32_t* b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a)), "l"(matrix(b)));  // of a stage
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Two warp groups multiply, with one group of instructions in flight. One thread of each says that the stage
// is free; it knows this for all four warps. The third warp group writes each stage once, and then two more
// times.
__global__ void freed_stage(const float* x, float* y, bool wait) {
  __shared__ alignas(128) uint32_t a[2][64 * 8], b[2][8 * 8];
  __shared__ uint64_t full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(smem(full + i)));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(smem(empty + i)));
    }
  }
  __syncthreads();
  const auto wait_for = [](uint64_t* barrier, int phase) {
    for (uint32_t done = 0; !done;)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(smem(barrier)), "r"(phase) : "memory");
  };
  const auto arrive = [](uint64_t* barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(barrier)) : "memory"); };
  if (threadIdx.x >= 256) {
    for (int step = 0; step < 6; ++step) {
      const int stage = step % 2;
      if (step >= 2) wait_for(empty + stage, step / 2 % 2 ^ 1);
      for (int i = threadIdx.x - 256; i < 64 * 8; i += 128) a[stage][i] = 0x3f803f80;  // fill
      if (threadIdx.x < 256 + 64) b[stage][threadIdx.x - 256] = 0x3f803f80;
      arrive(full + stage);
    }
    return;
  }
  float d[4] = {};
  for (int step = 0; step < 6; ++step) {
    wait_for(full + step % 2, step / 2 % 2);
    multiply(d, a[step % 2], b[step % 2]);
    if (wait) {
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (step > 0 && threadIdx.x % 128 == step % 4 * 32) arrive(empty + (step - 1) % 2);
    } else {  // as if the one on its way were over
      if (threadIdx.x % 128 == 0) arrive(empty + step % 2);
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  y[blockIdx.x * 256 + threadIdx.x] = d[0];
}
CUtensorMap tensor_map(const float* x) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &result);
#else
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &result);
#endif
  CUtensorMap map;
  cuuint64_t extents[] = {64, 64}, strides[] = {64 * sizeof(float)};
  cuuint32_t box[] = {16, 8}, steps[] = {1, 1};
  ((PFN_cuTensorMapEncodeTiled_v12000)encode)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(x), extents, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}
extern "C" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) {
  bool wait = x[1] != 0;
  turn = 0;
  switch (int(x[0])) {
    case 0: named_barrier<<<1, 128>>>(x, y, wait); break;
    case 1: tile_of_two_warps<<<1, 128>>>(x, y, wait); break;
    case 2: block_barrier<<<1, 128>>>(x, y, wait); break;
    case 3: copy_with_barrier<<<1, 128>>>(x, y, wait); break;
    case 4: pipeline_of_a_thread<<<1, 128>>>(x, y, wait); break;
    case 5: pipeline_of_a_block<<<1, 128>>>(x, y, wait); break;
    case 6: hand_made_mbarrier<<<1, 64>>>(x, y, wait); break;
    case 7: unannounced_mbarrier<<<1, 64>>>(x, y, wait); break;
    case 8: bulk_load<<<1, 128>>>(x, y, wait); break;
    case 9: one_waits_for_all<<<1, 128>>>(x, y, wait); break;
    case 10: refilled_stage<<<1, 128>>>(x, y, wait); break;
    case 11: bulk_store<<<1, 128>>>(x, y, wait); break;
    case 12: tensor_copy<<<1, 128>>>(tensor_map(x), y, wait); break;
    case 13: {
      void* arguments[] = {&x, &y, &wait};
      cudaLaunchCooperativeKernel((void*)whole_grid, dim3(4), dim3(64), arguments, 0, 0);
      break;
    }
    case 14: cluster_reads<<<4, 64>>>(x, y, wait); break;
    case 15: cluster_writes<<<4, 64>>>(x, y, wait); break;
    case 16: atomic_reference<<<2, 64>>>(x, y, wait); break;
    case 17: warp_group_multiply<<<1, 128>>>(x, y, wait); break;
    case 18: accumulators<<<1, 128>>>(x, y, wait); break;
    case 19: freed_stage<<<2, 384>>>(x, y, wait); break;
    case 20: ptx_flag<<<2, 32>>>(x, y, wait); break;
    case 21: swap_loop<<<1, 64>>>(x, y, wait); break;
  }
}
)";

Json observed(int kernel, bool wait, const std::string& schedule) {
  static const EmulatedArtifact artifact = build(kSource, 900, BuildVariant::kInstrumented);
  EXPECT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  if (!artifact.result.ok) return Json::object();
  std::vector<float> x(kInputs, 1.f);
  x[0] = static_cast<float>(kernel);
  x[1] = wait ? 1.f : 0.f;
  Workbench bench(artifact.program, x, kOutputs);
  return bench.observe(schedule);
}

struct Case {
  int kernel;
  std::string name;
};
class Synchronisation : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Hooks, Synchronisation,
                         testing::Values(Case{0, "NamedBarrier"}, Case{1, "TileOfTwoWarps"},
                                         Case{2, "CudaBarrier"}, Case{3, "MemcpyAsyncOnABarrier"},
                                         Case{4, "PipelineOfAThread"}, Case{5, "PipelineOfABlock"},
                                         Case{6, "Mbarrier"}, Case{8, "BulkLoad"},
                                         Case{9, "BulkLoadThatOneThreadWaitsFor"}, Case{10, "RefilledStage"},
                                         Case{11, "BulkStore"}, Case{12, "TensorCopy"}, Case{13, "Grid"},
                                         Case{14, "ReadsAcrossACluster"}, Case{15, "WritesAcrossACluster"},
                                         Case{16, "AtomicReference"}, Case{17, "WarpGroupMultiply"},
                                         Case{18, "Accumulators"}, Case{19, "StageOfWarpGroups"},
                                         Case{20, "FlagThroughPtx"}, Case{21, "CompareAndSwapLoop"}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Synchronisation, IsNotAccusedWithItsWait) {
  for (const std::string& schedule : kSchedules) {
    const Json answer = observed(GetParam().kernel, true, schedule);
    EXPECT_TRUE(answer.value("ok", false)) << schedule << answer.dump(1);
    EXPECT_EQ(answer.value("report", Json::object()).value("findings", Json()), Json::array()) << schedule;
  }
}

TEST_P(Synchronisation, IsARaceWithoutItsWaitUnderEverySchedule) {
  for (const std::string& schedule : kSchedules) {
    const Json answer = observed(GetParam().kernel, false, schedule);
    EXPECT_FALSE(answer.value("ok", true)) << schedule;
    const Json findings = answer.value("report", Json::object()).value("findings", Json::array());
    ASSERT_FALSE(findings.empty()) << schedule << answer.dump();
    EXPECT_EQ(findings[0].value("kind", ""), "race") << schedule << findings.dump(1);
  }
}

TEST(HooksMbarriers, UseBeforeAllKnowOfTheInitialisationIsNamed) {
  EXPECT_TRUE(observed(7, true, "forward").value("ok", false));
  EXPECT_EQ(observed(7, false, "forward")["report"]["findings"][0].value("kind", ""), "race");
  EXPECT_NE(observed(7, false, "reverse").value("message", "").find("before its initialisation"),
            std::string::npos);
}

TEST(HooksBulkCopies, ALoadMovesWholeSectorsAndHasNoLanes) {
  Json line;
  for (const Json& kernel :
       observed(8, true, "forward").value("report", Json::object()).value("kernels", Json::array()))
    for (const Json& candidate : kernel["lines"])
      if (candidate.value("line", 0) == line_of(kSource, "// bulk load")) line = candidate;
  ASSERT_FALSE(line.is_null()) << observed(8, true, "forward").dump(1);
  EXPECT_EQ(line["global"].value("bytes", 0), 512);
  EXPECT_EQ(line["global"].value("sectors", 0), 16);
  EXPECT_EQ(line["global"].value("ideal_sectors", 0), 16);
  EXPECT_EQ(line["global"].value("requests", 0), 4);
  EXPECT_EQ(line["global"].value("bulk", 0), 4) << "all of them lines, which no lane asks for";
  EXPECT_EQ(line["global"].value("active_lanes", -1), 0);
}

TEST(HooksBulkCopies, AnUnfinishedLoadIsNamedAndExplained) {
  const Json finding = observed(8, false, "forward")["report"]["findings"][0];
  EXPECT_NE(finding.value("message", "").find("asynchronous copy of thread (0,0,0)"), std::string::npos)
      << finding.dump();
  EXPECT_NE(finding.value("hint", "").find("wait() on its barrier"), std::string::npos) << finding.dump();
}

TEST(HooksWgmma, AnAccumulatorThatIsReadTooEarlyNamesBothLines) {
  const Json finding = observed(18, false, "forward")["report"]["findings"][0];
  EXPECT_NE(finding.value("message", "").find("race on an accumulator of wgmma"), std::string::npos)
      << finding.dump();
  EXPECT_EQ(finding.value("line", 0), line_of(kSource, "// accumulators")) << finding.dump();
  EXPECT_NE(finding.value("message", "").find("kernel.cu:" + std::to_string(line_of(kSource, "// multiply"))),
            std::string::npos)
      << finding.dump();
  EXPECT_NE(finding.value("hint", "").find("wgmma.wait_group"), std::string::npos) << finding.dump();
}

TEST(HooksWgmma, AStageThatIsOverwrittenTooEarlyNamesBothLines) {
  const Json finding = observed(19, false, "forward")["report"]["findings"][0];
  EXPECT_EQ(finding.value("line", 0), line_of(kSource, "// fill")) << finding.dump();
  EXPECT_NE(
      finding.value("message", "")
          .find("kernel.cu:" + std::to_string(line_of(kSource, "// of a stage")) + " may not have read yet"),
      std::string::npos)
      << finding.dump();
  EXPECT_NE(finding.value("hint", "").find("wgmma.wait_group"), std::string::npos) << finding.dump();
}

TEST(HooksClusters, ARaceAcrossBlocksNamesBoth) {
  const Json finding = observed(14, false, "forward")["report"]["findings"][0];
  EXPECT_NE(finding["block"], finding["other_block"]) << finding.dump();
  EXPECT_NE(finding.value("message", "").find("shared memory `tile`"), std::string::npos) << finding.dump();
}

}  // namespace
}  // namespace capstone::test
