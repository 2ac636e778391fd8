#pragma once
// The last line of a program's output, which usually gives the reason of a failure.
#include <string>
#include <string_view>

#include "harness/base/text.h"

namespace capstone {

/// The last line of a text that is not blank; empty if there is none.
inline std::string last_line(std::string_view text) {
  text = trim(text);
  return std::string(text.substr(text.rfind('\n') + 1));  // npos + 1 is 0: the only line
}

}  // namespace capstone
