#include "harness/workflows/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone::workflows {

Result<Sizes> parse_sizes(const Problem& problem, Sizes sizes, const std::string& text) {
  for (const std::string& part : text.empty() ? std::vector<std::string>{} : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string symbol(trim(part.substr(0, equals)));
    const std::string number(equals == std::string::npos ? std::string_view()
                                                         : trim(std::string_view(part).substr(equals + 1)));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || value < 1)
      return fail("--size takes SYMBOL=NUMBER, not \"" + part + "\"", {},
                  "whole numbers from 1, for example --size " + replace_all(to_string(sizes), " ", ""));
    auto it =
        std::find_if(sizes.begin(), sizes.end(), [&](const auto& pair) { return pair.first == symbol; });
    if (it == sizes.end()) {
      const auto meant = nearest(symbol, problem.symbols);
      return fail(fmt::format("the problem {} has no size \"{}\"", problem.id, symbol), {},
                  meant ? "did you mean `" + *meant + "`?" : "its sizes are: " + join(problem.symbols, ", "));
    }
    it->second = value;
  }
  CAPSTONE_TRY(bool fits, admissible(problem, sizes));
  if (!fits)
    return fail("these sizes are not allowed: " + to_string(sizes), problem.id,
                "see `where` in: capstone problems " + problem.id);
  return sizes;
}

}  // namespace capstone::workflows
