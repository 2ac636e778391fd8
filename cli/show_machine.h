#pragma once
// Runs of the machine as text for a terminal.
#include <string>

#include "cli/terminal.h"
#include "harness/machine/summary.h"
#include "harness/workflows/machine_search.h"

namespace capstone::cli {

/// One line on a node that has changed: "0007  WRONG  only the last column is wrong".
std::string node_line(const machine::Node& node, const Terminal& terminal);
/// What a run has come to, in a few lines and two tables.
std::string run_text(const workflows::MachineRun& run, const Terminal& terminal);
/// The classes of failures with the first node of each; empty: nothing failed.
std::string failures_text(const machine::Summary& summary, const Terminal& terminal);
/// The tree: ideas, kernels below them, verdicts and scores.
std::string tree_text(const workflows::MachineRun& run, const Terminal& terminal);
/// "12 of 100 judged: 5 correct, 2 faster"
std::string progress_text(const machine::Tree& tree, const machine::RunInfo& info);
Json json_of(const workflows::MachineRun& run);

}  // namespace capstone::cli
