// The kernel that student, model and profiler make with each other.
#include "harness/workflows/together.h"

#include "harness/base/text.h"
#include "harness/workflows/explain_kernel.h"
#include "harness/workflows/measure.h"
#include "harness/workflows/report.h"
#include "harness/workflows/version_diff.h"
#include "templates/report.h"
#include "tests/workflows/fixture.h"

namespace capstone::workflows::test {
namespace {

class Together : public ProjectTest {
 protected:
  Result<MeasureOutcome> measured(Who who, const std::string& reason) {
    MeasureRequest request;
    request.who = who;
    request.reason = reason;
    request.judge = quick();
    return measure(request, workspace_, sink());
  }
  fs::path kernel() const { return workspace_.cwd / "together" / "kernel.cu"; }
};

TEST_F(Together, InitMakesNoFolderAndMeasureSaysHowToBegin) {
  EXPECT_FALSE(fs::exists(workspace_.cwd / "together"));
  const auto none = measured(Who::kTogether, "too early");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().hint, "capstone together begin");
}

TEST_F(Together, BeginsWithAMeasuredVersionOnceAndRecordsFromWhere) {
  ASSERT_TRUE(measured(Who::kHuman, "first version"));
  const auto begun = begin_together("human", workspace_);
  ASSERT_TRUE(begun) << render(begun.error());
  EXPECT_EQ(begun->from, "v1");
  EXPECT_EQ(read_file(kernel()).value(), kRightKernel);
  EXPECT_EQ(together_here(workspace_)->begun_from, "v1");
  EXPECT_FALSE(begin_together("human", workspace_));
  EXPECT_FALSE(begin_together("v9", workspace_));
}

TEST_F(Together, ACopyOfAHumanVersionIsNoVersionOfItsOwn) {
  ASSERT_TRUE(measured(Who::kHuman, "first version"));
  ASSERT_TRUE(begin_together("v1", workspace_));
  ASSERT_TRUE(measured(Who::kTogether, "nothing changed"));
  EXPECT_TRUE(noted("together/kernel.cu is still v1"));
  EXPECT_TRUE(together_here(workspace_)->ledger.together.empty());
}

TEST_F(Together, HasVersionsOfItsOwnAndChangesNothingOfTheOthers) {
  ASSERT_TRUE(measured(Who::kHuman, "first version"));
  ASSERT_TRUE(begin_together("human", workspace_));
  ASSERT_TRUE(write_file_atomic(kernel(), replace_all(kRightKernel, "256", "128")));
  const auto outcome = measured(Who::kTogether, "the model asked for smaller blocks");
  ASSERT_TRUE(outcome) << render(outcome.error());
  ASSERT_EQ(outcome->measurements.size(), 1u);
  EXPECT_EQ(outcome->measurements[0].version, "t1");
  EXPECT_EQ(outcome->measurements[0].candidate, "together");
  const LedgerView& ledger = outcome->ledger;
  EXPECT_EQ(ledger.human.size(), 1u);
  EXPECT_TRUE(ledger.llm.empty());
  EXPECT_EQ(ledger.together.size(), 1u);
  EXPECT_EQ(ledger.find("t1")->reason, "the model asked for smaller blocks");
  EXPECT_EQ(ledger.best("human")->version, "v1");
  const auto diff = version_diff("v1", "t1", workspace_);
  ASSERT_TRUE(diff) << render(diff.error());
  EXPECT_NE(diff->text.find("+"), std::string::npos);
}

TEST_F(Together, TheHistorySaysWhoseLinesTheyAre) {
  ASSERT_TRUE(measured(Who::kHuman, "first version"));
  ASSERT_TRUE(begin_together("human", workspace_));
  ASSERT_TRUE(write_file_atomic(kernel(), replace_all(kRightKernel, "256", "128")));
  ASSERT_TRUE(measured(Who::kTogether, "smaller blocks"));
  ASSERT_TRUE(write_file_atomic(kernel(), "#include <cstdio>\n" + replace_all(kRightKernel, "256", "128")));
  ASSERT_TRUE(measured(Who::kTogether, "one line more"));
  const auto history = together_here(workspace_);
  ASSERT_TRUE(history) << render(history.error());
  ASSERT_EQ(history->steps.size(), 2u);
  const TogetherStep &first = history->steps[0], &second = history->steps[1];
  EXPECT_EQ(first.added.fresh, 1);  // the line with the launch
  EXPECT_EQ(first.removed, 1);
  EXPECT_EQ(first.lines.human, first.lines.all() - 1);
  EXPECT_EQ(second.added.fresh, 1);
  EXPECT_EQ(second.removed, 0);
  EXPECT_EQ(second.lines.all(), first.lines.all() + 1);
}

TEST_F(Together, TheReportHasACardAHistoryAndItsPlaceInHeadToHead) {
  ASSERT_TRUE(measured(Who::kHuman, "first version"));
  const auto page = [&] {
    const auto project = project_here(workspace_);
    return worklog_page(*project, workspace_).value();
  };
  EXPECT_EQ(page().find("who changed what"), std::string::npos);
  ASSERT_TRUE(begin_together("human", workspace_));
  ASSERT_TRUE(write_file_atomic(kernel(), replace_all(kRightKernel, "256", "128")));
  ASSERT_TRUE(measured(Who::kTogether, "smaller blocks"));
  const std::string html = page();
  for (const char* part : {"Together: who changed what", "card together",
                           "student, model and profiler together", "It began as v1", "smaller blocks"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace capstone::workflows::test
