#pragma once
// The last step: from measured times to a verdict with its labels. Nothing is run.
#include <cstdint>
#include <functional>
#include <vector>

#include "harness/judge/pipeline.h"

namespace capstone {

/// Gate two's verdict for every candidate that was timed on a GPU; emulated times are shown together with
/// "not judged". A candidate without times keeps its record as it is.
/// @param random  seeds of the bootstraps
/// @error a cost that does not evaluate
Result<std::vector<Measurement>> decide(Timed timed, const Problem& problem,
                                        const std::function<std::uint64_t()>& random = fresh_seed);

}  // namespace capstone
