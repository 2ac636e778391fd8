#include "cli/machine_demos.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "cli/demos.h"
#include "cli/show_machine.h"
#include "harness/machine/summary.h"
#include "harness/workflows/recorded_runs.h"

namespace capstone::cli {
namespace {

using machine::Node;
using workflows::RecordedRun;

constexpr std::chrono::milliseconds kBeat{300};  // between two turns, on a terminal

void play(const Context& context, const RecordedRun& run, const machine::Tree& chain) {
  const Terminal& t = context.terminal;
  for (const Node& node : chain) {
    tell(context, node_line(node, t));
    if (t.interactive()) std::this_thread::sleep_for(kBeat);
  }
  const Node* best = machine::find_node(chain, machine::summarise(chain, run.info).best);
  if (!best) return tell(context, "no turn is correct");
  const auto first = std::find_if(chain.begin(), chain.end(), [](const Node& n) { return n.correct(); });
  tell(context, fmt::format("correct in turn {}, best in turn {}", first->round, best->round));
}

}  // namespace

Result<void> feedback_demo(const Context& context) {
  std::vector<RecordedRun> runs = workflows::recorded_runs(context.resources);
  std::erase_if(runs, [](const RecordedRun& run) { return run.info.kind != "refine"; });
  if (runs.empty())
    return fail("no refinement is recorded here", (context.resources.share / "examples/machine").string(),
                "a package for students leaves the recorded kernels out", ExitCode::kEnvironment);
  tell(context, "turns that remember: each gets the judge's words on the last kernel");
  for (const RecordedRun& run : runs) {
    std::map<int, machine::Tree> chains;
    for (const Node& node : run.tree)
      if (node.judged()) chains[node.island].push_back(node);
    for (const auto& [number, chain] : chains) {
      tell(context, fmt::format("\n{}, chain {} (judged on: {}, {})",
                                context.terminal.paint(Tone::kBold, run.info.problem), number, run.device,
                                run.info.started.substr(0, 10)));
      play(context, run, chain);
    }
  }
  tell(context, "\nask the room: which words of the judge would you have needed?");
  return {};
}

}  // namespace capstone::cli
