#include "cli/machine_demos.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include "cli/show.h"
#include "cli/show_machine.h"
#include "harness/analysis/fast_p.h"
#include "harness/base/text.h"
#include "harness/machine/prompts.h"
#include "harness/machine/search.h"
#include "harness/machine/summary.h"
#include "harness/workflows/recorded_runs.h"

namespace capstone::cli {
namespace {

using machine::Node;
using machine::NodeKind;
using machine::NodeState;
using workflows::RecordedRun;

constexpr std::chrono::milliseconds kBeat{60};  // of the counter, on a terminal

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string bar(double share, std::size_t widest) {
  std::string text;
  const auto length = static_cast<std::size_t>(std::lround(share * static_cast<double>(widest)));
  for (std::size_t i = 0; i < length; ++i) text += "▇";
  return text;
}

bool is_kernel(const Node& node) { return node.kind == NodeKind::kKernel && node.state == NodeState::kDone; }

Result<std::vector<RecordedRun>> runs_named(const Context& context, const std::string& begins) {
  std::vector<RecordedRun> runs = workflows::recorded_runs(context.resources);
  std::erase_if(runs, [&](const RecordedRun& run) { return !run.name.starts_with(begins); });
  if (!runs.empty()) return runs;
  return fail("no run of this kind is recorded here", (context.resources.share / "examples/machine").string(),
              "install capstone again, or record one: capstone machine show --format json",
              ExitCode::kEnvironment);
}

Result<void> takes_nothing_but(const DemoInputs& inputs, bool own_numbers) {
  if (!inputs.kernel.empty()) return fail("this demo takes no --kernel", {}, "capstone demo serving does");
  if (!inputs.record.empty()) return fail("this demo records nothing", {}, "capstone demo serving does");
  if (!own_numbers && (inputs.p || inputs.k))
    return fail("this demo takes neither -p nor -k", {}, "capstone demo monkeys does");
  return {};
}

std::string judged_on(const RecordedRun& run) {
  return fmt::format("{}, {}", run.timed() ? "judged on an " + run.device : "judged on a CPU",
                     run.info.started.substr(0, 10));
}

// The counter climbs, on a terminal only.
void play(const Context& context, const RecordedRun& run) {
  if (!context.terminal.interactive()) return;
  int tries = 0, correct = 0, faster = 0;
  for (const Node& node : run.tree) {
    if (!is_kernel(node)) continue;
    ++tries;
    correct += node.correct();
    faster += node.correct() && node.faster();
    context.terminal.progress(fmt::format("{}: try {}, {} correct, {} correct and faster", run.info.problem,
                                          tries, correct, faster));
    std::this_thread::sleep_for(kBeat);
  }
  context.terminal.end_progress();
}

struct Tally {
  int tries = 0, correct = 0, faster = 0;
};

Tally tally_of(const RecordedRun& run) {
  const machine::Summary s = machine::summarise(run.tree, run.info);
  return {s.judged, s.correct, s.faster};
}

// pass@k of each problem, their mean, and the formula with the mean of p.
void curves(const Context& context, const std::vector<RecordedRun>& runs, int Tally::*hits) {
  constexpr std::size_t kWidest = 20;
  std::vector<Tally> tallies;
  int fewest = 0;
  double p = 0;
  for (const RecordedRun& run : runs) {
    const Tally tally = tally_of(run);
    tallies.push_back(tally);
    fewest = fewest ? std::min(fewest, tally.tries) : tally.tries;
    p += static_cast<double>(tally.*hits) / tally.tries / static_cast<double>(runs.size());
  }
  Table table({"k", "solved, mean of the problems", "", "1-(1-p)^k", ""}, {true, true, false, true, false});
  for (int k = 1; k <= fewest; k = k < fewest ? std::min(2 * k, fewest) : fewest + 1) {
    double solved = 0;
    for (const Tally& t : tallies)
      solved += pass_at_k(t.tries, t.*hits, k).value_or(0) / static_cast<double>(tallies.size());
    const double formula = 1 - std::pow(1 - p, k);
    table.row({std::to_string(k), percent(solved), bar(solved, kWidest), percent(formula), bar(formula, kWidest)});
  }
  tell(context, table.text(context.terminal));
}

}  // namespace

Result<void> monkeys_demo(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_CHECK(takes_nothing_but(inputs, true));
  CAPSTONE_TRY(const std::vector<RecordedRun> runs, runs_named(context, "sample"));
  tell(context, "one prompt, many independent tries: every reply is kept as it came, right or wrong\n");
  Table table({"problem", "tries", "correct", "correct and faster", "the most frequent failure"},
              {false, true, true, true});
  for (const RecordedRun& run : runs) {
    play(context, run);
    const machine::Summary s = machine::summarise(run.tree, run.info);
    table.row({run.info.problem, std::to_string(s.judged), std::to_string(s.correct),
               s.timed ? std::to_string(s.faster) : "not timed",
               s.failures.empty() ? "none"
                                  : fmt::format("{}, {} times", s.failures[0].verdict, s.failures[0].count)});
  }
  tell(context, table.text(context.terminal));
  tell(context, judged_on(runs.front()));
  tell(context, "\ncorrect: at least one of k tries");
  curves(context, runs, &Tally::correct);
  if (runs.front().timed()) {
    tell(context, "\ncorrect and faster than the baseline");
    curves(context, runs, &Tally::faster);
  }
  tell(context,
       "\nThe formula takes every try for a new throw of the same die. Tries of one problem are not: a problem "
       "that the model does not solve stays unsolved, however often it is asked, and an easy one is solved at "
       "once. So the mean over problems climbs more slowly than the formula with their mean p.");
  const double p = inputs.p.value_or(0.04);
  const int k = inputs.k.value_or(100);
  tell(context, fmt::format("\nfor p = {:g} and k = {} the formula promises {}", p, k,
                            percent(1 - std::pow(1 - p, k))));
  tell(context, "ask the room: how many of your problems does your model never solve?");
  return {};
}

Result<void> feedback_demo(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_CHECK(takes_nothing_but(inputs, false));
  CAPSTONE_TRY(std::vector<RecordedRun> runs, runs_named(context, "refine"));
  std::erase_if(runs, [](const RecordedRun& run) { return run.info.kind != "refine"; });
  const Terminal& t = context.terminal;
  tell(context, "turns that remember: each gets the judge's words on the last kernel");
  for (const RecordedRun& run : runs) {
    std::map<int, std::vector<const Node*>> chains;
    for (const Node& node : run.tree)
      if (is_kernel(node)) chains[node.island].push_back(&node);
    for (const auto& [number, chain] : chains) {
      tell(context, fmt::format("\n{}, chain {} ({})", t.paint(Tone::kBold, run.info.problem), number,
                                judged_on(run)));
      const Node *first_correct = nullptr, *best = nullptr;
      for (const Node* node : chain) {
        tell(context, node_line(*node, t));
        if (t.interactive()) std::this_thread::sleep_for(5 * kBeat);
        if (!node->correct()) continue;
        if (!first_correct) first_correct = node;
        if (node->fitness && (!best || node->fitness->low() > best->fitness->low())) best = node;
      }
      tell(context, !first_correct ? "no turn is correct"
                    : !best        ? fmt::format("correct in turn {}", first_correct->round)
                                   : fmt::format("correct in turn {}, best in turn {}", first_correct->round,
                                                 best->round));
    }
  }
  tell(context, "\nask the room: which words of the judge would you have needed?");
  return {};
}

namespace {

// What an evolution had after each round.
void rounds(const Context& context, const RecordedRun& run) {
  constexpr std::size_t kWidest = 24;
  const Terminal& t = context.terminal;
  int last = 0;
  for (const Node& node : run.tree) last = std::max(last, node.round);
  const Node* best = nullptr;
  Table table({"round", "ideas", "kernels", "correct", "best so far", ""}, {true, true, true, true, true, false});
  for (int round = 1; round <= last; ++round) {
    std::size_t ideas = 0;
    int kernels = 0, correct = 0;
    for (const Node& node : run.tree) {
      if (node.round != round) continue;
      if (node.kind == NodeKind::kIdeas) ideas += node.ideas.size();
      if (!is_kernel(node)) continue;
      ++kernels;
      correct += node.correct();
      if (node.proven() && node.fitness && (!best || node.fitness->low() > best->fitness->low())) best = &node;
    }
    const double low = best ? best->fitness->low() : 0;
    table.row({std::to_string(round), std::to_string(ideas), std::to_string(kernels), std::to_string(correct),
               !best                     ? "none"
               : best->fitness->measured ? fmt::format("{:.2f}x", low)
                                         : percent(low),
               bar(std::min(1.0, low), kWidest)});
  }
  tell(context, table.text(t));
  if (!best) return;
  tell(context, "\nthe ideas on the way to the best kernel, the last one first");
  for (const Node* node = best; node; node = machine::find_node(run.tree, node->parent))
    if (is_kernel(*node)) tell(context, t.fold(fmt::format("{:<9} {}", node->name, one_line(node->idea)), 10));
}

// The best of the first n tries of each search, judged on one GPU.
void equal_tries(const Context& context, const std::vector<RecordedRun>& runs) {
  std::vector<std::string> titles{"tries"};
  std::size_t fewest = 0;
  std::vector<std::vector<const Node*>> kernels;
  for (const RecordedRun& run : runs) {
    titles.push_back(run.name.substr(0, run.name.find('-')));
    kernels.emplace_back();
    for (const Node& node : run.tree)
      if (is_kernel(node)) kernels.back().push_back(&node);
    fewest = std::max(fewest, kernels.back().size());
  }
  Table table(titles, std::vector<bool>(titles.size(), true));
  for (std::size_t n = 8; n <= fewest; n *= 2) {
    std::vector<std::string> row{std::to_string(n)};
    for (const auto& tries : kernels) {
      const Node* best = nullptr;
      for (std::size_t i = 0; i < std::min(n, tries.size()); ++i) {
        const Node& node = *tries[i];
        if (!node.correct() || node.doubtful() || !node.fitness || !node.fitness->measured) continue;
        if (!best || node.fitness->low() > best->fitness->low()) best = &node;
      }
      row.push_back(tries.size() < n ? ""
                    : !best          ? "none"
                                     : fmt::format("{:.2f}x ({:.2f} to {:.2f})", best->fitness->value.point,
                                                   best->fitness->value.low, best->fitness->value.high));
    }
    table.row(std::move(row));
  }
  tell(context, table.text(context.terminal));
}

}  // namespace

Result<void> evolution_demo(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_CHECK(takes_nothing_but(inputs, false));
  CAPSTONE_TRY(const std::vector<RecordedRun> evolved, runs_named(context, "evolve"));
  tell(context, "ideas in English first, kernels for each, the judge between the rounds");
  for (const RecordedRun& run : evolved) {
    if (run.info.kind != "evolve") continue;
    tell(context, fmt::format("\n{} ({})", context.terminal.paint(Tone::kBold, run.info.problem), judged_on(run)));
    rounds(context, run);
    if (!run.timed())
      tell(context,
           "The score is modelled from counts on a CPU: the share of the problem's lower bound on time.");
    std::vector<RecordedRun> timed = workflows::recorded_runs(context.resources);
    std::erase_if(timed, [&](const RecordedRun& other) {
      return other.info.problem != run.info.problem || !other.timed();
    });
    if (timed.size() < 2) continue;
    tell(context, fmt::format("\nbest speedup of the first n tries, all judged on an {}", timed.front().device));
    equal_tries(context, timed);
  }
  tell(context, "\nask the room: did the search find an idea that you would not have had?");
  return {};
}

}  // namespace capstone::cli
