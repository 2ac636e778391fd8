#pragma once
// One candidate on a GPU: built, then replayed or run in-process.
#include <functional>
#include <memory>
#include <optional>

#include "harness/base/scratch_folder.h"
#include "harness/judge/cuda_session.h"
#include "harness/runtime/cuda/replayed_kernel.h"

namespace capstone {

/// A copy is another arm of the same candidate.
struct CudaProgram : Program {
  Artifact artifact;
  std::shared_ptr<ReplayedKernel> replayed;  ///< null: in-process execution
  /// Of one candidate in Python, not handed on to another judgement; null: a .cu
  std::shared_ptr<ScratchFolder> builds;
  std::optional<PythonWork> python;
  /// A candidate in Python: the process that loaded it, until gate one takes it
  std::shared_ptr<std::unique_ptr<Runner>> loaded;

  std::function<StartedRunner()> start(const CudaSession& session) const;
};

inline CudaProgram& cuda_program(const Checked& candidate) {
  return static_cast<CudaProgram&>(*candidate.program);
}

/// The record and the program of one source after its build; Python sources are loaded now.
/// @error interrupted
Result<Built> load_candidate(const CudaSession& session, const Candidate& candidate, Artifact artifact,
                             const Json& environment);

/// Gate one. Replayed first; what fails there has another chance in in-process execution, because a captured
/// graph that computes something else than launch() is no fault of the kernel's.
Result<void> check_candidate(const CudaSession& session, const Oracle& oracle, const Bound& bound,
                             Checked& candidate);

/// From now on it is not replayed; the record says why.
void run_in_process(Checked& candidate, const std::string& why);

/// What the build and the captured graphs say about a kernel, whatever its time.
void add_build_labels(const Problem& problem, Checked& candidate);

}  // namespace capstone
