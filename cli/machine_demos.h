#pragma once
// A demo of the machine's side, played from recorded runs: no network, no GPU.
#include "cli/context.h"

namespace capstone::cli {

/// Chains of tries, each with the judge's words on the last one.
Result<void> feedback_demo(const Context& context);

}  // namespace capstone::cli
