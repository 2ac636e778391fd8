#pragma once
// "lib:NAME": an arm that runs a library's kernel, the class Library_NAME of a problem's reference.py.
#include <algorithm>
#include <string_view>

namespace capstone {

inline constexpr std::string_view kLibraryArm = "lib:";

/// Whether the name of an arm is "lib:" and a name that a Python class can end with.
inline bool is_library_arm(std::string_view name) {
  if (!name.starts_with(kLibraryArm) || name.size() == kLibraryArm.size()) return false;
  name.remove_prefix(kLibraryArm.size());
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace capstone
