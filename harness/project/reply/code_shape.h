#pragma once
// What a piece of CUDA C++ defines, uses and lacks: enough to choose between code blocks, far from a parser.
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

/// The outline of one code block. Views point into the text it was made from.
struct CodeShape {
  bool defines_launch = false;  ///< a definition, not a declaration or a call
  bool launch_is_extern_c = false;
  bool has_kernel = false;  ///< __global__
  bool has_include = false;
  bool only_directives = false;        ///< nothing but #include, #define, using …: a header part
  bool unfinished = false;             ///< ends inside a comment or a string, or with a brace open
  bool leaves_out = false;             ///< "// ... rest as before"
  bool inside_out = false;             ///< closes a brace that it did not open: a continuation
  int depth = 0;                       ///< braces opened minus closed
  std::set<std::string_view> defines;  ///< functions, types, variables and macros at file scope
  std::set<std::string_view> uses;     ///< every identifier
};

/// One linear pass over the text.
CodeShape shape_of(std::string_view code);

/// Libraries that the code includes or calls, in a fixed order: cublas, cudnn, cufft, curand, cusolver,
/// cusparse, nccl, thrust, cub, cutlass, torch.
std::vector<std::string> libraries_in(std::string_view code);

}  // namespace capstone
