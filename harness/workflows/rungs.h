#pragma once
// Reference kernels as a user names them.
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// Does a user mean this rung, "03_shared_tile", by "03", "3", "03_shared_tile" or "shared_tile"?
bool is_called(const std::string& rung, const std::string& wanted);

/// A rung by path, by file name, or by its number.
/// @param command  what to type where the rung belongs to another problem; {0} is the rung, {1} the problem
/// @error no such rung: the hint lists those of the problem.
Result<std::filesystem::path> find_rung(const Workspace& workspace, const std::string& problem,
                                        const std::string& wanted, const char* command);

}  // namespace capstone::workflows
