#pragma once
// Three demos of the machine's side, played from recorded runs: no network, no GPU.
#include "cli/demos.h"

namespace capstone::cli {

/// k independent tries of one prompt: how many are solved, and what 1-(1-p)^k says.
Result<void> monkeys_demo(const Context& context, const DemoInputs& inputs);
/// Chains of tries, each with the judge's words on the last one.
Result<void> feedback_demo(const Context& context, const DemoInputs& inputs);
/// Ideas in English, their kernels, rounds; then sample, refine and evolve at equal numbers of tries.
Result<void> evolution_demo(const Context& context, const DemoInputs& inputs);

}  // namespace capstone::cli
