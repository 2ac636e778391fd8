#include "harness/model/upgrade.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace capstone {
namespace {

using Rename = std::pair<std::string_view, std::string_view>;

constexpr std::array kKeys{
    Rename{"contestant", "candidate"},     Rename{"contestants", "candidates"},
    Rename{"tier", "execution"},           Rename{"tier_reason", "execution_reason"},
    Rename{"outside_clock", "host_timer"}, Rename{"outside_ms", "host_timer_ms"},
    Rename{"hot_ms", "warm_ms"},           Rename{"remarks", "advice"},
};

constexpr std::array kExecutions{Rename{"sealed", "replayed"}, Rename{"host", "in-process"}};

template <std::size_t N>
std::string_view renamed(const std::array<Rename, N>& names, std::string_view name) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const Rename& each) { return each.first == name; });
  return found == names.end() ? name : found->second;
}

// A problem's tier is a number and keeps its name.
bool is_problem_tier(std::string_view key, const Json& value) { return key == "tier" && !value.is_string(); }

void upgrade_object(Json& object) {
  Json today = Json::object();
  for (auto& [key, value] : object.get_ref<Json::object_t&>()) {
    const std::string name(is_problem_tier(key, value) ? std::string_view(key) : renamed(kKeys, key));
    if (name == "execution" && value.is_string())
      today[name] = std::string(renamed(kExecutions, value.get_ref<const std::string&>()));
    else {
      upgrade(value);
      today[name] = std::move(value);
    }
  }
  object = std::move(today);
}

}  // namespace

void upgrade(Json& document) {
  if (document.is_object()) upgrade_object(document);
  if (!document.is_array() || (!document.empty() && document.front().is_number()))
    return;  // samples are numbers
  for (Json& element : document) upgrade(element);
}

Json parse_recorded(std::string_view text) {
  Json document = parse_json(text);
  if (!document.is_discarded()) upgrade(document);
  return document;
}

}  // namespace capstone
