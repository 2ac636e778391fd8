#pragma once
// Nsight Compute: the metrics to collect, and the reader of its CSV.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analysis/profile/record.h"
#include "harness/base/error.h"
#include "harness/base/resources.h"

namespace capstone {

/// ncu on PATH, next to nvcc, or where NVIDIA installs it.
std::optional<std::filesystem::path> find_ncu(const Resources& resources);

/// All metrics that the answers need. Several may mean the same on different chips.
std::vector<std::string> ncu_metrics();

/// ncu's arguments to profile one program, whose own arguments follow: CSV on stdout, clocks not locked,
/// caches cold, and only the range between the profiler's start and stop.
std::vector<std::string> ncu_arguments(const std::vector<std::string>& metrics);

/// The metrics that ncu refused because it does not know them. In that case it measures nothing at all.
std::vector<std::string> unknown_metrics(std::string_view output, const std::vector<std::string>& asked);

/// Why ncu measured nothing: its own message, or a clearer text for known cases.
std::string ncu_refusal(std::string_view output);

/// The CSV part of everything that ncu and the program printed; empty if there is none.
std::string ncu_table(std::string_view output);

/// One entry per kernel name, in the order of the first launches. Launches of one kernel are added up
/// (percentages: mean weighted by time). A metric that is missing, or that ncu calls n/a, stays empty.
/// @param file  named in errors
/// @error no table, or a table without kernel names.
Result<std::vector<KernelProfile>> read_ncu(const std::string& csv, const std::string& file);

}  // namespace capstone
