#include "harness/workflows/recorded_runs.h"

#include <algorithm>
#include <tuple>

#include "harness/model/fields.h"
#include "harness/workflows/records.h"

namespace capstone::workflows {
Result<RecordedRun> read_recorded_run(const Json& json) try {
  RecordedRun run;
  read(json, "run", run.info.name);
  read(json, "search", run.info.kind);
  read(json, "problem", run.info.problem);
  read(json, "started", run.info.started);
  if (const Json* environment = field(json, "environment")) read(*environment, "device", run.device);
  const Json* nodes = field(json, "nodes");
  if (!nodes || !nodes->is_array() || nodes->empty() || run.info.kind.empty() || run.info.problem.empty() ||
      run.device.empty())
    return fail("not a run of the machine: it lacks a search, a problem, a device or nodes");
  run.tree = nodes->get<machine::Tree>();
  return run;
} catch (const WrongType& wrong) {
  return fail(std::string("not a run of the machine: ") + wrong.what());
}

std::vector<RecordedRun> recorded_runs(const Resources& resources) {
  auto runs = records_below(resources.share / "examples/machine", read_recorded_run);
  std::sort(runs.begin(), runs.end(), [](const RecordedRun& a, const RecordedRun& b) {
    return std::tie(a.info.problem, a.info.kind) < std::tie(b.info.problem, b.info.kind);
  });
  return runs;
}

}  // namespace capstone::workflows
