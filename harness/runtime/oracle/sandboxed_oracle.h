#pragma once
// A problem's oracle.cpp: built and run in the sandbox, like a candidate.
#include "harness/correctness/oracle.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

/// Starts a process with the oracle that was built with capstone if the problem's oracle.cpp is
/// byte-identical to the shipped one. Else the problem's own is compiled once and kept in the cache under the
/// digest of what it is made of. Nothing of it is loaded into this process: tensors and expected values pass
/// through shared memory.
/// @error no oracle.cpp, no g++, the first error of the compiler, no capstone_oracle() inside.
Result<Oracle> start_oracle(const Problem& problem, const Resources& resources, const Sandbox& sandbox);

}  // namespace capstone
