// Judgements against the promise of a manifest: what counts as caught, as an escape, as an honest kernel
// refused.
#include <gtest/gtest.h>

#include "harness/analysis/selftest/selftest.h"

namespace capstone {
namespace {

using Kind = Expectation::Kind;

Expectation promise(Kind kind, std::vector<GateOne> verdicts = {}, std::string text = {}) {
  return {kind, std::move(verdicts), std::move(text), {}};
}

CorpusCase corpus_case(int row, const Expectation& everywhere) {
  CorpusCase one;
  one.name = "one";
  one.row = row;
  one.emulated = one.cuda_in_process = one.cuda_replayed = everywhere;
  return one;
}

Measurement said(GateOne verdict, const std::string& execution = "emulated") {
  Measurement m;
  m.backend = execution == "emulated" ? Backend::kEmulated : Backend::kCuda;
  m.execution = *execution_named(execution);
  m.gate_one = verdict;
  return m;
}

Measurement timed(GateTwo verdict) {
  Measurement m = said(GateOne::kPassed, "in-process");
  m.gate_two = verdict;
  m.measured.emplace();
  m.measured->arms = {Arm{"native", "", {}, 0, 0, {{1, 2, 3}}}};
  m.measured->speedup = Interval{1.5, 1.4, 1.6};
  return m;
}

RowState on_cpu(const CorpusCase& one, const Measurement& m) {
  return assess(one, Backend::kEmulated, Execution::kAuto, m).state;
}
RowState on_gpu(const CorpusCase& one, const Measurement& m, Execution execution = Execution::kAuto) {
  return assess(one, Backend::kCuda, execution, m).state;
}

TEST(Assess, TrickThatPassesEscaped) {
  const CorpusCase trick = corpus_case(3, promise(Kind::kCaught, {GateOne::kWrong}));
  EXPECT_EQ(on_cpu(trick, said(GateOne::kWrong)), RowState::kOk);
  EXPECT_EQ(on_cpu(trick, said(GateOne::kPassed)), RowState::kEscaped);
}

TEST(Assess, OtherVerdictThanPromisedIsNotPassedOverInSilence) {
  const CorpusCase trick = corpus_case(3, promise(Kind::kCaught, {GateOne::kWrong}));
  EXPECT_EQ(on_cpu(trick, said(GateOne::kTimedOut)), RowState::kDiffers);
  EXPECT_EQ(on_cpu(trick, said(GateOne::kBuildFailed)), RowState::kDiffers);
}

TEST(Assess, WhatCouldNotBeJudgedIsNeverCaught) {
  const CorpusCase trick = corpus_case(3, promise(Kind::kCaught, {GateOne::kWrong}));
  EXPECT_EQ(on_cpu(trick, said(GateOne::kNotJudgeable)), RowState::kNotRun);
  EXPECT_EQ(on_cpu(trick, said(GateOne::kMachineFault)), RowState::kNotRun);
  EXPECT_EQ(on_cpu(corpus_case(0, promise(Kind::kPasses)), said(GateOne::kNotJudgeable)), RowState::kNotRun);
}

TEST(Assess, HonestKernelThatDoesNotPassIsRefused) {
  const CorpusCase honest = corpus_case(0, promise(Kind::kPasses));
  EXPECT_EQ(on_cpu(honest, said(GateOne::kPassed)), RowState::kOk);
  EXPECT_EQ(on_cpu(honest, said(GateOne::kWrong)), RowState::kRefused);
  EXPECT_EQ(on_cpu(honest, said(GateOne::kBuildFailed)), RowState::kRefused);
}

TEST(Assess, TrickWithoutGainMayNotWinAndNeedsARecord) {
  const CorpusCase trick = corpus_case(4, promise(Kind::kNotFooled));
  EXPECT_EQ(on_gpu(trick, timed(GateTwo::kSlower)), RowState::kOk);
  EXPECT_EQ(on_gpu(trick, timed(GateTwo::kUnresolved)), RowState::kOk);
  EXPECT_EQ(on_gpu(trick, timed(GateTwo::kFaster)), RowState::kEscaped);
  EXPECT_EQ(on_gpu(trick, said(GateOne::kPassed, "in-process")), RowState::kEscaped) << "nothing was timed";
  EXPECT_EQ(on_gpu(trick, said(GateOne::kWrong, "in-process")), RowState::kOk);
}

TEST(Assess, LabelIsLookedForByItsWords) {
  const CorpusCase trick = corpus_case(27, promise(Kind::kLabelled, {}, "needs an explanation"));
  Measurement m = timed(GateTwo::kFaster);
  EXPECT_EQ(on_gpu(trick, m), RowState::kEscaped);
  m.labels = {"library: cuBLAS", "needs an explanation: 1 µs is less than 5 µs"};
  EXPECT_EQ(on_gpu(trick, m), RowState::kOk);
  m.gate_one = GateOne::kWrong;
  EXPECT_EQ(on_gpu(trick, m), RowState::kDiffers);
}

TEST(Assess, TierDecidesWhichPromiseHolds) {
  CorpusCase trick = corpus_case(6, promise(Kind::kCaught, {GateOne::kWrong}));
  trick.cuda_replayed = promise(Kind::kNotFooled);
  EXPECT_EQ(on_gpu(trick, said(GateOne::kWrong, "replayed")), RowState::kOk);
  EXPECT_EQ(on_gpu(trick, said(GateOne::kPassed, "in-process")), RowState::kEscaped);
}

TEST(Assess, FallingBackIsPartOfThePromise) {
  CorpusCase trick = corpus_case(25, promise(Kind::kCaught, {GateOne::kWrong}));
  trick.cuda_replayed = promise(Kind::kFallsBack);
  EXPECT_EQ(on_gpu(trick, said(GateOne::kWrong, "in-process")), RowState::kOk);
  EXPECT_EQ(on_gpu(trick, said(GateOne::kPassed, "in-process")), RowState::kEscaped);
  const RowResult replayed =
      assess(trick, Backend::kCuda, Execution::kAuto, said(GateOne::kWrong, "replayed"));
  EXPECT_EQ(replayed.state, RowState::kDiffers);
  EXPECT_EQ(replayed.why, "it was replayed, and should not have been");
  EXPECT_EQ(on_gpu(trick, said(GateOne::kNotJudgeable, "replayed"), Execution::kReplayed), RowState::kOk)
      << "asked for replayed alone, it is refused";
  trick.cuda_replayed = promise(Kind::kCaught, {GateOne::kWrong});
  EXPECT_EQ(on_gpu(trick, said(GateOne::kNotJudgeable, "replayed"), Execution::kReplayed), RowState::kNotRun)
      << "it should have been recorded";
}

TEST(Assess, RecordHoldsEverythingButTheSamples) {
  const RowResult row = assess(corpus_case(4, promise(Kind::kNotFooled)), Backend::kCuda, Execution::kAuto,
                               timed(GateTwo::kTie));
  EXPECT_EQ(row.got, "PASS, TIE 1.50x (in-process)");
  EXPECT_EQ(row.measurement["gate_two"], "tie");
  EXPECT_FALSE(row.measurement["measured"]["arms"][0].contains("samples_ms"));
}

TEST(Assess, HonestKernelsThatLeaveTheReplayedExecutionAreCounted) {
  const CorpusCase honest = corpus_case(0, promise(Kind::kPasses));
  auto row = [&](GateOne verdict, const char* execution, Execution asked) {
    return assess(honest, Backend::kCuda, asked, said(verdict, execution));
  };
  const std::vector<RowResult> rows{row(GateOne::kPassed, "replayed", Execution::kAuto),
                                    row(GateOne::kPassed, "in-process", Execution::kAuto),
                                    row(GateOne::kNotJudgeable, "replayed", Execution::kReplayed),
                                    row(GateOne::kPassed, "in-process", Execution::kInProcess)};
  const Rate rate = rate_of(rows);
  EXPECT_EQ(rate.replayed, 1);
  EXPECT_EQ(rate.in_process, 2) << "nothing was asked of replayed execution in the last";
  EXPECT_EQ(rate_of(Json(rows).get<std::vector<RowResult>>()).in_process, 2) << "also from a record";
}

TEST(Assess, RecordKeepsTheCasesThatFailed) {
  Measurement m = said(GateOne::kWrong);
  m.cases.resize(3);
  m.cases[0].passed = true;
  m.cases[1].id = "hidden-1";
  m.cases[2].passed = true;
  const RowResult row = assess(corpus_case(3, promise(Kind::kCaught, {GateOne::kWrong})), Backend::kEmulated,
                               Execution::kAuto, m);
  EXPECT_EQ(row.measurement["cases_run"], 3);
  ASSERT_EQ(row.measurement["cases"].size(), 1u);
  EXPECT_EQ(row.measurement["cases"][0]["id"], "hidden-1");
}

TEST(Rate, CountsOnlyWhatRan) {
  auto row = [](int number, RowState state) {
    RowResult result;
    result.row = number;
    result.state = state;
    return result;
  };
  std::vector<RowResult> rows{row(1, RowState::kOk), row(2, RowState::kNotRun), row(0, RowState::kOk),
                              row(0, RowState::kNotRun)};
  Rate rate = rate_of(rows);
  EXPECT_EQ(rate.tricks, 1);
  EXPECT_EQ(rate.caught, 1);
  EXPECT_EQ(rate.honest, 1);
  EXPECT_EQ(rate.not_run, 2);
  EXPECT_TRUE(rate.good());
  for (RowState bad : {RowState::kEscaped, RowState::kDiffers, RowState::kRefused}) {
    auto with = rows;
    with.push_back(row(bad == RowState::kRefused ? 0 : 9, bad));
    EXPECT_FALSE(rate_of(with).good()) << label_of(bad);
  }
}

}  // namespace
}  // namespace capstone
