#pragma once
// What a run on the instrumented build adds to its answer. In the other variants: nothing.
#include <cstddef>

#include "harness/base/json.h"

namespace capstone_emu {

/// Tells the hooks which memory of the arena a run may touch: the request's "extents", else all of it.
/// @throws std::runtime_error when the request asks to observe and this build cannot.
void begin_observation(const capstone::Json& request, char* arena, std::size_t arena_bytes);

/// Makes a finding an answer's failure, and writes the report if the request asked for it.
/// @return a descriptor with the report, for the answer's packet; -1: none was asked for.
int finish_observation(const capstone::Json& request, capstone::Json& answer);

/// A failure as the protocol words it.
struct Failure;
capstone::Json answer_of(const Failure& failure);

}  // namespace capstone_emu
