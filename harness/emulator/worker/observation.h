#pragma once
// What a run of an instrumented build adds to its answer. Other build variants add nothing.
#include <cstddef>

#include "runtime/json.h"

namespace capstone_emu {

/// Tells the hooks which memory of the arena a run may touch: the request's "extents", else all of it.
/// @throws std::runtime_error when the request wants a report and this build cannot make one.
void begin_observation(const Json& request, char* arena, std::size_t arena_bytes);

/// Makes a finding an answer's failure, and writes the report if the request wants one.
/// @return a descriptor with the report, for the answer's packet; -1: the request wants none.
int finish_observation(const Json& request, Json& answer);

/// A failure in the form of the protocol.
struct Failure;
Json answer_of(const Failure& failure);

}  // namespace capstone_emu
