#pragma once
// How much GPU memory an imported problem may take.
#include "cli/context.h"
#include "harness/judge/judge.h"

namespace capstone::cli {

/// `--memory GB`.
void add_memory_option(CLI::App& command, double& gigabytes);
/// [B] `gigabytes` where given; else what the GPU here has; else 8 GB, a student's card.
Result<double> memory_for(double gigabytes, Backend backend, const Resources& resources);

}  // namespace capstone::cli
