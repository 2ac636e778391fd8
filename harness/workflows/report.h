#pragma once
// `report`: the worklog, the score sheet and their figures, rendered into a folder.
#include <string>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct ReportOutcome {
  std::vector<std::filesystem::path> files;  ///< that were written
  int missing = 0, contradictions = 0;       ///< findings of the review, see `check`
};

/// Renders the project in the current folder. @param out  a folder; empty: PROJECT/report
/// @error no project; `out` holds something other than a report.
Result<ReportOutcome> report(const std::string& out, const Workspace& workspace);

enum class ReportState { kMissing, kStale, kCurrent };
/// Whether report/ shows the worklog and the ledger as they are now.
Result<ReportState> state_of_report(const Project& project, const LedgerView& ledger,
                                    const Workspace& workspace);

/// The worklog of any project as one page of HTML, with its figures. Nothing is written.
/// @error worklog.md or the ledger cannot be read; a template is missing.
Result<std::string> worklog_page(const Project& project, const Workspace& workspace);

}  // namespace capstone::workflows
