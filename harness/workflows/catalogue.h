#pragma once
// Problems that come from the catalogue, never from what was handed in.
#include <string>

#include "harness/model/problem.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// The catalogue's problem of that id. Never by path: a submission that names a path would choose the code
/// that judges it.
/// @error no such problem; not an id.
Result<Problem> catalogue_problem(const Workspace& workspace, const std::string& id);

}  // namespace capstone::workflows
