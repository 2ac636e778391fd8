#pragma once
// `diff`: what changed between two versions of the human kernel, or between a version and the file.
#include <string>

#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct VersionDiff {
  std::string before, after;  ///< "v2", or "human/kernel.cu"
  std::string text;           ///< unified; empty: no difference
};

/// @param before  a version such as v2; empty: the last one that was measured
/// @param after   a version; empty: the file
/// @error no version was measured; no such version, with the list of those that there are; its source is
/// missing.
Result<VersionDiff> version_diff(const std::string& before, const std::string& after,
                                 const Workspace& workspace);

}  // namespace capstone::workflows
