#include "harness/model/hint.h"

#include <fmt/format.h>

#include <stdexcept>

#include "harness/model/fields.h"

namespace capstone {

std::string TakenHint::told() const {
  std::string place = "before the first version";
  if (!after.empty()) place = "after " + after;
  if (!before.empty()) place = (after.empty() ? "" : place + " and ") + "before " + before;
  std::string minute = time.substr(0, 16);
  if (minute.size() > 10) minute[10] = ' ';
  return fmt::format("hint {} of {}, {}{}", level, of, place,
                     minute.empty() ? "" : fmt::format(" ({} UTC)", minute));
}

void to_json(Json& json, const TakenHint& hint) {
  json = Json{{"level", hint.level}, {"of", hint.of}, {"text_sha256", hint.text_sha256}};
}

void from_json(const Json& json, TakenHint& hint) {
  hint = TakenHint{};
  read(json, "level", hint.level);
  read(json, "of", hint.of);
  read(json, "text_sha256", hint.text_sha256);
  if (hint.level < 1 || hint.level > kHintLevels)
    throw std::invalid_argument(fmt::format("level must be 1 to {}, not {}", kHintLevels, hint.level));
}

}  // namespace capstone
