#pragma once
// What one warp-wide access costs on the hardware: sectors of global memory, wavefronts of shared memory.
#include <cstdint>

namespace capstone_emu::hooks {

inline constexpr unsigned kSectorBytes = 32, kBanks = 32, kBankBytes = 4;

/// Lanes that make one access of `size` bytes each at the same time. `address[l]` counts when bit l of
/// `lanes` is set.
struct Request {
  std::uint32_t lanes;
  unsigned size;                 ///< [B] 1, 2, 4, 8 or 16
  const std::uint64_t* address;  ///< [32]
  bool write = false;
};

struct GlobalCost {
  unsigned sectors;  ///< distinct 32-byte sectors touched
  unsigned ideal;    ///< sectors that would hold the distinct bytes requested
};
GlobalCost global_cost(const Request& request);

struct SharedCost {
  unsigned wavefronts;  ///< the most distinct 4-byte words of one bank, summed over the parts below
  /// parts with an active lane: one for up to 4 bytes a lane, halves for 8, quarters for 16; half as many
  /// where lanes load in pairs
  unsigned ideal;
};
/// Addresses are offsets in the block's shared memory.
/// @source  G. Smith (NVIDIA), forums.developer.nvidia.com/t/77228: a load of 8 or 16 bytes whose lanes l and
///          l^1, or l and l^2, want the same address (all of them that are active) takes half as many parts:
///          what returns to two lanes is packed.
SharedCost shared_cost(const Request& request);

}  // namespace capstone_emu::hooks
