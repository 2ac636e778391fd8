#pragma once
// The judge's options as options of a command.
#include <string_view>
#include <vector>

#include "harness/judge/options.h"

namespace CLI {
class App;
}

namespace capstone::cli {

/// Adds the options of judge_options(). @param keys  only these; empty: all
void add_judge_options(CLI::App& command, JudgeOptions& options,
                       const std::vector<std::string_view>& keys = {});
/// Of these, what gate one alone needs.
void add_gate_one_options(CLI::App& command, JudgeOptions& options);

/// `--memory GB`: how much GPU memory an imported problem may take.
void add_memory_option(CLI::App& command, double& gigabytes);

/// --cohort, default graded/.
void add_cohort_option(CLI::App& command, std::string& cohort);

}  // namespace capstone::cli
