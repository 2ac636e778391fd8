#include "harness/model/strict_yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone {

tl::unexpected<Error> StrictYaml::refuse(const YamlNode& at, std::string what, std::string hint) const {
  return fail(std::move(what), fmt::format("{}:{}:{}", file_, at.line, at.column), std::move(hint));
}

Result<void> StrictYaml::keys(const YamlNode& map, const std::vector<std::string>& required,
                              const std::vector<std::string>& optional) const {
  if (!map.is_map()) return refuse(map, "expected a mapping, found " + describe(map));
  std::vector<std::string> known = required;
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto& [key, value] : map.entries) {
    if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
    const auto meant = nearest(key.text, known);
    return refuse(key, fmt::format("unknown key `{}`", key.text),
                  meant ? fmt::format("did you mean `{}`?", *meant)
                        : fmt::format("known here: {}", fmt::join(known, ", ")));
  }
  for (const std::string& key : required)
    if (!map.find(key))
      return refuse(map, fmt::format("`{}` is missing", key), fmt::format("add `{}:`", key));
  return {};
}

Result<std::string> StrictYaml::text_of(const YamlNode& node, std::string_view name) const {
  if (!node.is_scalar() || trim(node.text).empty())
    return refuse(node, fmt::format("`{}` must be text, not {}", name, describe(node)));
  return std::string(trim(node.text));
}

Result<std::string> StrictYaml::text(const YamlNode& map, const std::string& key) const {
  return text_of(*map.find(key), key);
}

Result<std::vector<std::string>> StrictYaml::texts(const YamlNode& list, std::string_view name) const {
  if (!list.is_list() || list.items.empty())
    return refuse(list, fmt::format("`{}` must be a list of texts, not {}", name, describe(list)));
  std::vector<std::string> all;
  for (const YamlNode& item : list.items) {
    CAPSTONE_TRY(std::string one, text_of(item, name));
    all.push_back(std::move(one));
  }
  return all;
}

Result<int> StrictYaml::whole(const YamlNode& node, std::string_view name, int low, int high) const {
  int value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [stop, code] = std::from_chars(node.text.data(), end, value);
  if (!node.is_scalar() || node.quoted || code != std::errc() || stop != end || value < low || value > high)
    return refuse(node, fmt::format("`{}` must be a whole number from {} to {}, not {}", name, low, high,
                                    describe(node)));
  return value;
}

}  // namespace capstone
