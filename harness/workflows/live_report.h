#pragma once
// `open --serve`: a report in the browser that follows its sources.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/workflows/workspace.h"
#include "rubric/finding.h"

namespace capstone::workflows {

/// One rendering of the live report.
struct LiveRendering {
  std::optional<Error> problem;   ///< it failed; the page still shows the last good one, and this
  std::vector<Finding> findings;  ///< of the review, see `check`
  double seconds = 0;             ///< that it took
};

/// Serves the report of the project in the current folder on 127.0.0.1 until the process is interrupted, and
/// renders it again when the worklog, the ledger, a kernel or an attempt changes. It is rendered in memory:
/// report/ stays as it is.
/// @param port      where to listen; the next free one if it is taken; 0: any
/// @param ready     called once, with the URL and the port that it has
/// @param rendered  called after each rendering, the first before `ready`
/// @error no project here; no port is free; files cannot be watched.
Result<void> serve_report(int port, const Workspace& workspace,
                          const std::function<void(const std::string& url, int port)>& ready,
                          const std::function<void(const LiveRendering&)>& rendered);

}  // namespace capstone::workflows
