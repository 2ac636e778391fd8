#include "cli/machine_demos.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "cli/show_machine.h"
#include "harness/base/text.h"
#include "harness/machine/summary.h"

namespace capstone::cli {
namespace {

using machine::Node;
using workflows::RecordedRun;

bool has_judged(const machine::Tree& tree) {
  return std::any_of(tree.begin(), tree.end(), [](const Node& node) { return node.judged(); });
}

// The problems for which replies of this kind are here.
std::vector<std::string> problems_with_replies(const fs::path& examples, const std::string& kind) {
  std::vector<std::string> problems;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(examples, ignored))
    if (fs::is_directory(entry.path() / kind, ignored)) problems.push_back(entry.path().filename().string());
  std::sort(problems.begin(), problems.end());
  return problems;
}

Error nothing_to_play(const fs::path& examples, const DemoInputs& inputs, const std::string& kind) {
  std::string hint = fmt::format("run `capstone machine {}` in a project and name it: --from PROJECT", kind);
  std::vector<std::string> waiting = problems_with_replies(examples, kind);
  if (!inputs.problem.empty())
    std::erase_if(waiting, [&](const std::string& problem) { return problem != inputs.problem; });
  if (inputs.from.empty() && waiting.empty())
    hint += "; a package for students leaves the recorded searches out";
  else if (inputs.from.empty())
    hint += fmt::format(
        "; replies without a judge's record are here for {}: capstone init PROBLEM tries && cd tries && "
        "capstone machine {} --recorded {}/PROBLEM/{}",
        join(waiting, ", "), kind, examples.string(), kind);
  return {fmt::format("no recorded search of this kind ({}{}{})", kind, inputs.problem.empty() ? "" : ", ",
                      inputs.problem),
          inputs.from.empty() ? examples.string() : inputs.from, hint, ExitCode::kEnvironment};
}

void play(const Context& context, const RecordedRun& run, const machine::Tree& chain) {
  const Terminal& t = context.terminal;
  for (const Node& node : chain) {
    tell(context, node_line(node, t));
    beat(context, chain.size());
  }
  const Node* best = machine::find_node(chain, machine::summarise(chain, run.info).best);
  if (!best) return tell(context, "no turn is correct");
  const auto first = std::find_if(chain.begin(), chain.end(), [](const Node& n) { return n.correct(); });
  tell(context, fmt::format("correct in turn {}, best in turn {}", first->round, best->round));
}

}  // namespace

Result<std::vector<RecordedRun>> searches_to_play(const Context& context, const DemoInputs& inputs,
                                                  const std::string& kind) {
  const fs::path examples = context.resources.share / "examples/machine";
  std::vector<RecordedRun> runs;
  if (inputs.from.empty()) {
    runs = workflows::recorded_runs(context.resources);
  } else {
    CAPSTONE_TRY(runs, workflows::recorded_runs_at(inputs.from));
  }
  std::erase_if(runs, [&](const RecordedRun& run) {
    return !has_judged(run.tree) || (!inputs.problem.empty() && run.info.problem != inputs.problem);
  });
  if (std::none_of(runs.begin(), runs.end(),
                   [&](const RecordedRun& r) { return kind.empty() || r.info.kind == kind; }))
    return fail(nothing_to_play(examples, inputs, kind.empty() ? "sample" : kind));
  return runs;
}

std::string heading(const Context& context, const RecordedRun& run, const std::string& what) {
  return fmt::format("\n{}{} (judged on: {}, {})", context.terminal.paint(Tone::kBold, run.info.problem),
                     what, run.device.empty() ? "not recorded" : run.device, run.info.started.substr(0, 10));
}

std::string short_score(const Node& node) {
  if (!node.fitness) return "-";
  const machine::Fitness& f = *node.fitness;
  if (!f.measured) return fmt::format("{:.0f} %, modelled", f.value.point * 100);
  return fmt::format("{} [{}, {}]", format_speedup(f.value.point), format_speedup(f.value.low),
                     format_speedup(f.value.high));
}

void tell_failures(const Context& context, const RecordedRun& run, const std::vector<const Node*>& tries) {
  machine::Tree played;
  for (const Node* node : tries) played.push_back(*node);
  const std::string failures = failures_text(machine::summarise(played, run.info), context.terminal);
  if (!failures.empty()) tell(context, "\n" + failures);
}

void beat(const Context& context, std::size_t lines) {
  constexpr std::chrono::milliseconds kBeat{300}, kWhole{30'000};
  if (!context.terminal.interactive() || lines == 0) return;
  std::this_thread::sleep_for(std::min(kBeat, kWhole / static_cast<int>(lines)));
}

Result<void> feedback_demo(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_TRY(std::vector<RecordedRun> runs, searches_to_play(context, inputs, "refine"));
  std::erase_if(runs, [](const RecordedRun& run) { return run.info.kind != "refine"; });
  tell(context, "turns that remember: each gets the judge's words on the last kernel");
  for (const RecordedRun& run : runs) {
    std::map<int, machine::Tree> chains;
    for (const Node& node : run.tree)
      if (node.judged()) chains[node.island].push_back(node);
    for (const auto& [number, chain] : chains) {
      tell(context, heading(context, run, fmt::format(", chain {}", number)));
      play(context, run, chain);
    }
  }
  tell(context, "\nask the room: which words of the judge would you have needed?");
  return {};
}

}  // namespace capstone::cli
