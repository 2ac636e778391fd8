#pragma once
// Searches by a language model that are kept with the program, for the demos.
#include <string>
#include <vector>

#include "harness/machine/archive.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// One run, as `capstone machine show --format json` printed it.
struct RecordedRun {
  machine::RunInfo info;  ///< what `show` prints of it; digests are empty
  std::string device;     ///< what judged it
  machine::Tree tree;
};

/// @error a field is missing or has another type.
Result<RecordedRun> read_recorded_run(const Json& json);

/// The runs in examples/machine, sorted by problem and kind. Files that are no such runs are left out.
std::vector<RecordedRun> recorded_runs(const Resources& resources);

/// The runs at a place that a user names: one file with such a run; a project, or another folder that holds
/// the archive of one; else a folder with such files. Sorted in the same way.
/// @error it is not there; it holds no run; see Archive::open()
Result<std::vector<RecordedRun>> recorded_runs_at(const std::filesystem::path& place);

}  // namespace capstone::workflows
