#pragma once
// `watch`: try again whenever the kernel, or a file that it includes, is saved; review a saved worklog.
#include <functional>
#include <optional>
#include <vector>

#include "harness/base/file_watch.h"
#include "harness/workflows/try_kernel.h"
#include "rubric/finding.h"

namespace capstone::workflows {

/// What a watch reports.
struct WatchSink {
  std::function<void(const TryOutcome&)> tried;
  std::function<void(const TriedKernel&)> gone;  ///< the file vanished; it is waited for
  /// The project's worklog was saved: its review, see `check`, or why it could not be read.
  std::function<void(const Result<std::vector<Finding>>&)> reviewed;
};

/// Tries a kernel once, and again for every saved change, until the process is interrupted or an error of the
/// machine ends it. In a project it also reviews the worklog whenever that is saved.
Result<void> watch_kernel(const TryRequest& request, const Workspace& workspace, const ProgressSink& progress,
                          const WatchSink& sink);

}  // namespace capstone::workflows
