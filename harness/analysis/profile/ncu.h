#pragma once
// Nsight Compute: which metrics are asked for, and what its CSV says.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/resources.h"
#include "harness/analysis/profile/record.h"

namespace capstone {

/// ncu on PATH, beside nvcc, or where NVIDIA installs it.
std::optional<std::filesystem::path> find_ncu(const Resources& resources);

/// All metrics that the answers are made from; several may say the same on different chips.
std::vector<std::string> ncu_metrics();

/// ncu's arguments for one profiled program, whose own arguments follow: CSV on stdout, clocks left alone, caches cold, only what lies between the profiler's start and stop.
std::vector<std::string> ncu_arguments(const std::vector<std::string>& metrics);

/// The names that ncu refused because it does not know them: it then measures nothing at all.
std::vector<std::string> unknown_metrics(std::string_view output, const std::vector<std::string>& asked);

/// Why ncu measured nothing, in its own words or ours where we know better.
std::string ncu_refusal(std::string_view output);

/// The CSV among everything that ncu and the program printed; empty: there is none.
std::string ncu_table(std::string_view output);

/// One entry a kernel name, in the order of first launches; launches of one kernel are added up (percentages: weighted by time).
/// A metric that is not there, or that ncu calls n/a, stays empty.
/// @param file  for the error's place
/// @error no table, or one without kernel names
Result<std::vector<KernelProfile>> read_ncu(const std::string& csv, const std::string& file);

}  // namespace capstone
