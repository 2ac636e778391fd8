#include "harness/model/sizes_text.h"

namespace capstone {

std::string sizes_text(const Json& sizes) {
  std::string text;
  if (sizes.is_object())
    for (const auto& [symbol, value] : sizes.items())
      text += (text.empty() ? "" : ", ") + symbol + "=" + value.dump();
  return text;
}

}  // namespace capstone
