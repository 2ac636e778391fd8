// Gate one on the CPU: inputs of every kind, runs that differ from one another, and a case that is run again.
#include "harness/judge/gate_one.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "harness/base/files.h"
#include "harness/correctness/inputs.h"
#include "harness/judge/judge.h"
#include "tests/judge/shipped.h"
#include "tests/resources.h"

namespace capstone {
namespace {

using test::problem_of;

/// A softmax kernel: `row` computes one row with one thread from `x`, `y`, `cols`.
std::string softmax_kernel(const std::string& row) {
  return R"(#include <cuda_runtime.h>
#include <cstdint>
#include <cmath>
__global__ void rows_of(const float* xs, float* ys, int64_t cols) {
  const float* x = xs + blockIdx.x * cols;
  float* y = ys + blockIdx.x * cols;
)" + row +
         R"(
}
extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace, cudaStream_t stream) {
  rows_of<<<(unsigned)rows, 32, 0, stream>>>(x, y, cols);
}
)";
}

Measurement judged(const std::string& id, const std::string& source, std::optional<CasePlan> replay = {},
                   bool instrumented = false) {
  const fs::path file = fs::path(testing::TempDir()) /
                        (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".cu");
  EXPECT_TRUE(write_file_atomic(file, source));
  const Problem problem = problem_of(id);
  JudgeRequest request;
  request.problem = &problem;
  request.candidates = {{"human", file}};
  request.options.backend = Backend::kEmulated;
  request.options.timeout_seconds = 60;
  request.options.hidden_cases = 1;
  request.timing = false;
  request.options.quick = !instrumented;
  request.replay = std::move(replay);
  auto measurements = judge(request, test::suite_resources(), [](const std::string&) {});
  EXPECT_TRUE(measurements) << render(measurements.error());
  return measurements ? measurements->front() : Measurement{};
}

std::set<std::string> failed_cases(const Measurement& m) {
  std::set<std::string> names;
  for (const CaseResult& c : m.cases)
    if (!c.passed) names.insert(c.id);
  return names;
}

TEST(PlanOfCases, EveryVariationOnceAndSmall) {
  const Problem problem = problem_of("softmax");
  const auto plans = plan_cases(problem, 3, DrawLimits{}).value();
  std::set<std::string> ids;
  std::set<std::uint64_t> seeds;
  for (const CasePlan& plan : plans) {
    EXPECT_TRUE(ids.insert(plan.id).second) << plan.id << " twice";
    seeds.insert(plan.seed);
    if (plan.battery == Battery::kPlain) continue;
    EXPECT_EQ(plan.id, name_of(plan.battery));
    EXPECT_LE(cost_at(problem, plan.sizes)->flops, 4e6);
    EXPECT_TRUE(*admissible(problem, plan.sizes));
  }
  EXPECT_EQ(seeds.size(), plans.size());
  for (const char* id :
       {"check-0", "hidden-2", "x10", "offset", "far_negative", "heavy_tails", "sign_flip", "hot_element"})
    EXPECT_TRUE(ids.contains(id)) << id;
}

TEST(PlanOfCases, AVariationOutsideTheDomainIsLeftOut) {
  Problem problem = problem_of("softmax");
  problem.outside_domain["x10"] = "exp overflows";
  const auto plans = plan_cases(problem, 0, DrawLimits{}).value();
  for (const CasePlan& plan : plans) EXPECT_NE(plan.battery, Battery::kTimesTen);
}

TEST(PlanOfCases, WithoutSmallDrawsTheCheapestCheckSizeIsTaken) {
  Problem problem = problem_of("softmax");
  problem.vary = {{"rows", {300, 300, 1, {}}}, {"cols", {8192, 8192, 1, {}}}};
  const auto plans = plan_cases(problem, 0, DrawLimits{}).value();
  for (const CasePlan& plan : plans) {
    if (plan.battery == Battery::kPlain) continue;
    EXPECT_EQ(to_string(plan.sizes), "rows=7, cols=1") << plan.id;
  }
}

TEST(PlanOf, TakesARecordedCaseApartAgain) {
  const Problem problem = problem_of("softmax");
  const CasePlan plan{"hot_element", {{"rows", 5}, {"cols", 77}}, 0xfedcba9876543210u, Battery::kHotElement};
  const CasePlan again = plan_of(problem, blank_result(plan)).value();
  EXPECT_EQ(again.id, plan.id);
  EXPECT_EQ(again.sizes, plan.sizes);
  EXPECT_EQ(again.seed, plan.seed);
  EXPECT_EQ(again.battery, plan.battery);
}

TEST(PlanOf, SaysWhyACaseCannotBeRunAgain) {
  const Problem problem = problem_of("softmax");
  CaseResult build;
  build.id = "build";
  EXPECT_NE(plan_of(problem, build).error().what.find("no inputs of its own"), std::string::npos);
  CaseResult other = blank_result({"check-0", {{"m", 5}}, 1, Battery::kPlain});
  EXPECT_NE(plan_of(problem, other).error().what.find("without the size rows"), std::string::npos);
  CaseResult unknown = blank_result({"check-0", {{"rows", 5}, {"cols", 5}}, 1, Battery::kPlain});
  unknown.battery = "moonlight";
  EXPECT_NE(plan_of(problem, unknown).error().what.find("moonlight"), std::string::npos);
}

TEST(GateOneOnTheCpu, SoftmaxWithoutTheMaximumFailsOnlyWhereInputsAreLarge) {
  const Measurement m = judged("softmax", softmax_kernel(R"(
  if (threadIdx.x) return;
  float sum = 0;
  for (int64_t j = 0; j < cols; ++j) sum += expf(x[j]);
  for (int64_t j = 0; j < cols; ++j) y[j] = expf(x[j]) / sum;)"));
  EXPECT_EQ(m.gate_one, GateOne::kWrong);
  EXPECT_TRUE(failed_cases(m).contains("hot_element"));
  EXPECT_FALSE(failed_cases(m).contains("check-0"));
  EXPECT_EQ(m.first_failure()->battery.empty(), false);
}

TEST(GateOneOnTheCpu, AtomicsInAnyOrderPassAndAreLabelled) {
  const Measurement m = judged("softmax", softmax_kernel(R"(
  __shared__ float sum, most;
  if (threadIdx.x == 0) {
    sum = 0;
    most = x[0];
    for (int64_t j = 0; j < cols; ++j) most = fmaxf(most, x[j]);
  }
  __syncthreads();
  for (int64_t j = threadIdx.x; j < cols; j += 32) atomicAdd(&sum, expf(x[j] - most));
  __syncthreads();
  for (int64_t j = threadIdx.x; j < cols; j += 32) y[j] = expf(x[j] - most) / sum;)"));
  EXPECT_EQ(m.gate_one, GateOne::kPassed) << (m.first_failure() ? m.first_failure()->problem : "");
  EXPECT_EQ(m.labels, std::vector<std::string>{std::string(kVaries)});
}

const std::string kRight = softmax_kernel(R"(
  if (threadIdx.x) return;
  float sum = 0, most = x[0];
  for (int64_t j = 0; j < cols; ++j) most = fmaxf(most, x[j]);
  for (int64_t j = 0; j < cols; ++j) sum += expf(x[j] - most);
  for (int64_t j = 0; j < cols; ++j) y[j] = expf(x[j] - most) / sum;)");

TEST(GateOneOnTheCpu, AKernelWithoutAtomicsHasNoSuchLabel) {
  const Measurement m = judged("softmax", kRight);
  EXPECT_EQ(m.gate_one, GateOne::kPassed);
  EXPECT_TRUE(m.labels.empty()) << m.labels.front();
}

// Right as long as thread 0 runs first; what the others read before it wrote is not theirs.
const char* const kRace = R"(
  __shared__ float sum, most;
  if (threadIdx.x == 0) {
    most = x[0];
    for (int64_t j = 0; j < cols; ++j) most = fmaxf(most, x[j]);
    sum = 0;
    for (int64_t j = 0; j < cols; ++j) sum += expf(x[j] - most);
  }
  for (int64_t j = threadIdx.x; j < cols; j += 32) y[j] = expf(x[j] - most) / sum;)";

TEST(GateOneOnTheCpu, ARaceIsSaidToDifferFromRunToRun) {
  const Measurement m = judged("softmax", softmax_kernel(kRace));
  ASSERT_EQ(m.gate_one, GateOne::kWrong);
  const CaseResult* bad = m.first_failure();
  ASSERT_NE(bad, nullptr);
  EXPECT_EQ(bad->problem.rfind("race on shared memory", 0), 0u) << bad->problem;
  ASSERT_TRUE(bad->diagnosis);
  EXPECT_EQ(bad->diagnosis->pattern.rfind("differs from run to run", 0), 0u) << bad->diagnosis->pattern;
}

TEST(GateOneOnTheCpu, ReplayRunsTheFailedCaseAndNothingElse) {
  const std::string source = softmax_kernel("  y[0] = 0;");
  const Measurement first = judged("softmax", source);
  const CaseResult* bad = nullptr;
  for (const CaseResult& c : first.cases)
    if (c.id == "hidden-0") bad = &c;
  ASSERT_NE(bad, nullptr);
  const Measurement again = judged("softmax", source, plan_of(problem_of("softmax"), *bad).value());
  ASSERT_EQ(again.cases.size(), 1u);
  const CaseResult& c = again.cases.front();
  EXPECT_EQ(c.id, "hidden-0");
  EXPECT_EQ(c.sizes, bad->sizes);
  EXPECT_EQ(c.seed, bad->seed);
  ASSERT_TRUE(c.diagnosis && bad->diagnosis);
  EXPECT_EQ(c.diagnosis->wrong, bad->diagnosis->wrong);
  EXPECT_EQ(c.diagnosis->first_expected, bad->diagnosis->first_expected) << "the same inputs";
  EXPECT_FALSE(again.measured);
}

TEST(GateOneOnTheCpu, ReplayOfWhatAnInstrumentedBuildFoundLooksThereAgain) {
  // One element is read behind the end of x and thrown away: no output shows it.
  const std::string source = softmax_kernel(R"(
  if (threadIdx.x) return;
  float sum = 0, most = x[0];
  volatile float beyond = blockIdx.x + 1 == gridDim.x ? x[cols] : 0;
  for (int64_t j = 0; j < cols; ++j) most = fmaxf(most, x[j]);
  for (int64_t j = 0; j < cols; ++j) sum += expf(x[j] - most);
  for (int64_t j = 0; j < cols; ++j) y[j] = expf(x[j] - most) / sum;)");
  const Measurement first = judged("softmax", source, {}, true);
  const CaseResult* bad = first.first_failure();
  ASSERT_NE(bad, nullptr) << label_of(first.gate_one);
  ASSERT_FALSE(bad->build.empty()) << bad->problem;
  const Measurement again = judged("softmax", source, plan_of(problem_of("softmax"), *bad).value(), true);
  ASSERT_NE(again.first_failure(), nullptr) << label_of(again.gate_one);
  EXPECT_EQ(again.first_failure()->build, bad->build);
  EXPECT_EQ(again.first_failure()->id, bad->id);
  EXPECT_EQ(again.first_failure()->seed, bad->seed);
}

// Right at every small size; what it wants at the measured one overflowed an int.
TEST(GateOneOnTheCpu, AWorkspaceThatMakesNoSenseAtTheMeasuredSizeIsTheKernelsFailure) {
  const Measurement m =
      judged("softmax", kRight + R"(extern "C" size_t workspace_bytes(int64_t rows, int64_t cols) {
  const int32_t bytes = static_cast<int32_t>(static_cast<uint32_t>(rows * cols) * 32u);
  return bytes;
})");
  EXPECT_EQ(m.gate_one, GateOne::kCrashed);
  EXPECT_EQ(failed_cases(m), std::set<std::string>{"measure"});
  const CaseResult* failure = m.first_failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->problem, "workspace_bytes() asks for more than 8 GiB, or for nonsense");
  EXPECT_EQ(failure->sizes, sizes_json(problem_of("softmax").measure));
}

// The most memory that this process has held at once since the last call, in bytes.
std::size_t peak_of_memory() {
  std::ifstream status("/proc/self/status");
  std::size_t peak = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) peak = std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  std::ofstream("/proc/self/clear_refs") << "5";
  return peak;
}

TEST(GateOneOnTheCpu, TheJudgeHoldsAWorkspaceOnce) {
  const std::size_t bytes = std::size_t{256} << 20;
  const CasePlan plan{"check-0", {{"rows", 4}, {"cols", 33}}, 7, Battery::kPlain};
  const std::string source = kRight + "extern \"C\" size_t workspace_bytes(int64_t, int64_t) { return " +
                             std::to_string(bytes) + "; }";
  ASSERT_EQ(judged("softmax", kRight, plan).gate_one, GateOne::kPassed);
  peak_of_memory();
  ASSERT_EQ(judged("softmax", kRight, plan).gate_one, GateOne::kPassed);
  const std::size_t without = peak_of_memory();
  ASSERT_EQ(judged("softmax", source, plan).gate_one, GateOne::kPassed);
  EXPECT_LT(peak_of_memory(), without + bytes + bytes / 4);
}

TEST(GateOneOnTheCpu, AWriteBehindTheWorkspaceIsSeen) {
  const CasePlan plan{"check-0", {{"rows", 4}, {"cols", 33}}, 7, Battery::kPlain};
  const auto with = [&](const std::string& index) {
    std::string source = kRight;
    source.replace(source.find("  rows_of<<<"), 0,
                   "  mark<<<1, 1, 0, stream>>>(static_cast<float*>(workspace) + " + index + ");\n");
    source.replace(source.find("extern \"C\""), 0, "__global__ void mark(float* place) { *place = 1; }\n");
    return judged("softmax", source + "extern \"C\" size_t workspace_bytes(int64_t, int64_t) { return 400; }",
                  plan);
  };
  EXPECT_EQ(with("99").gate_one, GateOne::kPassed);
  const Measurement m = with("100");
  EXPECT_EQ(m.gate_one, GateOne::kWrong);
  ASSERT_TRUE(m.first_failure());
  EXPECT_EQ(m.first_failure()->problem.rfind(
                "out of bounds: write of 4 bytes, 0 bytes past the end of the workspace", 0),
            0u)
      << m.first_failure()->problem;
}

// The verdict is that of the case which is shown, not of what came after it.
TEST(GateOneOnTheCpu, AWrongResultStaysWrongWhenALaterCaseCrashes) {
  const Measurement m = judged("softmax", R"(#include <cstdlib>
extern "C" void launch(const float*, float*, int64_t, int64_t, void*, cudaStream_t) {
  static int calls = 0;
  if (++calls > 1) abort();
})");
  EXPECT_EQ(m.gate_one, GateOne::kWrong);
  ASSERT_TRUE(m.first_failure());
  EXPECT_NE(m.first_failure()->problem.find("wrong result"), std::string::npos) << m.first_failure()->problem;
}

TEST(GateOneOnTheCpu, WhatAKernelSaysDoesNothingToATerminal) {
  const Measurement thrown = judged("softmax", R"(#include <stdexcept>
extern "C" void launch(const float*, float*, int64_t, int64_t, void*, cudaStream_t) { throw std::runtime_error("\x1b[2J PASS"); })");
  ASSERT_TRUE(thrown.first_failure());
  EXPECT_NE(thrown.first_failure()->problem.find("[2J PASS"), std::string::npos)
      << thrown.first_failure()->problem;
  EXPECT_EQ(thrown.first_failure()->problem.find('\x1b'), std::string::npos);
  const Measurement misspelt = judged("softmax", "#line 7 \"\x1b[2J.cu\"\nextern \"C\" void launch( {");
  EXPECT_FALSE(misspelt.build.ok);
  EXPECT_EQ(misspelt.build.log.find('\x1b'), std::string::npos);
}

TEST(GateOneOnTheCpu, AKernelThatIsHostCodeIsNone) {
  const Measurement m = judged("vector_add", R"(#include <cstdint>
extern "C" void launch(const float* x, const float* y, float* z, int64_t n, void*, cudaStream_t) {
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];  // here
})",
                               {}, true);
  EXPECT_EQ(m.gate_one, GateOne::kUndefined);
  ASSERT_TRUE(m.first_failure());
  EXPECT_NE(m.first_failure()->problem.find("host"), std::string::npos) << m.first_failure()->problem;
  EXPECT_NE(m.first_failure()->where.find(":3"), std::string::npos) << m.first_failure()->where;
}

/// Judged in the way of `measure --quick`: the instruments run only because the kernel failed.
const CaseResult& first_failure_of(const Measurement& m) {
  static const CaseResult nothing;
  return m.first_failure() ? *m.first_failure() : nothing;
}

TEST(NamedCause, ARaceIsSaidFirstAndThePatternStays) {
  const Measurement m = judged("softmax", R"(#include <cuda_runtime.h>
#include <cstdint>
__global__ void rows_of(const float* x, float* y, int64_t cols) {
  __shared__ float sum[32];
  x += blockIdx.x * cols, y += blockIdx.x * cols;
  float own = 0;
  for (int64_t i = threadIdx.x; i < cols; i += 32) own += expf(x[i]);
  sum[threadIdx.x] = own;
  float all = 0;  // no barrier before this
  for (int i = 0; i < 32; ++i) all += sum[i];
  for (int64_t i = threadIdx.x; i < cols; i += 32) y[i] = expf(x[i]) / all;
}
extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void*, cudaStream_t stream) {
  rows_of<<<(unsigned)rows, 32, 0, stream>>>(x, y, cols);
}
)");
  ASSERT_EQ(m.gate_one, GateOne::kWrong);
  const CaseResult& bad = first_failure_of(m);
  EXPECT_EQ(bad.problem.find("race on shared memory `sum`"), 0u) << bad.problem;
  EXPECT_TRUE(bad.where.find(".cu:8") != std::string::npos || bad.where.find(".cu:10") != std::string::npos)
      << bad.where;
  ASSERT_TRUE(bad.diagnosis);
  EXPECT_FALSE(bad.diagnosis->pattern.empty());
}

TEST(NamedCause, AnOverflowIsNamedWhereItArises) {
  const Measurement m = judged("softmax", softmax_kernel(R"(  if (threadIdx.x) return;
  float sum = 0;
  for (int64_t i = 0; i < cols; ++i) sum += expf(x[i] * 100);
  for (int64_t i = 0; i < cols; ++i) y[i] = expf(x[i] * 100) / sum;)"));
  ASSERT_EQ(m.gate_one, GateOne::kWrong);
  const CaseResult& bad = first_failure_of(m);
  EXPECT_EQ(bad.problem.find("the first infinite value arises here"), 0u) << bad.problem;
  EXPECT_NE(bad.where.find(":9"), std::string::npos) << bad.where;
}

TEST(NamedCause, AVariableThatIsNeverSetIsWhatTheCompilerSees) {
  const Measurement m = judged("softmax", softmax_kernel(R"(  if (threadIdx.x) return;
  float sum;
  for (int64_t i = 0; i < cols; ++i) sum += expf(x[i]);
  for (int64_t i = 0; i < cols; ++i) y[i] = expf(x[i]) / sum;)"));
  ASSERT_EQ(m.gate_one, GateOne::kWrong);
  const CaseResult& bad = first_failure_of(m);
  EXPECT_NE(bad.problem.find("'sum'"), std::string::npos) << bad.problem;
  EXPECT_NE(bad.where.find(":9"), std::string::npos) << bad.where;
  EXPECT_TRUE(std::any_of(m.labels.begin(), m.labels.end(), [](const std::string& label) {
    return label.starts_with("g++ warns: ") && label.find("'sum'") != std::string::npos;
  }));
}

TEST(NamedCause, AMistakeThatWasTriedIsSaid) {
  const Measurement m = judged("softmax", softmax_kernel(R"(  if (threadIdx.x) return;
  float top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < cols; ++i) top = fmaxf(top, x[i]);
  for (int64_t i = 0; i < cols - 1; ++i) sum += expf(x[i] - top);
  for (int64_t i = 0; i < cols; ++i) y[i] = expf(x[i] - top) / sum;)"));
  ASSERT_EQ(m.gate_one, GateOne::kWrong);
  EXPECT_EQ(first_failure_of(m).problem,
            "wrong result: as if the last element of each row of x were left out");
}

TEST(NamedCause, WhatAKernelPrintsIsKeptAndCut) {
  const Measurement m = judged("softmax", softmax_kernel(R"(  if (threadIdx.x) return;
  printf("row %d of %d\n", (int)blockIdx.x, (int)gridDim.x);
  for (int64_t i = 0; i < cols; ++i) y[i] = 0;)"));
  ASSERT_EQ(m.gate_one, GateOne::kWrong);
  const CaseResult& bad = first_failure_of(m);
  EXPECT_EQ(bad.printed.find("row 0 of "), 0u) << bad.printed;
  EXPECT_LT(bad.printed.size(), 4100u);
}

TEST(LabelOfLibraries, NamesWhatWorksOnGpusAndNothingElse) {
  EXPECT_EQ(label_of_libraries({"libc.so.6", "libcudart.so.13", "libcuda.so.1"}), "");
  EXPECT_EQ(label_of_libraries({"libc.so.6", "libcublas.so.13", "libcublasLt.so.13"}),
            "library: libcublas.so.13, libcublasLt.so.13 were loaded by the kernel's process");
}

}  // namespace
}  // namespace capstone
