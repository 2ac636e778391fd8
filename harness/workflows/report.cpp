#include "harness/workflows/report.h"

#include <optional>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/timing/device.h"
#include "harness/workflows/output_path.h"
#include "rubric/review.h"
#include "rubric/worklog.h"

namespace capstone::workflows {
namespace {

// The roofs of the device of the newest GPU measurement in the ledger.
std::optional<Roof> roof_of(const LedgerView& ledger, const Problem& problem) {
  const Measurement* newest = nullptr;
  for (const auto* list : {&ledger.human, &ledger.llm})
    for (const Measurement& m : *list)
      if (m.backend == Backend::kCuda) newest = &m;
  if (!newest) return std::nullopt;
  auto peaks = find_device(newest->environment.value("device", ""), newest->environment.value("sm_count", 0));
  if (!peaks) return std::nullopt;
  ComputePeak peak = peak_of(*peaks, problem.precision);
  return Roof{peaks->bandwidth, peak.flops, peaks->name + ", " + peak.units};
}

// The page without the time when it was made.
std::string without_time(const std::string& page) {
  std::vector<std::string> lines = split(page, '\n');
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("- Page generated: "); });
  return join(lines, "\n");
}

}  // namespace

ReportInput report_input(const Project& project, const LedgerView& ledger, const Workspace& workspace) {
  ReportInput input;
  input.project = &project;
  input.ledger = &ledger;
  input.resources = &workspace.resources;
  input.roof = roof_of(ledger, project.problem);
  return input;
}

Result<ReportState> state_of_report(const Project& project, const LedgerView& ledger,
                                    const Workspace& workspace) {
  const auto written = read_file(project.root / "report" / "worklog.md", std::size_t{64} << 20);
  if (!written) return ReportState::kMissing;
  CAPSTONE_TRY(const ReportFiles now, render_report(report_input(project, ledger, workspace)));
  return without_time(*written) == without_time(now.at("worklog.md")) ? ReportState::kCurrent
                                                                      : ReportState::kStale;
}

Result<ReportFiles> render_report_here(const Workspace& workspace, std::vector<Plot>& plots) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  ReportInput input = report_input(project, ledger, workspace);
  input.plots = &plots;
  return render_report(input);
}

Result<std::vector<Finding>> review_here(const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(const std::string text, read_file(project.worklog()));
  return review(project, ledger, parse_worklog(text));
}

Result<CurrentReport> current_report(const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(const ReportState state, state_of_report(project, ledger, workspace));
  const fs::path page = project.root / "report" / "worklog.html";
  std::error_code code;
  if (state == ReportState::kCurrent && fs::exists(page, code)) return CurrentReport{page, false};
  CAPSTONE_CHECK(report({}, workspace));
  return CurrentReport{page, true};
}

Result<ReportOutcome> report(const std::string& out, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  fs::path folder = project.root / "report";
  if (!out.empty()) {
    CAPSTONE_TRY(folder, report_folder(workspace, out));
  }
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  ReportInput input = report_input(project, ledger, workspace);
  input.generated = utc_now();
  CAPSTONE_TRY(const ReportFiles files, render_report(input));
  CAPSTONE_CHECK(write_report(files, folder));
  ReportOutcome outcome;
  for (const ReportFile& file : files.files) outcome.files.push_back(folder / file.name);
  for (const Finding& finding : files.findings) {
    outcome.missing += finding.severity == Severity::kMissing;
    outcome.contradictions += finding.severity == Severity::kContradiction;
  }
  return outcome;
}

Result<std::string> worklog_page(const Project& project, const Workspace& workspace) {
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(const ReportFiles files, render_report(report_input(project, ledger, workspace)));
  return files.at("worklog.html");
}

}  // namespace capstone::workflows
