#pragma once
// Searches by a language model that are kept with the program, for the demos.
#include <string>
#include <vector>

#include "harness/machine/archive.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// One run, as `capstone machine show --format json` printed it.
struct RecordedRun {
  std::string name;        ///< of its file: "sample-h100"
  machine::RunInfo info;   ///< kind, problem and when it began; the rest is empty
  std::string device;      ///< what judged it; empty: a CPU
  machine::Tree tree;
  bool timed() const { return !device.empty(); }
};

/// @error a field is missing or has another type.
Result<RecordedRun> read_recorded_run(const std::string& name, const Json& json);

/// The runs in examples/machine/PROBLEM, sorted by problem and name. Files that are no such runs are left out.
std::vector<RecordedRun> recorded_runs(const Resources& resources);

}  // namespace capstone::workflows
