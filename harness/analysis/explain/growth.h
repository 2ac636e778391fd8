#pragma once
// How the counts of a kernel grow with the sizes. It is learnt from runs in which one size is larger, and
// tested in one in which all are: the lines' shares at the measured size follow, without a run there.
#include <optional>
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
  Sizes from = {};          ///< the sizes that grow
};

/// The runs of a plan.
struct GrowthRuns {
  Explanation from;
  std::vector<Explanation> larger;  ///< one for each step
  Explanation all;
};

/// Nothing where the measured sizes are those, where a symbol is smaller there, or where the problem admits
/// no larger value within what a few runs may cost. @error the problem's expressions
Result<std::optional<GrowthPlan>> plan_growth(const Problem& problem, const Sizes& observed);

/// The sizes from which counts grow: those of the plan, but larger where the kernel does no more FLOPs at the
/// larger size although the problem has more. Such a size is within one tile, and a half-empty tile costs as
/// much as a full one.
Sizes full_tiles(const GrowthPlan& plan, const GrowthRuns& runs);

/// Gives `e` the shares, the advice, and the totals of the problem's measured size. Where the rule does not
/// predict the total of the last run within 10 %, they stay those of the observed size, and `e.caution` says
/// so.
///
/// The rule: a line's modelled clocks, its bytes moved, its L1 passes and its FLOPs are each a product of
/// functions of one size each. Such a function is affine, or the size times an affine one where it grows
/// faster, or a power where it grows faster than the square.
void extend_to_measured(Explanation& e, const Problem& problem, const GrowthPlan& plan,
                        const GrowthRuns& runs);

}  // namespace capstone
