#include "harness/runtime/build/run_program.h"

#include <fmt/format.h>

#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {
namespace {
constexpr std::size_t kLargestProgramFile = std::size_t{1} << 30;  // [B]
constexpr int kMaxProgramTasks = 1024;  // blocks of a cooperative launch have a thread each
}  // namespace

Result<ProgramRun> run_emulated_program(const ProgramRequest& request, const Resources& resources) {
  Sandbox sandbox = Sandbox::detect(resources);
  BuildRequest build;
  build.source = request.source;
  build.resources = &resources;
  build.sandbox = &sandbox;
  build.cuda_arch = request.cuda_arch;
  build.variant = request.variant;
  build.include_folders = request.include_folders;
  build.definitions = request.definitions;
  ProgramRun run;
  CAPSTONE_TRY(run.build, build_emulated(build));
  if (!run.build.result.ok) return run;

  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(request.source, ignored).parent_path();
  ProcessSpec spec;
  spec.argv = {run.build.program.string()};
  spec.argv.insert(spec.argv.end(), request.arguments.begin(), request.arguments.end());
  spec.env = {{"CAPSTONE_SCHEDULE", fmt::format("{}:{}", request.schedule, request.seed)}};
  spec.timeout = request.timeout;
  spec.max_memory = request.max_memory;
  spec.max_file = kLargestProgramFile;
  spec.max_tasks = kMaxProgramTasks;
  CAPSTONE_TRY(run.process,
               run_process(sandbox.confine(std::move(spec), {.read = {folder}, .write = {}, .gpu = false})));
  return run;
}

}  // namespace capstone
