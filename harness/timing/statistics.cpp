#include "harness/timing/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace capstone {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeastFloor = 0.01;  // no speedup below 1 % is ever called one
constexpr double kNormal975 = 1.959963984540054;

/// SplitMix64 (Steele, Lea, Flood 2014): four operations a draw, and a bootstrap needs ten million.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<std::size_t>(((z >> 32) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

/// The q-quantile of unsorted values, interpolated between neighbours; reorders them.
double quantile(std::vector<double>& values, double q) {
  const double position = q * static_cast<double>(values.size() - 1);
  const auto rank = static_cast<std::size_t>(position);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), nth, values.end());
  if (nth + 1 == values.end()) return *nth;
  const double above = *std::min_element(nth + 1, values.end());
  return *nth + (position - static_cast<double>(rank)) * (above - *nth);
}

double resampled_mean(const std::vector<const std::vector<double>*>& restarts, Draws& draws) {
  double total = 0;
  std::size_t count = 0;
  for (std::size_t r = 0; r < restarts.size(); ++r) {
    const std::vector<double>& blocks = *restarts[draws.below(restarts.size())];
    for (std::size_t b = 0; b < blocks.size(); ++b) total += blocks[draws.below(blocks.size())];
    count += blocks.size();
  }
  return total / static_cast<double>(count);
}

double plain_mean(const std::vector<const std::vector<double>*>& restarts) {
  double total = 0;
  std::size_t count = 0;
  for (const auto* blocks : restarts) {
    for (const double value : *blocks) total += value;
    count += blocks->size();
  }
  return total / static_cast<double>(count);
}

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

}  // namespace

double median(std::span<const double> samples) {
  if (samples.empty()) return kNaN;
  std::vector<double> values(samples.begin(), samples.end());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

Interval median_interval(std::span<const double> samples) {
  if (samples.empty()) return {kNaN, kNaN, kNaN};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double n = static_cast<double>(sorted.size());
  if (sorted.size() < 6) return {median_of_sorted(sorted), sorted.front(), sorted.back()};
  // Ranks, counted from 1, of the order statistics that enclose the median.
  const double spread = kNormal975 * std::sqrt(n);
  const double low = std::max(1.0, std::floor((n - spread) / 2)),
               high = std::min(n, std::ceil(1 + (n + spread) / 2));
  return {median_of_sorted(sorted), sorted[static_cast<std::size_t>(low) - 1],
          sorted[static_cast<std::size_t>(high) - 1]};
}

Interval bootstrap_ratio(const std::vector<std::vector<double>>& log_ratios, int resamples,
                         std::uint64_t seed) {
  std::vector<const std::vector<double>*> restarts;
  for (const auto& blocks : log_ratios)
    if (!blocks.empty()) restarts.push_back(&blocks);
  if (restarts.empty() || resamples < 1) return {kNaN, kNaN, kNaN};
  Draws draws(seed);
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (double& mean : means) mean = resampled_mean(restarts, draws);
  const double point = std::exp(plain_mean(restarts));
  if (!std::isfinite(point)) return {kNaN, kNaN, kNaN};
  return {point, std::exp(quantile(means, 0.025)), std::exp(quantile(means, 0.975))};
}

RatioVerdict decide(Interval speedup, Interval a_over_a, bool budget_spent) {
  RatioVerdict result;
  const double same = std::max(std::fabs(a_over_a.low - 1), std::fabs(a_over_a.high - 1));
  result.floor = same > kLeastFloor ? same : kLeastFloor;
  const bool known = std::isfinite(speedup.low) && std::isfinite(speedup.high) && std::isfinite(same);
  const bool inside = speedup.low >= 1 - result.floor && speedup.high <= 1 + result.floor;
  if (known && speedup.low > 1 + result.floor)
    result.verdict = GateTwo::kFaster;
  else if (known && speedup.high < 1 - result.floor)
    result.verdict = GateTwo::kSlower;
  else if (known && (inside || narrow_enough(speedup)))
    result.verdict = GateTwo::kTie;
  else
    result.verdict = budget_spent ? GateTwo::kUnresolved : GateTwo::kNotJudged;
  return result;
}

GateTwo of_both_states(GateTwo clean, GateTwo dirty) {
  if (clean == dirty) return clean;
  const auto decided = [](GateTwo verdict) {
    return verdict == GateTwo::kFaster || verdict == GateTwo::kSlower || verdict == GateTwo::kTie;
  };
  const bool one_ties = clean == GateTwo::kTie || dirty == GateTwo::kTie;
  return decided(clean) && decided(dirty) && one_ties ? GateTwo::kTie : GateTwo::kUnresolved;
}

bool narrow_enough(Interval speedup, double share) {
  return speedup.point > 0 && (speedup.high - speedup.low) / 2 <= share * speedup.point;
}

bool stable(std::span<const double> warm_up_ms) {
  constexpr std::size_t kRun = 5;
  constexpr double kMostDrift = 0.02;
  if (warm_up_ms.size() < 2 * kRun) return false;
  const double last = median(warm_up_ms.last(kRun));
  const double before = median(warm_up_ms.last(2 * kRun).first(kRun));
  return std::fabs(last - before) <= kMostDrift * before;
}

}  // namespace capstone
