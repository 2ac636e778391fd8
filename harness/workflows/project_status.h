#pragma once
// `status`: where a project stands, what is missing, and the next command.
#include <string>
#include <vector>

#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// One step of a project: "init", "predict", "measure", "llm", "report", "check", "submit".
struct ProjectStep {
  enum class State { kDone, kNext, kOpen };
  std::string name;
  State state = State::kOpen;
  std::string detail;  ///< what is there, or what is missing
};

struct ProjectStatus {
  std::string problem, title;
  std::filesystem::path root;
  std::vector<ProjectStep> steps;  ///< in their order; exactly one is kNext, or none when all is done
  std::string next;                ///< a command that can be pasted
  std::string why;                 ///< what it is good for, one line
  int hints = 0, hints_taken = 0;  ///< of the problem; 0: it has none
};

/// Looks at the project's files and its ledger; nothing is built and nothing is written.
/// @error no project here
Result<ProjectStatus> project_status(const Workspace& workspace);

/// Whether the report is missing, or older than the worklog or the ledger, by the files' times. Renders
/// nothing; state_of_report() compares the texts.
bool report_is_due(const Project& project);

}  // namespace capstone::workflows
