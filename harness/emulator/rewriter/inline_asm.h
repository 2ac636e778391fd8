#pragma once
// Inline PTX → calls of capstone_emulator/ptx.h.
#include <string>
#include <string_view>
#include <vector>

namespace capstone::rewriter {

struct Translation {
  std::string code;                 ///< C++ statements over the operands capstone_p0, capstone_p1, …
  std::vector<std::string> labels;  ///< that `code` defines; to be declared before it, so that they are local
  std::string unsupported;  ///< the first instruction that has no CPU implementation; then `code` is useless
};

/// @param text   the assembly template, escapes already resolved
/// @param names  symbolic operand names by position, empty where there is none
/// @param arch   __CUDA_ARCH__
Translation translate_ptx(std::string_view text, const std::vector<std::string>& names, int arch);

/// What an unsupported instruction belongs to, for the message: "warp-group MMA (sm_90a)", "TMA bulk copy" …
std::string family_of(std::string_view instruction);

}  // namespace capstone::rewriter
