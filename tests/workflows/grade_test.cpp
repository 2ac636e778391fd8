// Grading of one submission and the plan for a cohort.
#include <algorithm>

#include "harness/course/result.h"
#include "harness/project/archive/archive.h"
#include "harness/workflows/class_progress.h"
#include "harness/workflows/cohort.h"
#include "harness/workflows/grade_cohort.h"
#include "harness/workflows/hint.h"
#include "harness/workflows/measure.h"
#include "harness/workflows/submit.h"
#include "tests/workflows/fixture.h"

namespace capstone::workflows::test {
namespace {

class Grade : public ProjectTest {
 protected:
  GradingTask task_for(const fs::path& submission) {
    GradingTask task;
    task.submission.name = "ada";
    task.submission.path = submission;
    task.submission.shown = submission.filename().string();
    task.folder = place_.path() / "graded" / "submissions" / "ada";
    task.rubric = fs::path(CAPSTONE_SOURCES) / "rubric" / "rubric.yaml";
    task.judge = quick();
    return task;
  }
};

TEST_F(Grade, TaskTravelsAsJson) {
  GradingTask task = task_for(workspace_.cwd);
  task.judge.quick = true;
  task.submission.rivals = {"a.zip", "b.zip"};
  const auto back = Json::parse(Json(task).dump()).get<GradingTask>();
  EXPECT_EQ(back.submission.name, "ada");
  EXPECT_EQ(back.submission.rivals, task.submission.rivals);
  EXPECT_EQ(back.judge, task.judge);
  EXPECT_EQ(back.rubric, task.rubric);
}

TEST_F(Grade, StatusTravelsAsALine) {
  const std::string line = status_line({GradingState::kMeasuring, "restart 1\nof 5"});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parse_status(line).state, GradingState::kMeasuring);
  EXPECT_EQ(parse_status(line).text, "restart 1\nof 5");
  EXPECT_EQ(parse_status("warning: something else").state, GradingState::kQueued);
}

TEST_F(Grade, HintsAreNoFindingAndStandOnTheScoreSheet) {
  MeasureRequest request;
  request.judge = quick();
  ASSERT_TRUE(take_hint(0, workspace_));
  ASSERT_TRUE(measure(request, workspace_, {}));
  const auto result = grade_submission(task_for(workspace_.cwd), workspace_, {});
  ASSERT_TRUE(result) << render(result.error());
  EXPECT_EQ(result->fault, GradingFault::kNone) << result->why;
  EXPECT_TRUE(result->findings.empty()) << result->findings.front();
  const std::string sheet =
      read_file(place_.path() / "graded" / "submissions" / "ada" / "score_sheet.md").value();
  EXPECT_NE(sheet.find("hint 1 of 3, before v1"), std::string::npos) << sheet;
}

TEST_F(Grade, AProjectIsJudgedAndScored) {
  std::vector<GradingState> states;
  auto result = grade_submission(task_for(workspace_.cwd), workspace_,
                                 [&](const GradingStatus& status) { states.push_back(status.state); });
  ASSERT_TRUE(result) << render(result.error());
  EXPECT_EQ(result->fault, GradingFault::kNone) << result->why;
  ASSERT_NE(result->of("human"), nullptr);
  EXPECT_EQ(result->of("human")->gate_one, GateOne::kPassed);
  EXPECT_FALSE(result->suggested.empty());
  EXPECT_NE(std::find(states.begin(), states.end(), GradingState::kBuilding), states.end());
  const fs::path folder = place_.path() / "graded" / "submissions" / "ada";
  for (const char* file :
       {"result.json", "score_sheet.html", "feedback/verdict.json", "submission/human/kernel.cu"})
    EXPECT_TRUE(fs::exists(folder / file)) << file;
}

TEST_F(Grade, TheRenderedWorklogLiesNextToTheScoreSheet) {
  ASSERT_TRUE(
      write_file_atomic(workspace_.cwd / "worklog.md",
                        "## The head-to-head\n\nThe pipeline stalls. I recorded {{versions}} versions.\n"));
  ASSERT_TRUE(grade_submission(task_for(workspace_.cwd), workspace_, {}));
  const fs::path folder = place_.path() / "graded" / "submissions" / "ada";
  for (const char* page : {"worklog.html", "worklog.md"}) {
    const std::string text = read_file(folder / page).value();
    EXPECT_NE(text.find("The pipeline stalls."), std::string::npos) << page;
    EXPECT_EQ(text.find("{{versions}}"), std::string::npos) << "its numbers are filled in: " << page;
  }
  EXPECT_NE(read_file(folder / "score_sheet.html")->find("href=\"worklog.html\""), std::string::npos);
}

// On the sheets of mentor and student, as `appeal` says it.
TEST_F(Grade, AWrongKernelIsExplainedWithItsFirstMismatchAndReplay) {
  write_kernel(wrong_kernel());
  ASSERT_TRUE(grade_submission(task_for(workspace_.cwd), workspace_, {}));
  const fs::path folder = place_.path() / "graded" / "submissions" / "ada";
  for (const char* place : {"", "feedback"})
    for (const char* page : {"score_sheet.md", "score_sheet.html"}) {
      const std::string text = read_file(folder / place / page).value();
      EXPECT_NE(text.find("first mismatch: z"), std::string::npos) << place << page;
      EXPECT_NE(text.find("human: WRONG"), std::string::npos) << place << page;
      EXPECT_NE(text.find("capstone replay verdict.json"), std::string::npos) << place << page;
    }
  EXPECT_EQ(Json::parse(*read_file(folder / "score_sheet.json"))["judged"][0]["verdict"], "WRONG");
}

TEST_F(Grade, TheModelsCodeHandedInAsTheHumansIsOnTheSheet) {
  ASSERT_TRUE(make_folders(workspace_.cwd / "llm" / "attempt-1"));
  ASSERT_TRUE(write_file_atomic(workspace_.cwd / "llm" / "attempt-1" / "kernel.cu", kRightKernel));
  const auto result = grade_submission(task_for(workspace_.cwd), workspace_, {});
  ASSERT_TRUE(result);
  const std::string told =
      "100 % of the human kernel is what the project's own model wrote in llm/attempt-1/kernel.cu";
  EXPECT_NE(std::find(result->findings.begin(), result->findings.end(), told), result->findings.end());
  EXPECT_EQ(result->state, GradingState::kNeedsMentor);
  EXPECT_NE(read_file(place_.path() / "graded/submissions/ada/score_sheet.json")->find(told),
            std::string::npos);
}

TEST_F(Grade, AnArchiveInAnArchiveAndAProjectBelowFoldersAreGraded) {
  const fs::path inner = place_.path() / "inner.tar.gz";
  auto plan = plan_submission_here(false, workspace_);
  ASSERT_TRUE(plan);
  ASSERT_TRUE(submit(*plan, false, inner.string(), workspace_));
  const std::string bytes = read_file(inner).value();
  const fs::path outer = place_.path() / "outer.tar.gz";
  ASSERT_TRUE(write_file_atomic(
      outer, pack_archive({{"Downloads/my capstone/work.tar.gz", bytes}}, Packing::kTarGz, 0).value()));
  const auto nested = grade_submission(task_for(outer), workspace_, {});
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->fault, GradingFault::kNone) << nested->why;
  EXPECT_FALSE(project_root(place_.path() / "graded/submissions/ada/submission").empty());
  const fs::path deep = place_.path() / "deep";
  ASSERT_TRUE(make_folders(deep / "Downloads" / "my capstone"));
  fs::copy(workspace_.cwd, deep / "Downloads" / "my capstone", fs::copy_options::recursive);
  EXPECT_EQ(grade_submission(task_for(deep), workspace_, {})->fault, GradingFault::kNone);
  fs::copy(workspace_.cwd, deep / "Downloads" / "a copy", fs::copy_options::recursive);
  const auto two = grade_submission(task_for(deep), workspace_, {});
  EXPECT_EQ(two->fault, GradingFault::kAmbiguous);
  EXPECT_NE(two->why.find("2 projects in one place: Downloads/a copy, Downloads/my capstone"),
            std::string::npos)
      << two->why;
}

// What `measure` records about included files is what grading compares.
TEST_F(Grade, AnIncludedFileBelongsToTheKernel) {
  const fs::path part = workspace_.cwd / "human" / "op.cuh";
  const std::string kernel = kRightKernel;
  const std::size_t body = kernel.find("x[i] + y[i]");
  ASSERT_TRUE(write_file_atomic(part, "#define OP +\n"));
  write_kernel("#include \"op.cuh\"\n" + kernel.substr(0, body) + "x[i] OP y[i]" + kernel.substr(body + 11));
  MeasureRequest request;
  request.reason = "the operation is in a file of its own";
  request.judge = quick();
  auto measured = measure(request, workspace_, sink());
  ASSERT_TRUE(measured) << render(measured.error());
  ASSERT_TRUE(measured->ledger.human.front().included);
  ASSERT_EQ(measured->ledger.human.front().included->size(), 1u);
  EXPECT_EQ(measured->ledger.human.front().included->front().path, "human/op.cuh");

  const auto honest = grade_submission(task_for(workspace_.cwd), workspace_, {});
  ASSERT_TRUE(honest);
  EXPECT_EQ(honest->fault, GradingFault::kNone) << honest->why;
  EXPECT_EQ(honest->lines.size(), read_ledger(workspace_.cwd / ".capstone" / "ledger.jsonl")->records.size());
  EXPECT_EQ(honest->measurements.size(), 1u);

  ASSERT_TRUE(write_file_atomic(part, "#define OP + 0 +\n"));
  const auto changed = grade_submission(task_for(workspace_.cwd), workspace_, {});
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->fault, GradingFault::kUnsupported);
  EXPECT_EQ(changed->why, "human/op.cuh was changed after human/kernel.cu was measured with it");
}

// A kernel that never passed is looked at by a person, and costs no honesty.
TEST_F(Grade, WithoutAnyKernelThatPassesAPersonLooks) {
  write_kernel(wrong_kernel());
  MeasureRequest request;
  request.judge = quick();
  ASSERT_TRUE(measure(request, workspace_, sink()));
  const auto result = grade_submission(task_for(workspace_.cwd), workspace_, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->fault, GradingFault::kUnsupported);
  EXPECT_EQ(result->why, "no human kernel has passed gate one, neither in the ledger nor now");
}

// What the cohort shows about a submission comes with its task.
TEST_F(Grade, FindingsOfTheCohortCount) {
  GradingTask task = task_for(workspace_.cwd);
  task.cohort_findings = {"its ledger holds a measurement that eve holds, too, sample for sample"};
  const auto result = grade_submission(task, workspace_, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->state, GradingState::kNeedsMentor);
  EXPECT_EQ(result->why, task.cohort_findings.front());
  EXPECT_EQ(Json::parse(Json(task).dump()).get<GradingTask>().cohort_findings, task.cohort_findings);
  EXPECT_NE(read_file(task.folder / "score_sheet.md")->find("eve holds"), std::string::npos);
  for (const char* page : {"score_sheet.md", "score_sheet.html", "score_sheet.json"})
    EXPECT_EQ(read_file(task.folder / "feedback" / page)->find("eve holds"), std::string::npos)
        << "a student's page names no classmate: " << page;
}

TEST_F(Grade, FaultsAreResults) {
  const fs::path damaged = place_.path() / "damaged.tar.gz";
  ASSERT_TRUE(write_file_atomic(damaged, std::string("\x1f\x8b\x08", 3) + std::string(2000, 'x')));
  EXPECT_EQ(grade_submission(task_for(damaged), workspace_, {})->fault, GradingFault::kDamaged);
  ASSERT_TRUE(make_folders(place_.path() / "empty"));
  EXPECT_EQ(grade_submission(task_for(place_.path() / "empty"), workspace_, {})->fault,
            GradingFault::kNotAProject);
}

TEST_F(Grade, ThePlanSaysWhy) {
  const fs::path folder = place_.path() / "handed in";
  ASSERT_TRUE(make_folders(folder));
  auto plan = plan_submission_here(false, workspace_);
  ASSERT_TRUE(plan);
  ASSERT_TRUE(submit(*plan, false, (folder / "ada.tar.gz").string(), workspace_));
  GradeRequest request;
  request.folder = folder.string();
  request.out = (place_.path() / "graded").string();
  request.judge = quick();
  auto outcome = plan_grading(request, workspace_);
  ASSERT_TRUE(outcome) << render(outcome.error());
  ASSERT_EQ(outcome->items.size(), 1u);
  EXPECT_EQ(outcome->items[0].because, "new");
  EXPECT_FALSE(outcome->complete());
  EXPECT_FALSE(fs::exists(place_.path() / "graded" / "grades.csv"));
  request.only = {"adda"};
  auto unknown = plan_grading(request, workspace_);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("did you mean"), std::string::npos);
}

TEST_F(Grade, CheckInsOfAClass) {
  auto stuck = check_in_here("how do I pad a tile?", (place_.path() / "ada.json").string(), workspace_);
  ASSERT_TRUE(stuck) << render(stuck.error());
  auto rows = class_progress({"graded", {(place_.path() / "ada.json").string()}, {}}, workspace_, sink());
  ASSERT_TRUE(rows) << render(rows.error());
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_FALSE(rows->front().needs.empty());
  EXPECT_FALSE(class_progress({"graded", {(place_.path() / "none").string()}, {}}, workspace_, sink()));
  EXPECT_FALSE(open_cohort(workspace_, "graded"));
}

}  // namespace
}  // namespace capstone::workflows::test
