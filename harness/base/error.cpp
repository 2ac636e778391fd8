#include "harness/base/error.h"

namespace capstone {

std::string render(const Error& error) {
  std::string text = "error: " + error.what + '\n';
  if (!error.where.empty()) text += "  --> " + error.where + '\n';
  if (!error.hint.empty()) text += "  hint: " + error.hint + '\n';
  return text;
}

}  // namespace capstone
