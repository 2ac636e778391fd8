#pragma once
// Demos of the machine's side, played from recorded runs: no network, no GPU.
#include <string>
#include <vector>

#include "cli/demos.h"
#include "harness/workflows/recorded_runs.h"

namespace capstone::cli {

/// Chains of tries, each with the judge's words on the last one.
Result<void> feedback_demo(const Context& context, const DemoInputs& inputs);
/// Independent tries: how many it takes, next to what the blackboard's formula says.
Result<void> monkeys_demo(const Context& context, const DemoInputs& inputs);
/// Ideas, kernels and rounds; and the three searches at equal numbers of tries.
Result<void> evolution_demo(const Context& context, const DemoInputs& inputs);

/// The recorded searches that a demo may play: those with a judged kernel, of the problem that the user
/// named.
/// @param kind  "sample", "refine", "evolve": at least one of it; empty: of any kind
/// @error there is none; says how to record one
Result<std::vector<workflows::RecordedRun>> searches_to_play(const Context& context, const DemoInputs& inputs,
                                                             const std::string& kind);

/// "softmax: 8 tries of one prompt (judged on: NVIDIA H100, 2026-11-26)"
std::string heading(const Context& context, const workflows::RecordedRun& run, const std::string& what);
/// "1.52x [1.48x, 1.55x]" or "48 %, modelled"; "-" without a score.
std::string short_score(const machine::Node& node);
/// The failures of the tries that were played, by class; nothing where none failed.
void tell_failures(const Context& context, const workflows::RecordedRun& run,
                   const std::vector<const machine::Node*>& tries);
/// On a terminal: a moment between two of so many lines, so that the room can follow.
void beat(const Context& context, std::size_t lines);

}  // namespace capstone::cli
