// The finished examples that mentors use to align their marks: the suggestions, the agreed marks, and their
// order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/course/gradebook/sheets.h"
#include "rubric/rubric.h"

namespace capstone {
namespace {

const fs::path kExamples = fs::path(CAPSTONE_SOURCE_DIR) / "examples";
using Marks = std::map<std::string, double>;  // criterion → points

double total(const Marks& marks) {
  double sum = 0;
  for (const auto& [criterion, points] : marks) sum += points;
  return sum;
}

class AgreementExamples : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = load_rubric(fs::path(CAPSTONE_SOURCE_DIR) / "rubric" / "rubric.yaml");
    ASSERT_TRUE(loaded) << loaded.error().what;
    rubric = *loaded;
    for (const auto& entry : fs::directory_iterator(kExamples))
      if (fs::exists(entry.path() / "capstone.yaml"))
        suggested[entry.path().filename()] = suggestions(entry.path());
    auto text = read_file(kExamples / "agreed_marks.csv");
    ASSERT_TRUE(text) << text.error().what;
    auto marks = read_marks(*text, "agreed_marks.csv", "agreed", {});
    ASSERT_TRUE(marks) << marks.error().what << " " << marks.error().where;
    given = *marks;
    for (const Mark& mark : given) agreed[mark.submission][mark.criterion] = mark.points;
  }
  Marks suggestions(const fs::path& folder) {
    auto project = open_project(folder);
    EXPECT_TRUE(project) << project.error().what;
    auto ledger = read_ledger(project->ledger());
    EXPECT_TRUE(ledger) << ledger.error().what;
    auto worklog = read_file(project->worklog());
    EXPECT_TRUE(worklog) << worklog.error().what;
    Marks marks;
    for (const CriterionScore& c : score(rubric, *project, *ledger, parse_worklog(*worklog)).criteria)
      marks[c.criterion->id] = c.suggested;
    return marks;
  }
  // Below both honest losses, in the analysis and in total, and below the honest win.
  static void expect_order(std::map<std::string, Marks> of) {
    for (const char* honest : {"machine_wins", "library_wins", "fusion_wins"}) {
      EXPECT_LT(of["unexplained_win"]["head_to_head"], of[honest]["head_to_head"] - 10) << honest;
      EXPECT_LT(total(of["unexplained_win"]), total(of[honest]) - 10) << honest;
      EXPECT_EQ(of[honest]["honesty"], 10) << honest << ": a race lost and reported honestly loses nothing";
    }
  }

  Rubric rubric;
  std::map<std::string, Marks> suggested, agreed;
  std::vector<Mark> given;
};

TEST_F(AgreementExamples, AreFourAndAllHaveAgreedMarks) {
  const std::set<std::string> names{"fusion_wins", "library_wins", "machine_wins", "unexplained_win"};
  std::set<std::string> finished, marked;
  for (const auto& [name, marks] : suggested) finished.insert(name);
  for (const auto& [name, marks] : agreed) marked.insert(name);
  EXPECT_EQ(finished, names);
  EXPECT_EQ(marked, names);
  EXPECT_EQ(given.size(), names.size() * rubric.criteria.size()) << "each mark appears once";
  for (const Mark& mark : given) {
    auto criterion = std::find_if(rubric.criteria.begin(), rubric.criteria.end(),
                                  [&](const Criterion& c) { return c.id == mark.criterion; });
    ASSERT_NE(criterion, rubric.criteria.end()) << mark.criterion;
    EXPECT_TRUE(mark.points >= 0 && mark.points <= criterion->weight &&
                mark.points * 2 == std::floor(mark.points * 2))
        << mark.submission << " " << mark.criterion;
    EXPECT_GT(mark.reason.size(), 60u)
        << "too short a reason to learn from: " << mark.submission << " " << mark.criterion;
    EXPECT_EQ(mark.grader, "agreed");
  }
}

TEST_F(AgreementExamples, AreSuggestedInTheOrderOfUnderstanding) { expect_order(suggested); }
TEST_F(AgreementExamples, WereAgreedOnInTheOrderOfUnderstanding) { expect_order(agreed); }

TEST_F(AgreementExamples, OfTheAgreedMarksTheSuspiciousWinIsNotYetAnAnalysis) {
  auto criterion = std::find_if(rubric.criteria.begin(), rubric.criteria.end(),
                                [](const Criterion& c) { return c.id == "head_to_head"; });
  ASSERT_NE(criterion, rubric.criteria.end());
  EXPECT_LE(agreed["unexplained_win"]["head_to_head"], criterion->levels.back().to);
  EXPECT_LE(suggested["unexplained_win"]["head_to_head"], criterion->levels.back().to)
      << "the machine finds no explanation";
}

// The machine and the mentors agree on what a machine can check. What only a reader sees costs at most one
// level.
TEST_F(AgreementExamples, TheHonestOnesAreAgreedOnNearWhatIsSuggested) {
  for (const char* honest : {"machine_wins", "library_wins", "fusion_wins"})
    EXPECT_LT(std::abs(total(agreed[honest]) - total(suggested[honest])), 20) << honest;
}

}  // namespace
}  // namespace capstone
