#pragma once
// A demo of the machine's side, played from recorded runs: no network, no GPU.
#include "cli/demos.h"

namespace capstone::cli {

/// Chains of tries, each with the judge's words on the last one.
Result<void> feedback_demo(const Context& context, const DemoInputs& inputs);

}  // namespace capstone::cli
