#include "harness/judge/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/text.h"
#include "harness/model/labels.h"
#include "harness/runtime/python/kernels.h"
#include "harness/timing/roofline.h"
#include "harness/timing/statistics.h"

namespace capstone {
namespace {

constexpr int kResamples = 10000;
constexpr std::size_t kLeastEmulated = 5;  // samples

std::vector<double> values_of(const std::vector<SustainedRun>& runs, double (*what)(const SustainedRun&)) {
  std::vector<double> values;
  for (const SustainedRun& run : runs) values.push_back(what(run));
  return values;
}

Arm finished_arm(const TimedArm& timed) {
  Arm arm;
  arm.name = timed.name;
  arm.label = timed.label;
  arm.median_ms = median_interval(timed.clean.all());
  if (!timed.warm.empty()) arm.warm_ms = median(timed.warm);
  if (!timed.host.empty()) arm.host_ms = median(timed.host);
  arm.launch_ms = timed.launch_ms;
  arm.samples_ms = timed.clean.samples;
  if (const auto dirty = timed.dirty.all(); !dirty.empty()) {
    arm.dirty_ms = median_interval(dirty);
    arm.dirty_samples_ms = timed.dirty.samples;
  }
  if (timed.sustained.empty()) return arm;
  const auto& runs = timed.sustained;
  arm.sustained_ms = median_interval(values_of(runs, [](const SustainedRun& run) { return run.ms; }));
  arm.sustained_watts = median(values_of(runs, [](const SustainedRun& run) { return run.power.watts; }));
  arm.sustained_sm_mhz = median(values_of(runs, [](const SustainedRun& run) { return run.power.sm_mhz; }));
  return arm;
}

// What cannot be by the data sheet is never called faster. The label tells a mentor what to ask; only a
// person can accept the answer.
void refuse_the_impossible(const Roofline& roof, double ms, Measurement& m) {
  if (roof.floor_ms <= 0 || ms >= roof.floor_ms) return;
  const std::string what = fmt::format("{} is less than the {} that the data sheet allows for this work",
                                       format_time_ms(ms), format_time_ms(roof.floor_ms));
  m.labels.push_back(std::string(kNeedsExplanation) + what);
  m.gate_two = GateTwo::kUnresolved;
  m.gate_two_reason = what;
}

// The times of in-process execution are claims; the judge's own clock must confirm them.
void compare_clocks(const TimedArm& reference, const TimedArm& arm, Measurement& m) {
  auto view = host_timer_view(reference, arm);
  if (!view) return;
  Json seen{{"host_timer_ms", view->ms},
            {"slack_ms", view->slack_ms},
            {"launch_ms", arm.launch_ms},
            {"agrees", view->agrees}};
  m.environment["host_timer"] = std::move(seen);
  if (view->agrees) return;
  m.labels.push_back(fmt::format(
      "two clocks disagree: the kernel's process claims {}, from outside a launch takes {}{}",
      format_time_ms(median(arm.clean.all())), format_time_ms(view->ms),
      view->host_bound
          ? fmt::format("; it says that launch() keeps the host busy for {}", format_time_ms(arm.launch_ms))
          : std::string()));
  m.gate_two = GateTwo::kUnresolved;
  m.gate_two_reason = "two clocks disagree about the kernel's time";
}

struct Decision {
  const Race& race;
  const Problem& problem;
  Cost cost;                                           ///< at the `measure` sizes
  std::array<Interval, kCacheStates.size()> a_over_a;  ///< the reference against itself
  const std::function<std::uint64_t()>& random;

  const TimedArm& reference() const { return race.arms[race.reference]; }
  const TimedArm& reference_again() const { return race.arms[race.reference + 1]; }
  Interval ratio(const TimedArm& baseline, const TimedArm& arm, CacheState state) const {
    return bootstrap_ratio(log_ratios(baseline.series(state), arm.series(state)), kResamples, random());
  }
  RatioVerdict verdict(Interval speedup, CacheState state) const {
    return decide(speedup, a_over_a[static_cast<std::size_t>(state)], true);
  }
};

// The other baselines, each with the candidate's speedup over it.
void add_baselines(const Decision& d, const TimedArm& arm, Measured& measured,
                   std::vector<std::string>& labels) {
  const Race& race = d.race;
  for (std::size_t a = 0; a < race.first_candidate; ++a) {
    const TimedArm& baseline = race.arms[a];
    if (!baseline.note.empty()) labels.push_back(fmt::format("baseline {} {}", baseline.name, baseline.note));
    if (std::string bound = bound_by_launches(race.arms, a); a == race.reference && !bound.empty())
      labels.push_back(fmt::format("baseline {} is {}", baseline.name, bound));
    if (a == race.reference || a == race.reference + 1 || baseline.left_out) continue;
    measured.arms.push_back(finished_arm(baseline));
    measured.arms.back().speedup = d.ratio(baseline, arm, CacheState::kClean);
    measured.arms.back().dirty_speedup = d.ratio(baseline, arm, CacheState::kDirty);
  }
}

void add_arm_labels(const Decision& d, std::size_t at, std::vector<std::string>& labels) {
  const TimedArm& arm = d.race.arms[at];
  if (std::string bound = bound_by_launches(d.race.arms, at); !bound.empty())
    labels.push_back(std::move(bound));
  if (std::string label = label_of_libraries(arm.libraries);
      !label.empty() && std::find(labels.begin(), labels.end(), label) == labels.end())
    labels.push_back(std::move(label));
  if (arm.kernels)
    for (std::string& label : labels_of_kernels(*arm.kernels)) labels.push_back(std::move(label));
}

// Why it is open, or a tie although one state of the cache is decided.
void explain_verdict(const Decision& d, GateTwo clean, GateTwo dirty, const Measured& measured,
                     Measurement& m) {
  const bool open = clean == GateTwo::kUnresolved || dirty == GateTwo::kUnresolved;
  if (clean != dirty && !open) {
    m.gate_two_reason =
        fmt::format("depends on the cache's state: {} with a clean cache, {} with a dirty one",
                    format_speedup(measured.speedup->point), format_speedup(measured.dirty_speedup->point));
    m.labels.push_back(m.gate_two_reason);
  } else if (open) {
    m.gate_two_reason =
        fmt::format("the interval is still too wide after {:.0f} s; raise --budget", d.race.outcome.seconds);
  }
}

// A first look has times and no verdict: one start of each process says too little.
void withhold_verdict(Measurement& m) {
  const Interval ratio = *m.measured->speedup;
  m.gate_two = GateTwo::kNotJudged;
  m.gate_two_reason =
      fmt::format("a quick look, {} over {} (95 %: {} to {}); measure without --quick for a verdict",
                  format_speedup(ratio.point), m.measured->arms.front().name, format_speedup(ratio.low),
                  format_speedup(ratio.high));
  m.measured->clock = "quick look: GPU-cold events, one start of each process";
  m.measured->speedup.reset();
  m.measured->dirty_speedup.reset();
}

void decide_one(const Decision& d, std::size_t at, Measurement& m) {
  const TimedArm& arm = d.race.arms[at];
  m.environment["telemetry"] = d.race.outcome.telemetry;
  if (arm.failure) {
    m.gate_one = arm.failed_as;
    m.gate_two_reason = "a run at the measured size failed";
    m.cases.push_back(*arm.failure);
    return;
  }
  m.build.compile_seconds = std::max(m.build.compile_seconds, arm.compile_seconds);
  Measured measured;
  measured.clock = "GPU-cold events in short bursts, fresh inputs each sample";
  measured.sizes = sizes_json(d.problem.measure);
  measured.flops = d.cost.flops;
  measured.bytes = d.cost.bytes;
  if (!arm.clean.block_medians.empty())
    measured.blocks = static_cast<int>(arm.clean.block_medians.front().size());
  measured.arms = {finished_arm(d.reference()), finished_arm(d.reference_again())};
  add_baselines(d, arm, measured, m.labels);
  measured.arms.push_back(finished_arm(arm));
  measured.speedup = d.ratio(d.reference(), arm, CacheState::kClean);
  measured.dirty_speedup = d.ratio(d.reference(), arm, CacheState::kDirty);
  const RatioVerdict clean = d.verdict(*measured.speedup, CacheState::kClean),
                     dirty = d.verdict(*measured.dirty_speedup, CacheState::kDirty);
  measured.floor = clean.floor;
  measured.dirty_floor = dirty.floor;
  m.gate_two = of_both_states(clean.verdict, dirty.verdict);
  explain_verdict(d, clean.verdict, dirty.verdict, measured, m);
  const double ms = measured.arms.back().median_ms.point;
  const Roofline roof = roofline(d.cost, ms, d.race.peaks, d.problem.precision);
  measured.percent_of_peak = roof.percent;
  measured.peak = roof.peak;
  measured.bound_by = roof.bound_by;
  refuse_the_impossible(roof, ms, m);
  add_arm_labels(d, at, m.labels);
  if (!arm.trusted_clock) compare_clocks(arm.python ? d.reference() : d.race.arms[0], arm, m);
  if (!d.race.outcome.void_because.empty()) {
    m.gate_two = GateTwo::kUnresolved;
    m.gate_two_reason = d.race.outcome.void_because;
  }
  if (arm.extra_checks > 0) m.environment["extra_checks"] = arm.extra_checks;
  m.measured = std::move(measured);
  if (d.race.quick) withhold_verdict(m);
}

// CPU times of an emulated kernel. Shown as emulated; they count for nothing.
Result<void> show_emulated(const Problem& problem, const std::vector<double>& samples, Measurement& into) {
  if (samples.size() < kLeastEmulated) return {};
  CAPSTONE_TRY(const Cost cost, cost_at(problem, problem.emulate));
  Measured measured;
  measured.clock = "emulated (CPU time; counts for nothing)";
  measured.sizes = sizes_json(problem.emulate);
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

}  // namespace

Result<std::vector<Measurement>> decide(Timed timed, const Problem& problem,
                                        const std::function<std::uint64_t()>& random) {
  std::vector<Measurement> measurements;
  if (timed.race.arms.empty()) {
    for (TimedCandidate& candidate : timed.candidates) {
      CAPSTONE_CHECK(show_emulated(problem, candidate.emulated_ms, candidate.record));
      measurements.push_back(std::move(candidate.record));
    }
    return measurements;
  }
  Decision d{timed.race, problem, {}, {}, random};
  CAPSTONE_TRY(d.cost, cost_at(problem, problem.measure));
  for (CacheState state : kCacheStates)
    d.a_over_a[static_cast<std::size_t>(state)] = d.ratio(d.reference(), d.reference_again(), state);
  for (TimedCandidate& candidate : timed.candidates) {
    if (candidate.arm) decide_one(d, *candidate.arm, candidate.record);
    measurements.push_back(std::move(candidate.record));
  }
  return measurements;
}

}  // namespace capstone
