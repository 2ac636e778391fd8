// A project's smaller commands: predict, check in, submit, report, prompts; and the names that users type.
#include <bit>
#include <set>

#include "harness/base/digest.h"
#include "harness/project/reply/difference.h"
#include "harness/workflows/calibrate.h"
#include "harness/workflows/export_kernel.h"
#include "harness/workflows/hint.h"
#include "harness/workflows/kernelbench_run.h"
#include "harness/workflows/model_attempt.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/predict.h"
#include "harness/workflows/report.h"
#include "harness/workflows/rungs.h"
#include "harness/workflows/selftest_run.h"
#include "harness/workflows/sizes.h"
#include "harness/workflows/submit.h"
#include "tests/workflows/fixture.h"

namespace capstone::workflows::test {
namespace {

class OneProject : public ProjectTest {};

TEST_F(OneProject, PredictionIsRecorded) {
  auto outcome = predict({"memory", 1.2, "three streams"}, workspace_);
  ASSERT_TRUE(outcome) << render(outcome.error());
  EXPECT_TRUE(outcome->prediction.before_first_measurement);
  const LedgerView ledger = read_ledger(workspace_.cwd / ".capstone" / "ledger.jsonl").value();
  ASSERT_EQ(ledger.predictions.size(), 1u);
  EXPECT_EQ(ledger.predictions[0].because, "three streams");
}

TEST_F(OneProject, CheckInWritesAFileAndARecord) {
  auto outcome = check_in_here("  the second tile is wrong ", "", workspace_);
  ASSERT_TRUE(outcome) << render(outcome.error());
  EXPECT_EQ(outcome->checkin.stuck, "the second tile is wrong");
  EXPECT_TRUE(fs::exists(outcome->file));
  EXPECT_EQ(read_ledger(workspace_.cwd / ".capstone" / "ledger.jsonl")->records.back().kind, "checkin");
}

TEST_F(OneProject, AHintIsRecordedTheFirstTimeItIsTakenAndComesInOrder) {
  const auto records = [&] {
    return read_ledger(workspace_.cwd / ".capstone" / "ledger.jsonl")->records.size();
  };
  const std::size_t before = records();
  EXPECT_FALSE(take_hint(2, workspace_));
  EXPECT_EQ(records(), before) << "what is refused is not recorded";
  const auto first = take_hint(0, workspace_);
  ASSERT_TRUE(first) << render(first.error());
  EXPECT_EQ(first->number, 1);
  EXPECT_TRUE(first->first_time);
  EXPECT_EQ(records(), before + 1);
  const auto again = take_hint(1, workspace_);
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_FALSE(again->first_time);
  EXPECT_EQ(again->text, first->text);
  EXPECT_EQ(records(), before + 1) << "once";
  EXPECT_EQ(take_hint(0, workspace_)->number, 2);
  const auto last = take_hint(3, workspace_);
  ASSERT_TRUE(last) << render(last.error());
  EXPECT_TRUE(last->last);
  EXPECT_EQ(take_hint(0, workspace_)->number, 3) << "after the last one there is no other";
  EXPECT_EQ(records(), before + 3);
  const auto hints = hints_here(workspace_);
  ASSERT_TRUE(hints) << render(hints.error());
  EXPECT_EQ(hints->highest(), 3);
  EXPECT_EQ(hints->find(1)->text_sha256, sha256_hex(first->text));
}

TEST_F(OneProject, AHintIsNotShownWhereItCannotBeRecorded) {
  const Project project = project_here(workspace_).value();
  const auto busy = lock_project(project);
  ASSERT_TRUE(busy);
  const auto refused = take_hint(0, workspace_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "another capstone command is working here");
  EXPECT_TRUE(hints_here(workspace_)->taken.empty());
}

TEST_F(OneProject, SubmissionWithAKeyIsRefused) {
  const fs::path worklog = workspace_.cwd / "worklog.md";
  ASSERT_TRUE(write_file_atomic(worklog, read_file(worklog).value() + "\nthe key is AKIAIOSFODNN7EXAMPLF\n"));
  auto plan = plan_submission_here(false, workspace_);
  ASSERT_TRUE(plan) << render(plan.error());
  ASSERT_NE(first_secret(*plan), nullptr);
  EXPECT_FALSE(submit(*plan, false, "", workspace_));
  auto allowed = plan_submission_here(true, workspace_);
  ASSERT_TRUE(allowed) << render(allowed.error());
  auto receipt = submit(*allowed, true, (place_.path() / "out.tar.gz").string(), workspace_);
  ASSERT_TRUE(receipt) << render(receipt.error());
  EXPECT_TRUE(fs::exists(receipt->file));
}

TEST_F(OneProject, ReportIsWritten) {
  auto outcome = report("", workspace_);
  ASSERT_TRUE(outcome) << render(outcome.error());
  EXPECT_GT(outcome->missing, 0);  // a fresh worklog has nothing in it
  for (const fs::path& file : outcome->files) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_TRUE(fs::exists(workspace_.cwd / "report" / "score_sheet.json"));
}

TEST_F(OneProject, AReplyWithoutCodeIsAnAttempt) {
  auto text = prompt_for_model({}, workspace_);
  ASSERT_TRUE(text) << render(text.error());
  ASSERT_TRUE(write_prompt(*text, "", workspace_));
  AddReplyRequest request;
  request.reply = "I cannot write CUDA.";
  request.model = "test-model 1";
  request.judge = quick();
  bool filed = false;
  auto outcome = add_reply(request, workspace_, sink(),
                           [&](const AddReplyOutcome& o) { filed = o.attempt.number == 1; });
  ASSERT_TRUE(outcome) << render(outcome.error());
  EXPECT_TRUE(filed);
  EXPECT_FALSE(outcome->attempt.no_code_because.empty());
  EXPECT_TRUE(outcome->attempt.prompt_difference.empty());
  EXPECT_TRUE(outcome->measurements.empty());
  EXPECT_EQ(outcome->ledger.attempts.size(), 1u);
  request.model = " ";
  EXPECT_FALSE(add_reply(request, workspace_, sink(), {}));
}

TEST_F(OneProject, WhatIsNoReplyIsRefusedAndNothingIsRecorded) {
  ASSERT_TRUE(write_prompt(*prompt_for_model({}, workspace_), "", workspace_));
  AddReplyRequest request;
  request.model = "test-model 1";
  request.judge_now = false;
  const std::string prompt = read_file(workspace_.cwd / "llm" / "prompt.md").value();
  for (const auto& [reply, why] : std::vector<std::pair<std::string, std::string>>{
           {" \n", "the reply is empty"},
           {kRightKernel, "human/kernel.cu"},
           {prompt, "llm/prompt.md"},
           {"\n<!DOCTYPE html><html><body>Login</body></html>", "a web page"},
           {R"({"error": {"type": "overloaded_error", "message": "try later"}})", "try later"}}) {
    request.reply = reply;
    auto outcome = add_reply(request, workspace_, sink(), {});
    ASSERT_FALSE(outcome) << why;
    EXPECT_NE(outcome.error().what.find(why), std::string::npos) << outcome.error().what;
  }
  const fs::path ledger = workspace_.cwd / ".capstone" / "ledger.jsonl";
  EXPECT_TRUE(read_ledger(ledger)->attempts.empty());
  request.reply = kRightKernel;
  request.anyway = true;
  ASSERT_TRUE(add_reply(request, workspace_, sink(), {}));
  EXPECT_EQ(read_ledger(ledger)->attempts.size(), 1u);
}

TEST_F(OneProject, AnAttemptIsFiledWithoutJudgingAndCanBeWithdrawn) {
  AddReplyRequest request;
  request.reply = std::string("```cuda\n") + kRightKernel + "```\n";
  request.model = "test-model 1";
  request.judge_now = false;
  request.judge = quick();
  auto filed = add_reply(request, workspace_, sink(), {});
  ASSERT_TRUE(filed) << render(filed.error());
  EXPECT_TRUE(filed->measurements.empty());
  EXPECT_TRUE(fs::exists(filed->folder / "kernel.cu"));
  EXPECT_FALSE(withdraw_attempt(2, "wrong file", workspace_));
  EXPECT_FALSE(withdraw_attempt(1, " ", workspace_));
  ASSERT_TRUE(withdraw_attempt(1, "wrong file", workspace_));
  EXPECT_FALSE(fs::exists(filed->folder));

  request.judge_now = true;
  auto judged = add_reply(request, workspace_, sink(), {});
  ASSERT_TRUE(judged) << render(judged.error());
  EXPECT_EQ(judged->attempt.number, 2) << "a number is not used again";
  ASSERT_EQ(judged->ledger.withdrawals.size(), 1u);
  EXPECT_EQ(judged->ledger.withdrawals[0].because, "wrong file");
  EXPECT_EQ(judged->ledger.attempts.size(), 1u);
  auto refused = withdraw_attempt(2, "too slow", workspace_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("it stays on record"), std::string::npos);
}

TEST_F(OneProject, AnAttemptSaysWhichFeedbackItsPromptHad) {
  AddReplyRequest request;
  request.reply = "```cuda\n" + wrong_kernel() + "```\n";
  request.model = "test-model 1";
  request.judge = quick();
  auto first = add_reply(request, workspace_, sink(), {});
  ASSERT_TRUE(first) << render(first.error());
  EXPECT_EQ(first->attempt.feedback_on, "");
  const std::string prompt = prompt_for_model({true, false, {}}, workspace_).value();
  ASSERT_TRUE(write_prompt(prompt, "", workspace_));
  request.reply = std::string("```cuda\n") + kRightKernel + "```\n";
  request.judge_now = false;
  auto second = add_reply(request, workspace_, sink(), {});
  ASSERT_TRUE(second) << render(second.error());
  EXPECT_EQ(second->attempt.feedback_on, "attempt-1");
  EXPECT_EQ(second->attempt.prompt_difference, "");
  ASSERT_TRUE(write_prompt(prompt + "Use float4.\n", "", workspace_));
  request.reply += "again\n";
  auto third = add_reply(request, workspace_, sink(), {});
  ASSERT_TRUE(third) << render(third.error());
  EXPECT_EQ(third->attempt.feedback_on, "attempt-1");
  EXPECT_EQ(extent_of(third->attempt.prompt_difference), "1 line added, 0 removed");
}

TEST_F(OneProject, OutputNeverOverwritesStudentsFiles) {
  for (const char* name :
       {"human/kernel.cu", "worklog.md", "capstone.yaml", "llm/attempt-1/x", ".capstone/ledger.jsonl"})
    EXPECT_FALSE(output_path(workspace_, name, Output::kPage)) << name;
  ASSERT_TRUE(write_file_atomic(workspace_.cwd / "mine.html", "my own notes"));
  EXPECT_FALSE(output_path(workspace_, "mine.html", Output::kPage));
  ASSERT_TRUE(write_file_atomic(workspace_.cwd / "page.html", "<!DOCTYPE html><p>"));
  EXPECT_EQ(output_path(workspace_, "page.html", Output::kPage).value(), workspace_.cwd / "page.html");
}

TEST(ExportedSizes, HoldEachPowerOfTwoThatTheJudgeMayDraw) {
  const Problem softmax = load_problem(fs::path(CAPSTONE_SOURCES) / "problems/softmax").value();
  const auto sets = sizes_to_export(softmax).value();
  EXPECT_EQ(sets.front(), softmax.measure);
  EXPECT_EQ(sets, sizes_to_export(softmax).value());
  std::set<int> widths;  // a kernel that holds a row is compiled for each: cols = 2 was left out once
  for (const Sizes& sizes : sets) widths.insert(std::bit_width(static_cast<unsigned>(sizes[1].second - 1)));
  for (int width = 0; width <= 13; ++width) EXPECT_TRUE(widths.contains(width)) << width;  // up to 8192
}

TEST_F(OneProject, SizesAndRungsByName) {
  const Problem problem = find_problem(workspace_.resources.problems(), "vector_add").value();
  const Sizes sizes = parse_sizes(problem, problem.measure, "n=77").value();
  EXPECT_EQ(sizes.front().second, 77);
  EXPECT_FALSE(parse_sizes(problem, problem.measure, "m=77"));
  EXPECT_FALSE(parse_sizes(problem, problem.measure, "n=many"));
  const auto error_of = [](const std::string& text) {
    const Problem matrix = load_problem(fs::path(CAPSTONE_SOURCES) / "problems/softmax").value();
    const auto parsed = parse_sizes(matrix, matrix.check.front(), text);
    return parsed.has_value() ? std::string() : render(parsed.error());
  };
  EXPECT_NE(error_of("q=3").find("its sizes are: rows, cols"), std::string::npos) << error_of("q=3");
  EXPECT_NE(error_of("cols").find("SYMBOL=NUMBER"), std::string::npos) << error_of("cols");
  EXPECT_NE(error_of("cols=0").find("whole numbers from 1"), std::string::npos) << error_of("cols=0");
  EXPECT_NE(error_of("cols=3x").find("whole numbers"), std::string::npos) << error_of("cols=3x");
  const Problem softmax = load_problem(fs::path(CAPSTONE_SOURCES) / "problems/softmax").value();
  Sizes left_out = softmax.check.front();
  left_out.back().second = 3;
  EXPECT_EQ(parse_sizes(softmax, softmax.check.front(), "cols=3").value(), left_out);
  EXPECT_TRUE(is_called("03_shared_tile", "3"));
  EXPECT_TRUE(is_called("03_shared_tile", "shared_tile"));
  EXPECT_FALSE(is_called("03_shared_tile", "4"));
  EXPECT_TRUE(find_rung(workspace_, "softmax", "01", "{0} {1}"));
  EXPECT_FALSE(find_rung(workspace_, "softmax", "no_such_rung", "{0} {1}"));
}

TEST_F(OneProject, SelftestNamesItsCases) {
  SelftestRun run;
  run.backend = Backend::kEmulated;
  run.only = {"no_such_case"};
  auto none = run_selftest(run, workspace_, sink());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "no case matches no_such_case");
}

TEST_F(OneProject, KernelBenchNeedsCandidates) {
  EXPECT_FALSE(run_kernelbench({}, workspace_, {}));
  EXPECT_EQ(memory_for(24, Backend::kEmulated, workspace_.resources).value(), 24e9);
  EXPECT_EQ(memory_for(0, Backend::kEmulated, workspace_.resources).value(), 8e9);
}

TEST(Calibration, CountsVerdicts) {
  auto line = [](const char* kind, const char* verdict, double half) {
    return Json{{"kind", kind}, {"size", "20 us"}, {"verdict", verdict}, {"ms", 0.02}, {"half_width", half}};
  };
  const auto o = summarize_calibration({line("same", "TIE", 0.005), line("same", "FASTER", 0.02),
                                        line("same", "UNRESOLVED", 0.03), line("slower", "SLOWER", 0.01)});
  ASSERT_EQ(o.groups.size(), 2u);
  EXPECT_TRUE(o.groups[0].same);
  EXPECT_EQ(o.groups[0].pairs, 3);
  EXPECT_EQ(o.groups[0].expected, 1);
  EXPECT_EQ(o.groups[0].narrow, 1);
  EXPECT_EQ(o.groups[1].expected, 1);
  EXPECT_EQ(o.against_itself, 3);
  EXPECT_EQ(o.wrong, 1);
  EXPECT_EQ(o.unresolved, 1);
  EXPECT_GT(o.wrong_share.high, 0.5);
}

}  // namespace
}  // namespace capstone::workflows::test
