#pragma once
// What a judgement on a GPU has at hand: the GPU, capstone's own programs, the GPU host that owns the
// tensors, the baselines.
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/judge/pipeline.h"
#include "harness/runtime/build/build.h"
#include "harness/runtime/build/cuda.h"
#include "harness/runtime/cuda/gpu_host_client.h"
#include "harness/runtime/python/runner.h"

namespace capstone {

/// A Python with PyTorch, and the process of it that forks the arms' workers.
struct PyTorch {
  Python python;
  std::shared_ptr<PythonParent> parent;  ///< null: it does not start
  /// Those that become the workers of arms that compile, by arm: they import for longer.
  std::map<std::string, std::shared_ptr<PythonParent>> first;
};

/// The baselines that run in gate two, and why there are no more.
struct Baselines {
  std::optional<PyTorch> pytorch;  ///< which the arms and the candidates in Python run in
  std::vector<std::string> arms;   ///< of PyTorch; the first is gate two's. Empty: the native baseline is
  std::string why_native;          ///< why not PyTorch's
};

struct CudaSession {
  explicit CudaSession(const JudgeContext& context);

  JudgeContext context;
  Sandbox sandbox;  ///< of candidates
  Sandbox trusted;  ///< of capstone's own programs
  WorkerLimits limits;
  GpuIdentity gpu;
  CudaToolkit toolkit;
  std::filesystem::path worker_program, capture_worker_program, replayer_program;
  Artifact native;  ///< the problem's baseline.cu; nothing where the oracle is reference.py
  /// Looked for, and imported, from before the builds on. Not valid: nothing needs it.
  std::future<Result<PyTorch>> pytorch;
  Baselines baselines;
  std::optional<FileLock> gpu_lock;  ///< held while anything runs on the GPU
  std::unique_ptr<GpuHost> gpu_host;
  DevicePeaks peaks;
  /// What the native baseline needs at the measured size; asked while gate one runs. Nothing: it is not timed
  std::shared_future<Result<PrivateBytes>> native_wants;
  double building = 0;  ///< [s]

  const JudgeRequest& request() const { return *context.request; }
  const Problem& problem() const { return *context.request->problem; }
  const Resources& resources() const { return *context.resources; }
  void say(const StageEvent& event) const { (*context.say)(event); }

  /// Whether there is a native baseline; else PyTorch's eager is the baseline, and says what timed runs
  /// should give.
  bool has_native() const { return !problem().oracle_is_reference; }
  PythonWork python_work(const Python& python) const;
  /// One of PyTorch's arms, in a trusted process.
  std::function<StartedRunner()> python_arm(const std::string& name) const;
  /// A process that runs a library built by build_cuda(). `ours`: outside the sandbox.
  StartedRunner start_worker(const std::filesystem::path& library, bool ours) const;
};

/// Finds the GPU and the Toolkit, and builds all candidates, the native baseline and capstone's own programs,
/// in parallel.
/// @return an artifact for each candidate; an empty one for a .py
/// @error no GPU, no Toolkit, the native baseline does not build
Result<std::vector<Artifact>> build_all(CudaSession& session, std::filesystem::path& gpu_host_program);

/// Waits for the GPU, starts the GPU host on it and looks for baselines.
Result<void> open_device(CudaSession& session, const std::filesystem::path& gpu_host_program,
                         const Oracle& oracle);

/// What a record says of the machine: the host, the GPU, the Toolkit, PyTorch.
Result<Json> describe(CudaSession& session);

}  // namespace capstone
