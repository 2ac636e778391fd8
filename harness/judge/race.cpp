#include "harness/judge/race.h"

#include <algorithm>

#include "harness/judge/baselines.h"

namespace capstone {
namespace {

TimedArm trusted_arm(std::string name, std::function<StartedRunner()> start, bool python) {
  TimedArm arm;
  arm.name = std::move(name);
  arm.start_worker = std::move(start);
  arm.trusted = true;
  arm.python = python;
  return arm;
}

// The native baseline, then PyTorch's arms. Behind gate two's reference comes the same once more (A/A).
Result<std::vector<TimedArm>> baseline_arms(const CudaSession& session) {
  std::vector<TimedArm> arms;
  if (session.has_native()) {
    arms.push_back(trusted_arm(
        "native", [&session] { return session.start_worker(session.native.program, true); }, false));
    CAPSTONE_TRY(arms[0].wants, Result<PrivateBytes>(session.native_wants.get()));
  }
  const std::vector<std::string>& python = session.baselines.arms;
  for (std::size_t i = 0; i < python.size(); ++i) {
    arms.push_back(trusted_arm(python[i], session.python_arm(python[i]), true));
    if (i == 0)
      arms.push_back(trusted_arm("A/A", session.python_arm(python[i]), true));
    else
      arms.back().optional = true;
  }
  if (python.empty()) {
    TimedArm again = trusted_arm("A/A", arms[0].start_worker, false);
    again.wants = arms[0].wants;
    arms.push_back(std::move(again));
  }
  return arms;
}

TimedArm candidate_arm(const CudaSession& session, const Checked& candidate) {
  const CudaProgram& program = cuda_program(candidate);
  TimedArm arm;
  arm.name = candidate.record.candidate;
  arm.label = candidate.record.source;
  arm.start_worker = program.start(session);
  arm.trusted_clock = program.replayed != nullptr;
  arm.python = program.python.has_value();
  arm.wants = candidate.wants;
  if (program.replayed) program.replayed->close_capture_worker();
  return arm;
}

// At random, so that no candidate can know.
bool wants_extra_checks(const JudgeRequest& request) {
  constexpr std::uint64_t kOneIn = 4;
  return request.extra_checks == ExtraChecks::kAlways ||
         (request.extra_checks == ExtraChecks::kSometimes && fresh_seed() % kOneIn == 0);
}

// All arms once. `racing`: which candidates; arms[first_candidate + k] is racing[k].
Result<Race> race_once(const CudaSession& session, const Oracle& oracle,
                       const std::vector<Checked*>& racing) {
  const JudgeRequest& request = session.request();
  const bool python = !session.baselines.arms.empty();
  Race race;
  CAPSTONE_TRY(race.arms, baseline_arms(session));
  race.reference = session.has_native() && python ? 1 : 0;
  race.first_candidate = race.arms.size();
  race.peaks = session.peaks;
  for (const Checked* candidate : racing) race.arms.push_back(candidate_arm(session, *candidate));
  const auto timeout =
      run_timeout(request) + std::chrono::seconds(python ? 300 : 60);  // torch.compile takes its time
  GateTwoSetup setup{&session.problem(),
                     &oracle,
                     session.gpu_host.get(),
                     request.options.budget_seconds,
                     timeout,
                     *session.context.say,
                     request.restarts,
                     race.reference,
                     race.first_candidate};
  setup.extra_checks = wants_extra_checks(request);
  setup.sustained = request.options.sustained;
  setup.quick = race.quick = request.options.quick;
  CAPSTONE_TRY(race.outcome, gate_two(setup, race.arms));
  return race;
}

// A launch that did something else at the measured size than was captured, or that crashed when it was
// replayed, is judged again, all arms together, where it can run.
Result<bool> check_changed(const CudaSession& session, const Oracle& oracle, const Bound& bound,
                           const Race& race, const std::vector<Checked*>& racing) {
  bool again = false;
  if (session.request().options.execution != Execution::kAuto) return again;
  for (std::size_t k = 0; k < racing.size(); ++k) {
    const CudaProgram& program = cuda_program(*racing[k]);
    const TimedArm& arm = race.arms[race.first_candidate + k];
    if (!arm.failure || !program.replayed) continue;
    const bool crashed = arm.failed_as == GateOne::kCrashed || arm.failed_as == GateOne::kUndefined;
    std::string why = program.replayed->refusal();
    if (why.empty() && crashed)
      why = "the recorded launch fails at the measured size: " + arm.failure->problem;
    if (why.empty()) continue;
    run_in_process(*racing[k], why);
    CAPSTONE_CHECK(check_candidate(session, oracle, bound, *racing[k]));
    again = true;
  }
  return again;
}

std::vector<Checked*> passed(const CudaSession& session, std::vector<Checked>& candidates) {
  std::vector<Checked*> racing;
  for (Checked& each : candidates)
    if (each.record.gate_one == GateOne::kPassed && is_timed(session.request())) racing.push_back(&each);
  return racing;
}

}  // namespace

Result<Timed> race(const CudaSession& session, const Oracle& oracle, const Bound& bound,
                   std::vector<Checked> candidates, double checking) {
  Timed timed;
  std::vector<Checked*> racing;
  for (bool again = true; again;) {
    racing = passed(session, candidates);
    timed.race = {};
    if (racing.empty()) break;
    CAPSTONE_TRY(timed.race, race_once(session, oracle, racing));
    CAPSTONE_TRY(again, check_changed(session, oracle, bound, timed.race, racing));
  }
  if (!racing.empty()) {
    timed.race.outcome.telemetry["seconds"]["building"] = session.building;
    timed.race.outcome.telemetry["seconds"]["checking"] = checking;
  }
  std::size_t arm = timed.race.first_candidate;
  for (Checked& each : candidates) {
    add_build_labels(session.problem(), each);
    TimedCandidate candidate;
    if (std::find(racing.begin(), racing.end(), &each) != racing.end()) candidate.arm = arm++;
    candidate.record = std::move(each.record);
    timed.candidates.push_back(std::move(candidate));
  }
  return timed;
}

}  // namespace capstone
