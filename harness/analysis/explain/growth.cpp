#include "harness/analysis/explain/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "harness/analysis/explain/advice.h"
#include "harness/correctness/cases.h"

namespace capstone {
namespace {

constexpr double kMostFlops = 5e7, kMostBytes = 64e6;  // of the run that tests the rule: about a second
constexpr double kMostOff = 0.1;                       // of its total

using Line = std::tuple<std::string, std::string, int>;  // kernel, file, line
Line name_of(const KernelCounts& kernel, const LineCounts& line) {
  return {kernel.function.empty() ? kernel.kernel : kernel.function, line.file, line.line};
}

std::map<Line, double> clocks_of(const Explanation& e) {
  std::map<Line, double> clocks;
  for (const KernelCounts& kernel : e.kernels)
    for (const LineCounts& line : kernel.lines) clocks[name_of(kernel, line)] += modelled_clocks(line);
  return clocks;
}

double total_of(const std::map<Line, double>& clocks) {
  double sum = 0;
  for (const auto& [line, each] : clocks) sum += each;
  return sum;
}

double clocks_at(const std::map<Line, double>& clocks, const Line& line) {
  const auto found = clocks.find(line);
  return found == clocks.end() ? 0 : found->second;
}

// `factor` times the value of one symbol, but not more than at the measured size.
Result<std::optional<Sizes>> with_larger(const Problem& problem, Sizes sizes, std::size_t symbol,
                                         std::int64_t factor) {
  std::int64_t& value = sizes[symbol].second;
  value = std::min(factor * value, problem.measure[symbol].second);
  CAPSTONE_TRY(const bool fits, admissible(problem, sizes));
  if (!fits) return std::optional<Sizes>();
  CAPSTONE_TRY(const Cost cost, cost_at(problem, sizes));
  if (cost.flops > kMostFlops || cost.bytes > kMostBytes) return std::optional<Sizes>();
  return std::optional<Sizes>(std::move(sizes));
}

}  // namespace

Result<std::optional<GrowthPlan>> plan_growth(const Problem& problem, const Sizes& observed) {
  GrowthPlan plan{{}, observed};
  const std::optional<GrowthPlan> none;
  for (std::size_t i = 0; i < observed.size(); ++i) {
    const std::int64_t here = observed[i].second, measured = problem.measure[i].second;
    if (here > measured) return none;
    if (here == measured) continue;
    CAPSTONE_TRY(auto larger, with_larger(problem, observed, i, 2));
    CAPSTONE_TRY(auto all, with_larger(problem, plan.all, i, 2));
    if (!larger || !all) return none;
    plan.steps.push_back({i, std::move(*larger)});
    plan.all = std::move(*all);
  }
  if (plan.steps.empty()) return none;
  if (plan.steps.size() == 1) {  // what taught the rule cannot test it
    CAPSTONE_TRY(auto all, with_larger(problem, observed, plan.steps.front().symbol, 4));
    if (!all || *all == plan.steps.front().sizes) return none;
    plan.all = std::move(*all);
  }
  return std::optional<GrowthPlan>(std::move(plan));
}

void extend_to_measured(Explanation& e, const Problem& problem, const Sizes& observed, const GrowthPlan& plan,
                        std::span<const Explanation> larger, const Explanation& all) {
  const std::map<Line, double> base = clocks_of(e);
  std::vector<std::map<Line, double>> grown;
  for (const Explanation& each : larger) grown.push_back(clocks_of(each));
  const auto predicted = [&](const Line& line, const Sizes& sizes) {
    const double here = clocks_at(base, line);
    double clocks = here;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const std::size_t symbol = plan.steps[i].symbol;
      const auto from = static_cast<double>(observed[symbol].second),
                 learnt = static_cast<double>(plan.steps[i].sizes[symbol].second),
                 to = static_cast<double>(sizes[symbol].second);
      const double ratio = here > 0 ? clocks_at(grown[i], line) / here : 1;
      clocks *= ratio > learnt / from  // faster than the size: n^2 of an attention's scores
                    ? std::pow(to / from, std::log(ratio) / std::log(learnt / from))
                    : std::max(0.0, 1 + (ratio - 1) / (learnt - from) * (to - from));
    }
    return clocks;
  };
  double expected = 0;
  for (const auto& [line, clocks] : base) expected += predicted(line, plan.all);
  const double seen = total_of(clocks_of(all));
  if (!(std::fabs(expected - seen) <= kMostOff * seen)) {
    e.caution += fmt::format(
        "{}the counts do not grow by a rule from {} to {}: costs and advice are those of the size shown; "
        "choose a larger one with --size",
        e.caution.empty() ? "" : "; ", to_string(observed), to_string(plan.all));
    return;
  }
  rank_lines(e, [&](const KernelCounts& kernel, const LineCounts& line) {
    const double here = clocks_at(base, name_of(kernel, line));
    return here > 0 ? modelled_clocks(line) / here * predicted(name_of(kernel, line), problem.measure) : 0;
  });
  e.shares_at = sizes_json(problem.measure);
}

}  // namespace capstone
