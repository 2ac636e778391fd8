#pragma once
// `report`: the worklog, the score sheet and their figures, rendered into a folder.
#include <string>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/workflows/workspace.h"
#include "templates/report.h"

namespace capstone::workflows {

/// What the pages of a project are made of; the roofs are those of the device that measured last.
ReportInput report_input(const Project& project, const LedgerView& ledger, const Workspace& workspace);

struct ReportOutcome {
  std::vector<std::filesystem::path> files;  ///< that were written
  int missing = 0, contradictions = 0;       ///< findings of the review, see `check`
};

/// Renders the project in the current folder. @param out  a folder; empty: PROJECT/report
/// @error no project; `out` holds something other than a report.
Result<ReportOutcome> report(const std::string& out, const Workspace& workspace);

/// The report of the project in the current folder, in memory and without the time when it was made.
/// @param plots  of the ledger as it is now; empty: they are drawn, which takes most of the time, and put
/// here
/// @error as render_report(); no project.
Result<ReportFiles> render_report_here(const Workspace& workspace, std::vector<Plot>& plots);

/// What `check` lists, for the project in the current folder. @error no project; a file cannot be read.
Result<std::vector<Finding>> review_here(const Workspace& workspace);

struct CurrentReport {
  std::filesystem::path page;  ///< PROJECT/report/worklog.html
  bool rendered = false;       ///< now: it was missing, or showed an older worklog or ledger
};
/// Renders the project in the current folder into report/ unless it is there and current. @error as report().
Result<CurrentReport> current_report(const Workspace& workspace);

enum class ReportState { kMissing, kStale, kCurrent };
/// Whether report/ shows the worklog and the ledger as they are now.
Result<ReportState> state_of_report(const Project& project, const LedgerView& ledger,
                                    const Workspace& workspace);

/// The worklog of any project as one page of HTML, with its figures. Nothing is written.
/// @error worklog.md or the ledger cannot be read; a template is missing.
Result<std::string> worklog_page(const Project& project, const Workspace& workspace);

}  // namespace capstone::workflows
