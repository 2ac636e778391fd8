#include "harness/course/gradebook/quadrant.h"

#include "harness/course/gradebook/leaderboard.h"
#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone {
namespace {

class Quadrant : public testing::GradebookTest {
 protected:
  static Measurement judged(const char* candidate, GateOne one, GateTwo two) {
    Measurement m;
    m.candidate = candidate;
    m.gate_one = one;
    m.gate_two = two;
    if (two != GateTwo::kNotJudged) {
      m.measured.emplace();
      m.measured->speedup = Interval{2, 1.9, 2.1};
    }
    return m;
  }
  std::vector<GateDot> dots(bool names) { return dots_of_cohort(rows(), *book().summaries(), names); }
};

TEST_F(Quadrant, HasAFieldForEachPairOfGates) {
  const auto field = [](GateOne one, GateTwo two) {
    return field_of({"by hand", "Ada", std::string(label_of(one)), std::string(label_of(two))});
  };
  EXPECT_EQ(field(GateOne::kPassed, GateTwo::kFaster), GateField::kFaster);
  EXPECT_EQ(field(GateOne::kPassed, GateTwo::kTie), GateField::kNotFaster);
  EXPECT_EQ(field(GateOne::kPassed, GateTwo::kSlower), GateField::kNotFaster);
  EXPECT_EQ(field(GateOne::kPassed, GateTwo::kUnresolved), GateField::kUndecided);
  EXPECT_EQ(field(GateOne::kPassed, GateTwo::kNotJudged), GateField::kUndecided);
  EXPECT_EQ(field(GateOne::kWrong, GateTwo::kNotJudged), GateField::kWrong);
}

TEST_F(Quadrant, HoldsEveryJudgedKernelOfAClassOnce) {
  SubmissionResult ada = result("ada", "second", {{"Ada", "1", "ada@example.org"}});
  ada.judged = {judged("human", GateOne::kPassed, GateTwo::kFaster),
                judged("llm", GateOne::kWrong, GateTwo::kNotJudged)};
  SubmissionResult team = result("team", "t2", {{"Bob", "2", ""}, {"Eve", "3", ""}});
  team.judged = {judged("human", GateOne::kPassed, GateTwo::kSlower)};
  ASSERT_TRUE(book().take({ada, team}));
  const std::vector<GateDot> all = dots(true);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].group, "by hand");
  EXPECT_EQ(all[0].name, "Ada");
  EXPECT_EQ(field_of(all[0]), GateField::kFaster);
  EXPECT_EQ(all[1].name, "Bob, Eve");
  EXPECT_EQ(field_of(all[1]), GateField::kNotFaster);
  EXPECT_EQ(all[2].group, "by their model");
  EXPECT_EQ(all[2].name, "Ada");
  EXPECT_EQ(field_of(all[2]), GateField::kWrong);
}

TEST_F(Quadrant, GivesASubmissionThePseudonymOfItsLeaderboard) {
  SubmissionResult ada = result("ada", "second", {{"Ada", "1", "ada@example.org"}});
  ada.judged = {judged("human", GateOne::kPassed, GateTwo::kFaster)};
  ASSERT_TRUE(book().take({ada}));
  const std::vector<GateDot> all = dots(false);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name.find("Ada"), std::string::npos);
  const auto boards = leaderboards(rows(), rubric, *book().summaries(), false);
  ASSERT_EQ(boards.size(), 1u);
  EXPECT_EQ(boards[0].entries[0].shown, all[0].name);
}

}  // namespace
}  // namespace capstone
