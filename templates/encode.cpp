#include "templates/encode.h"

#include <fmt/format.h>

namespace capstone {

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const bool plain = (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') ||
                       u == '.' || u == '_' || u == '-' || u == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", u);
  }
  return out;
}

}  // namespace capstone
