#pragma once
// Kernel names as their author wrote them.
#include <string>
#include <string_view>

namespace capstone {

/// "sgemm<16>" from "void (anonymous namespace)::sgemm<16>(const float*)": without return type, unnamed
/// namespace and parameters.
std::string kernel_name(std::string_view signature);

/// The same from a mangled name; a name that is not mangled stays unchanged.
std::string demangled(const std::string& symbol);

/// "sgemm" from "capstone::sgemm<16>".
std::string base_name(std::string_view kernel);

/// Whether two names mean the same kernel, including template arguments. A symbol reads "fused<true, 4>", ncu
/// writes "fused<(bool)1, (int)4>", people write "fused<true,4>".
bool same_kernel(const std::string& a, const std::string& b);

}  // namespace capstone
