#pragma once
#include <nlohmann/json.hpp>

namespace capstone {
/// Keys keep the order in which they were written: records are read by people, too.
using Json = nlohmann::ordered_json;
}  // namespace capstone
