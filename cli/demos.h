#pragma once
// The course's live demos: ten to sixty seconds each.
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "harness/analysis/ladder/ladder.h"
#include "harness/model/explanation.h"

namespace capstone::cli {

/// What a user may give a demo.
struct DemoInputs {
  std::string kernel;  ///< "attention=human/kernel.cu": in place of the demo's own
  std::string record;  ///< the file for what was measured
  std::string nccl;    ///< libnccl.so.2, in place of the one that is found
  // of what was recorded
  std::string from;     ///< a record or a project, in place of the recorded ones; empty: those
  std::string problem;  ///< this one alone; empty: all
  int tries = 0;        ///< the first ones alone; 0: all
  std::string tiles;    ///< "1,3;2,5": of one row; empty: the demo's own
  std::string lengths;  ///< "12,3,30,7" [tokens]: of the requests; empty: recorded ones
  bool names = false;   ///< people in place of pseudonyms
  double chance = 0;    ///< the p of one try, 0 … 1, in place of a recorded search; 0: none was given
  std::vector<double> times = {};  ///< [ms] of a baseline and of candidates, in place of recorded ones
};

struct Demo {
  const char* name;     ///< "bank-conflict"
  const char* session;  ///< "L3"
  const char* what;     ///< one line for the list
  const char* line;     ///< to say at the board
  Result<void> (*run)(const Context& context, const DemoInputs& inputs);
  std::vector<std::string> takes = {};  ///< "--kernel": the options that it knows what to do with
};
const std::vector<Demo>& demos();

/// A paragraph or a table of a demo, folded to the terminal.
void tell(const Context& context, const std::string& text);

/// The counts of some rungs at these sizes, by the emulator, in the order of their names. What is counted at
/// the moment is shown: "2 of 3: 02_fp32_tiles: running at …".
/// @param at_measured  also what they become at the problem's measured size, by a rule that larger runs teach
/// @error no such rung; see explain().
Result<std::vector<Explanation>> counted(const Context& context, const std::string& id,
                                         const std::vector<std::string>& rungs, const Sizes& sizes,
                                         bool at_measured = false);
/// Where `--record FILE` writes what a GPU measured. @error no GPU here; see output_path().
Result<std::filesystem::path> path_of_record(const Context& context, const std::string& file);
/// The ladder of the problem at these sizes on the first device that timed its lowest rung and the library;
/// empty: none. @error see recorded_everywhere().
Result<std::optional<Ladder>> recorded_ladder(const Resources& resources, const std::string& id,
                                              const Sizes& sizes);
/// "as recorded on an NVIDIA H200, 2026-11-22"
std::string as_recorded(const Ladder& ladder);

}  // namespace capstone::cli
