#pragma once
// The judge's options as options of a command.
#include "harness/judge/options.h"

namespace CLI {
class App;
}

namespace capstone::cli {

/// Adds every option of judge_options().
void add_judge_options(CLI::App& command, JudgeOptions& options);

/// `--memory GB`: how much GPU memory an imported problem may take.
void add_memory_option(CLI::App& command, double& gigabytes);

/// --cohort, default graded/.
void add_cohort_option(CLI::App& command, std::string& cohort);

}  // namespace capstone::cli
