#include "cli/show_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/text.h"

namespace capstone::cli {
namespace {

using machine::Node;
using machine::NodeKind;
using machine::NodeState;

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

Tone tone_of(const Node& node) {
  if (node.state != NodeState::kDone) return Tone::kDim;
  if (!node.correct()) return Tone::kBad;
  return node.faster() ? Tone::kGood : Tone::kPlain;
}

std::string verdict_of(const Node& node) {
  if (node.state == NodeState::kPlanned) return "asked";
  if (node.state == NodeState::kAnswered) return "answered";
  return node.gate_two.empty() ? node.verdict : node.verdict + ", " + node.gate_two;
}

std::string cost_text(const machine::Spent& spent) {
  std::vector<std::string> parts;
  if (spent.tokens) parts.push_back(fmt::format("{} tokens", spent.tokens));
  if (spent.money > 0) parts.push_back(fmt::format("{:.4g} of money", spent.money));
  parts.push_back(fmt::format("{:.1f} minutes", spent.minutes));
  return join(parts, ", ");
}

std::string tables_of(const machine::Summary& s, const machine::Tree& tree, const Terminal& t) {
  std::string text;
  if (s.judged > 0) {
    std::vector<std::string> titles{"k", "correct", "1-(1-p)^k"};
    if (s.timed) titles.emplace_back("correct and faster");
    Table table(titles, std::vector<bool>(titles.size(), true));
    for (const machine::KLine& line : s.table) {
      std::vector<std::string> cells{std::to_string(line.k), percent(line.correct), percent(line.board)};
      if (s.timed) cells.push_back(percent(line.faster));
      table.row(std::move(cells));
    }
    text += "\n\npass@k: at least one of k tries\n" + table.text(t);
    if (s.timed) {
      std::vector<std::string> shares;
      for (const double p : {1.0, 1.5, 2.0})
        shares.push_back(fmt::format("{} above {:g}x", percent(machine::fast_share(tree, p).value_or(0)), p));
      text += "\n" + join(shares, ", ");
    }
  }
  if (const std::string failures = failures_text(s, t); !failures.empty()) text += "\n\n" + failures;
  return text;
}

}  // namespace

std::string node_line(const Node& node, const Terminal& t) {
  if (node.kind == NodeKind::kIdeas)
    return fmt::format("{:<10} {}", node.name,
                       node.failure.empty() ? fmt::format("{} ideas", node.ideas.size()) : node.failure);
  std::string line = fmt::format("{:<10} {}", node.name, t.paint_err(tone_of(node), verdict_of(node)));
  if (node.fitness) line += ", " + machine::score_text(*node.fitness);
  if (node.confirmed.value_or(false)) line += ", confirmed";  // else the failure says so
  if (node.correct() && node.doubtful()) line += t.paint_err(Tone::kWarn, ", needs an explanation");
  if (!node.failure.empty()) line += ": " + one_line(node.failure);
  return line;
}

std::string failures_text(const machine::Summary& summary, const Terminal& t) {
  if (summary.failures.empty()) return {};
  Table table({"failures", "", "first", "what went wrong there"}, {false, true});
  for (const machine::FailureClass& f : summary.failures)
    table.row({f.verdict, std::to_string(f.count), f.first, f.line.substr(0, f.line.find('\n'))});
  return table.text(t);
}

std::string progress_text(const machine::Tree& tree, const machine::RunInfo& info) {
  const machine::Summary s = machine::summarise(tree, info);
  std::string text = fmt::format("{} of {} judged: {} correct", s.judged, s.kernels, s.correct);
  if (s.timed) text += fmt::format(", {} faster", s.faster);
  return text;
}

std::string run_text(const workflows::MachineRun& run, const Terminal& t) {
  const machine::Summary s = machine::summarise(run.tree, run.info);
  std::string text =
      fmt::format("{}: {} of {} kernels judged, {}", t.paint(Tone::kBold, run.info.name), s.judged, s.kernels,
                  t.paint(s.correct ? Tone::kGood : Tone::kBad, fmt::format("{} correct", s.correct)));
  if (s.timed) text += fmt::format(", {} faster", s.faster);
  text += fmt::format("\n{} · {} · {}", run.info.problem, run.info.provider, cost_text(s.spent));
  if (run.info.with_statement) text += "\nnote: not the standard prompt: it has the problem's statement";
  text += tables_of(s, run.tree, t);
  if (const Node* best = machine::find_node(run.tree, s.best)) {
    text += fmt::format("\n\nbest: {}", t.paint(Tone::kBold, best->name));
    if (best->fitness) text += ", " + machine::score_text(*best->fitness);
    text += best->proven() ? ", confirmed with other seeds" : "";
    if (best->fitness && !best->fitness->measured)
      text +=
          "\nnote: no GPU judged here: the score is modelled from counts on the CPU and claims no speedup";
  }
  return t.fold(text, 0);
}

std::string tree_text(const workflows::MachineRun& run, const Terminal& t) {
  std::map<std::string, std::vector<const Node*>> below;
  for (const Node& node : run.tree)
    below[machine::find_node(run.tree, node.parent) ? node.parent : std::string()].push_back(&node);
  std::string text;
  const auto add = [&](const auto& self, const std::string& parent, int depth) -> void {
    for (const Node* node : below[parent]) {
      if (!text.empty()) text += '\n';
      text += std::string(static_cast<std::size_t>(depth) * 2, ' ') + node_line(*node, t);
      if (!node->idea.empty())
        text += "\n" + std::string(static_cast<std::size_t>(depth) * 2 + 11, ' ') +
                t.paint(Tone::kDim, one_line(to_utf8(node->idea.substr(0, 90))));
      self(self, node->name, depth + 1);
    }
  };
  add(add, "", 0);
  return text;
}

Json json_of(const workflows::MachineRun& run) {
  const machine::Summary s = machine::summarise(run.tree, run.info);
  Json table = Json::array();
  for (const machine::KLine& line : s.table) {
    Json row{{"k", line.k}, {"correct", line.correct}, {"board", line.board}};
    if (s.timed) row["faster"] = line.faster;
    table.push_back(row);
  }
  return Json{{"run", run.info.name},
              {"search", run.info.kind},
              {"settings", run.info.settings},
              {"problem", run.info.problem},
              {"started", run.info.started},
              {"provider", run.info.provider},
              {"with_statement", run.info.with_statement},
              {"ended", run.info.ended},
              {"kernels", s.kernels},
              {"judged", s.judged},
              {"correct", s.correct},
              {"faster", s.timed ? Json(s.faster) : Json(nullptr)},
              {"tokens", s.spent.tokens},
              {"money", s.spent.money},
              {"minutes", s.spent.minutes},
              {"best", s.best},
              {"pass_at_k", table},
              {"nodes", run.tree}};
}

}  // namespace capstone::cli
