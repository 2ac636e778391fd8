#include "harness/machine/history.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "harness/analysis/fast_p.h"
#include "harness/machine/search.h"
#include "harness/timing/statistics.h"

namespace capstone::machine {
namespace {

double board(double p, int k) { return 1 - std::pow(1 - p, k); }

Interval share_of(int hits, int n) {
  Interval share = binomial_interval(hits, n);
  share.point = static_cast<double>(hits) / n;
  return share;
}

// What went wrong, so that the same mistake in another line or at another index reads the same.
std::string mistake_of(const Node& node) {
  const std::string line = node.failure.substr(0, node.failure.find('\n'));
  if (line.find("no pattern found") != std::string::npos) return node.verdict + " " + node.name;
  std::string text;
  for (const char c : line.substr(0, line.find(", at "))) {
    if (!std::isdigit(static_cast<unsigned char>(c)))
      text += c;
    else if (text.empty() || text.back() != '#')
      text += '#';
  }
  return text.empty() ? node.verdict : node.verdict + ": " + text;
}

// Whether a try may be the best.
bool counts(const Node& node, bool measured) {
  return node.correct() && !node.doubtful() && node.confirmed.value_or(true) && node.fitness &&
         node.fitness->measured == measured;
}

template <class What>
std::vector<Alike> grouped(const std::vector<const Node*>& tries, const What& what) {
  std::vector<Alike> groups;
  for (const Node* node : tries) {
    const std::string text = what(*node);
    if (text.empty()) continue;
    auto known = std::find_if(groups.begin(), groups.end(), [&](const Alike& g) { return g.what == text; });
    if (known == groups.end()) known = groups.insert(known, {text, {}});
    known->tries.push_back(node);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Alike& a, const Alike& b) { return a.tries.size() > b.tries.size(); });
  return groups;
}

}  // namespace

std::vector<const Node*> judged_tries(const Tree& tree, int most) {
  std::vector<const Node*> tries;
  for (const Node& node : tree)
    if (node.judged() && (most <= 0 || tries.size() < static_cast<std::size_t>(most))) tries.push_back(&node);
  return tries;
}

int tries_to_fit(int tries) { return std::max(0, std::min(tries - 1, std::clamp(tries / 4, 3, 10))); }

int widest_k(std::size_t tries) { return std::max(1, static_cast<int>(tries / 2)); }

Coverage coverage_of(const std::vector<bool>& hits) {
  Coverage c;
  const int n = static_cast<int>(hits.size());
  if (n < 2) return c;
  c.fitted = tries_to_fit(n);
  c.rest = n - c.fitted;
  const int all = static_cast<int>(std::count(hits.begin(), hits.end(), true));
  c.hits = static_cast<int>(std::count(hits.begin(), hits.begin() + c.fitted, true));
  c.rest_hits = all - c.hits;
  c.p = share_of(c.hits, c.fitted);
  c.rest_p = share_of(c.rest_hits, c.rest);
  c.beyond_chance = c.p.high < c.rest_p.low || c.rest_p.high < c.p.low;
  for (int k = 1; k <= n; ++k) {
    const CoveragePoint point{
        k, {board(c.p.point, k), board(c.p.low, k), board(c.p.high, k)}, pass_at_k(n, all, k).value_or(0)};
    if (c.parts_at == 0 && k <= widest_k(hits.size()) &&
        std::fabs(point.measured - point.formula.point) > kApart)
      c.parts_at = k;
    c.points.push_back(point);
  }
  return c;
}

std::vector<PooledPoint> pooled_coverage(const std::vector<std::vector<bool>>& problems) {
  if (problems.size() < 2) return {};
  std::vector<Solution> solutions;
  double p = 0;
  int fewest = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const int n = static_cast<int>(problems[i].size());
    if (n == 0) return {};
    fewest = i == 0 ? n : std::min(fewest, n);
    p += static_cast<double>(std::count(problems[i].begin(), problems[i].end(), true)) / n;
    for (const bool hit : problems[i]) solutions.push_back({std::to_string(i), hit, {}});
  }
  p /= static_cast<double>(problems.size());
  std::vector<PooledPoint> points;
  const auto add = [&](int k) { points.push_back({k, pass_at_k(solutions, k).unbiased, board(p, k)}); };
  for (int k = 1; k < fewest; k *= 2) add(k);
  add(fewest);
  return points;
}

std::vector<Alike> alike_failures(const std::vector<const Node*>& tries) {
  return grouped(tries, [](const Node& n) { return n.correct() ? std::string() : mistake_of(n); });
}

std::vector<Alike> alike_designs(const std::vector<const Node*>& tries) {
  return grouped(tries, [](const Node& n) {
    return n.behaviour.movement.empty() ? std::string()
                                        : n.behaviour.movement + " · " + n.behaviour.arithmetic;
  });
}

int repeated_sources(const std::vector<const Node*>& tries) {
  std::set<std::string> seen;
  int repeated = 0;
  for (const Node* node : tries)
    repeated += !node->tokens_sha256.empty() && !seen.insert(node->tokens_sha256).second;
  return repeated;
}

bool wins(const Node& node) { return node.correct() && node.faster() && !node.doubtful(); }

bool is_measured(const std::vector<const Node*>& tries) {
  return std::any_of(tries.begin(), tries.end(),
                     [](const Node* n) { return n->correct() && n->fitness && n->fitness->measured; });
}

const Node* fittest(const std::vector<const Node*>& tries, bool measured) {
  const Node* best = nullptr;
  for (const Node* node : tries)
    if (counts(*node, measured) && (!best || node->fitness->low() > best->fitness->low())) best = node;
  return best;
}

std::optional<double> expected_best(const std::vector<const Node*>& tries, bool measured, int k) {
  const int n = static_cast<int>(tries.size());
  if (k < 1 || k > n) return std::nullopt;
  std::vector<double> worth;
  for (const Node* node : tries) worth.push_back(counts(*node, measured) ? node->fitness->low() : 0);
  std::sort(worth.begin(), worth.end());
  // The best of k is at most the i-th smallest if none of the n - i above it is drawn.
  double mean = 0, below = 0;
  for (int i = 1; i <= n; ++i) {
    const double share = 1 - pass_at_k(n, n - i, k).value_or(0);
    mean += worth[static_cast<std::size_t>(i) - 1] * (share - below);
    below = share;
  }
  return mean;
}

std::vector<EvolutionRound> rounds_of(const Tree& tree, int most) {
  const std::vector<const Node*> tries = judged_tries(tree, most);
  const bool measured = is_measured(tries);
  std::map<int, EvolutionRound> rounds;
  std::map<int, std::set<int>> islands;
  for (const Node* node : tries) {
    EvolutionRound& r = rounds[node->round];
    r.tries.push_back(node);
    r.correct += node->correct();
    islands[node->round].insert(node->island);
  }
  const auto fates = fates_of(tree);
  for (const Node& node : tree) {
    const auto of_node = fates.find(node.name);
    if (!rounds.count(node.round) || of_node == fates.end()) continue;
    for (const IdeaFate& fate : of_node->second) {
      ++rounds[node.round].ideas;
      rounds[node.round].merged += !fate.same_as.empty();
    }
  }
  std::vector<EvolutionRound> list;
  std::vector<const Node*> so_far;
  for (auto& [number, r] : rounds) {
    r.round = number;
    r.islands = static_cast<int>(islands[number].size());
    r.best = fittest(r.tries, measured);
    so_far.insert(so_far.end(), r.tries.begin(), r.tries.end());
    r.best_so_far = fittest(so_far, measured);
    list.push_back(std::move(r));
  }
  return list;
}

std::vector<const Node*> ancestry_of(const Tree& tree, const Node& node) {
  std::vector<const Node*> line;
  for (const Node* at = &node; at && line.size() < tree.size(); at = find_node(tree, at->parent))
    line.push_back(at);
  return line;
}

}  // namespace capstone::machine
