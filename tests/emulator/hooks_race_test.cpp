// The race detector. One file holds all kernels, so that it is built once; x[0] says which of them runs.
#include <gtest/gtest.h>

#include <set>

#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

const std::string kSource = R"(
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void missing_barrier(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];  // 0 write
  y[threadIdx.x] = tile[63 - threadIdx.x];  // 0 read
}
__global__ void with_barrier(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void missing_second_barrier(const float* x, float* y) {
  __shared__ float tile[64];
  float sum = 0;
  for (int k = 0; k < 2; ++k) {
    tile[threadIdx.x] = x[threadIdx.x] + k;  // 2 write
    __syncthreads();
    sum += tile[(threadIdx.x + 33) % 64];  // 2 read
  }
  y[threadIdx.x] = sum;
}
__global__ void lanes_in_lock_step(const float* x, float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  if (threadIdx.x < 16) s[threadIdx.x] += s[threadIdx.x + 16];  // 3 first
  if (threadIdx.x < 8) s[threadIdx.x] += s[threadIdx.x + 8];  // 3 second
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x % 8];
}
__global__ void shuffles_order(const float* x, float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  const float other = __shfl_xor_sync(~0u, x[threadIdx.x], 1);
  y[threadIdx.x] = s[31 - threadIdx.x] + other;
}
__global__ void tiles_order_their_lanes(const float* x, float* y) {
  __shared__ float s[32];
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  s[threadIdx.x] = x[threadIdx.x];
  tile.sync();
  y[threadIdx.x] = s[threadIdx.x ^ 7];
}
__global__ void tiles_order_no_others(const float* x, float* y) {
  __shared__ float s[32];
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  s[threadIdx.x] = x[threadIdx.x];  // 6 write
  tile.sync();
  y[threadIdx.x] = s[threadIdx.x ^ 8];  // 6 read
}
__global__ void atomics(const float* x, float* y) {
  __shared__ int bins[4];
  if (threadIdx.x < 4) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[threadIdx.x % 4], 1);
  __syncthreads();
  y[threadIdx.x] = float(bins[threadIdx.x % 4]);
}
__global__ void two_blocks_one_element(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] + blockIdx.x;  // 8 write
}
__global__ void same_value(float* y) {
  y[0] = 7.f;  // 9 write
}
__device__ unsigned arrived;
__global__ void last_block(const float* x, float* y, int fence) {
  __shared__ bool last;
  if (threadIdx.x == 0) y[blockIdx.x] = x[blockIdx.x];  // 10 write
  if (threadIdx.x == 0) {
    if (fence) __threadfence();
    last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += y[b];  // 10 read
    y[63] = sum;
    arrived = 0;
  }
}
__device__ int lock_word;
__device__ float total;
__global__ void spin_lock(float* y) {
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(&lock_word, 0, 1) != 0) {}
    __threadfence();
    y[blockIdx.x * 2 + threadIdx.x / 32] = total;
    total = total + 1.f;
    __threadfence();
    atomicExch(&lock_word, 0);
  }
}
__global__ void look_back(const float* x, float* y, volatile int* flags) {
  const int b = blockIdx.x;
  if (threadIdx.x == 0) {
    float before = 0;
    if (b > 0) {
      while (flags[b - 1] == 0) {}
      __threadfence();
      before = y[b - 1];
    }
    y[b] = before + x[b];
    __threadfence();
    flags[b] = 1;
  }
}
__global__ void copy_without_wait(const float* x, float* y) {
  __shared__ float s[32];
  __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);  // 14 copy
  __pipeline_commit();
  y[threadIdx.x] = s[threadIdx.x];  // 14 read
}
__global__ void copy_without_barrier(const float* x, float* y) {
  __shared__ float s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);  // 15 copy
  __pipeline_commit();
  __pipeline_wait_prior(0);
  y[threadIdx.x] = s[63 - threadIdx.x];  // 15 read
}
__global__ void copy_as_it_should_be(const float* x, float* y) {
  __shared__ float s[2][64];
  __pipeline_memcpy_async(&s[0][threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  float sum = 0;
  for (int k = 0; k < 3; ++k) {
    if (k < 2) __pipeline_memcpy_async(&s[(k + 1) % 2][threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += s[k % 2][63 - threadIdx.x];
    __syncthreads();
  }
  y[threadIdx.x] = sum;
}
__global__ void halves_share_a_word(const float* x, float* y) {
  __shared__ unsigned short s[64];
  s[threadIdx.x] = (unsigned short)x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void bytes_race(const float* x, float* y) {
  __shared__ unsigned char s[64];
  s[threadIdx.x] = (unsigned char)x[threadIdx.x];  // 18 write
  y[threadIdx.x] = s[threadIdx.x ^ 32];  // 18 read
}
__global__ void volatile_in_lock_step(const float* x, float* y) {
  __shared__ float data[32];
  volatile float* s = data;
  s[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 16) s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 16];  // 19 here
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void barrier_of_some(const float* x, float* y) {  // threads that left count as arrived
  __shared__ float s[64];
  if (threadIdx.x >= 48) return;
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[47 - threadIdx.x];
}
__global__ void barrier_in_a_branch(const float* x, float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int k = 32; k > 0; k /= 2)
    if (threadIdx.x < k) {
      s[threadIdx.x] += s[threadIdx.x + k];
      __syncthreads();  // 22 in the branch
    }
  y[threadIdx.x] = s[0];
  __syncthreads();  // 22 behind it
}
__global__ void waits_for_ever(volatile int* flags) {
  while (flags[blockIdx.x + 1] == 0) {}  // 21 here
}
__global__ void readers_of_two_phases(const float* x, float* y) {
  __shared__ float s;
  if (threadIdx.x == 0) s = x[0];
  __syncthreads();
  float sum = s;
  __syncthreads();
  sum += s;  // 23 read
  __syncwarp();  // the other warp reads before the first one goes on
  if (threadIdx.x == 0) s = 1;  // 23 write
  y[threadIdx.x] = sum;
}
__global__ void wide_reads(const float* x, float* y) {
  __shared__ float4 s[16];
  float* each = reinterpret_cast<float*>(s);
  each[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float4 v = s[threadIdx.x % 16];  // 24 read
  if (threadIdx.x == 63) each[2] = v.y;  // 24 write
  y[threadIdx.x] = v.x + v.z;
}
__global__ void halves_race_later(const float* x, float* y) {  // when their words are known to be shared
  __shared__ short s[64];
  s[threadIdx.x] = short(x[threadIdx.x]);
  __syncthreads();
  const short other = s[63 - threadIdx.x];
  __syncthreads();
  s[threadIdx.x] = other;  // 25 write
  y[threadIdx.x] = s[threadIdx.x ^ 1];  // 25 read
}
extern "C" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) {
  int* flags;
  switch (int(x[0])) {
    case 0: missing_barrier<<<1, 64>>>(x, y); break;
    case 1: with_barrier<<<1, 64>>>(x, y); break;
    case 2: missing_second_barrier<<<1, 64>>>(x, y); break;
    case 3: lanes_in_lock_step<<<1, 32>>>(x, y); break;
    case 4: shuffles_order<<<1, 32>>>(x, y); break;
    case 5: tiles_order_their_lanes<<<1, 32>>>(x, y); break;
    case 6: tiles_order_no_others<<<1, 32>>>(x, y); break;
    case 7: atomics<<<2, 64>>>(x, y); break;
    case 8: two_blocks_one_element<<<2, 32>>>(x, y); break;
    case 9: same_value<<<1, 64>>>(y); break;
    case 10: last_block<<<8, 32>>>(x, y, 0); break;
    case 11: last_block<<<8, 32>>>(x, y, 1); break;
    case 12: spin_lock<<<4, 64>>>(y); break;
    case 13:
      cudaMalloc(&flags, 8 * sizeof(int));
      cudaMemset(flags, 0, 8 * sizeof(int));
      look_back<<<8, 32>>>(x, y, flags);
      cudaFree(flags);
      break;
    case 14: copy_without_wait<<<1, 32>>>(x, y); break;
    case 15: copy_without_barrier<<<1, 64>>>(x, y); break;
    case 16: copy_as_it_should_be<<<1, 64>>>(x, y); break;
    case 17: halves_share_a_word<<<1, 64>>>(x, y); break;
    case 18: bytes_race<<<1, 64>>>(x, y); break;
    case 19: volatile_in_lock_step<<<1, 32>>>(x, y); break;
    case 20: barrier_of_some<<<1, 64>>>(x, y); break;
    case 22: barrier_in_a_branch<<<1, 64>>>(x, y); break;
    case 23: readers_of_two_phases<<<1, 64>>>(x, y); break;
    case 24: wide_reads<<<1, 64>>>(x, y); break;
    case 25: halves_race_later<<<1, 64>>>(x, y); break;
    case 21:
      cudaMalloc(&flags, 8 * sizeof(int));
      cudaMemset(flags, 0, 8 * sizeof(int));
      waits_for_ever<<<7, 32>>>(flags);
      cudaFree(flags);
      break;
  }
}
)";

class HooksRace : public testing::Test {
 protected:
  static Json observed(int kernel, const std::string& schedule = "forward") {
    static const EmulatedArtifact artifact = build(kSource, 900, BuildVariant::kInstrumented);
    EXPECT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
    if (!artifact.result.ok) return Json::object();
    std::vector<float> x(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) + 1;
    x[0] = static_cast<float>(kernel);
    const Json answer = Workbench(artifact.program, x, 64).observe(schedule);
    // Where no counts are wanted, the quick paths differ; what they find does not.
    const Json uncounted = Workbench(artifact.program, x, 64).run(schedule);
    for (const char* part : {"kind", "message", "file", "hint"})
      EXPECT_EQ(uncounted.value(part, ""), answer.value(part, "")) << schedule;
    EXPECT_EQ(uncounted.value("line", 0), answer.value("line", 0)) << schedule;
    return answer;
  }

  /// The kernel's one pair of places, whichever schedule runs it.
  static void expect_race(int kernel, const std::string& first, const std::string& second) {
    for (const std::string& schedule : kSchedules) {
      const Json answer = observed(kernel, schedule);
      EXPECT_FALSE(answer.value("ok", true)) << schedule;
      EXPECT_EQ(answer.value("kind", ""), "undefined_behaviour");
      const Json findings = answer.value("report", Json::object()).value("findings", Json::array());
      ASSERT_FALSE(findings.empty()) << schedule << answer.dump();
      const std::set<int> found = {findings[0].value("line", 0), findings[0].value("other_line", 0)};
      EXPECT_EQ(found, (std::set<int>{line_of(kSource, first), line_of(kSource, second)}))
          << schedule << findings.dump(1);
      EXPECT_EQ(findings[0].value("kind", ""), "race");
    }
  }
  static void expect_none(int kernel) {
    for (const std::string& schedule : kSchedules) {
      const Json answer = observed(kernel, schedule);
      EXPECT_TRUE(answer.value("ok", false)) << schedule << answer.dump(1);
      EXPECT_EQ(answer.value("report", Json::object()).value("findings", Json()), Json::array()) << schedule;
    }
  }
};

TEST_F(HooksRace, AMissingBarrierIsFoundWithBothLines) { expect_race(0, "// 0 write", "// 0 read"); }
TEST_F(HooksRace, ABarrierOrders) { expect_none(1); }
TEST_F(HooksRace, AMissingBarrierBeforeTheNextWriteIsFound) { expect_race(2, "// 2 write", "// 2 read"); }
TEST_F(HooksRace, LanesDoNotRunInLockStep) {
  const Json answer = observed(3);
  EXPECT_FALSE(answer.value("ok", true));
  EXPECT_NE(answer.value("hint", "").find("__syncwarp()"), std::string::npos) << answer.dump();
}
TEST_F(HooksRace, AShuffleOrdersTheWarp) { expect_none(4); }
TEST_F(HooksRace, ATileOrdersItsLanes) { expect_none(5); }
TEST_F(HooksRace, ATileOrdersNoOtherLanes) { expect_race(6, "// 6 write", "// 6 read"); }
TEST_F(HooksRace, AtomicsDoNotRaceWithEachOther) {
  const Json answer = observed(7);  // two blocks write the same values to y
  EXPECT_TRUE(answer.value("ok", false)) << answer.dump(1);
}
TEST_F(HooksRace, TwoBlocksThatWriteOneElementRace) {
  expect_race(8, "// 8 write", "// 8 write");
  const Json finding = observed(8)["report"]["findings"][0];
  EXPECT_NE(finding["block"], finding["other_block"]);
  EXPECT_NE(finding.value("message", "").find("`y`"), std::string::npos) << finding.dump();
}
TEST_F(HooksRace, WritingTheSameValueIsALabelOnly) {
  const Json answer = observed(9);
  EXPECT_TRUE(answer.value("ok", false)) << answer.dump();
  ASSERT_EQ(answer["report"]["findings"].size(), 1u);
  EXPECT_EQ(answer["report"]["findings"][0].value("kind", ""), "same_value_write");
  EXPECT_EQ(answer["report"]["findings"][0].value("line", 0), line_of(kSource, "// 9 write"));
}
TEST_F(HooksRace, TheLastBlockWithoutAFenceRaces) { expect_race(10, "// 10 write", "// 10 read"); }
TEST_F(HooksRace, TheLastBlockBehindAFenceDoesNot) { expect_none(11); }
TEST_F(HooksRace, ASpinLockOrders) { expect_none(12); }
TEST_F(HooksRace, AFlagBetweenBlocksOrders) { expect_none(13); }
TEST_F(HooksRace, ACopyThatNobodyWaitedForIsFoundUnderEverySchedule) {
  expect_race(14, "// 14 copy", "// 14 read");
}
TEST_F(HooksRace, WaitingForACopyDoesNotReplaceTheBarrier) { expect_race(15, "// 15 copy", "// 15 read"); }
TEST_F(HooksRace, ADoubleBufferedPipelineIsNotAccused) { expect_none(16); }
TEST_F(HooksRace, ThreadsMayShareAWord) { expect_none(17); }
TEST_F(HooksRace, ReadersOfAnEarlierPhaseDoNotStandForThoseOfThisOne) {
  expect_race(23, "// 23 read", "// 23 write");
}
TEST_F(HooksRace, EachWordOfAWideReadIsKept) { expect_race(24, "// 24 read", "// 24 write"); }
TEST_F(HooksRace, HalvesOfAWordRaceAlsoWhereItIsKnownToBeShared) {
  expect_race(25, "// 25 write", "// 25 read");
}
TEST_F(HooksRace, BytesRaceToo) { expect_race(18, "// 18 write", "// 18 read"); }
TEST_F(HooksRace, VolatileDoesNotReplaceSyncwarp) {
  const Json answer = observed(19);
  EXPECT_FALSE(answer.value("ok", true));
  EXPECT_EQ(answer["report"]["findings"][0].value("other_line", 0), line_of(kSource, "// 19 here"))
      << answer.dump();
}
TEST_F(HooksRace, ThreadsThatLeftCountAsArrived) { expect_none(20); }
TEST_F(HooksRace, ABarrierThatSomeThreadsReachIsSaidToBeTheCause) {
  for (const std::string& schedule : kSchedules) {
    const Json answer = observed(22, schedule);
    EXPECT_FALSE(answer.value("ok", true)) << schedule;
    const std::string message = answer.value("message", ""),
                      branch = std::to_string(line_of(kSource, "// 22 in the branch")),
                      behind = std::to_string(line_of(kSource, "// 22 behind it"));
    EXPECT_NE(message.find("race on shared memory `s`"), std::string::npos) << message;
    EXPECT_NE(message.find("of 64 threads, the others waited at line"), std::string::npos) << message;
    EXPECT_NE(message.find(branch), std::string::npos) << message;
    EXPECT_NE(message.find(behind), std::string::npos) << message;
    EXPECT_NE(answer.value("hint", "").find("every thread of a block must reach the same"), std::string::npos)
        << answer.dump();
  }
}

TEST_F(HooksRace, BlocksThatWaitForEverEndAtTheTimeLimit) {
  const EmulatedArtifact artifact = build(kSource, 900, BuildVariant::kInstrumented);
  std::vector<float> x(64, 21.f);
  Workbench bench(artifact.program, x, 64);
  const Json answer = bench.run("forward", 1, {{"limit_ms", 300}});
  EXPECT_EQ(answer.value("kind", ""), "timed_out") << answer.dump();
  EXPECT_EQ(answer.value("line", 0), line_of(kSource, "// 21 here")) << answer.dump();
  EXPECT_EQ(bench.run("forward", 1, {{"limit_ms", 300}}).value("kind", ""), "timed_out")
      << "the worker goes on";
}
TEST_F(HooksRace, AFindingNamesArrayThreadsAndWhatToDo) {
  const Json answer = observed(0);
  const std::string message = answer.value("message", "");
  EXPECT_NE(message.find("race on shared memory `tile`"), std::string::npos) << message;
  EXPECT_NE(message.find("kernel.cu:" + std::to_string(line_of(kSource, "// 0 write"))), std::string::npos)
      << message;
  EXPECT_NE(answer.value("hint", "").find("__syncthreads()"), std::string::npos);
  EXPECT_EQ(answer.value("kernel", ""), "missing_barrier");
}

}  // namespace
}  // namespace capstone::test
