#pragma once
// Gate two on a GPU: the baselines and every candidate that passed, timed side by side.
#include <vector>

#include "harness/judge/cuda_candidate.h"

namespace capstone {

/// Times all candidates that passed gate one. One whose launch does something else at the measured size than
/// was captured is checked again in-process, and all arms are timed again.
/// @param checking  [s] that gate one took, for the record
/// @error the machine's fault; interrupted
Result<Timed> race(const CudaSession& session, const Oracle& oracle, const Bound& bound,
                   std::vector<Checked> candidates, double checking);

}  // namespace capstone
