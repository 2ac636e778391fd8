#include "harness/base/symbols.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "harness/base/text.h"

namespace capstone {

std::string kernel_name(std::string_view signature) {
  // The parameters begin at the first parenthesis that is in no template argument and is no "(anonymous namespace)".
  int depth = 0;
  std::size_t end = signature.size();
  for (std::size_t i = 0; i < signature.size(); ++i) {
    if (signature[i] == '<') ++depth;
    if (signature[i] == '>') --depth;
    if (signature[i] != '(' || depth > 0) continue;
    if (signature.substr(i).starts_with("(anonymous namespace)")) {
      i += std::string_view("(anonymous namespace)").size() - 1;
      continue;
    }
    end = i;
    break;
  }
  std::string name = replace_all(std::string(signature.substr(0, end)), "(anonymous namespace)::", "");
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? kernel_name(text.get()) : symbol;
}

}  // namespace capstone
