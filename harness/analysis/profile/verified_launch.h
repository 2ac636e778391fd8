#pragma once
// Profiles one launch under Nsight Compute. Only the captured graph is replayed: the submission's host code
// never runs under the profiler, and the outputs of the launch are compared with the oracle.
#include <filesystem>
#include <string>

#include "harness/judge/judge.h"

namespace capstone {

struct LaunchUnderNcu {
  std::string csv;  ///< ncu's table; empty: `because` gives the reason
  std::string ncu;  ///< version of ncu
  std::string because;
  std::string checked_at;  ///< sizes of the launch whose outputs were compared; empty: the profiled sizes
};

/// Whether the oracle can compute expected values at these sizes in reasonable time. An oracle.cpp computes
/// only the requested elements. The reference itself, in float64 on the CPU, computes all of them, which
/// takes minutes and gigabytes at the measured size.
bool oracle_answers_at(const Problem& problem, const Sizes& sizes);

/// Builds the source for this machine's GPU, captures its launch at `sizes`, replays it once under ncu and
/// checks 2,048 elements of each output. If the oracle is too slow there, a launch at the first size of
/// `check` is captured, replayed and checked first, without ncu.
/// @error the kernel does not build or its outputs are wrong (exit code 1); a fault of the machine. If only
///   ncu cannot measure (no ncu, no permission, a launch that cannot be captured), the reason is in
///   `because`.
Result<LaunchUnderNcu> launch_under_ncu(const Problem& problem, const std::filesystem::path& source,
                                        const Sizes& sizes, const GpuIdentity& gpu,
                                        const Resources& resources, const Narration& say);

}  // namespace capstone
