#include "harness/analysis/lint/triviality.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/base/text.h"
#include "harness/judge/reference_oracle.h"
#include "tests/analysis/lint/definition.h"

namespace capstone {
namespace {

using testing::Definition;

std::vector<Trick> audit(const Problem& problem) {
  auto oracle = load_oracle(problem, test::suite_resources());
  EXPECT_TRUE(oracle) << render(oracle.error());
  return audit_triviality(problem, *oracle).value();
}

std::set<std::string> passing(const std::vector<Trick>& tricks) {
  std::set<std::string> names;
  for (const Trick& trick : tricks)
    if (!trick.caught) names.insert(trick.what);
  return names;
}

TEST(Triviality, TriesEveryTrickAndNamesIt) {
  const Definition definition;
  std::set<std::string> tried;
  for (const Trick& trick : audit(load_problem(definition.path()).value())) {
    tried.insert(trick.what);
    EXPECT_TRUE(trick.caught) << trick.what;
  }
  EXPECT_EQ(tried, (std::set<std::string>{
                       "y = all zeros", "y = a copy of x", "y = a copy of w",
                       "y = a copy of w, each element repeated", "y = the mean of the expected values",
                       "y = the median of the expected values", "y = the first expected value everywhere",
                       "y = ones", "y = 99 % of the rows right, the rest zero",
                       "y = operands rounded to tf32 or f16"}));
}

TEST(Triviality, AToleranceThatTakesAnythingIsSeenByAll) {
  const Definition definition;
  Problem problem = load_problem(definition.path()).value();
  problem.tolerance.atol = 1e9;
  const auto tricks = audit(problem);
  EXPECT_EQ(passing(tricks).size(), tricks.size());
}

TEST(Triviality, EachPrecisionClassIsToldFromTheNextDifferentOne) {
  const Definition definition;
  Problem problem = load_problem(definition.path()).value();
  struct Expected {
    Precision precision;
    const char* what;
    double refused, admitted;  // tolerances on either side of that class's rounding
  };
  for (const auto& [precision, what, refused, admitted] :
       {Expected{Precision::kFp32, "y = operands rounded to tf32 or f16", 1e-5, 1e-2},
        {Precision::kTf32, "y = operands rounded to bf16", 1e-3, 5e-2},
        {Precision::kFp16, "y = operands rounded to bf16", 1e-3, 5e-2},
        {Precision::kBf16, "y = operands rounded to fp8", 1e-2, 0.5},
        {Precision::kFp8, "y = operands rounded to fp4", 0.1, 2}}) {
    problem.precision = precision;
    problem.tolerance = {0, refused};
    EXPECT_FALSE(passing(audit(problem)).contains(what)) << what;
    problem.tolerance = {0, admitted};
    EXPECT_TRUE(passing(audit(problem)).contains(what)) << what;
  }
  problem.precision = Precision::kFp4;
  for (const Trick& trick : audit(problem)) EXPECT_NE(trick.name, "lower_precision");
}

TEST(Triviality, AClassThatRoundsNoOperandIsNotTried) {
  const Definition definition;
  definition.write("problem.yaml",
                   replace_all(replace_all(testing::kYaml, "input,     dtype: f32", "input,     dtype: e4m3"),
                               "parameter, dtype: f32", "parameter, dtype: e4m3"));
  std::string oracle = replace_all(testing::kOracle, "const float*", "const std::uint8_t*");
  oracle = replace_all(oracle, "x[indices[i]])", "capstone_types::e4m3_value(x[indices[i]]))");
  oracle = replace_all(oracle, "w[indices[i] % c->sizes[1]]",
                       "capstone_types::e4m3_value(w[indices[i] % c->sizes[1]])");
  definition.write("oracle.cpp", oracle);
  Problem problem = load_problem(definition.path()).value();
  const auto tried = [&] {
    for (const Trick& trick : audit(problem))
      if (trick.name == "lower_precision") return true;
    return false;
  };
  problem.precision = Precision::kFp8;
  EXPECT_TRUE(tried());  // fp4 has fewer bits
  problem.precision = Precision::kBf16;
  EXPECT_FALSE(tried());  // e4m3 is fp8 already
}

TEST(Triviality, ACopyIsAlsoTriedStretched) {
  const Definition definition;
  definition.change("problem.yaml", testing::kYaml, "dtype: f32, shape: [cols], python",
                    "dtype: f32, shape: [rows], python");
  definition.change("oracle.cpp", testing::kOracle, "% c->sizes[1]", "/ c->sizes[1]");
  std::set<std::string> tried;
  for (const Trick& trick : audit(load_problem(definition.path()).value())) tried.insert(trick.what);
  EXPECT_TRUE(tried.contains("y = a copy of w, each element repeated"));
}

TEST(Triviality, AReasonOfTheProblemComesWithTheTrick) {
  const Definition definition;
  Problem problem = load_problem(definition.path()).value();
  problem.tolerance.atol = 1e9;
  problem.because["mean"] = "the mean is the answer";
  for (const Trick& trick : audit(problem)) {
    EXPECT_EQ(trick.because, trick.name == "mean" ? "the mean is the answer" : "");
    EXPECT_EQ(trick.acceptable(), trick.name == "mean");
  }
}

}  // namespace
}  // namespace capstone
