// What volatile and atomic accesses do not order: the instrumented build shows it by wrong outputs, and right
// kernels stay right. One file holds all kernels; x[0] says which one runs, x[1] whether it is the right one.
#include <gtest/gtest.h>

#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

constexpr int kBlocks = 8;

const std::string kSource = R"(
#include <cuda/atomic>
__device__ int counter;
__device__ volatile int flag, first, second;
__device__ volatile float parts[8];
__device__ volatile unsigned long long packed[8];
__device__ float scratch[8 * 32];
__device__ unsigned ticket;

__global__ void clear() {
  counter = 0; flag = 0; first = 0; second = 0; ticket = 0;
  for (int i = 0; i < 8; ++i) { parts[i] = 0; packed[i] = 0; }
}

// One thread a block, so that only another block can come in between.
__global__ void counts_blocks(float* y, bool right) {
  volatile int* const place = &counter;
  if (right) atomicAdd(&counter, 1); else *place = *place + 1;  // count
  __threadfence();
  if (atomicAdd(&ticket, 1) == gridDim.x - 1) y[0] = float(atomicAdd(&counter, 0));
}
// Fences do not make a load and a store one operation.
__global__ void counts_threads(float* y, bool right) {
  cuda::atomic_ref<int> count(counter);
  __threadfence();
  if (right) count.fetch_add(1); else count.store(count.load() + 1);
  __syncthreads();
  if (threadIdx.x == 0) y[0] = float(count.load());
}
__global__ void last_block_adds(float* y, bool right) {
  parts[blockIdx.x] = 1;
  if (right) __threadfence();
  if (atomicAdd(&ticket, 1) != gridDim.x - 1) return;
  float sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
  y[0] = sum;
}
// As in PyTorch's reductions: every thread makes a fence, and behind the barrier one of them takes the ticket.
__global__ void every_thread_makes_a_fence(float* y, bool right) {
  __shared__ bool last;
  scratch[blockIdx.x * 32 + threadIdx.x] = 1;
  if (right || threadIdx.x == 0) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&ticket, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  float sum = 0;
  for (int i = 0; i < gridDim.x * 32; ++i) sum += scratch[i];
  y[0] = sum / 32;
}
// Value and flag in one word need no fence: who reads too early reads again.
__global__ void looks_back(float* y, bool right) {
  unsigned before = 0;
  if (blockIdx.x > 0) {
    unsigned long long word = packed[blockIdx.x - 1];
    while (right && word == 0) word = packed[blockIdx.x - 1];
    before = unsigned(word);
  }
  packed[blockIdx.x] = (1ull << 32) | (before + 1);
  if (blockIdx.x == gridDim.x - 1) y[0] = before + 1;
}
// With a fence between store and load, two threads never both miss the other's store.
__global__ void each_sees_the_other(float* y, bool right) {
  volatile int* const mine = threadIdx.x ? &second : &first;
  volatile int* const others = threadIdx.x ? &first : &second;
  if (threadIdx.x > 1 || blockIdx.x > 0) return;
  *mine = 1;
  if (right) __threadfence();
  const int seen = *others;
  __syncwarp(3);
  atomicAdd(&counter, seen);
  __syncwarp(3);
  if (threadIdx.x == 0) y[0] = atomicAdd(&counter, 0) > 0 ? gridDim.x : 0;
}
__global__ void locks(float* y, bool right) {
  volatile int* const place = &counter;
  while (right && atomicCAS(&ticket, 0, 1) != 0) {}
  __threadfence();
  *place = *place + 1;
  __threadfence();
  if (right) atomicExch(&ticket, 0);
  while (right && atomicAdd((int*)&flag, 0) < 0) {}
  __threadfence();
  if (atomicAdd((int*)&first, 1) == gridDim.x * blockDim.x - 1) y[0] = *place / 32.f;
}
extern "C" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t stream) {
  const bool right = x[1] != 0;
  clear<<<1, 1, 0, stream>>>();
  switch (int(x[0])) {
    case 0: counts_blocks<<<8, 1, 0, stream>>>(y, right); break;
    case 1: counts_threads<<<1, 8, 0, stream>>>(y, right); break;
    case 2: last_block_adds<<<8, 1, 0, stream>>>(y, right); break;
    case 3: every_thread_makes_a_fence<<<8, 32, 0, stream>>>(y, right); break;
    case 4: looks_back<<<8, 1, 0, stream>>>(y, right); break;
    case 5: each_sees_the_other<<<8, 32, 0, stream>>>(y, right); break;
    case 6: locks<<<8, 32, 0, stream>>>(y, right); break;
  }
}
)";

struct Outcome {
  Json answer;
  float y;
};
Outcome run_case(int kernel, bool right, const std::string& schedule = "forward") {
  Workbench bench(build(kSource, 900, BuildVariant::kInstrumented).program,
                  {float(kernel), right ? 1.0f : 0.0f}, 1);
  Json answer = bench.run(schedule);
  return {std::move(answer), bench.y()[0]};
}

struct Case {
  int kernel;
  const char* name;
};
class EarlyReads : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Hooks, EarlyReads,
                         testing::Values(Case{0, "CountersOfBlocks"}, Case{1, "CountersOfThreads"},
                                         Case{2, "LastBlock"}, Case{4, "LookBack"}, Case{5, "StoreThenLoad"},
                                         Case{6, "Lock"}),
                         [](const auto& info) { return info.param.name; });

TEST_P(EarlyReads, ARightKernelStaysRightUnderEverySchedule) {
  for (const std::string& schedule : kSchedules) {
    const Outcome outcome = run_case(GetParam().kernel, true, schedule);
    EXPECT_TRUE(outcome.answer.value("ok", false)) << schedule << outcome.answer.dump(1);
    EXPECT_EQ(outcome.y, kBlocks) << schedule;
  }
}

TEST_P(EarlyReads, AWrongOneIsWrong) {
  const Outcome outcome = run_case(GetParam().kernel, false);
  EXPECT_TRUE(outcome.answer.value("ok", false)) << outcome.answer.dump(1);
  EXPECT_NE(outcome.y, kBlocks);
}

TEST(HooksEarlyReads, TheAnswerNamesBothLines) {
  const std::string why = run_case(0, false).answer.value("early_read", "");
  EXPECT_NE(why.find("kernel.cu:" + std::to_string(line_of(kSource, "// count"))), std::string::npos) << why;
  EXPECT_NE(why.find("atomicAdd"), std::string::npos) << why;
}

TEST(HooksFences, OfAllThreadsCountBehindABarrier) {
  EXPECT_TRUE(run_case(3, true).answer.value("ok", false)) << run_case(3, true).answer.dump(1);
  EXPECT_EQ(run_case(3, true).y, kBlocks);
  EXPECT_FALSE(run_case(3, false).answer.value("ok", true));
}

}  // namespace
}  // namespace capstone::test
