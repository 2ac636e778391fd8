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

constexpr double kMostFlops = 7e7, kMostBytes = 64e6;  // of the run that tests the rule: about a second
constexpr double kMostOff = 0.1;                       // of its total

using Line = std::tuple<std::string, std::string, int>;  // kernel, file, line
Line name_of(const KernelCounts& kernel, const LineCounts& line) {
  return {kernel.function.empty() ? kernel.kernel : kernel.function, line.file, line.line};
}

using Quantity = double (*)(const LineCounts&);
double clocks_of(const LineCounts& line) { return modelled_clocks(line); }
double moved_by(const LineCounts& line) { return line.moved_bytes(); }
double flops_of(const LineCounts& line) { return double(line.flops); }

std::map<Line, double> per_line(const Explanation& e, Quantity quantity) {
  std::map<Line, double> values;
  for (const KernelCounts& kernel : e.kernels)
    for (const LineCounts& line : kernel.lines) values[name_of(kernel, line)] += quantity(line);
  return values;
}

double total_of(const std::map<Line, double>& values) {
  double sum = 0;
  for (const auto& [line, each] : values) sum += each;
  return sum;
}

double value_at(const std::map<Line, double>& values, const Line& line) {
  const auto found = values.find(line);
  return found == values.end() ? 0 : found->second;
}

/// By how much of itself it is larger; 0: there was none.
double growth_of(double before, double after) { return before > 0 ? after / before - 1 : 0; }

/// How one quantity of each line grows.
class Rule {
 public:
  Rule(const GrowthPlan& plan, const GrowthRuns& runs, Quantity quantity)
      : plan_(plan), base_(per_line(runs.from, quantity)) {
    for (const Explanation& each : runs.larger) grown_.push_back(per_line(each, quantity));
    const double seen = total_of(per_line(runs.all, quantity));
    holds_ = std::fabs(predicted(plan_.all) - seen) <= kMostOff * seen;
  }

  double predicted(const Line& line, const Sizes& sizes) const {
    const double here = value_at(base_, line);
    double value = here;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const std::size_t symbol = plan_.steps[i].symbol;
      const auto from = static_cast<double>(plan_.from[symbol].second),
                 learnt = static_cast<double>(plan_.steps[i].sizes[symbol].second),
                 to = static_cast<double>(sizes[symbol].second);
      const double ratio = here > 0 ? value_at(grown_[i], line) / here : 1;
      const double larger = learnt / from, times = to / from;
      if (ratio <= larger)
        value *= std::max(0.0, 1 + (ratio - 1) / (larger - 1) * (times - 1));
      else if (ratio <= larger * larger)  // n^2, as of an attention's scores, or n (n + 1) / 2 under a mask
        value *= times * (1 + (ratio / larger - 1) / (larger - 1) * (times - 1));
      else
        value *= std::pow(times, std::log(ratio) / std::log(larger));
    }
    return value;
  }
  double predicted(const Sizes& sizes) const {
    double sum = 0;
    for (const auto& [line, value] : base_) sum += predicted(line, sizes);
    return sum;
  }
  /// Whether it predicts the total of the run that tests it.
  bool holds() const { return holds_; }

 private:
  const GrowthPlan& plan_;
  std::map<Line, double> base_;
  std::vector<std::map<Line, double>> grown_;
  bool holds_ = false;
};

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
  GrowthPlan plan{{}, observed, observed};
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

Sizes full_tiles(const GrowthPlan& plan, const GrowthRuns& runs) {
  Sizes sizes = plan.from;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const double own = growth_of(double(runs.from.total.flops), double(runs.larger[i].total.flops)),
                 needed = growth_of(runs.from.compulsory_flops, runs.larger[i].compulsory_flops);
    if (runs.from.total.flops > 0 && own < kMostOff * needed)
      sizes[plan.steps[i].symbol] = plan.steps[i].sizes[plan.steps[i].symbol];
  }
  return sizes;
}

void extend_to_measured(Explanation& e, const Problem& problem, const GrowthPlan& plan,
                        const GrowthRuns& runs) {
  if (const Rule moved(plan, runs, moved_by); moved.holds())
    e.moved_at_measured = moved.predicted(problem.measure);
  if (const Rule passes(plan, runs, l1_passes), flops(plan, runs, flops_of);
      passes.holds() && flops.holds()) {
    e.passes_at_measured = passes.predicted(problem.measure);
    e.flops_at_measured = flops.predicted(problem.measure);
  }
  const Rule clocks(plan, runs, clocks_of);
  if (!clocks.holds()) {
    e.caution += fmt::format(
        "{}the counts do not grow by a rule from {} to {}: costs and advice are those of the size shown; "
        "choose a larger one with --size",
        e.caution.empty() ? "" : "; ", to_string(plan.from), to_string(plan.all));
    return;
  }
  const std::map<Line, double> observed = per_line(e, clocks_of);
  rank_lines(e, [&](const KernelCounts& kernel, const LineCounts& line) {
    const Line name = name_of(kernel, line);
    const double here = value_at(observed, name);
    return here > 0 ? modelled_clocks(line) / here * clocks.predicted(name, problem.measure) : 0;
  });
  e.shares_at = sizes_json(problem.measure);
}

}  // namespace capstone
