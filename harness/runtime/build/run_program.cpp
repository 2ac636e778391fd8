#include "harness/runtime/build/run_program.h"

#include <fmt/format.h>

#include "harness/emulator/runtime/time_limit.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {
namespace {
constexpr std::size_t kLargestProgramFile = std::size_t{1} << 30;  // [B]
constexpr std::chrono::seconds kPatience{10};                      // beyond the time limit, for its message
constexpr int kMaxProgramTasks = 1024;  // blocks of a cooperative launch have a thread each
}  // namespace

Result<ProgramRun> run_emulated_program(const ProgramRequest& request, const Resources& resources) {
  Sandbox sandbox = Sandbox::detect(resources);
  BuildRequest build;
  build.source = request.source;
  build.more_sources = request.more_sources;
  build.resources = &resources;
  build.sandbox = &sandbox;
  build.cuda_arch = request.cuda_arch;
  build.variant = request.variant;
  build.include_folders = request.include_folders;
  build.definitions = request.definitions;
  build.standard = request.standard;
  build.openmp = request.openmp;
  ProgramRun run;
  CAPSTONE_TRY(run.build, build_emulated(build));
  if (!run.build.result.ok) return run;

  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(request.source, ignored).parent_path();
  ProcessSpec spec;
  spec.argv = {run.build.program.string()};
  spec.argv.insert(spec.argv.end(), request.arguments.begin(), request.arguments.end());
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(request.timeout);
  spec.env = {{"CAPSTONE_SCHEDULE", fmt::format("{}:{}", request.schedule, request.seed)},
              {"CAPSTONE_TIME_LIMIT", std::to_string(limit.count())}};
  // The program's own watch says where it was. Where it cannot, it is ended from here.
  spec.timeout = capstone_emu::kMostWaits * request.timeout + kPatience;
  spec.max_memory = request.max_memory;
  spec.max_file = kLargestProgramFile;
  spec.max_tasks = kMaxProgramTasks;
  CAPSTONE_TRY(run.process,
               run_process(sandbox.confine(std::move(spec), {.read = {folder}, .write = {}, .gpu = false})));
  return run;
}

}  // namespace capstone
