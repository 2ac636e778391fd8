#include "hooks/flops.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hooks/source_lines.h"

namespace capstone_emu::hooks {
namespace {

constexpr std::uint32_t kTail = 64 * 1024;  // [B] of code to read behind the last block that ran

bool ends_with_scalar_type(std::string_view name) {
  return name.ends_with("ss") || name.ends_with("sd") || name.ends_with("sh");
}

}  // namespace

unsigned flops_of(const char* mnemonic) {
  std::string_view name(mnemonic);
#if defined(__aarch64__)
  for (std::string_view fused : {"fmadd", "fmsub", "fnmadd", "fnmsub"})
    if (name == fused) return 2;
  for (std::string_view plain : {"fadd", "fsub", "fmul", "fnmul", "fdiv", "fsqrt"})
    if (name == plain) return 1;
  return 0;
#else
  if (!ends_with_scalar_type(name)) return 0;
  name.remove_suffix(2);
  if (name.starts_with("v")) name.remove_prefix(1);
  for (std::string_view fused : {"fmadd", "fmsub", "fnmadd", "fnmsub"})
    if (name.starts_with(fused)) return 2;
  for (std::string_view plain : {"add", "sub", "mul", "div", "sqrt"})
    if (name == plain) return 1;
  return 0;
#endif
}

std::vector<FloatInstruction> float_instructions(const std::vector<std::uint32_t>& blocks) {
  std::vector<FloatInstruction> found;
  if (blocks.empty()) return found;
  const auto [first, last] = std::minmax_element(blocks.begin(), blocks.end());
  char from[40], to[40];
  std::snprintf(from, sizeof from, "--start-address=0x%x", *first);
  std::snprintf(to, sizeof to, "--stop-address=0x%x", *last + kTail);
  const std::string text = output_of("objdump", {"-d", "--no-show-raw-insn", from, to, "{}"});
  // "  401136:\tvmulss %xmm2,%xmm0,%xmm0"; a function begins with "0000000000401130 <name>:".
  std::uint32_t block = *first;
  bool called = false, begun = false;  // the first label names the function that we start in
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      if (begun && line.ends_with(">:")) block = 0;
      continue;
    }
    begun = true;
    const auto address = static_cast<std::uint32_t>(std::strtoul(line.c_str(), nullptr, 16));
    if (called) block = address;
    const std::string instruction = line.substr(tab + 1);
    const std::string mnemonic = instruction.substr(0, instruction.find_first_of(" \t"));
    called = instruction.find("<__sanitizer_cov_trace_pc>") != std::string::npos;
    if (const unsigned flops = block ? flops_of(mnemonic.c_str()) : 0)
      found.push_back({address, block, flops});
    if (mnemonic == "ret" || mnemonic == "retq" || mnemonic == "jmp" || mnemonic == "b") block = 0;
  }
  return found;
}

}  // namespace capstone_emu::hooks
