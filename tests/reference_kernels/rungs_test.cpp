// The reference kernels: each one documented, and each one right on the CPU. The native baselines:
// tests/analysis/lint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/judge/judge.h"
#include "harness/model/problem.h"
#include "tests/resources.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;

const fs::path kSources = CAPSTONE_SOURCES;

/// Every rung of every ladder whose folder is named after a problem, in the order they are taught.
std::vector<fs::path> all_rungs() {
  std::vector<fs::path> rungs;
  for (const auto& entry : fs::recursive_directory_iterator(kSources / "reference_kernels")) {
    const fs::path& path = entry.path();
    if (path.extension() == ".cu" &&
        fs::exists(kSources / "problems" / path.parent_path().filename() / "problem.yaml"))
      rungs.push_back(path);
  }
  std::sort(rungs.begin(), rungs.end());
  return rungs;
}

/// "sgemm_04_register_tile_1d": GoogleTest wants letters, digits and underscores.
std::string test_name(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

/// How closely a kernel is looked at.
enum class Look {
  kWhole,   ///< hidden sizes too, nvcc's opinion, and the builds that find bad accesses and races
  kOutputs  ///< outputs at the check sizes, under all four schedules
};

Result<Measurement> judge_on_cpu(const std::string& problem_id, const fs::path& source,
                                 Look look = Look::kWhole) {
  CAPSTONE_TRY(Problem problem, load_problem(kSources / "problems" / problem_id));
  JudgeRequest request;
  request.problem = &problem;
  request.candidates = {{"human", source}};
  request.options.backend = Backend::kEmulated;
  request.options.timeout_seconds = 60;  // the CPU may be busy with other tests
  request.options.hidden_cases = look == Look::kWhole ? 2 : 0;
  request.options.quick = look == Look::kOutputs;
  request.timing = false;
  CAPSTONE_TRY(auto measurements, judge(request, test::suite_resources(), [](const std::string&) {}));
  return std::move(measurements.front());
}

std::string explain(const Measurement& m) {
  std::string text = std::string(label_of(m.gate_one)) + "\n" + (m.build.ok ? "" : m.build.log);
  if (const CaseResult* failure = m.first_failure())
    text += failure->id + " " + failure->sizes.dump() + " " + failure->schedule + ": " + failure->problem +
            " " + failure->where;
  return text;
}

/// Whole ladders are judged before a release and after work on the judge, the emulator or a rung; otherwise
/// the first and the last rung of each are, because those between do not change.
bool judges_whole_ladders() { return std::getenv("CAPSTONE_WHOLE_LADDERS") != nullptr; }

std::vector<fs::path> judged_rungs() {
  const std::vector<fs::path> all = all_rungs();
  if (judges_whole_ladders()) return all;
  std::vector<fs::path> judged;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const fs::path ladder = all[i].parent_path();
    const bool first = i == 0 || all[i - 1].parent_path() != ladder;
    const bool last = i + 1 == all.size() || all[i + 1].parent_path() != ladder;
    if (first || last) judged.push_back(all[i]);
  }
  return judged;
}

/// The last rung of each ladder is what others are measured against: it gets the whole gate.
Look look_at(const fs::path& rung) {
  if (judges_whole_ladders()) return Look::kWhole;
  fs::path last;
  for (const auto& entry : fs::directory_iterator(rung.parent_path()))
    if (entry.path().extension() == ".cu") last = std::max(last, entry.path());
  return rung == last ? Look::kWhole : Look::kOutputs;
}

void expect_right(const std::string& problem_id, const fs::path& source) {
  const auto measurement = judge_on_cpu(problem_id, source, look_at(source));
  ASSERT_TRUE(measurement) << render(measurement.error());
  EXPECT_EQ(measurement->gate_one, GateOne::kPassed) << explain(*measurement);
}

class Rung : public testing::TestWithParam<fs::path> {};

TEST_P(Rung, HeaderAnswersEveryQuestion) {
  const auto text = read_file(GetParam());
  ASSERT_TRUE(text) << render(text.error());
  const std::string header = text->substr(0, text->find("#include"));
  for (const char* field : {"// Rung ", "// Changed ", "// Why ", "// Prediction ", "// Shapes ",
                            "// Launch ", "// Resources ", "// Cost ", "// Divides ", "// Source "})
    EXPECT_NE(header.find(field), std::string::npos)
        << GetParam() << " has no line that begins with '" << field << "'";
}

class JudgedRung : public testing::TestWithParam<fs::path> {};

TEST_P(JudgedRung, PassesGateOneOnTheCpu) {
  expect_right(GetParam().parent_path().filename().string(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Ladder, Rung, testing::ValuesIn(all_rungs()), test_name);
INSTANTIATE_TEST_SUITE_P(Ladder, JudgedRung, testing::ValuesIn(judged_rungs()), test_name);

TEST(Ladders, EachProblemHasOne) {
  std::set<std::string> problems;
  for (const fs::path& rung : all_rungs()) problems.insert(rung.parent_path().filename().string());
  int shipped = 0;
  for (const auto& entry : fs::directory_iterator(kSources / "problems")) {
    if (!fs::exists(entry.path() / "problem.yaml")) continue;
    EXPECT_EQ(problems.count(entry.path().filename()), 1u) << entry.path().filename();
    ++shipped;
  }
  EXPECT_GE(shipped, 4);
}

TEST(Ladders, EachCanBeLaunchedUnderTheSanitizers) {
  const auto text = read_file(kSources / "tests/gpu/launch_small.cu");
  ASSERT_TRUE(text) << render(text.error());
  for (const fs::path& rung : all_rungs()) {
    const std::string problem = rung.parent_path().filename().string();
    EXPECT_NE(text->find("{\"" + problem + "\","), std::string::npos)
        << "tests/gpu/launch_small.cu has no sizes for " << problem;
  }
}

/// Takes `what` out of a copy of a rung and expects gate one to notice: the tests above can fail.
void expect_noticed(const std::string& problem_id, const fs::path& rung, const std::string& what) {
  auto text = read_file(kSources / "reference_kernels" / rung);
  ASSERT_TRUE(text) << render(text.error());
  const std::size_t at = text->find(what);
  ASSERT_NE(at, std::string::npos) << "the rung has changed: '" << what << "' is not in it";
  text->erase(at, what.size());
  const fs::path broken = fs::path(testing::TempDir()) / ("broken_" + rung.filename().string());
  ASSERT_TRUE(write_file_atomic(broken, *text));
  const auto measurement = judge_on_cpu(problem_id, broken);
  ASSERT_TRUE(measurement) << render(measurement.error());
  ASSERT_TRUE(measurement->build.ok) << measurement->build.log;
  // Not any failure will do: a machine that cannot run kernels at all would pass as well.
  EXPECT_TRUE(measurement->gate_one == GateOne::kWrong || measurement->gate_one == GateOne::kUndefined)
      << "without '" << what << "': " << explain(*measurement);
}

TEST(BrokenRung, MissingBarrierFails) {
  expect_noticed("sgemm", "L4_gemm_ladder_one/sgemm/03_shared_tile.cu",
                 "__syncthreads();  // the tiles are complete");
}

TEST(BrokenRung, TiesOfFp4ThatAlwaysGoDownFail) {
  expect_noticed("nvfp4_quantise", "W5_blackwell/nvfp4_quantise/02_fp16_bits.cu",
                 " + (size >> 9 & 0x00010001u)");
}

TEST(BrokenRung, Fp4CodesWithoutTheirSignFail) {
  expect_noticed("nvfp4_gemv", "W5_blackwell/nvfp4_gemv/04_tensor_cores.cu", "(codes & 0x80808080u) | ");
}

TEST(BrokenRung, MissingEdgeCheckFails) {
  expect_noticed("conv_bias_scale_relu", "W6_deepseek_and_ai/conv_bias_scale_relu/02_shared_tile.cu",
                 "if (row >= h || column >= w) return;");
}

}  // namespace
}  // namespace capstone
