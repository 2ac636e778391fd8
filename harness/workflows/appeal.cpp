#include "harness/workflows/appeal.h"

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/ledger.h"
#include "harness/workflows/grade_submission.h"

namespace capstone::workflows {
namespace {

std::vector<Measurement> claimed_in(const fs::path& project, const SubmissionResult& result) {
  std::vector<Measurement> claimed;
  auto ledger = read_ledger(project / ".capstone" / "ledger.jsonl");
  if (project.empty() || !ledger) return claimed;
  for (const Measurement& judged : result.judged)
    for (const Measurement& m : ledger->of(judged.candidate))
      if (m.source_sha256 == judged.source_sha256) claimed.push_back(m);
  return claimed;
}

}  // namespace

Result<AppealFacts> appeal_facts(OpenCohort& cohort, const std::string& submission) {
  AppealFacts facts;
  facts.name = submission;
  CAPSTONE_TRY(facts.history, cohort.book.history(submission));  // fails if there is no such submission
  CAPSTONE_TRY(facts.result, read_result(cohort.folder_of(submission) / "result.json"));
  CAPSTONE_TRY(const auto rows, cohort.book.rows(cohort.rubric));
  for (const GradebookRow& row : rows)
    if (row.submission == submission) facts.rows.push_back(row);
  facts.claimed = claimed_in(cohort.project_of(submission), facts.result);
  facts.feedback = cohort.folder_of(submission) / "feedback";
  return facts;
}

Result<Rejudgement> rejudge(OpenCohort& cohort, const std::string& submission, const JudgeOptions& options,
                            const Workspace& workspace, const ProgressSink& progress) {
  Rejudgement both;
  CAPSTONE_TRY(both.before, read_result(cohort.folder_of(submission) / "result.json"));
  const fs::path project = cohort.project_of(submission);
  if (project.empty())
    return fail("what was handed in cannot be judged: " + both.before.why,
                cohort.folder_of(submission).string(), "ask the student for it again and grade it");
  GradingTask task;
  task.submission.name = submission;
  task.submission.path = project;
  task.submission.shown = both.before.path;
  task.submission.origin = both.before.origin;
  const std::string place = "appeals/" + replace_all(utc_now(), ":", "");
  task.folder = cohort.folder_of(submission) / place;
  task.rubric = cohort.folder / "rubric.yaml";
  task.judge = options;
  auto show = [&](const GradingStatus& status) { report_step(progress, status.text); };
  CAPSTONE_TRY(both.now, grade_submission(task, workspace, show));
  CAPSTONE_CHECK(cohort.book.record_rejudgement(both.now, place + "/result.json"));
  return both;
}

}  // namespace capstone::workflows
