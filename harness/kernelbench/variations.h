#pragma once
// Finds the variations of its inputs that an imported problem can be checked with.
#include <map>
#include <string>

#include "harness/judge/reference_oracle.h"

namespace capstone {

/// Tries each variation that applies to the problem's inputs (times ten, offset, heavy tails, …) at sizes as
/// the judge draws them. A variation is outside of the reference's domain if the reference raises an
/// exception, gives NaN or infinity, or if its own rounding takes more of the tolerance than a correct kernel
/// can spare.
/// @return name of such a variation, as in `outside_domain` of problem.yaml → reason
/// @error the reference cannot be run at all
Result<std::map<std::string, std::string>> variations_outside(
    const Problem& problem, const std::shared_ptr<ReferenceOracle>& reference);

}  // namespace capstone
