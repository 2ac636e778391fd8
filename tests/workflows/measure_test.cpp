// Measure, replay and bundles on the emulated backend.
#include "harness/workflows/measure.h"

#include "harness/base/digest.h"
#include "harness/project/stub.h"
#include "harness/workflows/predict.h"
#include "harness/workflows/replay.h"
#include "tests/workflows/fixture.h"

namespace capstone::workflows::test {
namespace {

class Measure : public ProjectTest {};

TEST_F(Measure, RecordsAVersionForEachSource) {
  MeasureRequest request;
  request.reason = "first version";
  request.expected_speedup = 1.5;
  request.judge = quick();
  auto first = measure(request, workspace_, sink());
  ASSERT_TRUE(first) << render(first.error());
  ASSERT_EQ(first->measurements.size(), 1u);
  EXPECT_EQ(first->measurements[0].gate_one, GateOne::kPassed);
  EXPECT_EQ(first->measurements[0].version, "v1");
  EXPECT_EQ(first->measurements[0].source, "human/kernel.cu");
  EXPECT_EQ(first->ledger.human.size(), 1u);
  EXPECT_EQ(first->ledger.expected_speedup("human", "v1"), 1.5);
  EXPECT_TRUE(noted("no prediction yet"));
  EXPECT_FALSE(steps_.empty());
  EXPECT_EQ(exit_code_of(first->measurements), ExitCode::kDone);

  write_kernel(wrong_kernel());
  auto second = measure(request, workspace_, sink());
  ASSERT_TRUE(second) << render(second.error());
  EXPECT_EQ(second->measurements[0].version, "v2");
  EXPECT_EQ(second->measurements[0].gate_one, GateOne::kWrong);
  EXPECT_EQ(exit_code_of(second->measurements), ExitCode::kGateOneFailed);
}

TEST_F(Measure, ReplaysAFailedCaseWithoutARecord) {
  write_kernel(wrong_kernel());
  MeasureRequest request;
  request.judge = quick();
  ASSERT_TRUE(measure(request, workspace_, sink()));
  write_kernel(kRightKernel);  // fixed in the meantime
  auto again = replay_last("human", "", quick(), workspace_, sink());
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(again->version, "v1");
  EXPECT_FALSE(again->recorded.passed);
  EXPECT_EQ(again->measurements.front().gate_one, GateOne::kPassed);
  EXPECT_EQ(read_ledger(workspace_.cwd / ".capstone" / "ledger.jsonl")->human.size(), 1u);

  auto unknown = replay_last("human", "check-99", quick(), workspace_, sink());
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("failed: "), std::string::npos);
}

TEST_F(Measure, WithoutAnAttemptOfTheModel) {
  MeasureRequest request;
  request.who = Who::kLlm;
  auto none = measure(request, workspace_, sink());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "there is no model attempt with code yet");
}

TEST_F(Measure, RefusesASecondCommandInTheProject) {
  auto project = project_here(workspace_);
  ASSERT_TRUE(project);
  auto lock = lock_project(*project);
  ASSERT_TRUE(lock);
  EXPECT_FALSE(measure({}, workspace_, sink()));
}

TEST_F(Measure, ABundleIsJudgedByTheCatalogue) {
  MeasureRequest request;
  request.judge = quick();
  auto packed = pack_project(request, place_.path() / "project.bundle", workspace_, sink());
  ASSERT_TRUE(packed) << render(packed.error());
  JudgeBundleRequest there;
  there.file = packed->file;
  there.judge = quick();
  auto judged = judge_bundle(there, workspace_, sink());
  ASSERT_TRUE(judged) << render(judged.error());
  EXPECT_EQ(judged->measurements.front().version, "v1");
  EXPECT_TRUE(judged->measurements.front().labels.empty());
  auto home = read_ledger(judged->result);
  ASSERT_TRUE(home);
  EXPECT_EQ(home->human.size(), 1u);

  // Elsewhere the catalogue may lack the problem: the bundle's definition needs trust.
  Workspace other = workspace_;
  other.resources.share = place_.path() / "empty share";
  auto refused = judge_bundle(there, other, sink());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().hint.find("--trust-problem"), std::string::npos);
}

TEST_F(Measure, TheStubIsNotSentElsewhere) {
  const Problem problem = find_problem(workspace_.resources.problems(), "vector_add").value();
  write_kernel(stub_kernel(problem));
  const auto packed = pack_project({}, place_.path() / "project.bundle", workspace_, sink());
  ASSERT_FALSE(packed);
  EXPECT_TRUE(packed.error().what.starts_with("this is still the stub")) << packed.error().what;
  EXPECT_FALSE(fs::exists(place_.path() / "project.bundle"));
}

TEST_F(Measure, TheStubIsNoFirstMeasurement) {
  const Problem problem = find_problem(workspace_.resources.problems(), "vector_add").value();
  write_kernel(stub_kernel(problem));
  MeasureRequest request;
  request.judge = quick();
  auto stub = measure(request, workspace_, sink());
  ASSERT_TRUE(stub) << render(stub.error());
  EXPECT_EQ(stub->measurements[0].gate_one, GateOne::kWrong);
  EXPECT_EQ(stub->measurements[0].version, "");
  EXPECT_TRUE(stub->ledger.human.empty());
  EXPECT_TRUE(noted("still the stub"));
  auto predicted = predict({"memory", {}, "three streams"}, workspace_);
  ASSERT_TRUE(predicted) << render(predicted.error());
  EXPECT_TRUE(predicted->prediction.before_first_measurement);
}

TEST_F(Measure, InAnOlderLedgerTheStubIsNoFirstMeasurementEither) {
  const Project project = project_here(workspace_).value();
  const Problem problem = find_problem(workspace_.resources.problems(), "vector_add").value();
  Measurement stub;
  stub.candidate = "human";
  stub.version = "v1";
  stub.source_sha256 = sha256_hex(stub_kernel(problem));
  ASSERT_TRUE(append_record(project.ledger(), "measurement", Json(stub), "m"));
  Prediction late{"memory", {}, "", false};
  ASSERT_TRUE(append_record(project.ledger(), "prediction", Json(late), "m"));
  const LedgerView ledger = read_ledger(project.ledger()).value();
  EXPECT_TRUE(ledger.predictions[0].before_first_measurement);
  EXPECT_EQ(ledger.versions("human").size(), 1u) << "its name stays";
  EXPECT_TRUE(ledger.built_versions().empty());
}

TEST_F(Measure, WhatDoesNotBuildIsNoVersion) {
  write_kernel("broken(");
  MeasureRequest request;
  request.judge = quick();
  auto broken = measure(request, workspace_, sink());
  ASSERT_TRUE(broken) << render(broken.error());
  EXPECT_EQ(broken->measurements[0].gate_one, GateOne::kBuildFailed);
  EXPECT_TRUE(broken->ledger.human.empty());
  EXPECT_TRUE(noted("what does not build is no version"));
  write_kernel(kRightKernel);
  EXPECT_EQ(measure(request, workspace_, sink())->measurements[0].version, "v1");
}

}  // namespace
}  // namespace capstone::workflows::test
