#pragma once
#include <string>

#include "harness/model/problem.h"

namespace capstone {

/// The kernel.cu that `init` writes. It compiles for the problem's signature, launches one kernel that
/// computes nothing, and says where to start. Gate one reports that nothing was written.
std::string stub_kernel(const Problem& problem);

}  // namespace capstone
