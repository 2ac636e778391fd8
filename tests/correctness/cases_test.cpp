#include "harness/correctness/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace capstone {
namespace {

std::int64_t value_of(const Sizes& sizes, const std::string& symbol) {
  for (const auto& [name, value] : sizes)
    if (name == symbol) return value;
  return -1;
}

std::vector<CasePlan> measured_cases(const Problem& problem) {
  std::uint64_t seed = 1;
  auto plans = plan_cases(problem, 0, DrawLimits{},
                          [&] { return seed = seed * 6364136223846793005u + 1442695040888963407u; });
  EXPECT_TRUE(plans) << render(plans.error());
  std::vector<CasePlan> measured;
  for (CasePlan& plan : *plans)
    if (plan.id.starts_with("measured-")) measured.push_back(std::move(plan));
  return measured;
}

// A path for exactly the measured number of columns must not escape gate one.
TEST(MeasuredExtents, EachSymbolHasItsMeasuredValueInSomeCase) {
  const std::filesystem::path catalogue = std::filesystem::path(CAPSTONE_TEST_SHARE) / "problems";
  for (const char* id : {"softmax", "sgemm", "transpose", "mamba_block"}) {
    auto problem = find_problem(catalogue, id);
    ASSERT_TRUE(problem) << render(problem.error());
    const std::vector<CasePlan> cases = measured_cases(*problem);
    for (const auto& [symbol, value] : problem->measure)
      EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                              [&, &symbol = symbol, &value = value](const CasePlan& plan) {
                                return value_of(plan.sizes, symbol) == value;
                              }))
          << id << " " << symbol;
    EXPECT_LE(cases.size(), problem->symbols.size()) << id;
  }
}

TEST(MeasuredExtents, CostNoMoreThanADrawnCase) {
  auto problems = load_catalogue(std::filesystem::path(CAPSTONE_TEST_SHARE) / "problems");
  ASSERT_TRUE(problems) << render(problems.error());
  for (const Problem& problem : *problems)
    for (const CasePlan& plan : measured_cases(problem)) {
      auto cost = cost_at(problem, plan.sizes);
      ASSERT_TRUE(cost) << problem.id;
      EXPECT_LE(cost->flops, DrawLimits{}.flops) << problem.id;
      EXPECT_LE(cost->bytes, DrawLimits{}.bytes) << problem.id;
      auto holds = admissible(problem, plan.sizes);
      EXPECT_TRUE(holds && *holds) << problem.id;
    }
}

// One size, and it is too large for a CPU: nothing is left to try.
TEST(MeasuredExtents, AreLeftOutWhereTheyCostTooMuch) {
  auto problem = find_problem(std::filesystem::path(CAPSTONE_TEST_SHARE) / "problems", "sum");
  ASSERT_TRUE(problem) << render(problem.error());
  EXPECT_TRUE(measured_cases(*problem).empty());
}

}  // namespace
}  // namespace capstone
