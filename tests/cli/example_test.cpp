// The finished examples: whole records, nothing missing, rendered in full on a machine without a GPU.
#include <cstdlib>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

constexpr const char* kFinished[] = {"fusion_wins", "library_wins", "machine_wins", "unexplained_win"};

class Example : public CliTest {
 protected:
  // A copy, so that rendering never touches the committed one.
  fs::path copy_of(const std::string& name) const {
    fs::path copy = home_ / name;
    fs::copy(fs::path(CAPSTONE_SOURCE_DIR) / "examples" / name, copy, fs::copy_options::recursive);
    return copy;
  }
};

class FinishedExample : public Example, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, FinishedExample, ::testing::ValuesIn(kFinished),
                         [](const auto& name) { return name.param; });

TEST_P(FinishedExample, HasAWholeLedgerAndOnlyTheSuspiciousOneLacksSomething) {
  fs::path root = copy_of(GetParam());
  expect_ledger_intact(root);
  Outcome check = capstone({"check"}, {.cwd = root});
  EXPECT_EQ(check.code, GetParam() == std::string("unexplained_win") ? 1 : 0) << check;
  if (GetParam() != std::string("unexplained_win")) {
    EXPECT_TRUE(says(check.out, "nothing is missing"));
    return;
  }
  EXPECT_TRUE(says(check.out, "not answered: If a result is better than it should be"));
  EXPECT_TRUE(says(check.out, "no explanation of v3"));
  EXPECT_TRUE(says(check.out, "no explanation of v4"));
  EXPECT_TRUE(says(check.out, "3 to fix before handing in"));
}

TEST_F(Example, CheckSendsToTheReportUntilItIsNewerThanTheWorklog) {
  const fs::path root = copy_of("fusion_wins");
  EXPECT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  EXPECT_TRUE(says(capstone({"check"}, {.cwd = root}).out, "nothing is missing. next: capstone submit"));
  fs::last_write_time(root / "worklog.md", fs::file_time_type::clock::now() + std::chrono::seconds(2));
  EXPECT_TRUE(says(capstone({"check"}, {.cwd = root}).out, "next: capstone report, then capstone submit"));
}

TEST_P(FinishedExample, RendersItsPlots) {
  fs::path root = copy_of(GetParam());
  Outcome report = capstone({"report"}, {.cwd = root});
  ASSERT_EQ(report.code, 0) << report;
  std::string html = slurp(root / "report" / "worklog.html");
  std::size_t plots = 0;
  for (std::size_t at = 0; (at = html.find("<svg", at)) != std::string::npos; ++at) ++plots;
  EXPECT_GE(plots, 4u);
  // Numbers of the ledger stand in the prose where placeholders were.
  EXPECT_EQ(html.find("{{"), std::string::npos);
  EXPECT_TRUE(says(html, "NVIDIA H200"));
}

TEST_P(FinishedExample, IsSubmittedWithoutAnythingThatNamesTheMachine) {
  fs::path root = copy_of(GetParam());
  Outcome plan = capstone({"submit", "--dry-run"}, {.cwd = root});
  EXPECT_EQ(plan.code, 0) << plan;
  EXPECT_EQ(slurp(root / ".capstone" / "ledger.jsonl").find("/home/"), std::string::npos);
}

// What examples/README.md tells a mentor to do, with the agreed marks as another mentor's.
TEST_F(Example, AreGradedWithoutAGpuAndCalibratedOn) {
  const fs::path four = home_ / "four", cohort = home_ / "calibration",
                 agreed_marks = fs::path(CAPSTONE_SOURCE_DIR) / "examples" / "agreed_marks.csv";
  fs::create_directory(four);
  for (const char* name : kFinished)
    fs::copy(agreed_marks.parent_path() / name, four / name, fs::copy_options::recursive);
  Outcome graded = capstone(
      {"grade", four.string(), "--backend", "emulated", "--quick", "-j", "2", "--out", cohort.string()},
      {.patience = std::chrono::seconds(120)});
  ASSERT_EQ(graded.code, 0) << graded;
  EXPECT_TRUE(says(graded.out, "4 submissions: 4 graded"));
  Outcome mine = capstone({"mark", "fusion_wins", "--cohort", cohort.string(), "--criterion", "honesty",
                           "--points", "10", "--reason", "all told", "--grader", "me"});
  ASSERT_EQ(mine.code, 0) << mine;
  Outcome agreed = capstone({"mark", "--from", agreed_marks.string(), "--cohort", cohort.string()});
  ASSERT_EQ(agreed.code, 0) << agreed;
  EXPECT_TRUE(says(agreed.out, "16 marks"));
  Outcome agreement = capstone({"gradebook", "agreement", "--cohort", cohort.string()});
  ASSERT_EQ(agreement.code, 0) << agreement;
  EXPECT_TRUE(says(agreement.out, "honesty           1"));
}

// The ledger is handed in byte for byte, so it must not say where on the machine the project lies.
TEST_F(Example, RecordsForgetWhereTheProjectLies) {
  fs::path root = project_with(kernel("__global__ void bad(float* y) { float* p = nullptr; *p = 1; }",
                                      "  bad<<<1, 32, 0, stream>>>(y);"));
  EXPECT_EQ(measure(root).code, 1);
  std::string ledger = slurp(root / ".capstone" / "ledger.jsonl");
  EXPECT_TRUE(says(ledger, "kernel bad, launched at kernel.cu"));
  EXPECT_EQ(ledger.find(root.string()), std::string::npos);
}

}  // namespace
}  // namespace capstone::cli_test
