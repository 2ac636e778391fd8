#include "harness/machine/summary.h"

#include <algorithm>
#include <cmath>

#include "harness/analysis/fast_p.h"

namespace capstone::machine {
namespace {

bool is_better(const Node& a, const Node& b) {
  if (a.doubtful() != b.doubtful()) return b.doubtful();
  if (a.proven() != b.proven()) return a.proven();
  return (a.fitness ? a.fitness->low() : 0) > (b.fitness ? b.fitness->low() : 0);
}

std::vector<KLine> table_of(int judged, int correct, int faster) {
  std::vector<KLine> table;
  const auto add = [&](int k) {
    table.push_back({k, pass_at_k(judged, correct, k).value_or(0),
                     1 - std::pow(1 - static_cast<double>(correct) / judged, k),
                     pass_at_k(judged, faster, k).value_or(0)});
  };
  int k = 1;
  for (; k < judged; k *= 2) add(k);
  if (judged > 0) add(judged);
  return table;
}

}  // namespace

Summary summarise(const Tree& tree, const RunInfo& run) {
  Summary s;
  s.spent = spent_by(tree, run);
  const Node* best = nullptr;
  for (const Node& node : tree) {
    if (node.kind != NodeKind::kKernel) continue;
    ++s.kernels;
    s.answered += node.state != NodeState::kPlanned;
    if (!node.judged()) continue;
    ++s.judged;
    s.correct += node.correct();
    s.faster += node.correct() && node.faster();
    s.timed = s.timed || !node.gate_two.empty();
    if (node.correct()) {
      if (!best || is_better(node, *best)) best = &node;
      continue;
    }
    auto known = std::find_if(s.failures.begin(), s.failures.end(),
                              [&](const FailureClass& f) { return f.verdict == node.verdict; });
    if (known == s.failures.end())
      known = s.failures.insert(known, {node.verdict, 0, node.name, node.failure});
    ++known->count;
  }
  if (best) s.best = best->name;
  std::stable_sort(s.failures.begin(), s.failures.end(),
                   [](const FailureClass& a, const FailureClass& b) { return a.count > b.count; });
  s.table = table_of(s.judged, s.correct, s.faster);
  return s;
}

std::optional<double> fast_share(const Tree& tree, double p) {
  int judged = 0, hits = 0;
  bool timed = false;
  for (const Node& node : tree) {
    if (!node.judged()) continue;
    ++judged;
    const bool measured = node.correct() && node.fitness && node.fitness->measured;
    timed = timed || measured;
    hits += measured && node.fitness->value.point > p;
  }
  if (!timed || judged == 0) return std::nullopt;
  return static_cast<double>(hits) / judged;
}

}  // namespace capstone::machine
