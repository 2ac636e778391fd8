#pragma once
// Result files: recorded ones as a user names them, and new ones.
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// A results file by its path, or that of a device by a word of its name ("h200").
/// @param kind  the folder below the results: "languages"; empty: the results themselves
/// @error no results of that device: the hint lists the devices.
Result<std::filesystem::path> results_file(const Workspace& workspace, const std::string& wanted,
                                           const std::string& kind = {});

/// Whether a file can be written: checked before the work whose result it will hold. An existing file stays
/// as it is.
Result<void> expect_writable(const std::filesystem::path& path);

}  // namespace capstone::workflows
