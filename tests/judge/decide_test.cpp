// From times to verdicts, without a GPU: the last step of the pipeline has no side effects.
#include "harness/judge/decide.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/model/labels.h"
#include "tests/judge/shipped.h"

namespace capstone {
namespace {

constexpr int kRestarts = 5, kBlocks = 4;

using test::problem_of;

// An arm whose every sample takes `ms`, give or take a thousandth.
TimedArm arm_of(const std::string& name, double ms, bool trusted) {
  TimedArm arm;
  arm.name = name;
  arm.label = name + "'s label";
  arm.trusted = trusted;
  arm.trusted_clock = true;
  for (int r = 0; r < kRestarts; ++r) {
    std::vector<double> samples, medians;
    for (int b = 0; b < kBlocks; ++b) {
      medians.push_back(ms * (1 + 0.0005 * ((r + b) % 3)));
      for (int s = 0; s < 3; ++s) samples.push_back(ms * (1 + 0.0005 * ((r + b + s) % 3)));
    }
    for (CacheState state : kCacheStates) {
      arm.series(state).samples.push_back(samples);
      arm.series(state).block_medians.push_back(medians);
    }
  }
  arm.warm = {ms * 0.9, ms * 0.8, ms};
  return arm;
}

// The native baseline twice, then one candidate.
Timed raced(double baseline_ms, double candidate_ms) {
  Timed timed;
  timed.race.arms = {arm_of("native", baseline_ms, true), arm_of("A/A", baseline_ms, true),
                     arm_of("human", candidate_ms, false)};
  timed.race.first_candidate = 2;
  timed.race.outcome.telemetry = {{"run_again", Json::array()}};
  TimedCandidate candidate;
  candidate.record.candidate = "human";
  candidate.record.gate_one = GateOne::kPassed;
  candidate.arm = 2;
  timed.candidates.push_back(std::move(candidate));
  return timed;
}

Measurement decided(Timed timed, const Problem& problem) {
  std::uint64_t seed = 0;
  auto all = decide(std::move(timed), problem, [&] { return ++seed; });
  EXPECT_TRUE(all) << all.error().what;
  EXPECT_EQ(all->size(), 1u);
  return all->front();
}

TEST(Decide, TwiceAsFastIsFaster) {
  const Problem problem = problem_of("softmax");
  const Measurement m = decided(raced(2, 1), problem);
  EXPECT_EQ(m.gate_two, GateTwo::kFaster);
  ASSERT_TRUE(m.measured);
  EXPECT_NEAR(m.measured->speedup->point, 2, 0.01);
  ASSERT_EQ(m.measured->arms.size(), 3u);
  EXPECT_EQ(m.measured->arms[0].name, "native");
  EXPECT_EQ(m.measured->arms[1].name, "A/A");
  EXPECT_EQ(m.measured->arms[2].name, "human");
  EXPECT_NEAR(m.measured->arms[2].warm_ms, 0.9, 1e-9);
  EXPECT_EQ(m.measured->sizes, sizes_json(problem.measure));
  EXPECT_EQ(m.measured->blocks, kBlocks);
  EXPECT_TRUE(m.environment.contains("telemetry"));
}

TEST(Decide, SlowerAndTie) {
  const Problem problem = problem_of("softmax");
  EXPECT_EQ(decided(raced(1, 2), problem).gate_two, GateTwo::kSlower);
  EXPECT_EQ(decided(raced(1, 1), problem).gate_two, GateTwo::kTie);
}

TEST(Decide, ADisturbedRaceDecidesNothing) {
  Timed timed = raced(2, 1);
  timed.race.outcome.void_because = "another process (7) computes on this GPU";
  const Measurement m = decided(std::move(timed), problem_of("softmax"));
  EXPECT_EQ(m.gate_two, GateTwo::kUnresolved);
  EXPECT_EQ(m.gate_two_reason, "another process (7) computes on this GPU");
  EXPECT_TRUE(m.measured) << "the times are shown all the same";
}

TEST(Decide, AFailureAtTheMeasuredSizeIsGateOnes) {
  Timed timed = raced(2, 1);
  timed.race.arms[2].failure = CaseResult{};
  timed.race.arms[2].failure->id = "measure";
  timed.race.arms[2].failed_as = GateOne::kCrashed;
  const Measurement m = decided(std::move(timed), problem_of("softmax"));
  EXPECT_EQ(m.gate_one, GateOne::kCrashed);
  EXPECT_EQ(m.gate_two, GateTwo::kNotJudged);
  EXPECT_EQ(m.gate_two_reason, "a run at the measured size failed");
  ASSERT_EQ(m.cases.size(), 1u);
  EXPECT_FALSE(m.measured);
}

TEST(Decide, ATimeBelowTheDataSheetNeedsAnExplanation) {
  Timed timed = raced(2, 1e-6);
  timed.race.peaks.bandwidth = 1e12;
  timed.race.peaks.fp32 = 1e13;
  timed.race.peaks.source = "a data sheet";
  const Measurement m = decided(std::move(timed), problem_of("softmax"));
  EXPECT_TRUE(std::any_of(m.labels.begin(), m.labels.end(),
                          [](const std::string& label) { return label.starts_with(kNeedsExplanation); }));
}

// What a candidate takes with one state of the cache; the baseline takes 1 ms with both.
Timed raced_in_both_states(double clean_ms, double dirty_ms) {
  Timed timed = raced(1, clean_ms);
  timed.race.arms[2].dirty = arm_of("human", dirty_ms, false).clean;
  return timed;
}

TEST(Decide, FasterWithACleanCacheAloneIsATieThatSaysSo) {
  const Measurement m = decided(raced_in_both_states(0.95, 1.004), problem_of("softmax"));
  EXPECT_EQ(m.gate_two, GateTwo::kTie);
  EXPECT_EQ(m.gate_two_reason,
            "depends on the cache's state: 1.05x with a clean cache, 0.996x with a dirty one");
  EXPECT_EQ(m.labels, std::vector<std::string>{m.gate_two_reason});
  EXPECT_NEAR(m.measured->speedup->point, 1.05, 0.01) << "the graded ratio is the clean one";
  EXPECT_NEAR(m.measured->dirty_speedup->point, 0.996, 0.005);
  EXPECT_NEAR(m.measured->arms.back().dirty_ms->point, 1.004, 0.005);
}

TEST(Decide, StatesOfTheCacheThatContradictEachOtherResolveNothing) {
  const Measurement m = decided(raced_in_both_states(0.9, 1.1), problem_of("softmax"));
  EXPECT_EQ(m.gate_two, GateTwo::kUnresolved);
  EXPECT_TRUE(m.gate_two_reason.starts_with("depends on the cache's state")) << m.gate_two_reason;
}

TEST(Decide, FasterWithBothStatesIsFaster) {
  EXPECT_EQ(decided(raced_in_both_states(0.9, 0.95), problem_of("softmax")).gate_two, GateTwo::kFaster);
}

TEST(Decide, WhatTheDataSheetDoesNotAllowIsNeverFaster) {
  Timed timed = raced(2, 1e-6);
  timed.race.peaks.bandwidth = 1e12;
  timed.race.peaks.fp32 = 1e13;
  timed.race.peaks.source = "a data sheet";
  const Measurement m = decided(std::move(timed), problem_of("softmax"));
  EXPECT_EQ(m.gate_two, GateTwo::kUnresolved);
  EXPECT_TRUE(m.gate_two_reason.find("the data sheet allows") != std::string::npos) << m.gate_two_reason;
}

TEST(Decide, AQuickLookHasTimesAndNoVerdict) {
  Timed timed = raced(2, 1);
  timed.race.quick = true;
  const Measurement m = decided(std::move(timed), problem_of("softmax"));
  EXPECT_EQ(m.gate_two, GateTwo::kNotJudged);
  EXPECT_TRUE(m.gate_two_reason.starts_with("a quick look, 2.00x over native")) << m.gate_two_reason;
  ASSERT_TRUE(m.measured);
  EXPECT_FALSE(m.measured->speedup || m.measured->dirty_speedup) << "nothing that a report could print";
  EXPECT_NEAR(m.measured->arms.back().median_ms.point, 1, 0.01);
}

TEST(Decide, SustainedRunsAreShownWithPowerAndClock) {
  Timed timed = raced(2, 1);
  timed.race.arms[2].sustained = {{1.3, {1500, 690}}, {1.2, {1520, 700}}, {1.25, {1510, 695}}};
  const Measurement m = decided(std::move(timed), problem_of("softmax"));
  const Arm& arm = m.measured->arms.back();
  ASSERT_TRUE(arm.sustained_ms);
  EXPECT_EQ(arm.sustained_ms->point, 1.25);
  EXPECT_EQ(arm.sustained_watts, 695);
  EXPECT_EQ(arm.sustained_sm_mhz, 1510);
  EXPECT_FALSE(m.measured->arms.front().sustained_ms);
}

TEST(Decide, AnotherBaselineShowsItsOwnSpeedupAndOneThatFailedItsNote) {
  Timed timed = raced(2, 1);
  timed.race.arms.insert(timed.race.arms.begin() + 2, {arm_of("eager", 4, true), arm_of("compile", 4, true)});
  timed.race.arms[3].left_out = true;
  timed.race.arms[3].note = "was not timed: no compiler";
  timed.race.first_candidate = 4;
  timed.candidates[0].arm = 4;
  const Measurement m = decided(std::move(timed), problem_of("softmax"));
  ASSERT_EQ(m.measured->arms.size(), 4u);
  EXPECT_EQ(m.measured->arms[2].name, "eager");
  EXPECT_NEAR(m.measured->arms[2].speedup->point, 4, 0.02);
  EXPECT_EQ(m.labels, std::vector<std::string>{"baseline compile was not timed: no compiler"});
}

TEST(Decide, EmulatedTimesAreShownAndJudgeNothing) {
  Timed timed;
  TimedCandidate candidate;
  candidate.record.candidate = "human";
  candidate.record.gate_one = GateOne::kPassed;
  candidate.emulated_ms = {5, 6, 7, 5, 6, 7, 6};
  timed.candidates.push_back(candidate);
  const Measurement m = decided(std::move(timed), problem_of("softmax"));
  EXPECT_EQ(m.gate_two, GateTwo::kNotJudged);
  ASSERT_TRUE(m.measured);
  EXPECT_EQ(m.measured->arms.front().median_ms.point, 6);
  EXPECT_FALSE(m.measured->speedup);
}

TEST(Decide, ACandidateWithoutTimesKeepsItsRecord) {
  Timed timed = raced(2, 1);
  TimedCandidate wrong;
  wrong.record.candidate = "llm";
  wrong.record.gate_one = GateOne::kWrong;
  wrong.record.gate_two_reason = "gate one failed";
  timed.candidates.push_back(std::move(wrong));
  const auto all = decide(std::move(timed), problem_of("softmax"));
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[1].gate_two, GateTwo::kNotJudged);
  EXPECT_EQ((*all)[1].gate_two_reason, "gate one failed");
  EXPECT_FALSE((*all)[1].environment.contains("telemetry"));
}

}  // namespace
}  // namespace capstone
