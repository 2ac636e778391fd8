#pragma once
// Which baselines run in gate two.
#include "harness/judge/cuda_session.h"

namespace capstone {

/// Looks for PyTorch and starts its parent, in the background. Not valid where nothing needs it. `session`
/// must outlive it and know its Toolkit.
std::future<Result<PyTorch>> start_pytorch(const CudaSession& session);

/// PyTorch, where it was started and works. A PyTorch that was found automatically and does
/// not work is no error: `why_native` says why. @error an explicitly requested PyTorch does not work;
/// interrupted
Result<Baselines> find_baselines(CudaSession& session, const Oracle& oracle);

/// What the native baseline wants at the `measure` sizes. @error it does not start or answer
Result<PrivateBytes> wants_of(const Problem& problem, const std::function<StartedRunner()>& start);

}  // namespace capstone
