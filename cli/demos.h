#pragma once
// The course's live demos: ten to sixty seconds each.
#include <vector>

#include "cli/context.h"

namespace capstone::cli {

struct Demo {
  const char* name;     ///< "bank-conflict"
  const char* session;  ///< "L3"
  const char* what;     ///< one line for the list
  const char* line;     ///< to say at the board
  Result<void> (*run)(const Context& context);
};
const std::vector<Demo>& demos();

}  // namespace capstone::cli
