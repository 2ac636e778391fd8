#pragma once
#include "cli/context.h"
#include "harness/workflows/try_kernel.h"

namespace capstone::cli {

/// The outcome of `try` as a person reads it: verdict and stage times, then what failed and where.
void show_try(const Context& context, const workflows::TryOutcome& outcome);

}  // namespace capstone::cli
