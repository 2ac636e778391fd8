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

enum class ReportState { kMissing, kStale, kCurrent };
/// Whether report/ shows the worklog and the ledger as they are now.
Result<ReportState> state_of_report(const Project& project, const LedgerView& ledger,
                                    const Workspace& workspace);

}  // namespace capstone::workflows
