#pragma once
// Names of kernels as their author wrote them.
#include <string>
#include <string_view>

namespace capstone {

/// "sgemm<16>" of "void (anonymous namespace)::sgemm<16>(const float*)": without return type, unnamed namespace and parameters.
std::string kernel_name(std::string_view signature);

/// The same of a mangled name; what is not mangled stays as it is.
std::string demangled(const std::string& symbol);

/// "sgemm" of "capstone::sgemm<16>".
std::string base_name(std::string_view kernel);

/// Do two names mean one kernel, template arguments included? A symbol says "fused<true, 4>", ncu "fused<(bool)1, (int)4>", people "fused<true,4>".
bool same_kernel(const std::string& a, const std::string& b);

}  // namespace capstone
