#include "harness/course/problem_choice.h"

#include <gtest/gtest.h>

#include <map>

namespace capstone {
namespace {

Problem problem(const std::string& id, int tier, const std::string& title, const std::string& bottleneck,
                const std::string& arch = "sm_75") {
  Problem p;
  p.id = id;
  p.tier = tier;
  p.title = title;
  p.bottleneck = bottleneck;
  p.arch = arch;
  p.graded = true;
  return p;
}

const std::vector<Problem> kCatalogue{
    problem("conv_relu", 2, "Convolution and ReLU", "compute"),
    problem("layernorm", 2, "LayerNorm of images", "memory"),
    problem("rope", 2, "Rotary positions, written to the cache", "memory", "sm_80"),
    problem("sgemm", 1, "Matrix product", "compute"),
    problem("vit_block", 3, "Vision transformer's block", "compute")};

RosterRow row(const std::string& name, const std::string& level = "", const std::string& interest = "") {
  RosterRow r;
  r.name = name;
  r.level = level;
  r.interest = interest;
  r.line = 7;
  return r;
}

std::vector<std::string> ids(const Result<std::vector<Recommendation>>& fitting) {
  std::vector<std::string> all;
  for (const Recommendation& one : *fitting) all.push_back(one.problem->id);
  return all;
}

TEST(ProblemChoice, LevelFixesTheTier) {
  EXPECT_EQ(ids(recommend(kCatalogue, {})), (std::vector<std::string>{"conv_relu", "layernorm", "rope"}));
  EXPECT_EQ(ids(recommend(kCatalogue, {"strong", ""})), std::vector<std::string>{"sgemm"});
  EXPECT_EQ(ids(recommend(kCatalogue, {"Team", ""})), std::vector<std::string>{"vit_block"});
}

TEST(ProblemChoice, NewStudentsGetMemoryBoundProblemsForAnyGpuFirst) {
  EXPECT_EQ(ids(recommend(kCatalogue, {"new", ""})),
            (std::vector<std::string>{"layernorm", "conv_relu", "rope"}));
}

TEST(ProblemChoice, InterestFiltersAndIsNamedInTheReason) {
  const auto fitting = recommend(kCatalogue, {"", "Cache, memory"});
  ASSERT_TRUE(fitting);
  EXPECT_EQ(ids(fitting), (std::vector<std::string>{"rope", "layernorm"})) << "two words, then one";
  EXPECT_NE(fitting->front().because.find("cache: in title"), std::string::npos) << fitting->front().because;
}

TEST(ProblemChoice, UnknownLevelsAndInterestsSayWhatThereIs) {
  const auto level = recommend(kCatalogue, {"stong", ""});
  ASSERT_FALSE(level);
  EXPECT_EQ(level.error().hint, "did you mean strong?  levels: new, usual, strong, team");
  const auto interest = recommend(kCatalogue, {"", "chess"});
  ASSERT_FALSE(interest);
  EXPECT_EQ(interest.error().what, "no graded problem of tier 2 is about chess");
}

TEST(ProblemChoice, UngradedProblemsAreNeverChosen) {
  auto catalogue = kCatalogue;
  catalogue[1].graded = false;
  EXPECT_EQ(ids(recommend(catalogue, {"", "memory"})), std::vector<std::string>{"rope"});
}

TEST(ProblemChoice, CohortIsSpreadEvenly) {
  std::vector<RosterRow> roster;
  for (int i = 0; i < 10; ++i) roster.push_back(row("student " + std::to_string(i)));
  const auto assigned = assign_problems(kCatalogue, roster, {});
  ASSERT_TRUE(assigned);
  std::map<std::string, int> taken;
  for (const Assigned& one : *assigned) ++taken[one.choice.problem->id];
  ASSERT_EQ(taken.size(), 3u);
  for (const auto& [id, count] : taken) EXPECT_TRUE(count == 3 || count == 4) << id << count;
  EXPECT_NE((*assigned)[0].choice.problem->id, (*assigned)[1].choice.problem->id) << "neighbours differ";
}

TEST(ProblemChoice, RowsOwnWishWinsOverTheCohorts) {
  const auto assigned = assign_problems(
      kCatalogue, {row("Ada"), row("Bob", "strong"), row("Cy", "", "layernorm"), row("Di", "", "layernorm")},
      {"team", ""});
  ASSERT_FALSE(assigned) << "no problem of tier 3 is about layernorm";
  EXPECT_EQ(assigned.error().where, "line 7 of the roster: Cy");
  const auto mixed = assign_problems(
      kCatalogue, {row("Ada"), row("Bob", "strong"), row("Cy", "usual", "layernorm")}, {"team", ""});
  ASSERT_TRUE(mixed);
  EXPECT_EQ((*mixed)[0].choice.problem->id, "vit_block");
  EXPECT_EQ((*mixed)[1].choice.problem->id, "sgemm");
  EXPECT_EQ((*mixed)[2].choice.problem->id, "layernorm");
}

}  // namespace
}  // namespace capstone
