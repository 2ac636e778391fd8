#pragma once
// `capstone demo warmup`: why the first times of a process are no times of a kernel.
#include "cli/demos.h"

namespace capstone::cli {

Result<void> warmup_demo(const Context& context, const DemoInputs& inputs);

}  // namespace capstone::cli
