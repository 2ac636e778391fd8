#include "harness/judge/gate_two.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <future>
#include <random>
#include <set>

#include "harness/base/text.h"
#include "harness/judge/gate_one.h"
#include "harness/runtime/cuda/device_buffers.h"
#include "harness/timing/statistics.h"

namespace capstone {
namespace {

constexpr int kMaxRestarts = 12;
constexpr int kBlocks = 4;   // per restart
constexpr int kDropped = 2;  // samples after a switch of arms
constexpr double kLong =
    20;  // ms; a launch this long has forgotten what ran before it: one sample is dropped
constexpr int kWarmUpMost = 30;
constexpr double kWarmAfter = 500;  // ms of launches, three at least
constexpr int kHostTimed = 3;       // launches a block that the judge times itself
constexpr int kAgain = 3;           // times that a disturbed block is run again
// A launch's cost on the host is hidden behind a spin. What an untrusted process says about it is believed up
// to here: during the spin it could work unseen.
constexpr double kHideTrusted = 2e6, kHideClaimed = 50e3;  // ns
// Python takes longer to launch the same; its launches are hidden from the judge's own clock, too.
constexpr std::int64_t kHidePython = 300'000;  // ns

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Whether a process is this one or was started by it, however many steps down. A number that /proc does not
// know belongs to another namespace; its owner cannot be determined.
bool is_ours(long pid) {
  for (int depth = 0; depth < 64 && pid > 1; ++depth) {
    if (pid == ::getpid()) return true;
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string text;
    if (!std::getline(stat, text)) return depth == 0;
    const std::size_t after = text.rfind(')');
    if (after == std::string::npos || std::sscanf(text.c_str() + after + 1, " %*c %ld", &pid) != 1)
      return true;
  }
  return false;
}

CaseResult failed(const Problem& problem, std::string what, std::string where, std::string hint) {
  CaseResult result;
  result.id = "measure";
  result.sizes = sizes_json(problem.measure);
  result.problem = std::move(what);
  result.where = std::move(where);
  result.hint = std::move(hint);
  return result;
}

class TimedRun {
 public:
  TimedRun(const GateTwoSetup& setup, std::vector<TimedArm>& arms)
      : setup_(setup), arms_(arms), buffers_(*setup.problem, *setup.oracle, *setup.gpu_host) {}

  Result<GateTwoOutcome> run() {
    GateTwoOutcome outcome;
    auto begun = Clock::now();
    PrivateBytes most;
    for (const TimedArm& arm : arms_) {
      most.workspace = std::max(most.workspace, arm.wants.workspace);
      most.prepared = std::max(most.prepared, arm.wants.prepared);
    }
    CAPSTONE_CHECK(buffers_.lay_out(most));
    CAPSTONE_TRY(Json before, setup_.gpu_host->telemetry());
    outcome.telemetry["before"] = before;
    const std::size_t candidates = arms_.size() - setup_.first_candidate;
    const double budget = setup_.budget_seconds * static_cast<double>(std::max<std::size_t>(1, candidates));
    for (int restart = 0; restart < kMaxRestarts; ++restart) {
      announce(restart + 1, seconds_since(begun), budget);
      CAPSTONE_CHECK(one_restart(restart, budget));
      if (restart + 1 < setup_.restarts) continue;
      if (all_narrow()) break;
      if (seconds_since(begun) > budget) {
        outcome.budget_spent = true;
        break;
      }
    }
    if (!all_narrow()) outcome.budget_spent = true;
    CAPSTONE_TRY(Json after, setup_.gpu_host->telemetry());
    outcome.telemetry["after"] = after;
    outcome.telemetry["run_again"] = run_again_;
    outcome.telemetry["seconds"] = {{"starting", spent_.starting},
                                    {"warming_up", spent_.warming_up},
                                    {"sampling", spent_.sampling},
                                    {"warm", spent_.warm}};
    outcome.void_because = solo_difference();
    if (!disturbed_.empty()) outcome.void_because = disturbed_;
    outcome.seconds = seconds_since(begun);
    return outcome;
  }

 private:
  void announce(int restart, double seconds, double budget) const {
    StageEvent event(Stage::kGateTwo, {});
    event.number = restart;
    event.total = setup_.restarts;
    event.seconds = seconds;
    event.budget_seconds = budget;
    setup_.say(event);
  }

  bool alive(std::size_t arm) const { return !arms_[arm].failure && !arms_[arm].left_out; }

  Result<void> one_restart(int restart, double budget) {
    workers_.resize(arms_.size());
    // Optional baselines live on: torch.compile takes longer than all samples of a restart, and nothing is
    // decided by their times.
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (!arms_[a].optional) workers_[a].reset();
    auto begun = Clock::now();
    CAPSTONE_CHECK(buffers_.map());
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (workers_[a])
        if (auto mapped = buffers_.share(*workers_[a], false); !mapped)
          CAPSTONE_CHECK(take_failure(a, mapped.error()));
    if (restart == 0) {
      std::vector<std::size_t> ours{0};
      if (setup_.reference != 0) ours.push_back(setup_.reference);
      CAPSTONE_CHECK(start(ours));
      for (std::size_t a : ours) CAPSTONE_CHECK(warm_up(a));
      // What the reference takes while no candidate is alive, so that none can slow it down.
      for (int i = 0; i < 9; ++i) {
        CAPSTONE_TRY(double ms, sample(setup_.reference));
        solo_.push_back(ms);
      }
    }
    std::vector<std::size_t> others;
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (alive(a) && !workers_[a]) others.push_back(a);
    CAPSTONE_CHECK(start(others));
    spent_.starting += seconds_since(begun);
    begun = Clock::now();
    double slowest = 0;
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (alive(a)) {
        auto t = Clock::now();
        CAPSTONE_TRY(int samples, warm_up(a));
        slowest = std::max(slowest, seconds_since(t) / std::max(1, samples));
      }
    spent_.warming_up += seconds_since(begun);
    begun = Clock::now();
    // As many samples a block as the budget of one restart allows, 3 to 12.
    double runs = budget / setup_.restarts * 0.8 / std::max(1e-4, slowest * double(arms_.size()) * kBlocks);
    int count = std::clamp(static_cast<int>(runs) - kDropped, 3, 12);
    for (TimedArm& arm : arms_) {
      arm.samples.emplace_back();
      arm.block_medians.emplace_back();
    }
    for (int block = 0; block < kBlocks; ++block)
      for (int attempt = 0;; ++attempt) {
        CAPSTONE_TRY(std::string disturbance, one_block(count));
        if (disturbance.empty()) break;
        run_again_.push_back(disturbance);
        if (attempt == kAgain) {
          disturbed_ = disturbance;
          break;
        }
        for (TimedArm& arm : arms_) drop_block(arm, count);
      }
    spent_.sampling += seconds_since(begun);
    begun = Clock::now();
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (alive(a)) CAPSTONE_CHECK(warm(a));
    spent_.warm += seconds_since(begun);
    return {};
  }

  // Every arm once, in random order. Empty text, or why the block should not count.
  Result<std::string> one_block(int count) {
    std::vector<std::size_t> order(arms_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<double> clocks;
    std::string disturbance;
    for (std::size_t a : order) {
      if (!alive(a)) continue;
      std::vector<double> kept;
      int dropped = kDropped;
      for (int i = 0; i < count + dropped && alive(a); ++i) {
        CAPSTONE_TRY(double ms, sample(a));
        if (i == 0 && ms > kLong) dropped = 1;
        if (i >= dropped && alive(a)) kept.push_back(ms);
      }
      if (alive(a) && any_claims())
        for (int i = 0; i < kHostTimed && alive(a); ++i) CAPSTONE_CHECK(host_timer_sample(a));
      if (!alive(a)) continue;
      arms_[a].block_medians.back().push_back(median(kept));
      auto& all = arms_[a].samples.back();
      all.insert(all.end(), kept.begin(), kept.end());
      CAPSTONE_TRY(Json seen, setup_.gpu_host->telemetry());
      if (seen.contains("sm_mhz")) clocks.push_back(seen["sm_mhz"].get<double>());
      if (std::string why = trouble_in(seen); !why.empty()) disturbance = why;
    }
    if (disturbance.empty() && clocks.size() > 1) {
      auto [low, high] = std::minmax_element(clocks.begin(), clocks.end());
      if (*high > 1.02 * *low)
        disturbance = fmt::format("the SM clock went from {:.0f} to {:.0f} MHz between arms", *low, *high);
    }
    return disturbance;
  }
  static void drop_block(TimedArm& arm, int count) {
    if (!arm.block_medians.back().empty()) arm.block_medians.back().pop_back();
    auto& all = arm.samples.back();
    all.resize(all.size() - std::min(all.size(), static_cast<std::size_t>(count)));
  }
  // Slowdowns that no kernel is to blame for, and others at work on the GPU. A power cap is recorded, not
  // mended: it is how fast this GPU is.
  std::string trouble_in(const Json& seen) const {
    constexpr std::uint64_t kHardware = 0x8, kThermalSoftware = 0x20, kThermalHardware = 0x40,
                            kPowerBrake = 0x80;
    const std::uint64_t throttle = seen.value("throttle", std::uint64_t{0});
    if (throttle & (kThermalSoftware | kThermalHardware)) return "the GPU slowed down because it was hot";
    if (throttle & (kHardware | kPowerBrake)) return "the GPU slowed down because of its power supply";
    if (auto busy = seen.find("busy"); busy != seen.end() && busy->is_array())
      for (const Json& process : *busy)
        if (!is_ours(process.value("pid", 0)))
          return fmt::format("another process ({}) computes on this GPU", process.value("pid", 0));
    return {};
  }
  bool any_claims() const {
    return std::any_of(arms_.begin(), arms_.end(), [](const TimedArm& arm) {
      return !arm.trusted && !arm.trusted_clock && !arm.failure;
    });
  }

  // All at once: making a CUDA context takes most of a second, and nothing is timed now.
  Result<void> start(const std::vector<std::size_t>& which) {
    std::vector<std::pair<std::size_t, std::future<StartedRunner>>> starting;
    for (std::size_t a : which)
      starting.emplace_back(a, std::async(std::launch::async, arms_[a].start_worker));
    Result<void> all;
    for (auto& [a, runner] : starting) {
      auto started = runner.get();  // every one is waited for, whatever became of the others
      if (all) all = take(a, std::move(started));
    }
    return all;
  }
  Result<void> take(std::size_t a, StartedRunner worker) {
    if (!worker) return take_failure(a, worker.error());
    if (auto label = (*worker)->hello().find("label");
        arms_[a].trusted && label != (*worker)->hello().end() && label->is_string())
      arms_[a].label = label->get<std::string>();
    if (auto mapped = buffers_.share(**worker, a == 0); !mapped) return take_failure(a, mapped.error());
    workers_[a] = std::move(*worker);
    return {};
  }

  // A candidate's failure ends its race; the reference's is the machine's.
  Result<void> take_failure(std::size_t a, const WorkerFailure& failure) {
    if (failure.kind == WorkerFailure::Kind::kInterrupted)
      return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (arms_[a].optional) {
      arms_[a].left_out = true;
      arms_[a].note = "was not timed: " + failure.what;
      workers_[a].reset();
      return {};
    }
    if (arms_[a].trusted && arms_[a].python)
      return fail({fmt::format("PyTorch's {} failed: {}", arms_[setup_.reference].name, failure.what),
                   failure.where,
                   setup_.problem->oracle_is_reference
                       ? failure.hint
                       : "measure against the native baseline: --python none" +
                             (failure.hint.empty() ? std::string() : "; or: " + failure.hint),
                   ExitCode::kEnvironment, failure.trace});
    if (arms_[a].trusted)
      return fail("the baseline failed: " + failure.what, failure.where,
                  failure.hint.empty() ? "run `capstone doctor`" : failure.hint, ExitCode::kEnvironment);
    arms_[a].failure = this->failed_at_measure(failure.what, failure.where, failure.hint);
    arms_[a].failure->traceback = failure.trace;
    arms_[a].failed_as = verdict_of(failure);
    workers_[a].reset();
    return {};
  }

  CaseResult failed_at_measure(std::string what, std::string where, std::string hint) const {
    return failed(*setup_.problem, std::move(what), std::move(where), std::move(hint));
  }

  // One sample; NaN (and a recorded failure) when the candidate broke.
  Result<double> sample(std::size_t a) {
    CAPSTONE_TRY(auto timed, verified_run(a, hide_ns(a)));
    if (!timed) return std::nan("");
    arms_[a].launch_ms =
        arms_[a].launch_ms == 0 ? timed->launch_ms : 0.7 * arms_[a].launch_ms + 0.3 * timed->launch_ms;
    return timed->ms;
  }
  // One launch that nothing hides, by the judge's own clock: from the request to the answer, which is sent
  // after the whole device has come to rest.
  Result<void> host_timer_sample(std::size_t a) {
    CAPSTONE_TRY(auto timed, verified_run(a, arms_[a].python ? kHidePython : 0));
    if (!timed) return {};
    arms_[a].plain.push_back(timed->ms);
    arms_[a].host_timer.push_back(timed->host_timer_ms);
    return {};
  }
  std::int64_t hide_ns(std::size_t a) const {
    return static_cast<std::int64_t>(
        std::clamp(arms_[a].launch_ms * 1.5e6 + 5000, 0.0, longest_hidden_ns(arms_, a)));
  }

  struct Timed {
    double ms, launch_ms, host_timer_ms;
  };
  // Fresh inputs, the run, and whether it was right. Empty when the candidate broke.
  Result<std::optional<Timed>> verified_run(std::size_t a, std::int64_t hide) {
    using Nothing = std::optional<Timed>;
    const bool first = !strictly_checked_.contains(a);
    // What the oracle is asked about each arm are the same inputs, so that it is asked once.
    const std::uint64_t seed = first ? probe_seed_ : fresh_seed();
    if (setup_.problem->prepare) {
      for (bool into_expected : {true, false}) {
        CAPSTONE_CHECK(buffers_.fill_parameters(seed));
        const std::size_t who = into_expected ? 0 : a;
        auto prepared = workers_[who]->ask(buffers_.prepare_request(into_expected), setup_.run_timeout);
        if (!prepared) {
          CAPSTONE_CHECK(take_failure(who, prepared.error()));
          return Nothing();
        }
      }
    }
    CAPSTONE_CHECK(buffers_.fill(seed));
    auto begun = Clock::now();
    auto answer = workers_[a]->ask(buffers_.run_request(false, 1, hide), setup_.run_timeout);
    const double host_timer_ms = seconds_since(begun) * 1000;
    if (!answer) {
      CAPSTONE_CHECK(take_failure(a, answer.error()));
      return Nothing();
    }
    CAPSTONE_TRY(auto fingerprints, buffers_.fingerprints());
    const Json& said = answer->message;
    auto ms = said.find("ms");
    if (ms == said.end() || !ms->is_number() || !(ms->get<double>() > 0)) {
      CAPSTONE_CHECK(
          take_failure(a, {WorkerFailure::Kind::kMalformed, "the worker reported no time", {}, {}, {}}));
      return Nothing();
    }
    auto launch = said.find("launch_ns");
    const Timed timed{ms->get<double>(),
                      launch != said.end() && launch->is_number() ? launch->get<double>() / 1e6 : 0,
                      host_timer_ms};
    // What this sample should have given: the reference computes it now, untimed.
    auto reference = workers_[0]->ask(buffers_.run_request(true, 1, 0), setup_.run_timeout);
    if (!reference) {
      CAPSTONE_CHECK(take_failure(0, reference.error()));
      return Nothing();
    }
    if (!probed_) {
      CAPSTONE_TRY(std::string wrong, buffers_.probe(true));
      if (!wrong.empty())
        return fail("the native baseline disagrees with the oracle: " + wrong, setup_.problem->id,
                    "this is a defect of the problem or of this GPU's setup, not of any submission",
                    ExitCode::kEnvironment);
      probed_ = true;
      if (setup_.problem->oracle_is_reference) CAPSTONE_CHECK(check_reference_in_double());
    }
    CAPSTONE_TRY(std::string wrong, buffers_.verify(fingerprints));
    if (wrong.empty() && first && (!arms_[a].trusted || arms_[a].python)) {
      CAPSTONE_TRY(wrong, buffers_.probe(false));
    }
    strictly_checked_.insert(a);
    if (!wrong.empty() && arms_[a].trusted && arms_[a].python) {
      if (arms_[a].note.empty()) arms_[a].note = "is outside the problem's tolerance itself: " + wrong;
      return Nothing(timed);
    }
    if (!wrong.empty()) {
      if (arms_[a].trusted)
        return fail("a timed run of the baseline went wrong: " + wrong, setup_.problem->id,
                    "run `capstone doctor`", ExitCode::kEnvironment);
      arms_[a].failure =
          failed_at_measure(wrong, {},
                            "right at the small sizes and wrong at the measured one: look for 32-bit "
                            "index overflow, a grid that is too small, or results kept between calls");
      workers_[a].reset();
      return Nothing();
    }
    return Nothing(timed);
  }

  // PyTorch's eager says what timed runs should give: once it is held to itself in float64 on these inputs.
  Result<void> check_reference_in_double() {
    Json request = buffers_.run_request(false, 1, 0);
    request["op"] = "self_check";
    auto answer = workers_[0]->ask(request, setup_.run_timeout);
    if (!answer && answer.error().kind != WorkerFailure::Kind::kReported)
      return take_failure(0, answer.error());
    const auto worst = answer ? answer->number("worst") : std::nullopt;
    if (!worst)
      arms_[0].note = "was not compared with float64 at the measured size" +
                      (answer ? std::string() : ": " + answer.error().what);
    else if (!(*worst <= 1))
      arms_[0].note =
          fmt::format("is {:.3g} times the tolerance away from float64 at the measured size", *worst);
    return {};
  }

  Result<int> warm_up(std::size_t a) {
    std::vector<double> times;
    while (static_cast<int>(times.size()) < kWarmUpMost && alive(a)) {
      CAPSTONE_TRY(double ms, sample(a));
      times.push_back(ms);
      if (times.size() >= 10 && stable(times)) break;
      double spent = 0;
      for (double t : times) spent += t;
      if (times.size() >= 3 && spent > kWarmAfter) break;  // slow kernels need no thirty runs to be warm
    }
    return static_cast<int>(times.size());
  }

  // Back-to-back launches without a flush, and the host's view of them. Shown, never graded.
  Result<void> warm(std::size_t a) {
    CAPSTONE_TRY(auto right, verified_run(a, 0));  // leaves inputs, and for prepare() its result, in place
    if (!right) return {};
    double ms = arms_[a].samples.back().empty() ? 1 : median(arms_[a].samples.back());
    int repeat = std::clamp(static_cast<int>(100 / std::max(ms, 0.01)), 1, 50);
    auto answer = workers_[a]->ask(buffers_.run_request(false, repeat, 0), setup_.run_timeout);
    if (!answer) return take_failure(a, answer.error());
    if (!arms_[a].trusted) arms_[a].libraries.merge(workers_[a]->libraries());
    if (!arms_[a].trusted && !arms_[a].kernels) arms_[a].kernels = workers_[a]->kernels();
    arms_[a].warm.push_back(answer->number("ms").value_or(0));
    arms_[a].host.push_back(answer->number("host_ms").value_or(0));
    return {};
  }

  bool all_narrow() const {
    for (std::size_t a = setup_.reference + 1; a < arms_.size(); ++a)
      if (alive(a) && (a == setup_.reference + 1 || a >= setup_.first_candidate) && !narrow_enough(ratio(a)))
        return false;
    return true;
  }
  Interval ratio(std::size_t a) const {
    return bootstrap_ratio(log_ratios(arms_[setup_.reference], arms_[a]), 1000, 1);
  }

 public:
  static std::vector<std::vector<double>> log_ratios(const TimedArm& reference, const TimedArm& arm) {
    std::vector<std::vector<double>> logs;
    for (std::size_t r = 0; r < arm.block_medians.size(); ++r) {
      logs.emplace_back();
      for (std::size_t b = 0; b < arm.block_medians[r].size() && b < reference.block_medians[r].size(); ++b)
        logs.back().push_back(std::log(reference.block_medians[r][b] / arm.block_medians[r][b]));
    }
    return logs;
  }

 private:
  // The reference alone against the reference in company.
  std::string solo_difference() const {
    const std::vector<double> company = arms_[setup_.reference].all_samples();
    if (solo_.empty() || company.empty()) return {};
    Interval alone = median_interval(solo_), together = median_interval(company);
    double slack = 0.03 * together.point;
    if (together.low - slack <= alone.high && alone.low <= together.high + slack) return {};
    return fmt::format(
        "the reference took {} alone and {} with the candidates: something ran in the background",
        format_time_ms(alone.point), format_time_ms(together.point));
  }

  const GateTwoSetup& setup_;
  std::vector<TimedArm>& arms_;
  DeviceBuffers buffers_;
  std::vector<std::unique_ptr<Runner>> workers_;
  std::vector<double> solo_;
  std::set<std::size_t> strictly_checked_;  ///< arms that have run on the probed inputs
  const std::uint64_t probe_seed_ = fresh_seed();
  std::vector<std::string> run_again_;
  std::string disturbed_;
  bool probed_ = false;
  struct {
    double starting = 0, warming_up = 0, sampling = 0, warm = 0;  // s
  } spent_;
  std::mt19937_64 random_{fresh_seed()};
};

}  // namespace

std::vector<double> TimedArm::all_samples() const {
  std::vector<double> all;
  for (const auto& restart : samples) all.insert(all.end(), restart.begin(), restart.end());
  return all;
}

Result<GateTwoOutcome> gate_two(const GateTwoSetup& setup, std::vector<TimedArm>& arms) {
  return TimedRun(setup, arms).run();
}

std::optional<HostTimerView> host_timer_view(const TimedArm& reference, const TimedArm& arm) {
  std::vector<double> way;
  for (std::size_t i = 0; i < reference.host_timer.size(); ++i)
    way.push_back(reference.host_timer[i] - reference.plain[i]);
  const std::vector<double> samples = arm.all_samples();
  if (way.size() < 6 || arm.host_timer.size() < 6 || samples.empty()) return std::nullopt;
  const Interval overhead = median_interval(way), outside = median_interval(arm.host_timer);
  HostTimerView view;
  view.ms = outside.point - overhead.point;
  view.slack_ms = overhead.high - overhead.low + outside.high - outside.low;
  const double allowed = 1.05 * median(samples) + 0.003 + view.slack_ms;
  view.agrees = view.ms <= allowed;
  view.host_bound = !view.agrees && view.ms <= allowed + arm.launch_ms;
  return view;
}

double longest_hidden_ns(const std::vector<TimedArm>& arms, std::size_t a) {
  const auto is_claim = [](const TimedArm& arm) { return !arm.trusted && !arm.trusted_clock; };
  const bool beside_python =
      std::any_of(arms.begin(), arms.end(), [&](const TimedArm& arm) { return arm.python && is_claim(arm); });
  if (is_claim(arms[a])) return arms[a].python ? double(kHidePython) : kHideClaimed;
  return beside_python ? double(kHidePython) : kHideTrusted;
}

std::string bound_by_launches(const std::vector<TimedArm>& arms, std::size_t a) {
  const std::vector<double> samples = arms[a].all_samples();
  const double hidden_ms = longest_hidden_ns(arms, a) / 1e6;
  if (samples.empty() || arms[a].launch_ms - hidden_ms <= 0.5 * median(samples)) return {};
  return fmt::format("bound by its launches: the host takes {} for one, {} of it hidden",
                     format_time_ms(arms[a].launch_ms), format_time_ms(hidden_ms));
}

std::vector<std::vector<double>> log_ratios(const TimedArm& reference, const TimedArm& arm) {
  return TimedRun::log_ratios(reference, arm);
}

}  // namespace capstone
