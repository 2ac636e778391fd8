#include "harness/workflows/recorded_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "harness/model/fields.h"
#include "harness/workflows/machine_search.h"
#include "harness/workflows/records.h"

namespace capstone::workflows {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArchiveFile = "archive.sqlite";
constexpr const char* kArchiveOfProject = ".capstone/machine";

void sort_runs(std::vector<RecordedRun>& runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const RecordedRun& a, const RecordedRun& b) {
    return std::tie(a.info.problem, a.info.kind) < std::tie(b.info.problem, b.info.kind);
  });
}

Result<std::vector<RecordedRun>> runs_of_archive(const fs::path& folder) {
  CAPSTONE_TRY(const machine::Archive archive, machine::Archive::open(folder));
  CAPSTONE_TRY(const std::vector<machine::RunInfo> infos, archive.runs());
  std::vector<RecordedRun> runs;
  for (const machine::RunInfo& info : infos) {
    RecordedRun run{info, {}, {}};
    CAPSTONE_TRY(run.tree, archive.tree(info));
    CAPSTONE_TRY(const Json environment, environment_of(run.tree, archive));
    try {
      read(environment, "device", run.device);
    } catch (const WrongType& wrong) {
      return fail(fmt::format("run {} of the machine's archive: {}", info.name, wrong.what()));
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

Result<RecordedRun> read_recorded_run(const Json& json) try {
  RecordedRun run;
  read(json, "run", run.info.name);
  read(json, "search", run.info.kind);
  read(json, "problem", run.info.problem);
  read(json, "started", run.info.started);
  read(json, "provider", run.info.provider);
  read(json, "with_statement", run.info.with_statement);
  read(json, "ended", run.info.ended);
  read(json, "minutes", run.info.minutes);
  if (const Json* settings = field(json, "settings")) run.info.settings = *settings;
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
  sort_runs(runs);
  return runs;
}

Result<std::vector<RecordedRun>> recorded_runs_at(const fs::path& place) {
  std::error_code ignored;
  if (!fs::exists(place, ignored))
    return fail("no such file or folder", place.string(),
                "name a project, a record, or for the quadrant the folder that `capstone grade` made");
  std::vector<RecordedRun> runs;
  const fs::path folder = place.filename() == kArchiveFile ? place.parent_path() : place;
  if (fs::exists(folder / kArchiveFile, ignored)) {
    CAPSTONE_TRY(runs, runs_of_archive(folder));
  } else if (fs::exists(folder / kArchiveOfProject / kArchiveFile, ignored)) {
    CAPSTONE_TRY(runs, runs_of_archive(folder / kArchiveOfProject));
  } else if (fs::is_directory(place, ignored)) {
    runs = records_below(place, read_recorded_run);
  } else {
    CAPSTONE_TRY(const std::string text, read_file(place, kLargestRecord));
    auto run = read_recorded_run(Json::parse(text, nullptr, false));
    if (!run) return fail(run.error().what, place.string(), "capstone machine show --format json prints one");
    runs.push_back(*std::move(run));
  }
  if (runs.empty())
    return fail("no run of the machine is here", place.string(),
                "name a project, or a file that `capstone machine show --format json` printed");
  sort_runs(runs);
  return runs;
}

}  // namespace capstone::workflows
