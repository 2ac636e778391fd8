#include "harness/judge/gate_two.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "harness/base/text.h"
#include "harness/judge/disturbance.h"
#include "harness/runtime/cuda/device_buffers.h"
#include "harness/timing/statistics.h"

namespace capstone {
namespace {

constexpr int kMaxRestarts = 12;
constexpr int kBlocks = 6;   // per restart
constexpr int kDropped = 2;  // samples after a switch of arms
constexpr double kLong =
    20;  // ms; a launch this long has forgotten what ran before it: one sample is dropped
constexpr int kLeast = 3, kMost = 4;  // samples of a block under each state of the cache
constexpr int kWarmUpMost = 30;
constexpr double kWarmAfter = 500;                     // ms of launches, three at least
constexpr int kHostTimed = 3;                          // launches a block that the judge times itself
constexpr int kAgain = 3;                              // times that a disturbed block is run again
constexpr double kNarrow = 0.01, kNarrowQuick = 0.03;  // half-widths that end the sampling
// Checks off the clock: launches, their random gaps, and when slow kernels have had enough of them.
constexpr int kExtraChecks = 200, kExtraChecksLeast = 10;
constexpr int kWatched = 20;  // of them, with a look at the guard bands during the run
constexpr double kLongestGap = 10, kExtraSeconds = 3;  // ms, s
// Sustained runs: the chip gets warm for a while, then the same for the record.
constexpr int kSustainedRounds = 3;
constexpr double kHeat = 400, kSustained = 400;  // ms a round

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
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
      if (all_narrow() || seconds_since(begun) > budget) break;
    }
    outcome.budget_spent = !all_narrow();
    if (setup_.sustained) CAPSTONE_CHECK(run_sustained());
    if (setup_.extra_checks) CAPSTONE_CHECK(check_off_the_clock());
    CAPSTONE_TRY(Json after, setup_.gpu_host->telemetry());
    outcome.telemetry["after"] = after;
    outcome.telemetry["run_again"] = run_again_;
    outcome.telemetry["blocks"] = blocks();
    outcome.telemetry["seconds"] = seconds_;
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
    // Starting the arms and checking each run is not in the budget; the restarts so far tell how long it
    // takes.
    event.expected_seconds =
        restart == 1 ? budget : std::max(budget, seconds / (restart - 1) * setup_.restarts);
    setup_.say(event);
  }

  void spend(const char* stage, Clock::time_point begun) {
    seconds_[stage] = seconds_.value(stage, 0.0) + seconds_since(begun);
  }

  // Every arm's clock and power after each of its blocks.
  Json blocks() const {
    Json all = Json::array();
    for (const TimedArm& arm : arms_) {
      Json mhz = Json::array(), watts = Json::array();
      for (const PowerReading& reading : arm.power) {
        mhz.push_back(reading.sm_mhz);
        watts.push_back(std::round(reading.watts));
      }
      all.push_back({{"arm", arm.name}, {"sm_mhz", std::move(mhz)}, {"watts", std::move(watts)}});
    }
    return all;
  }

  bool alive(std::size_t arm) const { return !arms_[arm].failure && !arms_[arm].left_out; }

  Result<void> one_restart(int restart, double budget) {
    workers_.resize(arms_.size());
    auto begun = Clock::now();
    stop_workers();
    spend("stopping", begun);
    begun = Clock::now();
    CAPSTONE_CHECK(buffers_.map());
    spend("of_starting_memory", begun);
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
    spend("starting", begun);
    begun = Clock::now();
    double slowest = 0;
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (alive(a)) {
        auto t = Clock::now();
        CAPSTONE_TRY(int samples, warm_up(a));
        slowest = std::max(slowest, seconds_since(t) / std::max(1, samples));
      }
    spend("warming_up", begun);
    begun = Clock::now();
    // As many samples a block as the budget of one restart allows.
    const double runs =
        budget / setup_.restarts * 0.8 / std::max(1e-4, slowest * double(arms_.size()) * kBlocks);
    const int count = std::clamp((static_cast<int>(runs) - kDropped) / 2, kLeast, kMost);
    for (TimedArm& arm : arms_)
      for (CacheState state : kCacheStates) {
        arm.series(state).samples.emplace_back();
        arm.series(state).block_medians.emplace_back();
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
    spend("sampling", begun);
    begun = Clock::now();
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (alive(a)) CAPSTONE_CHECK(warm(a));
    spend("warm", begun);
    return {};
  }

  std::vector<std::size_t> in_random_order() {
    std::vector<std::size_t> order(arms_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  // Every arm once, in random order. Empty text, or why the block should not count.
  Result<std::string> one_block(int count) {
    std::vector<PowerReading> readings;
    std::string disturbance;
    for (std::size_t a : in_random_order()) {
      if (alive(a)) CAPSTONE_CHECK(part_of_block(a, count));
      if (!alive(a)) continue;
      const auto begun = Clock::now();
      CAPSTONE_TRY(Json seen, setup_.gpu_host->telemetry());
      spend("of_samples_telemetry", begun);
      arms_[a].power.push_back(power_of(seen));
      readings.push_back(arms_[a].power.back());
      if (std::string why = disturbance_in(seen); !why.empty()) disturbance = why;
    }
    return disturbance.empty() ? clock_change(readings) : disturbance;
  }
  // `count` samples under each state of the cache, in turn, then those that the judge times itself.
  Result<void> part_of_block(std::size_t a, int count) {
    int dropped = kDropped;
    for (int i = 0; i < dropped && alive(a); ++i) {
      CAPSTONE_TRY(const double ms, sample(a, CacheState::kClean));
      if (ms > kLong) dropped = 1;
    }
    std::vector<double> kept[kCacheStates.size()];
    for (int i = 0; i < count && alive(a); ++i)
      for (CacheState state : kCacheStates) {
        if (!alive(a)) continue;
        CAPSTONE_TRY(const double ms, sample(a, state));
        kept[static_cast<std::size_t>(state)].push_back(ms);
      }
    if (any_claims())
      for (int i = 0; i < kHostTimed && alive(a); ++i) CAPSTONE_CHECK(host_timer_sample(a));
    if (!alive(a)) return {};
    for (CacheState state : kCacheStates) {
      const std::vector<double>& times = kept[static_cast<std::size_t>(state)];
      Series& series = arms_[a].series(state);
      series.block_medians.back().push_back(median(times));
      series.samples.back().insert(series.samples.back().end(), times.begin(), times.end());
    }
    return {};
  }
  static void drop_block(TimedArm& arm, int count) {
    for (CacheState state : kCacheStates) {
      Series& series = arm.series(state);
      if (!series.block_medians.back().empty()) series.block_medians.back().pop_back();
      auto& all = series.samples.back();
      all.resize(all.size() - std::min(all.size(), static_cast<std::size_t>(count)));
    }
  }
  bool any_claims() const {
    return std::any_of(arms_.begin(), arms_.end(),
                       [](const TimedArm& arm) { return arm.is_claim() && !arm.failure; });
  }

  // All at once: taking a CUDA context down takes a while, too. Optional baselines live on: torch.compile
  // takes longer than all samples of a restart, and nothing is decided by their times.
  void stop_workers() {
    std::vector<std::future<void>> stopping;
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (!arms_[a].optional && workers_[a])
        stopping.push_back(std::async(std::launch::async, [&worker = workers_[a]] { worker.reset(); }));
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
  Result<double> sample(std::size_t a, CacheState state = CacheState::kClean) {
    CAPSTONE_TRY(auto timed, verified_run(a, hide_ns(a), state));
    if (!timed) return std::nan("");
    arms_[a].launch_ms =
        arms_[a].launch_ms == 0 ? timed->launch_ms : 0.7 * arms_[a].launch_ms + 0.3 * timed->launch_ms;
    return timed->ms;
  }
  // One launch that nothing hides, by the judge's own clock: from the request to the answer, which is sent
  // after the whole device has come to rest.
  Result<void> host_timer_sample(std::size_t a) {
    CAPSTONE_TRY(auto timed, verified_run(a, arms_[a].python ? static_cast<std::int64_t>(kHidePython) : 0));
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
  // `watched`: with a look at the guard bands while it runs.
  Result<std::optional<Timed>> verified_run(std::size_t a, std::int64_t hide,
                                            CacheState state = CacheState::kClean, bool watched = false) {
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
    auto begun = Clock::now();
    CAPSTONE_CHECK(buffers_.fill(seed, state == CacheState::kDirty));
    spend("of_samples_filling", begun);
    begun = Clock::now();
    Json request = buffers_.run_request(false, 1, hide);
    if (watched) request["watch"] = buffers_.guard_bands();
    auto answer = workers_[a]->ask(request, setup_.run_timeout);
    const double host_timer_ms = seconds_since(begun) * 1000;
    spend("of_samples_running", begun);
    begun = Clock::now();
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
    arms_[a].compile_seconds =
        std::max(arms_[a].compile_seconds, answer->number(kCompileSeconds).value_or(0));
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
    spend("of_samples_checking", begun);
    if (watched && said.value("touched", false))
      wrong = "memory outside the tensors was written during a run, and put back";
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
    double ms = arms_[a].clean.samples.back().empty() ? 1 : median(arms_[a].clean.samples.back());
    int repeat = std::clamp(static_cast<int>(100 / std::max(ms, 0.01)), 1, 50);
    auto answer = workers_[a]->ask(buffers_.run_request(false, repeat, 0), setup_.run_timeout);
    if (!answer) return take_failure(a, answer.error());
    if (!arms_[a].trusted) arms_[a].libraries.merge(workers_[a]->libraries());
    if (!arms_[a].trusted && !arms_[a].kernels) arms_[a].kernels = workers_[a]->kernels();
    arms_[a].warm.push_back(answer->number("ms").value_or(0));
    arms_[a].host.push_back(answer->number("host_ms").value_or(0));
    return {};
  }

  // Launches back to back, the chip kept warm: every arm in each round, in random order. Shown, never graded.
  Result<void> run_sustained() {
    const auto begun = Clock::now();
    setup_.say({Stage::kSustained, {}});
    for (int round = 0; round < kSustainedRounds; ++round)
      for (std::size_t a : in_random_order())
        if (alive(a)) CAPSTONE_CHECK(sustain(a));
    spend("sustained", begun);
    return {};
  }
  Result<void> sustain(std::size_t a) {
    CAPSTONE_TRY(auto right, verified_run(a, 0));  // leaves inputs, and for prepare() its result, in place
    if (!right) return {};
    const double ms = std::max(arms_[a].warm.empty() ? right->ms : arms_[a].warm.back(), 1e-3);
    double sustained_ms = 0;
    for (const double length : {kHeat, kSustained}) {
      const int repeat = std::max(1, static_cast<int>(length / ms));
      auto answer = workers_[a]->ask(buffers_.run_request(false, repeat, 0), setup_.run_timeout);
      if (!answer) return take_failure(a, answer.error());
      sustained_ms = answer->number("ms").value_or(0);  // the second, of the warm chip, stays
    }
    CAPSTONE_TRY(const Json seen, setup_.gpu_host->telemetry());
    arms_[a].sustained.push_back({sustained_ms, power_of(seen)});
    return {};
  }

  // A kernel may be honest as long as a judge usually looks. So each candidate runs on for a while, with
  // fresh inputs and random gaps; the results are checked, the times are not used.
  Result<void> check_off_the_clock() {
    const auto begun = Clock::now();
    std::uniform_real_distribution<double> gap(0, kLongestGap);
    for (std::size_t a = setup_.first_candidate; a < arms_.size(); ++a) {
      if (!alive(a)) continue;
      setup_.say({Stage::kExtraChecks, arms_[a].name});
      const auto start = Clock::now();
      for (int& i = arms_[a].extra_checks; alive(a) && i < kExtraChecks; ++i) {
        if (i >= kExtraChecksLeast && seconds_since(start) > kExtraSeconds) break;
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(gap(random_)));
        const bool watched = arms_[a].trusted_clock && i < kWatched;
        CAPSTONE_TRY(const auto right, verified_run(a, hide_ns(a), CacheState::kClean, watched));
        (void)right;
      }
      if (arms_[a].failure && arms_[a].extra_checks > kWatched)
        arms_[a].failure->hint =
            "right while it was timed, and wrong afterwards: results must not depend on how often or for how "
            "long the kernel has run";
    }
    spend("extra_checks", begun);
    return {};
  }

  bool all_narrow() const {
    for (std::size_t a = setup_.reference + 1; a < arms_.size(); ++a)
      if (alive(a) && (a == setup_.reference + 1 || a >= setup_.first_candidate))
        for (CacheState state : kCacheStates)
          if (!narrow_enough(ratio(a, state), setup_.quick ? kNarrowQuick : kNarrow)) return false;
    return true;
  }
  Interval ratio(std::size_t a, CacheState state) const {
    return bootstrap_ratio(log_ratios(arms_[setup_.reference].series(state), arms_[a].series(state)), 1000,
                           1);
  }

  // The reference alone against the reference in company.
  std::string solo_difference() const {
    const std::vector<double> company = arms_[setup_.reference].clean.all();
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
  Json seconds_ = Json::object();  ///< [s] by stage; those of samples are parts of warming up and sampling
  std::mt19937_64 random_{fresh_seed()};
};

}  // namespace

Result<GateTwoOutcome> gate_two(const GateTwoSetup& setup, std::vector<TimedArm>& arms) {
  return TimedRun(setup, arms).run();
}

}  // namespace capstone
