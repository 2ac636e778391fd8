#pragma once
// Statistics of timings: medians, intervals, ratios, and gate two's verdict.
#include <cstdint>
#include <span>
#include <vector>

#include "harness/base/units.h"
#include "harness/model/record.h"

namespace capstone {

/// The middle value, or the mean of the two middle ones; NaN when there are no samples.
double median(std::span<const double> samples);

/// Median with its 95 % interval from order statistics, which assumes no distribution; for n < 6 no pair of
/// order statistics reaches 95 %, and the interval is the whole range.
/// @source  Hoefler & Belli, "Scientific Benchmarking of Parallel Computing Systems", SC 2015, section 3.1.3.
Interval median_interval(std::span<const double> samples);

/// Ratio of two arms from paired blocks: exp(mean of the log ratios) with its 95 % interval, by a bootstrap
/// that draws restarts first and blocks within each, because blocks of one process are not independent.
///
/// @param log_ratios  [restart][block] log(median_reference / median_candidate)
/// @return            NaN everywhere without samples.
/// @source  Hoefler & Belli 2015, rules 5 and 6; Davison & Hinkley, "Bootstrap Methods", 1997, section 3.8.
Interval bootstrap_ratio(const std::vector<std::vector<double>>& log_ratios, int resamples,
                         std::uint64_t seed);

struct RatioVerdict {
  GateTwo verdict = GateTwo::kNotJudged;
  double floor = 0;  ///< f: what a ratio must differ from 1 by
};

/// Gate two. f = max(1 %, upper bound of |A/A - 1|). FASTER: low > 1 + f. SLOWER: high < 1 - f. TIE:
/// otherwise, if the interval lies inside 1 ± f or its half-width is at most 1 % of the ratio. Else
/// UNRESOLVED when the budget is spent, and NOT JUDGED while more blocks can be measured.
RatioVerdict decide(Interval speedup, Interval a_over_a, bool budget_spent);

/// The verdict from those under two states of the cache. FASTER and SLOWER need both. Where one state says
/// TIE, it is TIE; where they contradict each other, or one is open, it is UNRESOLVED.
GateTwo of_both_states(GateTwo clean, GateTwo dirty);

/// The stop rule: the interval's half-width is at most `share` of its point. It never looks at who is ahead.
bool narrow_enough(Interval speedup, double share = 0.01);

/// A share with its exact 95 % interval (Clopper and Pearson 1934) from `hits` of `n` trials; `n` > 0.
Interval binomial_interval(int hits, int n);

/// Whether warm-up is over: the medians of the last five times and of the five before differ by at most 2 %.
bool stable(std::span<const double> warm_up_ms);

}  // namespace capstone
