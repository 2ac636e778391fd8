#include "harness/workflows/submit.h"

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/report.h"
#include "rubric/review.h"

namespace capstone::workflows {

Result<SubmissionPlan> plan_submission_here(bool allow_secrets, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  SubmissionOptions options;
  options.identity = {workspace.user, workspace.home, workspace.host};
  options.allow_secrets = allow_secrets;
  return plan_submission(project, options);
}

Result<std::vector<Finding>> open_points_here(const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(const std::string text, read_file(project.worklog()));
  std::vector<Finding> points = review(project, ledger, parse_worklog(text));
  std::erase_if(points, [](const Finding& f) { return f.severity == Severity::kAdvice; });
  CAPSTONE_TRY(const ReportState state, state_of_report(project, ledger, workspace));
  if (state == ReportState::kMissing)
    points.push_back({0, Severity::kMissing, "there is no report", "report/", "run capstone report"});
  if (state == ReportState::kStale)
    points.push_back({0, Severity::kContradiction, "the report shows an older worklog or ledger", "report/",
                      "run capstone report again"});
  return points;
}

const SubmissionFinding* first_secret(const SubmissionPlan& plan) {
  for (const SubmissionFinding& finding : plan.findings)
    if (finding.kind == SubmissionFinding::Kind::kSecret) return &finding;
  return nullptr;
}

Result<Receipt> submit(const SubmissionPlan& plan, bool allow_secrets, const std::string& out,
                       const Workspace& workspace) {
  if (const SubmissionFinding* secret = first_secret(plan); secret && !allow_secrets)
    return fail("something in the project looks like a key: " + secret->what, secret->where,
                "remove it (and revoke it); if it is harmless: --allow-secrets");
  CAPSTONE_TRY(const fs::path file,
               output_path(workspace, out.empty() ? plan.prefix + ".tar.gz" : out, Output::kArchive));
  return write_submission(plan, file);
}

Result<CheckInOutcome> check_in_here(const std::string& stuck, const std::string& out,
                                     const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  if (!out.empty())
    CAPSTONE_CHECK(output_path(workspace, out, Output::kCheckIn));  // before the ledger has the record
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(const std::string machine, chain_id(workspace));
  CAPSTONE_TRY(CheckIn made, check_in(project, std::string(trim(stuck)), machine));
  CAPSTONE_TRY(const fs::path file,
               output_path(workspace, out.empty() ? file_name_of(made) : out, Output::kCheckIn));
  CAPSTONE_CHECK(write_file_atomic(file, checkin_text(made)));
  return CheckInOutcome{std::move(made), file.lexically_normal()};
}

}  // namespace capstone::workflows
