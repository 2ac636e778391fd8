#pragma once
#include <nlohmann/json.hpp>

namespace capstone_emu {
/// Keys keep the order in which they were written, because people read the reports, too.
using Json = nlohmann::ordered_json;
}  // namespace capstone_emu
