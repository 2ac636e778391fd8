#include "harness/workflows/first_launches.h"

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/gpu.h"
#include "harness/model/fields.h"
#include "harness/runtime/build/run_program.h"
#include "harness/workflows/records.h"

namespace capstone::workflows {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const Resources& resources) { return resources.share / "examples/demos/warmup"; }

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

FirstLaunches::Launch FirstLaunches::steady() const {
  std::vector<double> host, event;
  for (std::int64_t i = pause_after / 2; i < pause_after; ++i) {
    host.push_back(launches[static_cast<std::size_t>(i)].host_us);
    event.push_back(launches[static_cast<std::size_t>(i)].event_us);
  }
  return {0, median_of(host), median_of(event)};
}

Json first_launches_json(const FirstLaunches& run) {
  Json launches = Json::array();
  for (const auto& launch : run.launches) launches.push_back({launch.at_ms, launch.host_us, launch.event_us});
  return {{"demo", "warmup"},
          {"tool", run.tool},
          {"time", run.time},
          {"device", run.device},
          {"preparation_us", run.preparation_us},
          {"pause_after", run.pause_after},
          {"launches", launches}};
}

Result<FirstLaunches> read_first_launches(const Json& json) try {
  FirstLaunches run;
  read(json, "tool", run.tool);
  read(json, "time", run.time);
  read(json, "device", run.device);
  read(json, "preparation_us", run.preparation_us);
  read(json, "pause_after", run.pause_after);
  std::vector<std::vector<double>> rows;
  read(json, "launches", rows);
  for (const auto& row : rows)
    if (row.size() == 3) run.launches.push_back({row[0], row[1], row[2]});
  if (run.launches.size() != rows.size() || run.pause_after < 2 ||
      run.launches.size() <= static_cast<std::size_t>(run.pause_after))
    return fail("not a run of first launches: each has three numbers, and some come after the pause");
  return run;
} catch (const WrongType& wrong) {
  return fail(std::string("not a run of first launches: ") + wrong.what());
}

std::vector<FirstLaunches> recorded_first_launches(const Resources& resources) {
  auto runs = records_below(folder_of(resources), read_first_launches);
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.device < b.device; });
  return runs;
}

Result<FirstLaunches> run_first_launches(const Workspace& workspace, const ProgressSink& progress) {
  CAPSTONE_TRY(const GpuIdentity gpu, find_gpu(workspace.resources));
  CAPSTONE_TRY(const FileLock lock, take_gpu(gpu, narration_to(progress)));
  report_step(progress, "a process launches its first kernels");
  ProgramRequest program;
  program.source = folder_of(workspace.resources) / "first_launches.cu";
  CAPSTONE_TRY(const CudaRun done, run_cuda_program(program, gpu.arch(), workspace.resources));
  if (!done.built())
    return fail("the demo's program does not build", program.source.string(), done.log,
                ExitCode::kEnvironment);
  if (!done.process.ok())
    return fail("the demo's program ended early: " + std::string(trim(done.process.err)),
                program.source.string(), {}, ExitCode::kEnvironment);
  CAPSTONE_TRY(FirstLaunches run, read_first_launches(Json::parse(done.process.out, nullptr, false)));
  run.time = utc_now();
  run.tool = workspace.resources.version;
  return run;
}

}  // namespace capstone::workflows
