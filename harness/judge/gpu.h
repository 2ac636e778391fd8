#pragma once
// Which GPUs are here, without a context on any of them, and who may use one now.
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/resources.h"
#include "harness/judge/events.h"
#include "harness/model/backend.h"

namespace capstone {

/// Facts about the first visible GPU, from the driver's nvidia-smi; no context is made.
struct GpuIdentity {
  std::string name, uuid, driver, compute_capability;  ///< "9.0"
  double memory_bytes = 0;
  /// nvcc's name for it, with the architecture-specific suffix where there is one: "sm_90a".
  std::string arch() const;
};
/// @error no NVIDIA GPU or driver here.
Result<GpuIdentity> find_gpu(const Resources& resources);

/// What CUDA_VISIBLE_DEVICES names each GPU that may be used here; empty: there is none.
std::vector<std::string> visible_gpus(const Resources& resources);

/// The backend that kAuto means here, and why: a GPU and nvcc → cuda; else emulated.
struct BackendChoice {
  Backend backend;
  std::string because;  ///< empty for cuda; else "no NVIDIA GPU here"
};
BackendChoice choose_backend(Backend wanted, const Resources& resources);

/// One timing at a time on a GPU: two at once would slow each other down. Waits until the GPU is free.
/// @error interrupted; the lock file cannot be made.
Result<FileLock> take_gpu(const GpuIdentity& gpu, const Narration& say);

}  // namespace capstone
