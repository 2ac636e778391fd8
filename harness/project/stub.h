#pragma once
#include <string>

#include "harness/model/problem.h"

namespace capstone {

/// The kernel.cu that `init` writes: it compiles for the problem's signature, launches one kernel that computes
/// nothing, and says where to begin. Gate one answers that nothing was written.
std::string stub_kernel(const Problem& problem);

}  // namespace capstone
