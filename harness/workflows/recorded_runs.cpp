#include "harness/workflows/recorded_runs.h"

#include <algorithm>
#include <tuple>

#include "harness/base/files.h"
#include "harness/model/fields.h"

namespace capstone::workflows {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestRecord = std::size_t{8} << 20;  // [B]

}  // namespace

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
  std::vector<RecordedRun> runs;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(resources.share / "examples/machine", ignored)) {
    if (entry.path().extension() != ".json") continue;
    const auto text = read_file(entry.path(), kLargestRecord);
    const Json json = text ? Json::parse(*text, nullptr, false) : Json();
    if (auto run = read_recorded_run(json)) runs.push_back(*std::move(run));
  }
  std::sort(runs.begin(), runs.end(), [](const RecordedRun& a, const RecordedRun& b) {
    return std::tie(a.info.problem, a.info.kind) < std::tie(b.info.problem, b.info.kind);
  });
  return runs;
}

}  // namespace capstone::workflows
