#pragma once
// A page of the report as `open --serve` serves it.
#include <optional>
#include <string>

#include "harness/base/error.h"

namespace capstone {

/// The name under which a page asks for templates/html/live.js.
inline constexpr const char* kLiveScript = "live.js";

/// The page with a script that reloads it when the server announces another version, and with a security
/// policy that allows that script alone. Nothing else of the page changes.
/// @param page     a page of render_report(); empty: there is none yet
/// @param version  of what is shown: no space, no quote
/// @param problem  why the newest state could not be rendered; shown above the page
/// @error the page has no security policy that could be extended.
Result<std::string> live_page(std::string page, const std::string& version,
                              const std::optional<Error>& problem);

}  // namespace capstone
