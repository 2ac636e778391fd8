#pragma once
// The names that PyTorch's ways of running a problem's Model go by.
#include <string>
#include <vector>

#include "harness/model/problem.h"

namespace capstone {

/// Every arm that the Python worker knows: "eager", "compile", "compile-max", "sdpa-flash", "sdpa-cudnn".
const std::vector<std::string>& python_arms();

/// The arms that a problem is timed against where there is PyTorch: eager first, then what its `baselines`
/// name, at least compile.
std::vector<std::string> python_arms_of(const Problem& problem);

}  // namespace capstone
