#pragma once
// The course's live demos: ten to sixty seconds each.
#include <string>
#include <vector>

#include "cli/context.h"

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

}  // namespace capstone::cli
