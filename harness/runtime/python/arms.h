#pragma once
// The names that PyTorch's ways of running a problem's Model go by.
#include <string>
#include <vector>

#include "harness/model/problem.h"

namespace capstone {

/// Every arm that the Python worker knows by name: "eager", "compile", "compile-max", "sdpa-flash",
/// "sdpa-cudnn". A problem's libraries are arms, too: see is_library_arm() (harness/model/library_arm.h).
const std::vector<std::string>& python_arms();

/// The arms that a problem is timed against where there is PyTorch: eager first, then what its `baselines`
/// name, at least compile.
std::vector<std::string> python_arms_of(const Problem& problem);

}  // namespace capstone
