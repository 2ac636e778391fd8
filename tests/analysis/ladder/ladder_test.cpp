// Ladders: the rungs and their order, the text of a ladder view, and results files.
#include "harness/analysis/ladder/ladder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "harness/base/files.h"

namespace capstone {
namespace {

Resources shipped() {
  Resources resources;
  resources.share = CAPSTONE_SHARE;
  resources.version = "test";
  return resources;
}

LadderStep step(const std::string& name, double ms) {
  LadderStep s;
  s.rung.name = name;
  s.gate_one = ms > 0 ? "PASS" : "WRONG";
  s.ms = {ms, ms * 0.99, ms * 1.01};
  s.of_library = {2 / std::max(ms, 1e-9), 1, 3};
  return s;
}

Ladder ladder_view() {
  Ladder ladder;
  ladder.problem = "transpose";
  ladder.title = "Matrix transpose";
  ladder.sizes = {{"rows", 8192}, {"cols", 8192}};
  ladder.backend = "cuda";
  ladder.device = "NVIDIA H200";
  ladder.time = "2026-01-01T00:00:00Z";
  ladder.tool = "test";
  ladder.bytes = 4e9;
  ladder.flops = 1e9;
  ladder.copy_bytes_per_second = 4e12;
  ladder.telemetry = {{"seconds", {{"building", 3}}}, {"run_again", Json::array()}};
  ladder.steps = {step("01_naive", 8), step("02_broken", 0), step("03_padded", 2)};
  return ladder;
}

class Results : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(file_.parent_path()), fs::create_directories(file_.parent_path()); }
  fs::path file_ =
      fs::path(testing::TempDir()) / ("capstone-ladder-results-" + std::to_string(::getpid())) / "h200.json";
};

TEST(Ladder, RungsOfAProblemComeInOrderOverAllSessions) {
  const auto rungs = rungs_of(shipped(), "sgemm");
  ASSERT_TRUE(rungs) << render(rungs.error());
  ASSERT_GE(rungs->size(), 8u);
  EXPECT_TRUE(std::is_sorted(rungs->begin(), rungs->end(),
                             [](const Rung& a, const Rung& b) { return a.name < b.name; }));
  EXPECT_EQ(rungs->front().session, "L4");
  EXPECT_EQ(rungs->back().session, "L5");
}

TEST(Ladder, EveryRungSaysWhatItIsAndEveryLaterOneWhatChanged) {
  for (const std::string& problem : ladders_of(shipped(), "")) {
    const auto rungs = rungs_of(shipped(), problem);
    ASSERT_TRUE(rungs) << problem;
    for (std::size_t i = 0; i < rungs->size(); ++i) {
      const Rung& rung = (*rungs)[i];
      EXPECT_FALSE(rung.title.empty()) << rung.source;
      EXPECT_EQ(rung.title.find("Rung"), std::string::npos) << rung.source;
      if (i > 0) {
        EXPECT_FALSE(rung.changed.empty()) << rung.source;
      }
    }
  }
}

TEST(Ladder, SessionsAreInOrderAndHoldTheirProblems) {
  const auto all = ladders_of(shipped(), "");
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size())
      << "a problem of two sessions is named once";
  const auto two = ladders_of(shipped(), "L5");
  EXPECT_NE(std::find(two.begin(), two.end(), "sgemm"), two.end());
  EXPECT_TRUE(ladders_of(shipped(), "L99").empty());
}

TEST(Ladder, ProblemWithoutRungsNamesThoseThatHaveSome) {
  const auto none = rungs_of(shipped(), "nonsense");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().hint.find("sgemm"), std::string::npos);
}

TEST(LanguageLadder, IsNoLadderOfAProblemAndSaysWhatItSolves) {
  const auto all = ladders_of(shipped(), "");
  for (const std::string& name : language_ladders(shipped(), "")) {
    EXPECT_EQ(std::find(all.begin(), all.end(), name), all.end()) << name;
    const auto definition = ladder_definition(shipped(), name);
    ASSERT_TRUE(definition) << render(definition.error());
    EXPECT_NE(std::find(all.begin(), all.end(), definition->problem), all.end()) << name;
    EXPECT_FALSE(definition->library.empty()) << name;
  }
  EXPECT_EQ(language_ladders(shipped(), "W3").size(), 3u);
  EXPECT_TRUE(language_ladders(shipped(), "L3").empty());
  EXPECT_EQ(ladder_definition(shipped(), "sgemm")->problem, "sgemm");
}

TEST(LanguageLadder, EveryRungHasTheTenFieldsAndTheProblemsOwnComesLast) {
  for (const std::string& name : language_ladders(shipped(), "")) {
    const auto rungs = rungs_of(shipped(), name);
    ASSERT_TRUE(rungs) << render(rungs.error());
    EXPECT_EQ(rungs->back().source.extension(), ".cu") << name;
    EXPECT_NE(rungs->back().session, "W3") << name;
    for (const Rung& rung : *rungs) {
      const auto text = read_file(rung.source);
      ASSERT_TRUE(text);
      std::set<std::string> notes;
      for (const auto& [note, said] : rung_header(*text).notes) notes.insert(note);
      for (const char* note :
           {"Changed", "Why", "Prediction", "Shapes", "Launch", "Resources", "Cost", "Divides", "Source"})
        EXPECT_TRUE(notes.contains(note)) << rung.source << " has no field " << note;
      EXPECT_FALSE(rung.title.empty() || rung.changed.empty()) << rung.source;
    }
  }
}

TEST(LanguageLadder, LinesAndTokensLeaveOutComments) {
  const Written python = written("a.py", "# Rung 1: no code\nimport triton  # three\n\ns = '# no comment'\n");
  EXPECT_EQ(python.language, "Triton");
  EXPECT_EQ(python.lines, 2);
  EXPECT_EQ(python.tokens, 2 + 3);
  EXPECT_EQ(without_python_comments("a = \"\"\"# in\nit\"\"\"  # out\n"), "a = \"\"\"# in\nit\"\"\"  \n");
  const Written cuda = written("a.cu", "// text\nint a;  // more\n\n");
  EXPECT_EQ(cuda.language, "CUDA C++");
  EXPECT_EQ(cuda.lines, 1);
  EXPECT_EQ(cuda.tokens, 3);
  EXPECT_EQ(written("a.cu", "#include <cute/tensor.hpp>\n").language, "CUTLASS");
  EXPECT_EQ(written("a.py", "import cutlass.cute as cute\n").language, "CuTe-DSL");
  EXPECT_EQ(written("a.py", "import torch\n").language, "Python");
  EXPECT_EQ(code_digest("# a\nx = 1\n", true), code_digest("x = 1\n", true));
  EXPECT_NE(code_digest("#include <a>\nx\n"), code_digest("x\n")) << "in C++ that is code";
}

TEST(Ladder, GainIsOverTheLastRungThatHasATime) {
  const Ladder ladder = ladder_view();
  EXPECT_FALSE(ladder.gain(0));
  EXPECT_FALSE(ladder.gain(1));
  ASSERT_TRUE(ladder.gain(2));
  EXPECT_DOUBLE_EQ(*ladder.gain(2), 4);
}

TEST(Ladder, MeanOverSizesIsGeometricAndLeavesOutWhatHasNoTime) {
  Ladder other = ladder_view();
  other.sizes = {{"rows", 64}, {"cols", 64}};
  other.steps[0].of_library.point = 4;  // 0.25 at the first size
  other.steps[2].ms = {};               // no time at this size
  EXPECT_TRUE(over_sizes({ladder_view()}).empty());
  const auto means = over_sizes({ladder_view(), other});
  ASSERT_EQ(means.size(), 1u);
  EXPECT_EQ(means[0].rung, "01_naive");
  EXPECT_EQ(means[0].sizes, 2);
  EXPECT_DOUBLE_EQ(means[0].of_library, 1);
}

TEST(Ladder, FiguresComeFromTheCostAndTheTime) {
  const Ladder ladder = ladder_view();
  EXPECT_DOUBLE_EQ(ladder.bandwidth(ladder.steps[2]), 2e12);
  EXPECT_DOUBLE_EQ(ladder.percent_of_copy(ladder.steps[2]), 50);
  EXPECT_DOUBLE_EQ(ladder.bandwidth(ladder.steps[1]), 0) << "what has no time has no speed";
}

// The figure and the percent of peak refer to the same limit: 888 GB/s next to 64 % of the FP32 peak would
// mislead.
TEST(Ladder, FigureIsOfTheRoofThatItsPercentIsOf) {
  Ladder ladder = ladder_view();
  for (LadderStep& step : ladder.steps) step.bound_by = "memory";
  EXPECT_FALSE(ladder.compute_bound());
  for (LadderStep& step : ladder.steps) step.bound_by = "compute";
  EXPECT_TRUE(ladder.compute_bound());
  ladder.steps.clear();
  ladder.bytes = 1, ladder.flops = 100;
  EXPECT_TRUE(ladder.compute_bound()) << "nothing timed: by the intensity";
}

TEST_F(Results, AreReadAsTheyWereWritten) {
  ASSERT_TRUE(record_ladder(file_, ladder_view()));
  const auto read = read_results(file_);
  ASSERT_TRUE(read) << render(read.error());
  ASSERT_EQ(read->ladders.size(), 1u);
  EXPECT_EQ(Json(read->ladders[0]), Json(ladder_view()));
  Ladder languages = ladder_view();
  languages.problem = "gemm_languages";
  for (LadderStep& each : languages.steps) each.effort = LadderStep::Effort{{"Triton", 36, 400}, 1.5, 0.04};
  ASSERT_TRUE(record_ladder(file_, languages));
  const auto again = read_results(file_);
  ASSERT_TRUE(again);
  const auto& first = again->ladders[0];
  EXPECT_EQ(Json(first), Json(languages));
  ASSERT_TRUE(first.of_languages());
  EXPECT_EQ(first.steps[0].effort->written.lines, 36);
}

TEST_F(Results, AreReplacedByAnotherRunAtTheSameSizesAndKeptBesideOnesAtOthers) {
  Ladder ladder = ladder_view();
  ASSERT_TRUE(record_ladder(file_, ladder));
  ladder.steps[0].ms.point = 7;
  ASSERT_TRUE(record_ladder(file_, ladder));
  ladder.sizes["rows"] = 32768;
  ASSERT_TRUE(record_ladder(file_, ladder));
  const auto read = read_results(file_);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->ladders.size(), 2u);
  EXPECT_DOUBLE_EQ(read->ladders[1].steps[0].ms.point, 7);
}

TEST_F(Results, OfTwoDevicesDoNotMix) {
  Ladder ladder = ladder_view();
  ASSERT_TRUE(record_ladder(file_, ladder));
  ladder.device = "NVIDIA H100 80GB HBM3";
  const auto mixed = record_ladder(file_, ladder);
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().what.find("NVIDIA H200"), std::string::npos);
}

TEST_F(Results, ThatAreNoneAreAnErrorWithThePath) {
  ASSERT_TRUE(write_file_atomic(file_, "{\"schema\": 1, \"ladders\": 3}"));
  const auto read = read_results(file_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().where, file_.string());
}

TEST(ResultsName, IsTheDeviceWithoutItsMaker) {
  EXPECT_EQ(results_name("NVIDIA H200"), "h200");
  EXPECT_EQ(results_name("NVIDIA H100 80GB HBM3"), "h100_80gb_hbm3");
}

}  // namespace
}  // namespace capstone
