#include "harness/timing/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace capstone {
namespace {

TEST(Median, OfOddEvenAndNoSamples) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_TRUE(std::isnan(median(std::vector<double>{})));
}

TEST(MedianInterval, UsesTheRanksOfHoeflerAndBelli) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const Interval interval = median_interval(samples);
  EXPECT_EQ(interval.point, 50.5);
  EXPECT_EQ(interval.low, 40);   // floor((100 - 1.96 * 10) / 2)
  EXPECT_EQ(interval.high, 61);  // ceil(1 + (100 + 1.96 * 10) / 2)
}

TEST(MedianInterval, OfFewSamplesIsTheirRange) {
  const Interval interval = median_interval(std::vector<double>{5, 1, 3});
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 5);
}

TEST(MedianInterval, CoversTheTrueMedianAbout95PercentOfTheTime) {
  std::mt19937_64 engine(1);
  std::lognormal_distribution<double> times(0, 0.3);  // its median is 1
  int covered = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> samples(40);
    for (double& sample : samples) sample = times(engine);
    const Interval interval = median_interval(samples);
    covered += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GE(covered, 2000 * 0.94);
}

std::vector<std::vector<double>> restarts(std::mt19937_64& engine, int count, int blocks, double log_ratio,
                                          double between, double within) {
  std::normal_distribution<double> noise;
  std::vector<std::vector<double>> all;
  for (int r = 0; r < count; ++r) {
    const double shift = between * noise(engine);
    std::vector<double>& one = all.emplace_back();
    for (int b = 0; b < blocks; ++b) one.push_back(log_ratio + shift + within * noise(engine));
  }
  return all;
}

TEST(Bootstrap, ThePointIsTheGeometricMean) {
  const Interval interval =
      bootstrap_ratio({{std::log(2.0), std::log(8.0)}, {std::log(4.0), std::log(4.0)}}, 200, 1);
  EXPECT_NEAR(interval.point, 4.0, 1e-12);
  EXPECT_LE(interval.low, interval.point);
  EXPECT_GE(interval.high, interval.point);
}

TEST(Bootstrap, RestartsThatDisagreeWidenTheInterval) {
  std::mt19937_64 engine(2);
  const Interval same = bootstrap_ratio(restarts(engine, 8, 100, 0.5, 0.0, 0.02), 2000, 1);
  const Interval apart = bootstrap_ratio(restarts(engine, 8, 100, 0.5, 0.05, 0.02), 2000, 1);
  EXPECT_GT(apart.high - apart.low, 4 * (same.high - same.low));
}

TEST(Bootstrap, CoversTheTruth) {
  std::mt19937_64 engine(3);
  int covered = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Interval interval = bootstrap_ratio(restarts(engine, 10, 20, std::log(1.5), 0.02, 0.05), 500,
                                              static_cast<std::uint64_t>(trial));
    covered += interval.low <= 1.5 && 1.5 <= interval.high;
  }
  EXPECT_GE(covered, 200 * 0.87);
  EXPECT_LE(covered, 199);
}

TEST(Bootstrap, IsReproducibleAndEmptyInputIsNaN) {
  const std::vector<std::vector<double>> data = {{0.1, 0.2, 0.3}, {0.2, 0.25}};
  EXPECT_EQ(bootstrap_ratio(data, 100, 7).low, bootstrap_ratio(data, 100, 7).low);
  EXPECT_TRUE(std::isnan(bootstrap_ratio({}, 100, 7).point));
  EXPECT_TRUE(std::isnan(bootstrap_ratio({{}, {}}, 100, 7).point));
}

constexpr Interval kQuiet{1.0, 0.998, 1.003};  // A/A within 1 %

TEST(Decide, FasterAndSlowerNeedTheWholeInterval) {
  EXPECT_EQ(decide({1.5, 1.4, 1.6}, kQuiet, true).verdict, GateTwo::kFaster);
  EXPECT_EQ(decide({1.5, 1.009, 2.0}, kQuiet, true).verdict, GateTwo::kUnresolved);
  EXPECT_EQ(decide({0.5, 0.4, 0.6}, kQuiet, true).verdict, GateTwo::kSlower);
  EXPECT_EQ(decide({0.5, 0.4, 0.995}, kQuiet, true).verdict, GateTwo::kUnresolved);
}

TEST(Decide, TheFloorIsOnePercentOrWhatAAShows) {
  EXPECT_DOUBLE_EQ(decide({1, 1, 1}, kQuiet, true).floor, 0.01);
  const RatioVerdict noisy = decide({1.04, 1.035, 1.045}, {1.0, 0.95, 1.02}, true);
  EXPECT_NEAR(noisy.floor, 0.05, 1e-12);
  EXPECT_EQ(noisy.verdict, GateTwo::kTie);
}

TEST(Decide, TieInsideTheFloorOrNarrow) {
  EXPECT_EQ(decide({1.0, 0.995, 1.005}, kQuiet, true).verdict, GateTwo::kTie);
  EXPECT_EQ(decide({1.012, 1.004, 1.02}, kQuiet, true).verdict, GateTwo::kTie)
      << "narrow, but it reaches into the floor";
  EXPECT_EQ(decide({1.05, 0.98, 1.12}, kQuiet, true).verdict, GateTwo::kUnresolved);
}

TEST(BothStates, FasterAndSlowerNeedBoth) {
  using enum GateTwo;
  for (GateTwo verdict : {kFaster, kSlower, kTie, kUnresolved})
    EXPECT_EQ(of_both_states(verdict, verdict), verdict);
  EXPECT_EQ(of_both_states(kFaster, kTie), kTie);
  EXPECT_EQ(of_both_states(kTie, kSlower), kTie);
  EXPECT_EQ(of_both_states(kFaster, kSlower), kUnresolved) << "they contradict each other";
  EXPECT_EQ(of_both_states(kFaster, kUnresolved), kUnresolved);
  EXPECT_EQ(of_both_states(kUnresolved, kTie), kUnresolved);
}

TEST(Decide, UndecidedMeansMoreBlocksUntilTheBudgetIsSpent) {
  EXPECT_EQ(decide({1.05, 0.98, 1.12}, kQuiet, false).verdict, GateTwo::kNotJudged);
  EXPECT_EQ(decide({1.05, 0.98, 1.12}, kQuiet, true).verdict, GateTwo::kUnresolved);
}

TEST(Decide, WhatIsNotKnownIsNeverAWin) {
  const double nan = std::nan("");
  EXPECT_EQ(decide({nan, nan, nan}, kQuiet, true).verdict, GateTwo::kUnresolved);
  EXPECT_EQ(decide({2, 1.9, 2.1}, {nan, nan, nan}, true).verdict, GateTwo::kUnresolved);
}

TEST(NarrowEnough, IsRelativeToThePoint) {
  EXPECT_TRUE(narrow_enough({10, 9.95, 10.05}));
  EXPECT_FALSE(narrow_enough({0.1, 0.09, 0.11}));
}

TEST(Stable, FallingTimesAreNotLevelOnesAre) {
  EXPECT_FALSE(stable(std::vector<double>{1, 1, 1, 1, 1}));
  EXPECT_FALSE(stable(std::vector<double>{9, 8, 7, 6, 5, 4, 3, 2, 1.5, 1}));
  EXPECT_TRUE(stable(std::vector<double>{9, 5, 1.01, 1, 1, 1.01, 1, 1.5, 1, 1, 1.01, 1}));
}

}  // namespace
TEST(BinomialInterval, AgreesWithTheClassicTables) {
  // Clopper & Pearson: 0 of 10 up to 30.85 %; 1 of 10 from 0.25 % to 44.5 %; 0 of 200 up to 1.83 %; symmetric
  // under failure.
  EXPECT_NEAR(binomial_interval(0, 10).high, 0.3085, 1e-4);
  EXPECT_EQ(binomial_interval(0, 10).low, 0);
  EXPECT_NEAR(binomial_interval(1, 10).low, 0.00253, 1e-5);
  EXPECT_NEAR(binomial_interval(1, 10).high, 0.4450, 1e-4);
  EXPECT_NEAR(binomial_interval(0, 200).high, 0.01828, 1e-5);
  EXPECT_NEAR(binomial_interval(10, 10).low, 1 - 0.3085, 1e-4);
  EXPECT_NEAR(binomial_interval(3, 2000).high, 1 - binomial_interval(1997, 2000).low, 1e-9);
}

}  // namespace capstone
