#pragma once
// `watch`: try again whenever the kernel, or a file that it includes, is saved.
#include <functional>
#include <optional>
#include <vector>

#include "harness/base/file_watch.h"
#include "harness/workflows/try_kernel.h"

namespace capstone::workflows {

/// Tries a kernel once, and again for every saved change, until the process is interrupted or an error of the
/// machine ends it.
/// @param show   called with the outcome of each run
/// @param gone   called when the file vanishes; it is waited for
Result<void> watch_kernel(const TryRequest& request, const Workspace& workspace, const ProgressSink& progress,
                          const std::function<void(const TryOutcome&)>& show,
                          const std::function<void(const TriedKernel&)>& gone);

}  // namespace capstone::workflows
