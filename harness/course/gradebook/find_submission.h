#pragma once
// Finds a submission by what a mentor knows of it.
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// The submission whose name, or one of whose people's id, e-mail address or name, is `text`. The
/// submission's own name comes first; names and addresses are compared without regard to case (ASCII).
/// @error none (the hint names the nearest); several (the hint lists them).
Result<std::string> find_submission(const std::vector<GradebookRow>& rows, const std::string& text);

}  // namespace capstone
