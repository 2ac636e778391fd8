#pragma once
// `ladder`: all rungs of a problem in one interleaved run, or as they were recorded on another machine.
#include <string>
#include <vector>

#include "harness/analysis/ladder/ladder.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct LadderRun {
  std::string problem;  ///< whose ladder; or
  std::string session;  ///< all ladders of a course session: "L4". Rungs of later sessions are left out
  std::vector<std::string> only;  ///< these rungs, by number, name or path; empty: all
  std::string size;               ///< "rows=8192,cols=8192"; empty: the problem's
  bool published = false;         ///< at every size under `published` of the problem, instead of one
  Backend backend = Backend::kAuto;
  std::string python = "auto";  ///< of a ladder of languages: JudgeOptions::python and python_path
  std::string python_path;
  double budget = 2;         ///< seconds of timing, a rung
  std::string record;        ///< a results file that keeps the ladders; empty: none
  bool sustained = false;    ///< also launches back to back on a warm chip
  bool one_size = false;     ///< recorded: one ladder for each problem, at the problem's own size if recorded
  bool needs_times = false;  ///< @error on the emulated backend
};

/// The problems that a run is about. @error neither problem nor session; no ladder in that session.
Result<std::vector<std::string>> ladder_problems(const LadderRun& run, const Workspace& workspace);

/// Judges and times the rungs; without a GPU they are checked and counted. Recorded ladders are timed by two
/// sets of processes.
Result<std::vector<Ladder>> run_ladders(const LadderRun& run, const Workspace& workspace,
                                        const ProgressSink& progress);

/// Builds and checks all rungs without timing them, so that a later run finds the builds.
Result<std::vector<Ladder>> rehearse_ladders(const LadderRun& run, const Workspace& workspace,
                                             const ProgressSink& progress);

/// The ladders that were recorded on a device ("h200") or in a file.
/// @error none of these; the hint lists what was recorded.
Result<std::vector<Ladder>> recorded_ladders(const std::string& recorded, const LadderRun& run,
                                             const Workspace& workspace);

/// Whether a rung failed gate one; one that this machine cannot judge did not.
bool any_failed(const Ladder& ladder);
/// Whether every rung passed gate one.
bool all_passed(const Ladder& ladder);

/// The ladders as a page. @return its path
Result<std::filesystem::path> write_ladder_page(const std::vector<Ladder>& ladders, bool recorded,
                                                const std::string& file, const Workspace& workspace);

}  // namespace capstone::workflows
