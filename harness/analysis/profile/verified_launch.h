#pragma once
// One launch under Nsight Compute, of the recorded plan alone: the submission's host code never runs beside the profiler, and what the launch
// has written is compared with the oracle.
#include <filesystem>
#include <string>

#include "harness/judge/judge.h"

namespace capstone {

struct LaunchUnderNcu {
  std::string csv;        ///< ncu's table; empty: `because` says why there is none
  std::string ncu;        ///< its version
  std::string because;
  std::string checked_at; ///< sizes of the launch whose outputs were compared; empty: the profiled one's
};

/// Whether the oracle can say what is right at these sizes in reasonable time: an oracle.cpp computes the elements that it is asked for; the
/// reference itself, in float64 on the CPU, computes all of them, which takes minutes and gigabytes at the measured size.
bool oracle_answers_at(const Problem& problem, const Sizes& sizes);

/// Builds the source for the GPU here, records its launch at `sizes`, plays it once under ncu and checks 2,048 elements of each output. Where the oracle
/// does not answer there, a launch at the first of `check` is recorded, played and checked before, without ncu.
/// @error the kernel does not build or its outputs are wrong (exit code 1); the machine's fault. What only keeps ncu from measuring (no ncu, no
/// permission, a launch that cannot be recorded) is in `because`.
Result<LaunchUnderNcu> launch_under_ncu(const Problem& problem, const std::filesystem::path& source, const Sizes& sizes, const GpuIdentity& gpu,
                                        const Resources& resources, const Narration& say);

}  // namespace capstone
