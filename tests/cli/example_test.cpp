// The finished examples: whole records, nothing missing, rendered in full on a machine without a GPU.
#include <cstdlib>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Example : public CliTest {
 protected:
  // A copy, so that rendering never touches the committed one.
  fs::path copy_of(const std::string& name) const {
    fs::path copy = home_ / name;
    fs::copy(fs::path(CAPSTONE_SOURCE_DIR) / "examples" / name, copy, fs::copy_options::recursive);
    return copy;
  }
};

TEST_F(Example, FusionWinsHasAWholeLedgerAndNothingMissing) {
  fs::path root = copy_of("fusion_wins");
  expect_ledger_intact(root);
  Outcome check = capstone({"check"}, {.cwd = root});
  EXPECT_EQ(check.code, 0) << check;
  EXPECT_TRUE(says(check.out, "nothing is missing"));
}

TEST_F(Example, FusionWinsRendersFourPlotsWithinASecond) {
  fs::path root = copy_of("fusion_wins");
  Outcome report = capstone({"report"}, {.cwd = root});
  ASSERT_EQ(report.code, 0) << report;
  EXPECT_LT(report.seconds, std::getenv("CI") ? 3.0 : 1.0);
  std::string html = slurp(root / "report" / "worklog.html");
  std::size_t plots = 0;
  for (std::size_t at = 0; (at = html.find("<svg", at)) != std::string::npos; ++at) ++plots;
  EXPECT_GE(plots, 4u);
  // Numbers of the ledger stand in the prose where placeholders were.
  EXPECT_EQ(html.find("{{"), std::string::npos);
  EXPECT_TRUE(says(html, "NVIDIA H200"));
}

TEST_F(Example, FusionWinsIsSubmittedWithoutAnythingThatNamesTheMachine) {
  fs::path root = copy_of("fusion_wins");
  Outcome plan = capstone({"submit", "--dry-run"}, {.cwd = root});
  EXPECT_EQ(plan.code, 0) << plan;
  EXPECT_EQ(slurp(root / ".capstone" / "ledger.jsonl").find("/home/"), std::string::npos);
}

// The ledger is handed in byte for byte, so it must not say where on the machine the project lies.
TEST_F(Example, RecordsForgetWhereTheProjectLies) {
  fs::path root = project_with(kernel("#error \"on purpose\"\n", ""));
  EXPECT_EQ(measure(root).code, 1);
  std::string ledger = slurp(root / ".capstone" / "ledger.jsonl");
  EXPECT_TRUE(says(ledger, "on purpose"));
  EXPECT_EQ(ledger.find(root.string()), std::string::npos);
}

}  // namespace
}  // namespace capstone::cli_test
