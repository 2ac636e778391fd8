#pragma once
// `machine`: searches by a language model, with every kernel judged.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/machine/run.h"
#include "harness/machine/summary.h"
#include "harness/workflows/model_attempt.h"

namespace capstone::workflows {

struct MachineRequest {
  std::string kind;        ///< "sample", "refine" or "evolve"
  Json settings;           ///< of that search, see harness/machine/search.h
  std::string run;         ///< a run's name; empty: the newest one with these settings, or a new one
  bool begin_new = false;  ///< begin a new one although there is one with these settings
  bool with_statement = false;
  std::string gpu;  ///< see standard_prompt()
  machine::Provider* provider = nullptr;
  machine::Budget budget;
  int askers = 4, judges = 0;  ///< at a time; judges 0: one on a GPU, else as many as there are cores
  JudgeOptions judge;
};

/// A run with all its nodes.
struct MachineRun {
  machine::RunInfo info;
  machine::Tree tree;
};
struct MachineOutcome {
  MachineRun run;
  std::string ended;  ///< why
};

struct MachineEvents {
  std::function<void(const MachineRun&)> begun;  ///< begun, or taken up again
  std::function<void(const machine::Tree&, const machine::Node&)> changed;
};

/// Searches in the project of the current folder, from where the run was left. What the run came to is
/// recorded in the ledger each time it ends by itself.
/// @error the machine's archive is in use by another command; the problem was changed since the run began;
/// see
///   machine::run()
Result<MachineOutcome> search_by_machine(const MachineRequest& request, const Workspace& workspace,
                                         const ProgressSink& progress, const MachineEvents& events);

/// The archive of the project in the current folder. @error no project
Result<machine::Archive> machine_archive(const Workspace& workspace);
/// A run by name; an empty name is the newest one. @error there is none
Result<MachineRun> machine_run(const std::string& name, const Workspace& workspace);

/// What was asked at a node, what came back, and what the judge said, as text.
struct NodeTexts {
  std::string prompt, reply, code, verdict;
};
Result<NodeTexts> texts_of(const machine::Node& node, const Workspace& workspace);

/// The device, driver and version of the tool with which the last judged kernel was judged; empty: none was.
Result<Json> environment_of(const MachineRun& run, const Workspace& workspace);
Result<Json> environment_of(const machine::Tree& tree, const machine::Archive& archive);

/// Writes a run as a self-contained page. @return where it is
Result<std::filesystem::path> write_machine_page(const MachineRun& run, const std::string& out,
                                                 const Workspace& workspace);

/// Writes the conversations of all runs as JSON lines, one for each kernel that was judged: `messages` in the
/// chat form and a `reward`. Names and paths of the user are masked. @return how many lines
Result<int> write_machine_traces(const std::string& out, const Workspace& workspace);

/// Files a node's prompt and reply as the model's next attempt and judges its kernel again.
/// @error the node is not answered; see add_reply()
Result<AddReplyOutcome> take_node(const MachineRun& run, const machine::Node& node, const JudgeOptions& judge,
                                  const Workspace& workspace, const ProgressSink& progress);

}  // namespace capstone::workflows
