// Judging on the CPU: gate one for real under four schedules; gate two is never judged.
#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "harness/base/scratch_folder.h"
#include "harness/base/text.h"
#include "harness/runtime/build/build.h"
#include "harness/judge/backends.h"
#include "harness/judge/gate_one.h"
#include "harness/judge/python_entries.h"
#include "harness/judge/reference_oracle.h"
#include "harness/judge/sanitize.h"
#include "harness/timing/statistics.h"

namespace capstone {
namespace {

constexpr int kTimedRuns = 7;

// CPU times of the emulated kernel at the `emulate` size. Shown as emulated; they count for nothing.
Result<void> time_emulated(const Problem& problem, const GateOneSetup& setup, Measurement& into) {
  auto worker = setup.start_worker();
  if (!worker) return {};
  const Sizes& sizes = problem.emulate;
  CAPSTONE_TRY(Json question, workspace_arguments(problem, sizes));
  auto bytes = ask_private_bytes(**worker, problem, question);
  if (!bytes) return {};
  CasePlan plan{"emulate", sizes, fresh_seed(), Battery::kPlain};
  CAPSTONE_TRY(PreparedCase prepared,
               prepare_case(problem, plan, *setup.oracle, bytes->workspace, bytes->prepared));
  CAPSTONE_TRY(int arena, setup.arena->resize(prepared.layout.bytes));
  if (!(*worker)->ask({{"op", "arena"}, {"bytes", prepared.layout.bytes}}, std::chrono::seconds(20), arena)) return {};
  CAPSTONE_TRY(Json args, call_arguments(problem, prepared.layout, sizes));
  Json request{{"op", "run"}, {"args", args}, {"schedule", "forward"}, {"seed", 1}};
  CAPSTONE_TRY(auto preparation, run_prepare(setup, **worker, prepared, request, prepared.image));
  if (!preparation || !preparation->passed) return {};
  request["workspace"] = prepared.layout.workspace_bytes ? Json(prepared.layout.workspace_offset) : Json(nullptr);
  if (problem.prepare) request["prepared"] = prepared.layout.prepared_offset;
  std::vector<double> samples;
  for (int i = 0; i <= kTimedRuns; ++i) {
    CAPSTONE_CHECK(setup.arena->load(prepared.image));
    auto answer = (*worker)->ask(request, setup.run_timeout);
    if (!answer) {
      if (answer.error().kind == WorkerFailure::Kind::kInterrupted)
        return fail("interrupted", {}, {}, ExitCode::kInterrupted);
      return {};
    }
    auto ms = answer->message.find("ms");
    if (i > 0 && ms != answer->message.end() && ms->is_number()) samples.push_back(ms->get<double>());
  }
  if (samples.size() < 5) return {};
  Measured measured;
  measured.clock = "emulated (CPU time; counts for nothing)";
  measured.sizes = sizes_json(sizes);
  CAPSTONE_TRY(Cost cost, cost_at(problem, sizes));
  measured.flops = cost.flops;
  measured.bytes = cost.bytes;
  Arm arm;
  arm.name = into.candidate;
  arm.label = "emulated on this CPU";
  arm.median_ms = median_interval(samples);
  arm.samples_ms = {samples};
  measured.arms.push_back(std::move(arm));
  into.measured = std::move(measured);
  return {};
}

// A candidate in Python: its PyTorch runs on the CPU.
struct PythonCandidate {
  std::optional<Python> python;
  std::unique_ptr<ScratchFolder> builds;  ///< what one candidate compiles is not handed on to another judgement
  PythonWork work;
  std::unique_ptr<Runner> loaded;         ///< null: it cannot be judged, and the measurement says why
};

// What a build is for a .cu.
Result<std::unique_ptr<PythonCandidate>> load_python(const JudgeRequest& request, const Candidate& candidate, const Resources& resources, const Sandbox& sandbox,
                                                      const Narration& say, Measurement& m) {
  auto python_candidate = std::make_unique<PythonCandidate>();
  m.execution = "in-process";
  m.execution_reason = "a Python process cannot be recorded";
  auto python = find_python(request.options.python == "none" ? "auto" : request.options.python, resources);
  if (!python) {
    if (python.error().code == ExitCode::kInterrupted) return fail(python.error());
    not_judgeable_here(m, python.error());
    return python_candidate;
  }
  m.environment["device"] = "CPU (PyTorch)";
  m.environment["torch"] = python->torch;
  python_candidate->python = std::move(*python);
  python_candidate->builds = std::make_unique<ScratchFolder>(resources.cache / "python" / "candidate");
  python_candidate->work = {request.problem, &resources, &*python_candidate->python, {}, candidate.source, python_candidate->builds->path(), false, {}};
  say("loading " + candidate.name);
  CAPSTONE_TRY(python_candidate->loaded, load_candidate(python_candidate->work, sandbox, m));
  return python_candidate;
}

// Gate one alone.
Result<void> judge_python(const JudgeRequest& request, PythonCandidate& candidate, const Sandbox& sandbox, const Oracle& oracle, const std::vector<CasePlan>& plans,
                          const Narration& say, Measurement& m) {
  if (!candidate.loaded) return {};
  MemfdArena arena;
  GateOneSetup setup{request.problem, &oracle, &arena, {"", ""},
                     starting_with(std::move(candidate.loaded), [&] { return start_python(candidate.work, sandbox); }),
                     run_timeout(request) + kFirstRunOfPython, say, m.candidate};
  CAPSTONE_CHECK(gate_one(setup, plans, m));
  return {};
}

}  // namespace

Result<std::vector<Measurement>> judge_emulated(const JudgeRequest& request, const Resources& resources,
                                                const Narration& say, const std::string& why_not_cuda) {
  const Problem& problem = *request.problem;
  Sandbox sandbox = Sandbox::detect(resources);
  Json environment = host_environment(resources);
  environment["device"] = "CPU (emulated CUDA)";

  // All builds at once: each is one compiler process of about a second.
  std::vector<Measurement> measurements;
  std::vector<std::future<Result<EmulatedArtifact>>> builds;
  say(fmt::format("building {} for the CPU", request.candidates.size() == 1 ? request.candidates.front().name : fmt::format("{} kernels", request.candidates.size())));
  for (const Candidate& candidate : request.candidates) {
    BuildRequest build{&problem, candidate.source, &resources, &sandbox, candidate.name};
    if (is_python(candidate.source)) builds.emplace_back();
    else builds.push_back(std::async(std::launch::async, [build] { return build_emulated(build); }));
    measurements.push_back(blank_measurement(request, candidate, sandbox, environment));
  }
  auto loading = load_oracle(problem, resources, request.options.python);
  std::vector<EmulatedArtifact> artifacts;
  std::optional<Error> broken;
  for (auto& build : builds) {
    auto artifact = build.valid() ? build.get() : Result<EmulatedArtifact>(EmulatedArtifact{});
    if (!artifact) broken = artifact.error();
    artifacts.push_back(artifact ? std::move(*artifact) : EmulatedArtifact{});
  }
  if (broken) return fail(*broken);
  if (!loading) return fail(loading.error());
  Oracle oracle = std::move(*loading);

  std::vector<std::unique_ptr<PythonCandidate>> pythons(request.candidates.size());
  for (std::size_t i = 0; i < request.candidates.size(); ++i)
    if (is_python(request.candidates[i].source)) { CAPSTONE_TRY(pythons[i], load_python(request, request.candidates[i], resources, sandbox, say, measurements[i])); }

  // Sizes and seeds are drawn only now, after every build, and after Python candidates were loaded. Both candidates face the same ones.
  CAPSTONE_TRY(auto plans, cases_for(request, DrawLimits{}));
  std::vector<PassedCandidate> passed;
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    Measurement& m = measurements[i];
    const EmulatedArtifact& artifact = artifacts[i];
    m.backend = "emulated";
    if (pythons[i]) {
      m.gate_two_reason = why_not_cuda.empty() ? "PyTorch on the CPU is never timed" : why_not_cuda;
      CAPSTONE_CHECK(judge_python(request, *pythons[i], sandbox, oracle, plans, say, m));
      continue;
    }
    m.execution = "emulated";
    m.build = artifact.result;
    m.build.log = printable(m.build.log);
    if (!artifact.arch_note.empty()) m.labels.push_back(artifact.arch_note);
    m.gate_two_reason = why_not_cuda.empty() ? "the emulated backend never judges it" : why_not_cuda;
    if (!artifact.not_judgeable.empty()) {
      m.gate_one = GateOne::kNotJudgeable;
      CaseResult reason;
      reason.id = "build";
      reason.problem = artifact.not_judgeable;
      reason.hint = "judge it on a machine with an NVIDIA GPU; see `capstone measure --bundle`";
      m.cases.push_back(std::move(reason));
      continue;
    }
    if (!artifact.result.ok) {
      m.gate_one = GateOne::kBuildFailed;
      continue;
    }
    MemfdArena arena;
    WorkerLimits limits;
    GateOneSetup setup{&problem, &oracle, &arena, {"forward", "reverse", "random", "warp"},
                       [&] { return Worker::start_runner({artifact.program.string()}, sandbox, limits, false); },
                       run_timeout(request), say,
                       m.candidate, !request.replay};
    CAPSTONE_CHECK(gate_one(setup, plans, m));
    if (m.gate_one == GateOne::kPassed && is_timed(request)) {
      say(m.candidate + ": emulated times");
      CAPSTONE_CHECK(time_emulated(problem, setup, m));
    }
    if (m.gate_one == GateOne::kPassed) passed.push_back({request.candidates[i].source, &m});
  }
  if (!request.options.quick)
    CAPSTONE_CHECK(sanitize({&problem, &oracle, &resources, &sandbox, run_timeout(request), say, request.replay}, passed));
  return measurements;
}

}  // namespace capstone
