#pragma once
#include <string>
#include <vector>

#include "harness/model/problem.h"

namespace capstone {

/// The kernel.cu that `init` writes. It compiles for the problem's signature, launches one kernel that
/// computes nothing, and says where to start. Gate one reports that nothing was written.
std::string stub_kernel(const Problem& problem);

/// Languages of a kernel.py: "triton", "tilelang", "cute".
const std::vector<std::string>& python_languages();
/// The kernel.py that `init --language` writes: the reference as ModelNew, which is right and slow, and one
/// kernel in the language as a pattern. @error the reference has no class Model at its top level
Result<std::string> stub_module(const Problem& problem, const std::string& language);

}  // namespace capstone
