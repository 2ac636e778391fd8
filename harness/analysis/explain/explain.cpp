// Runs a kernel once on the emulator with every memory access observed.
#include "harness/analysis/explain/explain.h"

#include <fmt/format.h>

#include <future>
#include <vector>

#include "harness/analysis/explain/growth.h"
#include "harness/analysis/explain/timeline.h"
#include "harness/base/files.h"
#include "harness/correctness/inputs.h"
#include "harness/judge/gate_one.h"
#include "harness/runtime/build/build.h"
#include "harness/runtime/worker/report.h"

namespace capstone {
namespace {

// Fixed, so that the same source always gives the same counts.
constexpr std::uint64_t kInputSeed = 1, kPoisonSeed = 2;
constexpr std::chrono::milliseconds kRunLimit{60000};

Error refused(const WorkerFailure& failure) {
  if (failure.kind == WorkerFailure::Kind::kInterrupted)
    return {"interrupted", {}, {}, ExitCode::kInterrupted};
  if (failure.kind == WorkerFailure::Kind::kTimedOut || verdict_of(failure) == GateOne::kTimedOut)
    return {"the observed kernel did not end: " + failure.what, failure.where,
            "observed kernels run slowly: choose a smaller --size; if that does not help, look for an "
            "endless loop",
            ExitCode::kGateOneFailed};
  const bool elsewhere = verdict_of(failure) == GateOne::kNotJudgeable;
  return {"the kernel cannot be explained: " + failure.what, failure.where, failure.hint,
          elsewhere ? ExitCode::kEnvironment : ExitCode::kGateOneFailed};
}

}  // namespace

Result<fs::path> build_observed(const ExplainRequest& request, const Resources& resources,
                                const Sandbox& sandbox) {
  BuildRequest build{request.problem, request.source, &resources, &sandbox};
  build.variant = BuildVariant::kInstrumented;
  CAPSTONE_TRY(EmulatedArtifact artifact, build_emulated(build));
  if (!artifact.not_judgeable.empty())
    return fail("the CPU cannot run this kernel", artifact.not_judgeable, "measure it with ncu on a GPU",
                ExitCode::kEnvironment);
  if (!artifact.result.ok) {
    const auto& error = artifact.result.first_error;
    return fail("it does not compile: " + (error ? error->text : std::string("no error line")),
                error ? fmt::format("{}:{}", error->file, error->line) : std::string(),
                "fix the compiler's first error", ExitCode::kGateOneFailed);
  }
  return artifact.program;
}

Result<Json> observe_run(const fs::path& program, const ExplainRequest& request, const Sandbox& sandbox,
                         bool waits) {
  const Problem& problem = *request.problem;
  auto worker = Worker::start_runner({program.string()}, sandbox, WorkerLimits{}, false);
  if (!worker) return fail(refused(worker.error()));
  CAPSTONE_TRY(Json question, workspace_arguments(problem, request.sizes));
  auto bytes = ask_private_bytes(**worker, problem, question);
  if (!bytes) return fail(refused(bytes.error()));
  // The judge's inputs, without expected values, because nothing is compared.
  const CasePlan plan{"explain", request.sizes, kInputSeed, Battery::kPlain};
  CAPSTONE_TRY(PreparedCase prepared, prepare_inputs(problem, plan, bytes->workspace, bytes->prepared));
  poison_image(problem, prepared, prepared.image, kPoisonSeed);
  MemfdArena arena;
  CAPSTONE_TRY(int descriptor, arena.resize(prepared.layout.bytes));
  if (auto mapped = (*worker)->ask({{"op", "arena"}, {"bytes", prepared.layout.bytes}},
                                   std::chrono::seconds(20), descriptor);
      !mapped)
    return fail(refused(mapped.error()));
  CAPSTONE_TRY(Json arguments, call_arguments(problem, prepared.layout, request.sizes));
  Json run{{"op", "run"},
           {"args", arguments},
           {"seed", 1},
           {"schedule", "forward"},
           {"limit_ms", kRunLimit.count()}};
  run["extents"] = call_extents(problem, prepared.layout);
  const GateOneSetup setup{&problem,
                           nullptr,
                           &arena,
                           {"forward"},
                           {},
                           kRunLimit,
                           patience_with_emulator(kRunLimit),
                           [](const std::string&) {},
                           {}};
  CAPSTONE_TRY(auto preparation, run_prepare(setup, **worker, prepared, run, prepared.image));
  if (!preparation) return fail(refused(preparation.error()));
  CAPSTONE_CHECK(arena.load(prepared.image));
  CAPSTONE_CHECK(poison_workspace(arena, prepared.layout, kPoisonSeed));
  run["workspace"] = prepared.layout.workspace_bytes ? Json(prepared.layout.workspace_offset) : Json(nullptr);
  if (problem.prepare) run["prepared"] = prepared.layout.prepared_offset;
  run["observe"] = true;
  if (waits) run["waits"] = true;
  auto answer = (*worker)->ask(run, setup.patience);
  if (!answer) return fail(refused(answer.error()));
  return load_report(*answer);
}

Result<Explanation> explain_run(const fs::path& program, const ExplainRequest& request,
                                const Sandbox& sandbox) {
  CAPSTONE_TRY(const Json report, observe_run(program, request, sandbox, false));
  return interpret(report, request);
}

namespace {

// A kernel that cannot be run at the larger sizes keeps the shares of the observed one.
Result<void> learn_growth(Explanation& e, const fs::path& program, const ExplainRequest& request,
                          const Sizes& from, const Sandbox& sandbox, const Narration& say) {
  CAPSTONE_TRY(const auto plan, plan_growth(*request.problem, from));
  if (!plan) return {};
  // At once: a run is one process on one core, and the last takes as long as the others together.
  const auto counted = [&](const Sizes& sizes) {
    ExplainRequest other = request;
    other.device.reset();
    other.sizes = sizes;
    say(fmt::format("running at {}, to see how the counts grow", to_string(sizes)));
    return std::async(std::launch::async,
                      [&program, &sandbox, other] { return explain_run(program, other, sandbox); });
  };
  std::vector<std::future<Result<Explanation>>> started;
  if (from != request.sizes) started.push_back(counted(from));
  for (const GrowthPlan::Step& step : plan->steps) started.push_back(counted(step.sizes));
  started.push_back(counted(plan->all));
  std::vector<Explanation> seen;  // in the order of `started`
  if (from == request.sizes) seen.push_back(e);
  for (auto& run : started) {
    auto one = run.get();
    if (!one && one.error().code == ExitCode::kInterrupted) return fail(one.error());
    if (!one) return {};
    seen.push_back(std::move(*one));
  }
  const GrowthRuns runs{seen.front(), {seen.begin() + 1, seen.end() - 1}, seen.back()};
  if (const Sizes fuller = full_tiles(*plan, runs); fuller != from)
    return learn_growth(e, program, request, fuller, sandbox, say);
  extend_to_measured(e, *request.problem, *plan, runs);
  return {};
}

}  // namespace

Result<Explanation> explain(const ExplainRequest& request, const Resources& resources, const Narration& say) {
  say("building with every access observed");
  const Sandbox sandbox = Sandbox::detect(resources);
  CAPSTONE_TRY(fs::path program, build_observed(request, resources, sandbox));
  say(fmt::format("running at {}", to_string(request.sizes)));
  CAPSTONE_TRY(Explanation e, explain_run(program, request, sandbox));
  if (!request.at_measured) return e;
  CAPSTONE_CHECK(learn_growth(e, program, request, request.sizes, sandbox, say));
  if (request.device) {
    CAPSTONE_TRY(e.floor, modelled_floor(e, *request.problem, *request.device));
  }
  return e;
}

}  // namespace capstone
