#include "harness/judge/baselines.h"

#include <algorithm>

#include "harness/judge/python_candidate.h"
#include "harness/runtime/python/arms.h"

namespace capstone {
namespace {

// Whether eager runs the problem's first case on the GPU host's memory.
Result<tl::expected<Packet, WorkerFailure>> try_eager(const CudaSession& session, const Oracle& oracle,
                                                      const Python& python) {
  const Problem& problem = session.problem();
  auto eager = start_python(session.python_work(python), session.trusted);
  if (!eager) return tl::expected<Packet, WorkerFailure>(tl::unexpect, eager.error());
  CAPSTONE_TRY(const auto trial,
               bind_cases(problem, {{"trial", problem.check.front(), fresh_seed(), Battery::kPlain}}));
  CAPSTONE_TRY(PreparedCase prepared, prepare_case(trial[0], oracle, 0));
  CAPSTONE_TRY(int memory, session.gpu_host->resize(prepared.layout.bytes));
  CAPSTONE_CHECK(session.gpu_host->load(prepared.image));
  CAPSTONE_TRY(Json args, call_arguments(trial[0].bound, prepared.layout));
  auto mapped =
      (*eager)->ask({{"op", "arena"}, {"bytes", prepared.layout.bytes}}, std::chrono::seconds(60), memory);
  if (!mapped) return mapped;
  return (*eager)->ask({{"op", "run"}, {"args", args}}, run_timeout(session.request()) + kFirstRunOfPython,
                       -1);
}

}  // namespace

Result<PrivateBytes> wants_of(const Problem& problem, const std::function<StartedRunner()>& start) {
  auto failed = [](const WorkerFailure& failure) {
    return fail(failure.what, failure.where, failure.hint, ExitCode::kEnvironment);
  };
  auto runner = start();
  if (!runner) return failed(runner.error());
  CAPSTONE_TRY(Json args, workspace_arguments(problem, problem.measure));
  auto bytes = ask_private_bytes(**runner, problem, args);
  if (!bytes) return failed(bytes.error());
  return *bytes;
}

Result<Baselines> find_baselines(const CudaSession& session, const Oracle& oracle) {
  const JudgeRequest& request = session.request();
  Baselines found;
  const bool needed = request.problem->oracle_is_reference ||
                      std::any_of(request.candidates.begin(), request.candidates.end(),
                                  [](const Candidate& candidate) { return is_python(candidate.source); });
  if (request.options.python == "none") found.why_native = "PyTorch was not asked for";
  if (request.options.python == "none" && !needed) return found;
  auto python =
      find_python(request.options.python == "none" ? "auto" : request.options.python, session.resources());
  const bool asked_for = request.problem->oracle_is_reference ||
                         (request.options.python != "none" && request.options.python != "auto");
  if (!python) {
    if (asked_for || python.error().code == ExitCode::kInterrupted) return fail(python.error());
    found.why_native = python.error().what;
    return found;
  }
  session.say({Stage::kLoad, {}, "PyTorch " + python->torch});
  CAPSTONE_TRY(auto eager, try_eager(session, oracle, *python));
  if (!eager) {
    const WorkerFailure& failure = eager.error();
    if (failure.kind == WorkerFailure::Kind::kInterrupted)
      return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (asked_for)
      return fail({failure.what, failure.where.empty() ? python->program.string() : failure.where,
                   failure.hint, ExitCode::kEnvironment, failure.trace});
    found.why_native = failure.what;
    return found;
  }
  found.python = std::move(*python);
  found.arms =
      request.options.baselines.empty() ? python_arms_of(*request.problem) : request.options.baselines;
  found.why_native.clear();
  return found;
}

}  // namespace capstone
