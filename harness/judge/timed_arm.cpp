#include "harness/judge/timed_arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"
#include "harness/timing/statistics.h"

namespace capstone {
namespace {

// A launch's cost on the host is hidden behind a spin. What an untrusted process says about it is believed up
// to here: during the spin it could work unseen.
constexpr double kHideTrusted = 2e6, kHideClaimed = 50e3;  // ns

}  // namespace

std::string_view name_of(CacheState state) { return state == CacheState::kClean ? "clean" : "dirty"; }

std::vector<double> Series::all() const {
  std::vector<double> all;
  for (const auto& restart : samples) all.insert(all.end(), restart.begin(), restart.end());
  return all;
}

std::optional<HostTimerView> host_timer_view(const TimedArm& reference, const TimedArm& arm) {
  std::vector<double> way;
  for (std::size_t i = 0; i < reference.host_timer.size(); ++i)
    way.push_back(reference.host_timer[i] - reference.plain[i]);
  const std::vector<double> samples = arm.clean.all();
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
  const bool with_python =
      std::any_of(arms.begin(), arms.end(), [](const TimedArm& arm) { return arm.python && arm.is_claim(); });
  if (arms[a].is_claim()) return arms[a].python ? kHidePython : kHideClaimed;
  return with_python ? kHidePython : kHideTrusted;
}

std::string bound_by_launches(const std::vector<TimedArm>& arms, std::size_t a) {
  const std::vector<double> samples = arms[a].clean.all();
  const double hidden_ms = longest_hidden_ns(arms, a) / 1e6;
  if (samples.empty() || arms[a].launch_ms - hidden_ms <= 0.5 * median(samples)) return {};
  return fmt::format("bound by its launches: the host takes {} for one, {} of it hidden",
                     format_time_ms(arms[a].launch_ms), format_time_ms(hidden_ms));
}

std::vector<std::vector<double>> log_ratios(const Series& reference, const Series& arm) {
  std::vector<std::vector<double>> logs;
  for (std::size_t r = 0; r < arm.block_medians.size(); ++r) {
    logs.emplace_back();
    for (std::size_t b = 0; b < arm.block_medians[r].size() && b < reference.block_medians[r].size(); ++b)
      logs.back().push_back(std::log(reference.block_medians[r][b] / arm.block_medians[r][b]));
  }
  return logs;
}

}  // namespace capstone
