#pragma once
// What a run on the hooks build adds to its answer. In the other flavours: nothing.
#include "harness/base/json.h"

namespace capstone_emu {

/// A run begins.
/// @throws std::runtime_error when the request asks to observe and this build cannot.
void begin_observation(const capstone::Json& request);

/// Makes a finding an answer's failure, and writes the report if the request asked for it.
/// @return a descriptor with the report, for the answer's packet; -1: none was asked for.
int finish_observation(const capstone::Json& request, capstone::Json& answer);

/// A failure as the protocol words it.
struct Failure;
capstone::Json answer_of(const Failure& failure);

}  // namespace capstone_emu
