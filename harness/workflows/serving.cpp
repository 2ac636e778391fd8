#include "harness/workflows/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "harness/analysis/ladder/ladder.h"
#include "harness/base/files.h"
#include "harness/base/json_number.h"
#include "harness/base/text.h"
#include "harness/judge/gpu.h"
#include "harness/model/fields.h"
#include "harness/runtime/build/cuda.h"
#include "harness/runtime/build/run_program.h"
#include "harness/workflows/records.h"

namespace capstone::workflows {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kRunLimit{120};

fs::path serving_folder(const Resources& resources) { return resources.share / "examples/demos/serving"; }

Result<fs::path> attention_kernel(const ServingRequest& request, const Workspace& workspace) {
  if (!request.attention.empty()) {
    fs::path file = request.attention.is_absolute() ? request.attention : workspace.cwd / request.attention;
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored))
      return fail("no such kernel", file.string(),
                  "a .cu for the problem paged_decode: --kernel attention=human/kernel.cu");
    return file;
  }
  CAPSTONE_TRY(const auto rungs, rungs_of(workspace.resources, "paged_decode"));
  return rungs.back().source;
}

Error does_not_build(const fs::path& kernel, const std::string& log) {
  const auto first = first_compiler_error(log);
  return Error{
      "the server does not build with this kernel: " + (first ? first->text : "see the log"),
      first && !first->file.empty() ? fmt::format("{}:{}", first->file, first->line) : kernel.string(),
      "it needs the launch() of the problem paged_decode: capstone problems show paged_decode",
      ExitCode::kGateOneFailed};
}

Error ended_early(const ProcessResult& process) {
  return Error{
      "the server ended early: " + std::string(trim(process.err.empty() ? process.out : process.err)),
      {},
      "judge the kernel first: capstone measure in a project of the problem paged_decode",
      ExitCode::kGateOneFailed};
}

Result<std::string> run_on_cpu(ProgramRequest program, const fs::path& kernel, const Resources& resources) {
  program.arguments = {"--toy"};
  CAPSTONE_TRY(ProgramRun run, run_emulated_program(program, resources));
  if (!run.build.result.ok) return tl::unexpected(does_not_build(kernel, run.build.result.log));
  if (!run.process.ok()) return tl::unexpected(ended_early(run.process));
  return run.process.out;
}

Result<std::string> run_on_gpu(const ProgramRequest& program, const fs::path& kernel,
                               const Resources& resources, const ProgressSink& progress) {
  CAPSTONE_TRY(const GpuIdentity gpu, find_gpu(resources));
  CAPSTONE_TRY(const FileLock lock, take_gpu(gpu, narration_to(progress)));
  report_step(progress, "building the server and serving the requests");
  CAPSTONE_TRY(const CudaRun run, run_cuda_program(program, gpu.arch(), resources));
  if (!run.built()) return tl::unexpected(does_not_build(kernel, run.log));
  if (!run.process.ok()) return tl::unexpected(ended_early(run.process));
  return run.process.out;
}

Json json_of(const ServingBatch& b) {
  Json phases = Json::array();
  for (const ServingPhase& phase : b.phases)
    phases.push_back({{"phase", phase.name}, {"ms", phase.ms}, {"bytes", phase.bytes}});
  return {{"batching", b.batching},
          {"seconds", b.seconds},
          {"steps", b.steps},
          {"tokens", b.tokens},
          {"rows", b.rows},
          {"answer_rows", b.answer_rows},
          {"wasted_rows", b.wasted_rows},
          {"timed_steps", b.timed_steps},
          {"phases", phases}};
}

ServingPhase phase_of(const Json& json) {
  ServingPhase phase;
  read(json, "phase", phase.name);
  read(json, "ms", phase.ms);
  read(json, "bytes", phase.bytes);
  return phase;
}

ServingBatch batch_of(const Json& json) {
  ServingBatch b;
  read(json, "batching", b.batching);
  read(json, "seconds", b.seconds);
  read(json, "steps", b.steps);
  read(json, "tokens", b.tokens);
  read(json, "rows", b.rows);
  read(json, "answer_rows", b.answer_rows);
  read(json, "wasted_rows", b.wasted_rows);
  read(json, "timed_steps", b.timed_steps);
  read_each(json, "phases", b.phases, phase_of);
  return b;
}

}  // namespace

double ServingBatch::step_ms() const {
  double ms = 0;
  for (const ServingPhase& phase : phases) ms += phase.ms;
  return timed_steps > 0 ? ms / double(timed_steps) : 0;
}

Json serving_json(const ServingRun& run) {
  Json batches = Json::array();
  for (const ServingBatch& batch : run.batches) batches.push_back(json_of(batch));
  return {
      {"demo", "serving"},
      {"tool", run.tool},
      {"time", run.time},
      {"device", run.device},
      {"kernel", run.kernel},
      {"emulated", run.emulated},
      {"model", run.model},
      {"requests", run.requests},
      {"places", run.places},
      {"attention_error", number(run.attention_error)},
      {"runs", batches}};
}

Result<ServingRun> read_serving(const Json& json) try {
  ServingRun run;
  for (auto [key, into] : std::initializer_list<std::pair<const char*, std::string*>>{{"tool", &run.tool},
                                                                                      {"time", &run.time},
                                                                                      {"device", &run.device},
                                                                                      {"kernel", &run.kernel},
                                                                                      {"model", &run.model}})
    read(json, key, *into);
  read(json, "emulated", run.emulated);
  read(json, "requests", run.requests);
  read(json, "places", run.places);
  read(json, "attention_error", run.attention_error);
  read_each(json, "runs", run.batches, batch_of);
  if (run.batches.empty()) return fail("not a run of the server: it has no `runs`");
  return run;
} catch (const WrongType& wrong) {
  return fail(std::string("not a run of the server: ") + wrong.what());
}

std::vector<ServingRun> recorded_serving(const Resources& resources) {
  auto runs = records_below(serving_folder(resources), read_serving);
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.device < b.device; });
  return runs;
}

Result<ServingRun> run_serving(const ServingRequest& request, const Workspace& workspace,
                               const ProgressSink& progress) {
  CAPSTONE_TRY(const fs::path kernel, attention_kernel(request, workspace));
  const bool emulated = choose_backend(request.backend, workspace.resources).backend == Backend::kEmulated;
  report_step(progress, emulated ? "building and serving a toy model on the CPU" : "looking for the GPU");
  ProgramRequest program;
  program.source = serving_folder(workspace.resources) / "serving.cu";
  program.more_sources = {kernel};
  program.timeout = kRunLimit;
  CAPSTONE_TRY(const std::string out, emulated ? run_on_cpu(program, kernel, workspace.resources)
                                               : run_on_gpu(program, kernel, workspace.resources, progress));
  const Json json = Json::parse(out, nullptr, false);
  if (json.is_discarded())
    return fail("the server's output is not JSON: does the kernel print?", kernel.string());
  CAPSTONE_TRY(ServingRun run, read_serving(json));
  run.time = utc_now();
  run.tool = workspace.resources.version;
  run.kernel = kernel.filename().string();
  run.emulated = emulated;
  return run;
}

}  // namespace capstone::workflows
