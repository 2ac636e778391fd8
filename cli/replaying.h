#pragma once
// One case again: what `measure --replay` and `replay` share.
#include <string>

#include "cli/recording.h"
#include "cli/context.h"

namespace capstone::cli {

/// Runs one case of a measurement again, with `source` as it is now. Nothing is recorded.
/// @param wanted  the case; empty: the first that failed, else the first there is
/// @param again   the command to repeat it with
/// @error no such case: the hint lists those that failed.
Result<ExitCode> replay_case(const Context& context, const Project& project, const Measurement& recorded, const std::filesystem::path& source,
                             const std::string& wanted, const JudgeOptions& options, const std::string& again);

}  // namespace capstone::cli
