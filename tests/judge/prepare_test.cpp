// prepare(): parameters repacked once, out of sight of the inputs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/judge.h"
#include "harness/model/problem.h"
#include "tests/resources.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTransposing = R"(#include <cuda_runtime.h>
#include <cstddef>
#include <cstdint>

__global__ void transpose(const float* w, float* t, int64_t ins, int64_t outs) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < ins * outs) t[i % ins * outs + i / ins] = w[i];
}

__global__ void linear(const float* x, const float* t, float* y, int64_t rows, int64_t ins, int64_t outs) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i >= rows * outs) return;
  float sum = 0;
  for (int64_t k = 0; k < ins; ++k) sum += x[i / outs * ins + k] * t[k * outs + i % outs];
  y[i] = sum;
}

extern "C" size_t prepared_bytes(int64_t, int64_t ins, int64_t outs) { return size_t(ins) * outs * sizeof(float); }

extern "C" void prepare(const float* w, int64_t, int64_t ins, int64_t outs, void* prepared, cudaStream_t stream) {
  transpose<<<unsigned((ins * outs + 255) / 256), 256, 0, stream>>>(w, static_cast<float*>(prepared), ins, outs);
}

extern "C" void launch(const float* x, const float*, float* y, int64_t rows, int64_t ins, int64_t outs, const void* prepared,
                       void*, cudaStream_t stream) {
  linear<<<unsigned((rows * outs + 255) / 256), 256, 0, stream>>>(x, static_cast<const float*>(prepared), y, rows, ins, outs);
}
)";

/// The kernel above with one part replaced, judged on the CPU.
Measurement judged_with(const std::string& part = {}, const std::string& replacement = {},
                        bool timing = false) {
  Measurement nothing;
  auto problem = load_problem(fs::path(CAPSTONE_SOURCES) / "tests/corpus/problems/packed_linear");
  if (!problem) {
    ADD_FAILURE() << render(problem.error());
    return nothing;
  }
  std::string text = kTransposing;
  if (!part.empty()) {
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    text.replace(at, part.size(), replacement);
  }
  const fs::path folder =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::create_directories(folder);
  EXPECT_TRUE(write_file_atomic(folder / "kernel.cu", text));
  JudgeRequest request;
  request.problem = &*problem;
  request.candidates = {{"human", folder / "kernel.cu"}};
  request.options.backend = Backend::kEmulated;
  request.options.hidden_cases = 1;
  request.timing = timing;
  auto measurements = judge(request, test::suite_resources(), [](const std::string&) {});
  if (!measurements) {
    ADD_FAILURE() << render(measurements.error());
    return nothing;
  }
  return measurements->front();
}

std::string why(const Measurement& m) {
  std::string text = std::string(label_of(m.gate_one)) + " " + m.build.log;
  if (const CaseResult* failure = m.first_failure()) text += failure->problem + " (" + failure->where + ")";
  return text;
}

TEST(Prepare, LaunchReceivesWhatPrepareMade) {
  const Measurement m = judged_with({}, {}, true);
  EXPECT_EQ(m.gate_one, GateOne::kPassed) << why(m);
  EXPECT_TRUE(m.measured.has_value()) << "the timed runs are prepared as well";
}

TEST(Prepare, InputsAreOutOfItsSight) {
  // The input's address is an open secret: at both check sizes it lies 4 KiB and a bit before the weights.
  // What is there is poison.
  const Measurement m = judged_with("t[i % ins * outs + i / ins] = w[i];",
                                    "t[i % ins * outs + i / ins] = w[i] + 0.0f * w[-1088];");
  EXPECT_EQ(m.gate_one, GateOne::kWrong) << why(m);
  ASSERT_NE(m.first_failure(), nullptr);
  EXPECT_EQ(m.first_failure()->id, "check-0");
}

TEST(Prepare, WritingElsewhereIsNamed) {
  const Measurement m = judged_with("t[i % ins * outs + i / ins] = w[i];",
                                    "t[i % ins * outs + i / ins] = w[i]; const_cast<float*>(w)[0] = 7;");
  EXPECT_EQ(m.gate_one, GateOne::kWrong);
  EXPECT_NE(why(m).find("prepare() changed w"), std::string::npos) << why(m);
}

TEST(Prepare, OverrunOfItsRegionIsNamed) {
  const Measurement m =
      judged_with("size_t(ins) * outs * sizeof(float)", "(size_t(ins) * outs - 1) * sizeof(float)");
  EXPECT_EQ(m.gate_one, GateOne::kWrong);
  EXPECT_NE(why(m).find("out of bounds: write of 4 bytes, 0 bytes past the end of "), std::string::npos)
      << why(m);
}

TEST(Prepare, LaunchMayNotKeepAnythingInIt) {
  const Measurement m = judged_with("  y[i] = sum;", "  y[i] = sum; const_cast<float*>(t)[0] = sum;");
  EXPECT_EQ(m.gate_one, GateOne::kWrong);
  EXPECT_NE(why(m).find("launch() changed what prepare() made"), std::string::npos) << why(m);
}

TEST(Prepare, ItsFailureIsItsOwn) {
  const Measurement m = judged_with("  transpose<<<unsigned((ins * outs + 255) / 256), 256, 0, stream>>>",
                                    "  transpose<<<1, 2048, 0, stream>>>");
  EXPECT_EQ(m.gate_one, GateOne::kCrashed) << why(m);
}

TEST(Prepare, MissingPrepareDoesNotBuild) {
  const Measurement m = judged_with("extern \"C\" void prepare", "void another");
  EXPECT_EQ(m.gate_one, GateOne::kBuildFailed);
  EXPECT_NE(why(m).find("prepare"), std::string::npos) << why(m);
}

}  // namespace
}  // namespace capstone
