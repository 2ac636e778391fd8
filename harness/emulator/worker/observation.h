#pragma once
// What a run on the hooks build adds to its answer. In the other flavours: nothing.
#include <cstddef>

#include "runtime/json.h"

namespace capstone_emu {

/// Tells the hooks which memory of the arena a run may touch: the request's "extents", else all of it.
/// @throws std::runtime_error when the request asks to observe and this build cannot.
void begin_observation(const Json& request, char* arena, std::size_t arena_bytes);

/// Makes a finding an answer's failure, and writes the report if the request asked for it.
/// @return a descriptor with the report, for the answer's packet; -1: none was asked for.
int finish_observation(const Json& request, Json& answer);

/// A failure as the protocol words it.
struct Failure;
Json answer_of(const Failure& failure);

}  // namespace capstone_emu
