#pragma once
// How the counts of a kernel grow with the sizes. It is learnt from runs in which one size is larger, and
// tested in one in which all are: the lines' shares at the measured size follow, without a run there.
#include <optional>
#include <span>
#include <vector>

#include "harness/model/explanation.h"
#include "harness/model/problem.h"

namespace capstone {

/// Sizes at which a kernel is counted again.
struct GrowthPlan {
  struct Step {
    std::size_t symbol;  ///< its place in the sizes
    Sizes sizes;         ///< those observed, with a larger value of the symbol
  };
  std::vector<Step> steps;  ///< one for each symbol that is larger at the measured size
  Sizes all;                ///< the run that tests the rule: each of these symbols is larger
};

/// Nothing where the measured sizes are those, where a symbol is smaller there, or where the problem admits
/// no larger value within what a few runs may cost. @error the problem's expressions
Result<std::optional<GrowthPlan>> plan_growth(const Problem& problem, const Sizes& observed);

/// Gives `e` the shares, the advice and the bytes moved of the problem's measured size. Where the rule does not predict the
/// total of `all` within 10 %, they stay those of the observed size, and `e.caution` says so.
///
/// The rule: a line's modelled clocks, and its bytes moved, are a product of functions of one size each. Such
/// a function is affine, or the size times an affine one where it grows faster, or a power where it grows
/// faster than the square.
/// @param larger  the explanations of plan.steps; @param all  the one of plan.all
void extend_to_measured(Explanation& e, const Problem& problem, const Sizes& observed, const GrowthPlan& plan,
                        std::span<const Explanation> larger, const Explanation& all);

}  // namespace capstone
