// CUDA sources on the CPU: gate one under four schedules; gate two is never judged.
#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "harness/base/text.h"
#include "harness/judge/pipeline.h"
#include "harness/runtime/build/build.h"

namespace capstone {
namespace {

constexpr int kTimedRuns = 7;

struct EmulatedProgram : Program {
  fs::path file;
};

// CPU times at the `emulate` size; none where a run fails.
Result<std::vector<double>> time_emulated(const Problem& problem, const GateOneSetup& setup) {
  std::vector<double> none;
  auto worker = setup.start_worker();
  if (!worker) return none;
  CAPSTONE_TRY(const auto cases,
               bind_cases(problem, {{"emulate", problem.emulate, fresh_seed(), Battery::kPlain}}));
  const BoundCase& emulated = cases.front();
  CAPSTONE_TRY(Json question, workspace_arguments(emulated.bound));
  auto bytes = ask_private_bytes(**worker, problem, question);
  if (!bytes) return none;
  CAPSTONE_TRY(PreparedCase prepared,
               prepare_case(emulated, *setup.oracle, bytes->workspace, bytes->prepared));
  CAPSTONE_TRY(int arena, setup.arena->resize(prepared.layout.bytes));
  if (!(*worker)->ask({{"op", "arena"}, {"bytes", prepared.layout.bytes}}, std::chrono::seconds(20), arena))
    return none;
  CAPSTONE_TRY(Json args, call_arguments(emulated.bound, prepared.layout));
  Json request{{"op", "run"}, {"args", args}, {"schedule", "forward"}, {"seed", 1}};
  CAPSTONE_TRY(auto preparation, run_prepare(setup, **worker, prepared, request, prepared.image));
  if (!preparation || !preparation->passed) return none;
  request["workspace"] =
      prepared.layout.workspace_bytes ? Json(prepared.layout.workspace_offset) : Json(nullptr);
  if (problem.prepare) request["prepared"] = prepared.layout.prepared_offset;
  std::vector<double> samples;
  for (int i = 0; i <= kTimedRuns; ++i) {
    CAPSTONE_CHECK(setup.arena->load(prepared.image));
    auto answer = (*worker)->ask(request, setup.patience);
    if (!answer) {
      if (answer.error().kind == WorkerFailure::Kind::kInterrupted)
        return fail("interrupted", {}, {}, ExitCode::kInterrupted);
      return none;
    }
    auto ms = answer->message.find("ms");
    if (i > 0 && ms != answer->message.end() && ms->is_number()) samples.push_back(ms->get<double>());
  }
  return samples;
}

class EmulatedBackend : public JudgeBackend {
 public:
  EmulatedBackend(const JudgeContext& context, OracleInWaiting oracle, std::string because)
      : context_(context), oracle_(std::move(oracle)), because_(std::move(because)) {}

  // All builds at once: each is one compiler process of about a second.
  Result<std::vector<Built>> build() override {
    const JudgeRequest& request = *context_.request;
    (*context_.say)({Stage::kBuild,
                     {},
                     (request.candidates.size() == 1 ? request.candidates.front().name
                                                     : fmt::format("{} kernels", request.candidates.size())) +
                         " for the CPU"});
    Json environment = host_environment(*context_.resources);
    environment["device"] = "CPU (emulated CUDA)";
    std::vector<std::future<Result<EmulatedArtifact>>> builds;
    std::vector<std::future<Result<NvccCheck>>> checks;
    for (const Candidate& candidate : request.candidates) {
      BuildRequest build{request.problem, candidate.source, context_.resources, context_.sandbox,
                         candidate.name};
      builds.push_back(std::async(std::launch::async, [build] { return build_emulated(build); }));
      checks.push_back(std::async(std::launch::async, [build, &request] {
        if (request.nvcc && !request.options.quick) return check_with_nvcc(build);
        return Result<NvccCheck>(
            NvccCheck{{}, request.options.quick ? "--quick" : "not asked for", {}, {}, {}, {}});
      }));
    }
    std::vector<Built> all;
    std::optional<Error> broken;
    for (std::size_t i = 0; i < builds.size(); ++i) {
      auto artifact = builds[i].get();  // each is waited for, whatever became of the others
      auto check = checks[i].get();
      if (!artifact)
        broken = artifact.error();
      else if (!check)
        broken = check.error();
      else
        all.push_back(
            built(*artifact, *check,
                  blank_measurement(request, request.candidates[i], *context_.sandbox, environment)));
    }
    if (broken) return fail(*broken);
    return all;
  }

  DrawLimits draw_limits() const override { return {}; }

  Result<std::vector<Checked>> check(std::vector<Built> built, const Bound& bound) override {
    std::vector<Checked> all;
    for (Built& each : built) {
      Checked checked{std::move(each.record), std::move(each.program), {}};
      if (checked.program) {
        MemfdArena arena;
        CAPSTONE_TRY(const GateOneSetup setup, setup_of(checked, arena));
        CAPSTONE_TRY(checked.wants, gate_one(setup, bound.cases, checked.record));
      }
      all.push_back(std::move(checked));
    }
    return all;
  }

  Result<Timed> time(std::vector<Checked> checked, const Bound& bound) override {
    Timed timed;
    for (Checked& each : checked) {
      TimedCandidate candidate;
      if (each.program && each.record.gate_one == GateOne::kPassed && is_timed(*context_.request)) {
        (*context_.say)({Stage::kEmulatedTimes, each.record.candidate});
        MemfdArena arena;
        CAPSTONE_TRY(const GateOneSetup setup, setup_of(each, arena));
        CAPSTONE_TRY(candidate.emulated_ms, time_emulated(*bound.problem, setup));
      }
      candidate.record = std::move(each.record);
      timed.candidates.push_back(std::move(candidate));
    }
    return timed;
  }

 private:
  Built built(const EmulatedArtifact& artifact, const NvccCheck& nvcc, Measurement m) const {
    m.backend = Backend::kEmulated;
    m.execution = Execution::kEmulated;
    m.build = artifact.result;
    m.build.log = printable(m.build.log);
    m.environment["checked_with_nvcc"] = nvcc.version.empty() ? "no: " + nvcc.why_not : nvcc.version;
    for (const std::string& warning : nvcc.warnings) m.labels.push_back("nvcc warns: " + warning);
    for (const CompilerMessage& w : artifact.result.warnings)
      if (const std::string at = fmt::format("{}:{}", w.file, w.line);
          std::none_of(nvcc.warnings.begin(), nvcc.warnings.end(),
                       [&](const std::string& other) { return other.starts_with(at); }))
        m.labels.push_back(fmt::format("g++ warns: {}: {}", at, w.text));
    if (!artifact.arch_note.empty()) m.labels.push_back(artifact.arch_note);
    m.gate_two_reason = because_.empty() ? "the emulated backend never judges it" : because_;
    if (nvcc.error && (artifact.result.ok || !artifact.not_judgeable.empty())) {
      m.build.ok = false;
      m.build.command = nvcc.command;
      m.build.log = printable(nvcc.log);
      m.build.first_error = nvcc.error;
      m.build.first_error->text = "nvcc: " + nvcc.error->text;
      m.gate_one = GateOne::kBuildFailed;
      return {std::move(m), nullptr};
    }
    if (!artifact.not_judgeable.empty()) {
      m.gate_one = GateOne::kNotJudgeable;
      CaseResult reason;
      reason.id = "build";
      reason.problem = artifact.not_judgeable;
      reason.hint = "judge it on a machine with an NVIDIA GPU; see `capstone measure --bundle`";
      m.cases.push_back(std::move(reason));
      return {std::move(m), nullptr};
    }
    if (!artifact.result.ok) {
      m.gate_one = GateOne::kBuildFailed;
      return {std::move(m), nullptr};
    }
    auto program = std::make_shared<EmulatedProgram>();
    program->file = artifact.program;
    return {std::move(m), std::move(program)};
  }

  Result<GateOneSetup> setup_of(const Checked& candidate, MemfdArena& arena) const {
    CAPSTONE_TRY(const Oracle* oracle, oracle_.get());
    GateOneSetup setup{};
    setup.problem = context_.request->problem;
    setup.oracle = oracle;
    setup.arena = &arena;
    setup.schedules = {"forward", "reverse", "random", "warp"};
    setup.start_worker = [file = static_cast<const EmulatedProgram&>(*candidate.program).file,
                          sandbox = context_.sandbox] {
      return Worker::start_runner({file.string()}, *sandbox, WorkerLimits{}, false);
    };
    setup.run_timeout = run_timeout(*context_.request);
    setup.patience = patience_with_emulator(setup.run_timeout);
    setup.say = *context_.say;
    setup.who = candidate.record.candidate;
    setup.ask_ahead = !context_.request->replay;
    return setup;
  }

  JudgeContext context_;
  OracleInWaiting oracle_;
  std::string because_;  ///< why there is no GPU
};

}  // namespace

std::unique_ptr<JudgeBackend> make_emulated_backend(const JudgeContext& context, OracleInWaiting oracle,
                                                    std::string because) {
  return std::make_unique<EmulatedBackend>(context, std::move(oracle), std::move(because));
}

}  // namespace capstone
