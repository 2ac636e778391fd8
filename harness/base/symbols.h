#pragma once
// Names of kernels as their author wrote them.
#include <string>
#include <string_view>

namespace capstone {

/// "sgemm<16>" of "void (anonymous namespace)::sgemm<16>(const float*)": without return type, unnamed namespace and parameters.
std::string kernel_name(std::string_view signature);

/// The same of a mangled name; what is not mangled stays as it is.
std::string demangled(const std::string& symbol);

}  // namespace capstone
