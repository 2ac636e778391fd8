#pragma once
// `capstone demo two-gpus`: expert dispatch and combine over two GPUs, split into wire and wait.
#include "cli/demos.h"

namespace capstone::cli {

Result<void> two_gpus_demo(const Context& context, const DemoInputs& inputs);

}  // namespace capstone::cli
