#include "harness/model/upgrade.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/text.h"

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

Result<Json> parse_strictly(std::string_view text) {
  constexpr int kDeepest = 64;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string wrong;
  auto look = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.empty() &&
        !keys.back().insert(value.get_ref<const std::string&>()).second && wrong.empty())
      wrong = "the key \"" + printable(value.get_ref<const std::string&>()) + "\" is there twice";
    if (depth > kDeepest && wrong.empty())
      wrong = "it is nested deeper than " + std::to_string(kDeepest) + " levels";
    return depth <= kDeepest;  // what lies deeper is not kept
  };
  Json document = Json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (!wrong.empty()) return fail(std::move(wrong));
  if (document.is_discarded()) return fail("it is not JSON");
  return document;
}

Json parse_recorded(std::string_view text) {
  auto document = parse_strictly(text);
  if (!document) return Json(Json::value_t::discarded);
  upgrade(*document);
  return *std::move(document);
}

}  // namespace capstone
