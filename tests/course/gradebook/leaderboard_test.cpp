#include "harness/course/gradebook/leaderboard.h"

#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone {
namespace {

class Boards : public testing::GradebookTest {
 protected:
  static SubmissionResult timed(const std::string& name, double human, std::optional<double> model = {},
                                const std::string& device = "NVIDIA H200",
                                std::optional<double> predicted = {}) {
    SubmissionResult r = result(name, "digest of " + name, {{"Name of " + name, name, ""}});
    auto add = [&](const char* candidate, double speedup) {
      Measurement m;
      m.candidate = candidate;
      m.gate_one = GateOne::kPassed;
      m.gate_two = speedup > 1 ? GateTwo::kFaster : GateTwo::kSlower;
      m.environment = {{"device", device}};
      m.measured.emplace();
      m.measured->speedup = Interval{speedup, speedup * 0.97, speedup * 1.03};
      r.judged.push_back(std::move(m));
    };
    add("human", human);
    if (model) add("llm", *model);
    if (predicted) r.prediction = Prediction{"memory", *predicted, "bytes", true};
    return r;
  }
  std::vector<Board> boards(bool names = false) {
    return leaderboards(rows(), rubric, *book().summaries(), names);
  }
};

TEST_F(Boards, RanksAreSharedWhereIntervalsOverlap) {
  ASSERT_TRUE(book().take({timed("a", 2.0), timed("b", 1.98), timed("c", 1.5), timed("d", 0.5)}));
  auto all = boards(true);
  ASSERT_EQ(all.size(), 1u);
  std::vector<int> ranks;
  for (const BoardEntry& entry : all[0].entries) ranks.push_back(entry.rank);
  EXPECT_EQ(ranks, (std::vector<int>{1, 1, 3, 4}));
  EXPECT_EQ(all[0].entries[0].shown, "Name of a");
}

TEST_F(Boards, OneForEachProblemAndDevice) {
  SubmissionResult other = timed("b", 3);
  other.problem = "gelu";
  ASSERT_TRUE(book().take({timed("a", 2.0), other, timed("c", 1, {}, "NVIDIA T4")}));
  auto all = boards();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].problem, "gelu");
  EXPECT_EQ(all[2].device, "NVIDIA T4");
}

TEST_F(Boards, PseudonymsTellNobodyAndAreTheSameEveryTime) {
  ASSERT_TRUE(book().take({timed("a", 2.0), timed("b", 1.0)}));
  auto first = boards(), second = boards();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(first[0].entries[i].shown, second[0].entries[i].shown);
    EXPECT_EQ(first[0].entries[i].shown.find("Name"), std::string::npos);
  }
  EXPECT_NE(first[0].entries[0].shown, first[0].entries[1].shown);
}

TEST_F(Boards, AwardsGoToTheClosestPredictionAndTheBestExplainedLoss) {
  ASSERT_TRUE(book().take({timed("a", 2.0, 1.0, "NVIDIA H200", 4.0),
                           timed("b", 0.6, 1.4, "NVIDIA H200", 0.62), timed("c", 0.7)}));
  ASSERT_TRUE(book().mark(
      rubric, {give("a", "head_to_head", 30), give("b", "head_to_head", 27), give("c", "head_to_head", 12)}));
  auto all = boards(true);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].closest_prediction, "Name of b: 0.620x predicted, 0.600x measured");
  EXPECT_EQ(all[0].best_explained_loss,
            "Name of b: 0.600x against the model's 1.40x, and the worklog explains why");
}

TEST_F(Boards, WhatWasNotTimedOrIsWrongIsNotRanked) {
  SubmissionResult wrong = timed("a", 9);
  wrong.judged[0].gate_one = GateOne::kWrong;
  ASSERT_TRUE(book().take({wrong}));
  EXPECT_TRUE(boards().empty());
}

}  // namespace
}  // namespace capstone
