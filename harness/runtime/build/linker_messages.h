#pragma once
// Reading what ld says.
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

struct UndefinedReference {
  std::string symbol;
  std::string file;  ///< of the call, when the linker knows
  int line = 0;
};
/// Every `undefined reference to …` of a linker's output, in order.
std::vector<UndefinedReference> undefined_references(std::string_view log);

}  // namespace capstone
