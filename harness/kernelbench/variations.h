#pragma once
// Which variations of its inputs an imported problem can be checked with.
#include <map>
#include <string>

#include "harness/judge/reference_oracle.h"

namespace capstone {

/// Tries each variation that applies to the problem's inputs (times ten, offset, heavy tails, …) at sizes as the judge draws them. What does not work is
/// outside the domain of the reference: it raises an exception, gives NaN or infinity, or its own rounding takes more of the tolerance than
/// an honest kernel can spare.
/// @return the name of such a variation, as `outside_domain` of problem.yaml has it → why, in words
/// @error the reference cannot be run at all
Result<std::map<std::string, std::string>> variations_outside(const Problem& problem, const std::shared_ptr<ReferenceOracle>& reference);

}  // namespace capstone
