// How counts grow from the observed to the measured size.
#include "harness/analysis/explain/growth.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/analysis/explain/fixture.h"

namespace capstone::test {
namespace {

/// Reads a matrix: rows * cols.
Problem matrix_problem() {
  Problem problem;
  problem.id = "matrix";
  problem.symbols = {"rows", "cols"};
  problem.emulate = {{"rows", 64}, {"cols", 512}};
  problem.measure = {{"rows", 16384}, {"cols", 4096}};
  problem.flops = Expression{"rows * cols"};
  problem.bytes = Expression{"4 * rows * cols"};
  problem.vary = {{"rows", {1, 300, 1, {}}}, {"cols", {1, 8192, 1, {}}}};
  return problem;
}

/// Line 2: global memory; line 3: shared memory. Wavefronts are clocks, two sectors are one.
Explanation counted(const Problem& problem, const Sizes& sizes,
                    const std::function<double(double rows, double cols)>& sectors,
                    const std::function<double(double rows, double cols)>& wavefronts) {
  const auto rows = static_cast<double>(sizes[0].second), cols = static_cast<double>(sizes[1].second);
  const auto n = static_cast<std::uint64_t>(sectors(rows, cols)),
             m = static_cast<std::uint64_t>(wavefronts(rows, cols));
  const ExplainRequest request{&problem, "/nowhere/kernel.cu", sizes, {}};
  return interpret(report({line(2, global(n / 4, n, n, 32 * n, 8 * n), shared(0, 0, 0, 0, 0)),
                           line(3, global(0, 0, 0, 0, 0), shared(m, m, m, 128 * m, 32 * m))}),
                   request)
      .value();
}

GrowthRuns runs_of(const Problem& problem, const GrowthPlan& plan,
                   const std::function<double(double, double)>& sectors,
                   const std::function<double(double, double)>& wavefronts) {
  GrowthRuns runs{
      counted(problem, plan.from, sectors, wavefronts), {}, counted(problem, plan.all, sectors, wavefronts)};
  for (const GrowthPlan::Step& step : plan.steps)
    runs.larger.push_back(counted(problem, step.sizes, sectors, wavefronts));
  return runs;
}

Explanation extended(const Problem& problem, const std::function<double(double, double)>& sectors,
                     const std::function<double(double, double)>& wavefronts) {
  const GrowthPlan plan = plan_growth(problem, problem.emulate).value().value();
  const GrowthRuns runs = runs_of(problem, plan, sectors, wavefronts);
  Explanation e = runs.from;
  extend_to_measured(e, problem, plan, runs);
  return e;
}

TEST(Growth, IsLearntFromOneLargerSizeEachAndTestedWithAll) {
  const Problem problem = matrix_problem();
  const auto plan = plan_growth(problem, problem.emulate).value();
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->steps.size(), 2u);
  EXPECT_EQ(to_string(plan->steps[0].sizes), "rows=128, cols=512");
  EXPECT_EQ(to_string(plan->steps[1].sizes), "rows=64, cols=1024");
  EXPECT_EQ(to_string(plan->all), "rows=128, cols=1024");
}

TEST(Growth, ASingleSizeIsTestedFurtherOut) {
  Problem problem = matrix_problem();
  problem.measure = {{"rows", 64}, {"cols", 4096}};
  const auto plan = plan_growth(problem, problem.emulate).value();
  ASSERT_TRUE(plan);
  EXPECT_EQ(to_string(plan->steps.at(0).sizes), "rows=64, cols=1024");
  EXPECT_EQ(to_string(plan->all), "rows=64, cols=2048");
}

TEST(Growth, IsNotLearntWhereThereIsNothingToLearnOrItCostsTooMuch) {
  Problem problem = matrix_problem();
  EXPECT_FALSE(plan_growth(problem, problem.measure).value());
  EXPECT_FALSE(plan_growth(problem, {{"rows", 64}, {"cols", 8192}}).value()) << "larger than measured";
  problem.flops = Expression{"1000 * rows * cols"};
  EXPECT_FALSE(plan_growth(problem, problem.emulate).value());
  problem = matrix_problem();
  problem.where = {Expression{"cols <= 512"}};
  EXPECT_FALSE(plan_growth(problem, problem.emulate).value());
}

// At 512 columns a tree of additions for each row costs as much as reading the row; at 4096 an eighth of it.
TEST(Growth, SharesAndAdviceAreThoseOfTheMeasuredSize) {
  const Problem problem = matrix_problem();
  const auto sectors = [](double rows, double cols) { return rows * cols / 8; };
  const auto tree = [](double rows, double) { return rows * 64; };
  const Explanation e = extended(problem, sectors, tree);
  EXPECT_EQ(e.place_of_shares(), "rows=16384, cols=4096");
  EXPECT_EQ(e.caution, "");
  EXPECT_NEAR(e.kernels[0].lines[0].share, 0.8, 1e-9);
  EXPECT_NEAR(e.kernels[0].lines[1].share, 0.2, 1e-9);
  ASSERT_EQ(e.advice.size(), 2u);
  EXPECT_EQ(e.advice[0].line, 2);
  EXPECT_EQ(e.total.global.units, 64u * 64) << "the counts stay those of the run";
}

TEST(Growth, AnAffineCountIsExtendedExactly) {
  const Problem problem = matrix_problem();
  const auto sectors = [](double rows, double cols) { return rows * (cols / 4 + 16); };
  const auto none = [](double, double) { return 800.0; };
  const Explanation e = extended(problem, sectors, none);
  const double clocks = 16384 * (4096 / 4 + 16) / 2.0;
  EXPECT_NEAR(e.kernels[0].lines[1].share, 800 / (clocks + 800), 1e-9);
}

TEST(Growth, WhatGrowsWithTheSquareOfASizeIsExtendedExactly) {
  const Problem problem = matrix_problem();
  const auto square = [](double rows, double cols) { return rows * cols * cols / 64; };
  const auto linear = [](double rows, double cols) { return rows * cols; };
  const Explanation e = extended(problem, square, linear);
  const double clocks = 4096.0 * 4096 / 128;
  EXPECT_NEAR(e.kernels[0].lines[0].share, clocks / (clocks + 4096), 1e-9);
}

TEST(Growth, TilesUnderAMaskAreExtendedExactly) {
  // One triangle of tiles of 512 for each row: 1, 3, and at the measured 8 tiles 36.
  const Problem problem = matrix_problem();
  const Explanation e = extended(
      problem, [](double rows, double cols) { return rows * (cols / 512) * (cols / 512 + 1) / 2; },
      [](double rows, double) { return rows; });
  EXPECT_DOUBLE_EQ(e.moved_bytes(), 32.0 * 64);
  EXPECT_DOUBLE_EQ(e.moved_at_measured, 32.0 * 16384 * 36);
}

// 512 columns: reading a row costs 64 clocks, a tree of additions 4096. Only the first grows with columns.
TEST(Growth, TheBoundIsOfTheCountsAtTheMeasuredSizeNotOfThoseHereTimesTheWork) {
  const Problem problem = matrix_problem();
  const DevicePeaks h100 = *find_device_like("h100");
  const auto sectors = [](double rows, double cols) { return rows * cols / 8; };
  const auto tree = [](double rows, double) { return rows * 4096; };
  const Explanation e = extended(problem, sectors, tree);
  const ModelledFloor at = modelled_floor(e, problem, h100).value();
  const double clocks = 16384 * (4096 / 32 + 4096), a_second = 66.9e12 / 256;
  EXPECT_NEAR(at.wavefront_ms, clocks / a_second * 1e3, 1e-9);
  EXPECT_TRUE(at.by_rule);
  EXPECT_EQ(at.scale, 1);
  const ModelledFloor by_work =
      modelled_floor(counted(problem, problem.emulate, sectors, tree), problem, h100).value();
  EXPECT_FALSE(by_work.by_rule);
  EXPECT_GT(by_work.wavefront_ms, 7 * at.wavefront_ms);
}

TEST(Growth, ASizeWithinOneTileIsNoBeginning) {
  const Problem problem = matrix_problem();
  const GrowthPlan plan = plan_growth(problem, problem.emulate).value().value();
  const auto any = [](double rows, double cols) { return rows * cols; };
  GrowthRuns runs = runs_of(problem, plan, any, any);
  for (Explanation* each : {&runs.from, &runs.larger[0], &runs.larger[1]}) each->total.flops = 1000000;
  runs.larger[0].total.flops *= 2;  // twice the rows are two tiles; twice the columns fill one
  EXPECT_EQ(to_string(full_tiles(plan, runs)), "rows=64, cols=1024");
  runs.larger[1].total.flops *= 2;
  EXPECT_EQ(full_tiles(plan, runs), problem.emulate);
}

TEST(Growth, WhereCountsFollowNoRuleTheSharesStayAndANoteSaysSo) {
  const Problem problem = matrix_problem();
  const auto sectors = [](double rows, double cols) { return rows * cols > 40000 ? 9 * rows * cols : rows; };
  const auto few = [](double, double) { return 64.0; };
  const Explanation e = extended(problem, sectors, few);
  EXPECT_EQ(e.place_of_shares(), "rows=64, cols=512");
  EXPECT_NE(e.caution.find("do not grow by a rule"), std::string::npos) << e.caution;
}

TEST(Growth, SurvivesTheLedger) {
  const Problem problem = matrix_problem();
  const auto linear = [](double rows, double cols) { return rows * cols / 8; };
  const Explanation e = extended(problem, linear, linear);
  EXPECT_EQ(Json(e).get<Explanation>().place_of_shares(), "rows=16384, cols=4096");
}

}  // namespace
}  // namespace capstone::test
