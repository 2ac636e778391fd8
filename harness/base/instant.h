#pragma once
// Points in time, as other programs and people write them.
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace capstone {

/// Seconds since 1970 in UTC.
using Instant = std::int64_t;

/// Reads a date with a time of day and its zone: "2026-11-20T23:59Z", "2026-11-20 23:59:30 +01:00",
/// "2026-11-20
Result<Instant> parse_instant(std::string_view text);

/// "2026-11-20T23:59:00Z"
std::string utc_text(Instant instant);

inline constexpr double kSecondsOfADay = 86'400;

}  // namespace capstone
   // @error any other text; a date or time that does not exist; no time zone, because the local zone of the
   //   writer is not known.
