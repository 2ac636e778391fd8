#pragma once
// Searches by a language model that are kept with the program, for the demos.
#include <string>
#include <vector>

#include "harness/machine/archive.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// One run, as `capstone machine show --format json` printed it.
struct RecordedRun {
  machine::RunInfo info;  ///< name, kind, problem and when it began; the rest is empty
  std::string device;     ///< what judged it
  machine::Tree tree;
};

/// @error a field is missing or has another type.
Result<RecordedRun> read_recorded_run(const Json& json);

/// The runs in examples/machine, sorted by problem and kind. Files that are no such runs are left out.
std::vector<RecordedRun> recorded_runs(const Resources& resources);

}  // namespace capstone::workflows
