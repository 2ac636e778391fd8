#ifndef CAPSTONE_BASE_JSON_H
#define CAPSTONE_BASE_JSON_H
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace capstone {
/// Keys keep the order in which they were written: records are read by people, too.
using Json = nlohmann::ordered_json;

/// JSON that somebody else wrote: a file, a packet, what a program printed. Discarded (is_discarded()) where
/// it is not JSON, or is nested deeper than any file of this tool: the library handles nested values by
/// recursion, and 200,000 levels end the process.
inline Json parse_json(std::string_view text) {
  constexpr int kMostDepth = 200;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (c == '\\' && in_string) ++i;
    if (in_string) continue;
    if (c == ']' || c == '}') --depth;
    if ((c == '[' || c == '{') && ++depth > kMostDepth) return Json(Json::value_t::discarded);
  }
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

/// The text under a key of an object; empty where that is missing or no text, or where there is no object.
inline std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
}  // namespace capstone

// Programs that link capstone::base take the functions from json.cpp, which compiles them once. Programs that
// use this header alone (the emulator, programs that nvcc builds) compile their own.
#if defined(CAPSTONE_JSON_COMPILED_ONCE)
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
#endif
#endif
