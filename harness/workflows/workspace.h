#pragma once
// What every workflow is given. A workflow does the work of one command: it takes a request and a Workspace,
// reports its progress to a sink, and returns an outcome. It never prints, never exits and never reads the
// environment.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/resources.h"
#include "harness/judge/judge.h"
#include "harness/project/ledger/judge_key.h"
#include "harness/project/project.h"

namespace capstone::workflows {

/// Where files are, and who the user is. The program that calls a workflow fills it in.
struct Workspace {
  Resources resources;
  std::filesystem::path cwd;      ///< relative paths and the project are looked up from here
  std::filesystem::path state;    ///< per-user state: the id of this machine's ledger chains, the judge's key
  std::filesystem::path program;  ///< the capstone binary; batches and Slurm jobs start it
  std::string home, user, host;   ///< masked in what is handed in
};

/// One message of a workflow that runs.
struct Progress {
  enum class Kind {
    kStep,  ///< what is being done now; replaces the step before
    kNote,  ///< something that the user should read; stays
  };
  Kind kind = Kind::kStep;
  std::string text;
  std::optional<StageEvent> stage = {};  ///< of a step that the judge takes
};
/// Called from the thread that runs the workflow. May be empty.
using ProgressSink = std::function<void(const Progress&)>;

void report_step(const ProgressSink& progress, std::string text);
void report_note(const ProgressSink& progress, std::string text);
/// The judge's narration as steps, each with `prefix` in front.
Narration narration_to(const ProgressSink& progress, std::string prefix = {});

/// The project in the current folder or above it. @error none there.
Result<Project> project_here(const Workspace& workspace);
/// As project_here(). @error also where the pinned problem was changed: see require_pinned_problem().
Result<Project> pinned_project_here(const Workspace& workspace);
/// Only one command at a time works in a project. @error another one does.
Result<FileLock> lock_project(const Project& project);
/// The id of this machine's ledger chains.
Result<std::string> chain_id(const Workspace& workspace);
/// The key with which this installation signs its judgements.
Result<JudgeKey> judge_key(const Workspace& workspace);

}  // namespace capstone::workflows
