#pragma once
// Reads what earlier versions wrote: records, bundles, result files and check-ins keep their bytes, but names
// have changed.
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/json.h"

namespace capstone {

/// Parses a document that some version of capstone wrote, and gives it today's names: version 0.2 said
/// `contestant` (now `candidate`), `tier` with the values `sealed` and `host` (`execution`: `replayed`,
/// `in-process`), `outside_clock` (`host_timer`), `hot_ms` (`warm_ms`) and `remarks` (`advice`).
/// @return a discarded value where parse_strictly() gives an error.
Json parse_recorded(std::string_view text);

/// Parses a document of a stranger, names as they are. @error not JSON; a key twice in one object, which two
/// readers may understand differently; nested deeper than any record is.
Result<Json> parse_strictly(std::string_view text);

/// parse_recorded() for a document that is parsed already. Names that are new already stay as they are.
void upgrade(Json& document);

}  // namespace capstone
