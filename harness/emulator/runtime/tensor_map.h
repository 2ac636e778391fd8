#pragma once
// What a CUtensorMap holds here: cuda_driver.cpp writes it, bulk_copy.cpp reads it.
#include <cstdint>

#include "../include/capstone_emulator/core.h"

namespace capstone_emu {

struct TensorMap {
  static constexpr std::uint32_t kMagic = 0x7a6d7431;
  std::uint32_t magic;
  std::uint8_t rank;
  Element element;
  std::uint8_t swizzle;   ///< [B] span: 0, 32, 64, 128
  std::uint8_t nan_fill;  ///< what lies outside reads as NaN instead of 0
  std::uint64_t address;
  std::uint32_t extent[5];  ///< elements, innermost first
  std::uint64_t stride[5];  ///< [B] between neighbours of each dimension
  std::uint16_t box[5];     ///< elements
  std::uint8_t step[5];     ///< traversal stride in elements
};
static_assert(sizeof(TensorMap) <= 128);

inline unsigned bytes_of(Element element) {
  switch (element) {
    case Element::kU8:
      return 1;
    case Element::kU16:
    case Element::kF16:
    case Element::kBf16:
      return 2;
    case Element::kU32:
    case Element::kS32:
    case Element::kF32:
      return 4;
    default:
      return 8;
  }
}

/// The 16-byte pieces of shared memory change places within a span, as its address says.
inline std::uintptr_t swizzled(std::uintptr_t address, unsigned span) {
  const std::uintptr_t mask = span == 128 ? 7 : span == 64 ? 3 : span == 32 ? 1 : 0;
  return address ^ (address >> 7 & mask) << 4;
}

}  // namespace capstone_emu
