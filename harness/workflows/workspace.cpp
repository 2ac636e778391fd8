#include "harness/workflows/workspace.h"

#include <utility>

#include "harness/project/ledger/machine.h"

namespace capstone::workflows {

void report_step(const ProgressSink& progress, std::string text) {
  if (progress) progress({Progress::Kind::kStep, std::move(text)});
}

void report_note(const ProgressSink& progress, std::string text) {
  if (progress) progress({Progress::Kind::kNote, std::move(text)});
}

Narration narration_to(const ProgressSink& progress, std::string prefix) {
  return [progress, prefix = std::move(prefix)](const StageEvent& event) {
    if (progress) progress({Progress::Kind::kStep, prefix + event.line(), event});
  };
}

Result<Project> project_here(const Workspace& workspace) { return open_project(workspace.cwd); }

Result<Project> pinned_project_here(const Workspace& workspace) {
  CAPSTONE_TRY(Project project, open_project(workspace.cwd));
  CAPSTONE_CHECK(require_pinned_problem(project));
  return project;
}

Result<FileLock> lock_project(const Project& project) {
  return FileLock::acquire(project.root / ".capstone" / "working.lock", false);
}

Result<std::string> chain_id(const Workspace& workspace) { return machine_id(workspace.state); }

Result<JudgeKey> judge_key(const Workspace& workspace) { return JudgeKey::of(workspace.state); }

}  // namespace capstone::workflows
