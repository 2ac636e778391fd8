#pragma once
// A kernel as a user names it: the project's own, the model's, a file or a reference kernel; and the record
// of what was found out about it.
#include <functional>
#include <optional>
#include <string>

#include "harness/base/json.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct ChosenKernel {
  Problem problem;
  std::filesystem::path source;
  std::string candidate;           ///< one of kCandidates; empty: a file without a ledger
  std::optional<Project> project;  ///< of a candidate

  /// The source as records name it: relative to the project, or the file's name.
  std::string shown() const;
};

/// The problem that a file solves: the named one, else the project's or the exercise's of the current folder.
/// @error none is named, and this is neither a project nor an exercise
Result<Problem> problem_of_file(const Workspace& workspace, const std::string& named);

/// @param what     "human", "llm", "together", a .cu file, or a reference kernel by number or name
/// @param problem  of a file or reference kernel; empty: the project's
/// @param command  what to type where the rung belongs to another problem; {0} is the rung, {1} the problem
Result<ChosenKernel> choose_kernel(const Workspace& workspace, const std::string& what,
                                   const std::string& problem, const char* command);

/// A record of the ledger, without its envelope.
struct FoundRecord {
  std::string kind;
  Json body;
};
/// Appends what was found about the kernel's source to its project's ledger, and keeps the source itself.
/// `make` gets the version under which this source was measured; empty: not measured yet.
/// @param digest  of the source when the command began
/// @error the source has changed since.
Result<void> keep_findings(const Workspace& workspace, const ChosenKernel& kernel, const std::string& digest,
                           const std::function<FoundRecord(const std::string&)>& make);

}  // namespace capstone::workflows
