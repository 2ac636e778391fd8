#pragma once
// Which baselines run in gate two.
#include "harness/judge/cuda_session.h"

namespace capstone {

/// PyTorch, where it is wanted and there is one that works. A PyTorch that was found automatically and does
/// not work is no error: `why_native` says why. @error an explicitly requested PyTorch does not work;
/// interrupted
Result<Baselines> find_baselines(const CudaSession& session, const Oracle& oracle);

/// What the native baseline wants at the `measure` sizes. @error it does not start or answer
Result<PrivateBytes> wants_of(const Problem& problem, const std::function<StartedRunner()>& start);

}  // namespace capstone
