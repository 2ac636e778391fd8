#pragma once
// Files of results: recorded ones as a user names them, and those that a command is to write.
#include "cli/context.h"

namespace capstone::cli {

/// A results file by its path, or that of a device by a word of its name ("h200"). @error nothing was recorded there: the hint lists the devices.
Result<std::filesystem::path> results_file(const Context& context, const std::string& wanted);

/// Whether a file can be written, asked before the work whose result it is to keep. What stands there stays.
Result<void> expect_writable(const std::filesystem::path& path);

}  // namespace capstone::cli
