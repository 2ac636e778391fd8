#include "harness/judge/baselines.h"

#include <algorithm>

#include "harness/judge/python_candidate.h"
#include "harness/runtime/python/arms.h"

namespace capstone {
namespace {

// Whether eager runs the problem's first case on the GPU host's memory.
Result<tl::expected<Packet, WorkerFailure>> try_eager(const CudaSession& session, const Oracle& oracle,
                                                      const PyTorch& pytorch) {
  const Problem& problem = session.problem();
  PythonWork work = session.python_work(pytorch.python);
  work.parent = pytorch.parent;
  auto eager = start_python(work, session.trusted);
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
  return (*eager)->ask({{"op", "run"}, {"args", args}}, run_timeout(session.request()), -1);
}

bool any_python(const JudgeRequest& request) {
  return std::any_of(request.candidates.begin(), request.candidates.end(),
                     [](const Candidate& candidate) { return is_python(candidate.source); });
}

std::vector<std::string> arms_of(const JudgeRequest& request) {
  return request.options.baselines.empty() ? python_arms_of(*request.problem) : request.options.baselines;
}

// What --python says; `none` leaves out the baselines alone.
std::string wanted_python(const JudgeRequest& request) {
  return request.options.python == "none" ? "auto" : request.options.python;
}

}  // namespace

std::future<Result<PyTorch>> start_pytorch(const CudaSession& session) {
  const JudgeRequest& request = session.request();
  const bool candidates = any_python(request);
  if (!is_timed(request) && !candidates) return {};
  if (request.options.python == "none" && session.has_native() && !candidates) return {};
  return std::async(std::launch::async, [&session, &request]() -> Result<PyTorch> {
    PyTorch pytorch;
    CAPSTONE_TRY(pytorch.python,
                 find_python(wanted_python(request), session.resources(), request.options.python_path));
    const PythonWork work = session.python_work(pytorch.python);
    pytorch.parent = start_python_parent(work, session.trusted);
    if (is_timed(request))
      for (const std::string& arm : arms_of(request))
        if (arm.starts_with("compile")) pytorch.first[arm] = start_python_parent(work, session.trusted, true);
    return pytorch;
  });
}

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

Result<Baselines> find_baselines(CudaSession& session, const Oracle& oracle) {
  const JudgeRequest& request = session.request();
  Baselines found;
  if (request.options.python == "none") found.why_native = "PyTorch was not asked for";
  if (!session.pytorch.valid()) return found;
  auto pytorch = session.pytorch.get();
  const bool asked_for = request.problem->oracle_is_reference ||
                         (request.options.python != "none" && request.options.python != "auto");
  if (!pytorch) {
    if (asked_for || pytorch.error().code == ExitCode::kInterrupted) return fail(pytorch.error());
    found.why_native = pytorch.error().what;
    return found;
  }
  session.say({Stage::kLoad, {}, "PyTorch " + pytorch->python.torch});
  CAPSTONE_TRY(auto eager, try_eager(session, oracle, *pytorch));
  if (!eager) {
    const WorkerFailure& failure = eager.error();
    if (failure.kind == WorkerFailure::Kind::kInterrupted)
      return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (asked_for)
      return fail({failure.what, failure.where.empty() ? pytorch->python.program.string() : failure.where,
                   failure.hint, ExitCode::kEnvironment, failure.trace});
    found.why_native = failure.what;
    return found;
  }
  found.pytorch = std::move(*pytorch);
  found.arms = arms_of(request);
  found.why_native.clear();
  return found;
}

}  // namespace capstone
