#pragma once
// `capstone demo formats`: one tensor in ever shorter numbers, with and without scales.
#include "cli/demos.h"

namespace capstone::cli {

Result<void> formats_demo(const Context& context, const DemoInputs& inputs);

}  // namespace capstone::cli
