#pragma once
// What the instrumented build saw in a run (protocol.md).
#include "harness/runtime/worker/channel.h"

namespace capstone {

/// The report that came with an answer to `"observe":true`.
/// @error the answer brought none, or one that is no JSON object or larger than 16 MiB: the worker is not to
/// be trusted.
Result<Json> load_report(const Packet& answer);

/// The report in the first `size` bytes of a file. @error as for load_report().
Result<Json> read_report(int file, std::uint64_t size);

}  // namespace capstone
