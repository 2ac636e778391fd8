#include "cli/machine_demos.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <thread>

#include "cli/show.h"
#include "cli/show_machine.h"
#include "harness/workflows/recorded_runs.h"

namespace capstone::cli {
namespace {

using machine::Node;
using machine::NodeKind;
using machine::NodeState;
using workflows::RecordedRun;

constexpr std::chrono::milliseconds kBeat{300};  // between two turns, on a terminal

bool is_kernel(const Node& node) { return node.kind == NodeKind::kKernel && node.state == NodeState::kDone; }

std::string judged_on(const RecordedRun& run) {
  return fmt::format("judged on: {}, {}", run.device, run.info.started.substr(0, 10));
}

}  // namespace

Result<void> feedback_demo(const Context& context, const DemoInputs& inputs) {
  if (!inputs.kernel.empty()) return fail("this demo takes no --kernel", {}, "capstone demo serving does");
  if (!inputs.record.empty()) return fail("this demo records nothing", {}, "capstone demo serving does");
  std::vector<RecordedRun> runs = workflows::recorded_runs(context.resources);
  std::erase_if(runs, [](const RecordedRun& run) { return run.info.kind != "refine"; });
  if (runs.empty())
    return fail("no refinement is recorded here", (context.resources.share / "examples/machine").string(),
                "a package for students leaves the recorded kernels out",
                ExitCode::kEnvironment);
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
        if (t.interactive()) std::this_thread::sleep_for(kBeat);
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

}  // namespace capstone::cli
