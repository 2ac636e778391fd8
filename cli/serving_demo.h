#pragma once
// `capstone demo serving`: what a decode kernel is worth inside a server.
#include "cli/demos.h"

namespace capstone::cli {

Result<void> serving_demo(const Context& context, const DemoInputs& inputs);

}  // namespace capstone::cli
