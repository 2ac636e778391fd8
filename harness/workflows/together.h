#pragma once
// `together`: begins the kernel that student, model and profiler make with each other, and tells who changed
// what in it.
#include <string>
#include <vector>

#include "harness/project/together.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct BegunTogether {
  std::filesystem::path file;  ///< together/kernel.cu
  std::string from;            ///< "v3", "attempt-2", or "human/kernel.cu" where that source has no version
};

/// Copies a kernel of the project in the current folder to together/kernel.cu (or .py) and records from
/// where.
/// @param from  "human" (the kernel as it is), "llm" (the newest attempt), or a measured version
/// @error together/ has a kernel already; there is no such kernel.
Result<BegunTogether> begin_together(const std::string& from, const Workspace& workspace);

/// The versions of the project in the current folder, with the view that they point into.
struct TogetherHistory {
  LedgerView ledger;
  std::string begun_from;
  std::vector<TogetherStep> steps;
};
Result<TogetherHistory> together_here(const Workspace& workspace);

}  // namespace capstone::workflows
