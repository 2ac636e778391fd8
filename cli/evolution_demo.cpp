#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "cli/machine_demos.h"
#include "cli/show_machine.h"
#include "harness/base/text.h"
#include "harness/machine/history.h"
#include "harness/machine/search.h"
#include "harness/machine/summary.h"

namespace capstone::cli {
namespace {

using machine::EvolutionRound;
using machine::Node;
using machine::NodeKind;
using workflows::RecordedRun;

constexpr std::size_t kIdeaBytes = 130;

// The first sentence, or whole words of it.
std::string short_idea(const std::string& text) {
  const std::string idea = one_line(to_utf8(replace_all(text, "**", "")));  // models write Markdown
  if (const std::size_t end = idea.find(". "); end < kIdeaBytes) return idea.substr(0, end + 1);
  return idea.size() <= kIdeaBytes ? idea : idea.substr(0, idea.rfind(' ', kIdeaBytes)) + " …";
}

std::string scored(const Node* node) { return node ? node->name + "  " + short_score(*node) : "-"; }

void play_round(const Context& context, const RecordedRun& run, const EvolutionRound& round,
                std::size_t lines) {
  const Terminal& t = context.terminal;
  tell(context, "\n" + t.paint(Tone::kBold, fmt::format("round {}", round.round)));
  const auto fates = machine::fates_of(run.tree);
  for (const Node& node : run.tree) {
    if (node.kind != NodeKind::kIdeas || node.round != round.round) continue;
    tell(context,
         fmt::format("island {}: {} idea{}{}", node.island, node.ideas.size(),
                     node.ideas.size() == 1 ? "" : "s", node.parent.empty() ? "" : " on " + node.parent));
    for (const machine::IdeaFate& fate : fates.at(node.name))
      tell(context, fmt::format("  {}. {}{}", fate.number, short_idea(fate.text),
                                fate.same_as.empty() ? "" : " (merged with " + fate.same_as + ")"));
    beat(context, lines);
  }
  for (const Node* node : round.tries) {
    tell(context, node_line(*node, t));
    beat(context, lines);
  }
  tell(context,
       fmt::format("best of the round: {}; so far: {}", scored(round.best), scored(round.best_so_far)));
}

void show_rounds(const Context& context, const std::vector<EvolutionRound>& rounds) {
  Table table(
      {"round", "islands", "ideas", "merged", "kernels", "correct", "best of the round", "best so far"},
      {true, true, true, true, true, true});
  for (const EvolutionRound& r : rounds)
    table.row({std::to_string(r.round), std::to_string(r.islands), std::to_string(r.ideas),
               std::to_string(r.merged), std::to_string(r.tries.size()), std::to_string(r.correct),
               scored(r.best), scored(r.best_so_far)});
  tell(context, "\n" + table.text(context.terminal));
}

void show_ancestry(const Context& context, const RecordedRun& run, const Node* winner) {
  if (!winner) return tell(context, "\nno kernel is correct and scored: there is no winner");
  std::vector<const Node*> line = ancestry_of(run.tree, *winner);
  std::erase_if(line, [](const Node* node) { return node->kind != NodeKind::kKernel; });
  std::reverse(line.begin(), line.end());
  tell(context, fmt::format("\nhow {} came to be:", context.terminal.paint(Tone::kBold, winner->name)));
  const Node* parent = nullptr;
  for (const Node* node : line) {
    std::string text = fmt::format("  {}  {}", node->name, short_score(*node));
    if (parent && parent->island != node->island)
      text += fmt::format(", moved from island {}", parent->island);
    if (!node->inspirations.empty()) text += ", also shown: " + join(node->inspirations, ", ");
    tell(context, text);
    if (!node->idea.empty()) tell(context, "    idea: " + short_idea(node->idea));
    parent = node;
  }
  tell(context, line.size() == 1
                    ? "it was built on no other kernel"
                    : fmt::format("{} kernels in a row, each built on the one before", line.size()));
}

void play_evolution(const Context& context, const RecordedRun& run, int most) {
  const std::vector<EvolutionRound> rounds = rounds_of(run.tree, most);
  const std::vector<const Node*> tries = machine::judged_tries(run.tree, most);
  tell(context, heading(context, run,
                        fmt::format(": {} kernels in {} round{}", tries.size(), rounds.size(),
                                    rounds.size() == 1 ? "" : "s")));
  for (const EvolutionRound& round : rounds) play_round(context, run, round, run.tree.size());
  show_rounds(context, rounds);
  if (!is_measured(tries))
    tell(context, "no GPU judged here: scores are modelled from counts on a CPU, without an interval");
  const auto doubtful =
      std::count_if(tries.begin(), tries.end(), [](const Node* n) { return n->correct() && n->doubtful(); });
  if (doubtful)
    tell(context, fmt::format("left out: {} correct kernel{} that a person has to look at first", doubtful,
                              doubtful == 1 ? "" : "s"));
  tell_failures(context, run, tries);
  show_ancestry(context, run, rounds.back().best_so_far);
}

// The part of a run until its k-th judged kernel.
struct Part {
  const RecordedRun* run;
  std::vector<const Node*> tries;
  int ideas_asked = 0;
};

Part part_of(const RecordedRun& run, int k) {
  Part part{&run, machine::judged_tries(run.tree, k), 0};
  for (const Node& node : run.tree)
    part.ideas_asked += node.kind == NodeKind::kIdeas && node.state == machine::NodeState::kDone &&
                        !part.tries.empty() && node.round <= part.tries.back()->round;
  return part;
}

// Over the whole run: its minutes are not kept by try.
std::string rate(const RecordedRun& run) {
  if (run.info.minutes <= 0) return "-";
  return fmt::format("{:.2g}", double(machine::judged_tries(run.tree).size()) / run.info.minutes);
}

std::string judging_seconds(const RecordedRun& run) {
  double seconds = 0;
  int known = 0;
  for (const Node* node : machine::judged_tries(run.tree)) {
    seconds += node->judge_seconds;
    known += node->judge_seconds > 0;
  }
  return known ? fmt::format("{:.3g}", seconds / known) : "-";
}

void compare(const Context& context, const std::string& problem, const std::string& device,
             const std::vector<const RecordedRun*>& runs, int most) {
  std::size_t k = most > 0 ? static_cast<std::size_t>(most) : SIZE_MAX;
  for (const RecordedRun* run : runs) k = std::min(k, machine::judged_tries(run->tree).size());
  bool measured = false, confirmed = false;
  std::vector<Part> parts;
  for (const RecordedRun* run : runs) {
    parts.push_back(part_of(*run, static_cast<int>(k)));
    measured = measured || is_measured(parts.back().tries);
  }
  Table table({"search", "ideas", "correct", "faster", "best", "a minute", "s each"},
              {false, true, true, true, false, true, true});
  for (const Part& part : parts) {
    int correct = 0, faster = 0;
    for (const Node* node : part.tries) {
      correct += node->correct();
      faster += machine::wins(*node);
      confirmed = confirmed || node->confirmed;
    }
    table.row({part.run->info.kind, std::to_string(part.ideas_asked), std::to_string(correct),
               measured ? std::to_string(faster) : "-", scored(fittest(part.tries, measured)),
               rate(*part.run), judging_seconds(*part.run)});
  }
  tell(context,
       fmt::format("\n{}: the first {} kernels of each search (judged on: {})\n{}",
                   context.terminal.paint(Tone::kBold, problem), k, device, table.text(context.terminal)));
  if (confirmed)
    tell(context,
         "what became a parent was judged twice and the worse judgement counts; all others were judged "
         "once, so their best is the more optimistic number");
}

// Searches of one problem under one judge; of each kind the longest.
void compare_all(const Context& context, const std::vector<RecordedRun>& runs, int most) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, const RecordedRun*>> groups;
  for (const RecordedRun& run : runs) {
    const RecordedRun*& longest = groups[{run.info.problem, run.device}][run.info.kind];
    if (!longest || machine::judged_tries(run.tree).size() > machine::judged_tries(longest->tree).size())
      longest = &run;
  }
  bool compared = false;
  for (const auto& [place, kinds] : groups) {
    if (kinds.size() < 2) continue;
    std::vector<const RecordedRun*> found;
    for (const char* kind : {"sample", "refine", "evolve"})
      if (const auto at = kinds.find(kind); at != kinds.end()) found.push_back(at->second);
    compare(context, place.first, place.second, found, most);
    compared = true;
  }
  tell(context,
       compared
           ? "ideas: how often the model was asked for some; a minute: kernels judged, of the whole run, "
             "which also waits for answers; s each: to judge one"
           : "\nno problem has two kinds of searches under one judge: nothing to compare with");
}

}  // namespace

Result<void> evolution_demo(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_TRY(const std::vector<RecordedRun> runs, searches_to_play(context, inputs, "evolve"));
  tell(context, "ideas in English, kernels of each, and the best go into the next round");
  for (const RecordedRun& run : runs)
    if (run.info.kind == "evolve") play_evolution(context, run, inputs.tries);
  compare_all(context, runs, inputs.tries);
  tell(context, "\nask the room: which ancestor would a search that keeps only its best have thrown away?");
  return {};
}

}  // namespace capstone::cli
