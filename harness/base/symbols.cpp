#include "harness/base/symbols.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <regex>

#include "harness/base/text.h"

namespace capstone {
namespace {

// Template arguments without their types, separated by commas only. Booleans become numbers: ncu writes "1",
// with or without the type.
std::string plain(const std::string& kernel) {
  static const std::regex type(R"(\([A-Za-z_][A-Za-z_0-9: ]*\)(?=-?[0-9]))"),
      suffix(R"(([0-9])[uUlL]+(?=[,> ]|$))"), yes(R"(\btrue\b)"), no(R"(\bfalse\b)");
  std::string text = std::regex_replace(std::regex_replace(kernel, yes, "1"), no, "0");
  text = std::regex_replace(std::regex_replace(text, type, ""), suffix, "$1");
  return replace_all(text, " ", "");
}

}  // namespace

std::string base_name(std::string_view kernel) {
  const std::string_view bare = kernel.substr(0, kernel.find('<'));
  const std::size_t scope = bare.rfind("::");
  return std::string(scope == bare.npos ? bare : bare.substr(scope + 2));
}

bool same_kernel(const std::string& a, const std::string& b) { return a == b || plain(a) == plain(b); }

std::string kernel_name(std::string_view signature) {
  // An unnamed namespace as ncu writes it, and as the compiler writes it.
  std::string name =
      replace_all(replace_all(std::string(signature), "<unnamed>::", ""), "(anonymous namespace)::", "");
  // The parameters begin at the first parenthesis outside of template arguments.
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] != '(' || depth > 0) continue;
    name.resize(i);
    break;
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  return replace_all(name, "> >", ">>");
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? kernel_name(text.get()) : symbol;
}

}  // namespace capstone
