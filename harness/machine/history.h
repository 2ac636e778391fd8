#pragma once
// How a run went, try by try: for those who watch it again. Nodes that are pointed to live in the tree.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/machine/node.h"

namespace capstone::machine {

/// The kernels that were judged, in the order in which they were planned; with `most` > 0 the first of them.
std::vector<const Node*> judged_tries(const Tree& tree, int most = 0);

/// What the blackboard's formula says after the first tries, and what all tries say.
struct CoveragePoint {
  int k = 0;
  Interval formula;     ///< 1 - (1 - p)^k; low and high: of the ends of p's interval
  double measured = 0;  ///< pass@k, unbiased, from all tries
};
struct Coverage {
  int fitted = 0, hits = 0;           ///< the first tries, and how many of them hit
  int rest = 0, rest_hits = 0;        ///< the others
  Interval p, rest_p;                 ///< the share of hits of each, with its exact 95 % interval
  std::vector<CoveragePoint> points;  ///< k = 1 … n
  int parts_at = 0;                   ///< the first k <= widest_k() at which the curves are apart; 0: none
  bool beyond_chance = false;         ///< the two intervals are apart
};
/// Curves count as apart from here on.
inline constexpr double kApart = 0.1;
/// As far as the curves are compared: half of the tries. Beyond, pass@k hangs on few choices of k; for k = n
/// it is 0 or 1.
int widest_k(std::size_t tries);
/// The number of first tries that the formula is fitted on: a quarter, at least 3 and at most 10, never all.
int tries_to_fit(int tries);
/// @param hits  whether each try hit, in order. Fewer than two tries: no points.
Coverage coverage_of(const std::vector<bool>& hits);

/// The same over several problems, each with its tries: the share of the problems that k tries solve.
struct PooledPoint {
  int k = 0;
  double measured = 0;  ///< the mean of the problems' pass@k, unbiased
  double formula = 0;   ///< 1 - (1 - p)^k with p = the mean share of hits: as if all were equally hard
};
/// k = 1, 2, 4 … and the smallest number of tries of a problem. Empty for fewer than two problems.
std::vector<PooledPoint> pooled_coverage(const std::vector<std::vector<bool>>& problems);

/// Tries that are alike, in order.
struct Alike {
  std::string what;
  std::vector<const Node*> tries;
};
/// Wrong tries by what the judge says went wrong, numbers apart: "line 12: …" and "line 13: …" are one. A
/// wrong result in which the judge saw no pattern is like no other. The most frequent first.
std::vector<Alike> alike_failures(const std::vector<const Node*>& tries);
/// Tries with code by how it moves data and what multiplies: "cp.async · mma". The most frequent first.
std::vector<Alike> alike_designs(const std::vector<const Node*>& tries);
/// How many tries have the same tokens as one before them.
int repeated_sources(const std::vector<const Node*>& tries);

/// Whether a try passes both gates, without a label that a person has to look at.
bool wins(const Node& node);
/// Whether speedups were measured; then a modelled fitness counts as none.
bool is_measured(const std::vector<const Node*>& tries);
/// The best of these: correct, not refuted by its second judgement, and without a label that a person has to
/// look at. By the lower end of its fitness; the first of equals. Null: there is none.
const Node* fittest(const std::vector<const Node*>& tries, bool measured);

/// What the best of k tries is worth on average, over all choices of k of these. A try is worth the lower end
/// of its fitness, or 0 where fittest() would pass over it. Nothing for k > n.
std::optional<double> expected_best(const std::vector<const Node*>& tries, bool measured, int k);

/// One round of an evolution, over all islands.
struct EvolutionRound {
  int round = 0, islands = 0;
  int ideas = 0, merged = 0;  ///< all that were named, and those of them that had been named before
  std::vector<const Node*> tries;
  int correct = 0;
  const Node* best = nullptr;         ///< of the round
  const Node* best_so_far = nullptr;  ///< of this and all before
};
/// @param most  only the first tries count; 0: all
std::vector<EvolutionRound> rounds_of(const Tree& tree, int most = 0);

/// A node, its parent, the parent of that … to the first one.
std::vector<const Node*> ancestry_of(const Tree& tree, const Node& node);

}  // namespace capstone::machine
