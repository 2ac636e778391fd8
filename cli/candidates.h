#pragma once
// A kernel as a user names it: the project's own, the model's, a file, a reference kernel; and what is found out about it on record.
#include <functional>
#include <optional>
#include <string>

#include "cli/context.h"
#include "harness/base/json.h"

namespace capstone::cli {

/// What a command looks at, and where its record goes.
struct Subject {
  Problem problem;
  std::filesystem::path source;
  std::string candidate;             ///< "human" or "llm"; empty: a file that no ledger keeps
  std::optional<Project> project;
};

/// @param what     "human", "llm", a .cu file, or a reference kernel by number or name
/// @param problem  of a file or reference kernel; empty: the project's
/// @param command  what to type where the rung belongs to another problem; {0} is the rung, {1} the problem
Result<Subject> subject_of(const Context& context, const std::string& what, const std::string& problem, const char* command);

/// A record of the ledger, without its envelope.
struct FoundRecord {
  std::string kind;
  Json body;
};
/// Appends what was found about the subject's source to its project's ledger, with the source itself. `make` is given the version under which
/// this very source was measured; empty: none yet.
/// @param digest  of the source when the command began
/// @error the source has changed since.
Result<void> keep_findings(const Context& context, const Subject& subject, const std::string& digest, const std::function<FoundRecord(const std::string&)>& make);

}  // namespace capstone::cli
