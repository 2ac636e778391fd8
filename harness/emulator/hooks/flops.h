#pragma once
// Floating-point operations, counted from what the compiler left of the source: each basic block is counted
// when it runs, and the arithmetic instructions of each are read from the program's own machine code.
#include <cstdint>
#include <vector>

namespace capstone_emu::hooks {

/// One arithmetic instruction and the block it belongs to.
struct FloatInstruction {
  std::uint32_t address = 0;
  std::uint32_t block = 0;  ///< return address of the block's counting call
  unsigned flops = 0;       ///< 1; 2 for a fused multiply-add
};

/// @param blocks  return addresses of counting calls that ran
std::vector<FloatInstruction> float_instructions(const std::vector<std::uint32_t>& blocks);

/// Operations of one scalar instruction, by its mnemonic in AT&T or AArch64 syntax; 0: not arithmetic.
/// Comparisons, conversions, minima and moves count as none, a division or a square root as one.
unsigned flops_of(const char* mnemonic);

}  // namespace capstone_emu::hooks
