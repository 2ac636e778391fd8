#include "harness/emulator/hooks/access.h"

namespace capstone_emu::hooks {
namespace {

/// Shared, global or neither, with bounds checked and the access traced in pieces of `piece` bytes (0: not traced).
void access_at(Block& block, Lane& lane, std::uintptr_t address, unsigned bytes, unsigned piece, bool reads, bool writes,
               SiteId site, bool relaxed) {
  const std::uint32_t pc = sites[site].pc;
  const Stamp me = stamp_of(lane, site, relaxed);
  const std::size_t offset = address - block.shared;
  if (offset < block.shared_bytes) {
    require_shared_variable(block, offset, bytes, writes, pc);
    for (unsigned i = 0; piece && i < bytes; i += piece) trace(block, lane, site, (offset + i) | kSharedBit);
    touch_range(block, lane, nullptr, offset, bytes, reads, writes, me);
  } else if (Allocation* allocation = allocation_for(site, address, bytes, writes, pc)) {
    for (unsigned i = 0; piece && allocation->counted && i < bytes; i += piece) trace(block, lane, site, address + i);
    touch_range(block, lane, allocation, address - allocation->begin, bytes, reads, writes, me);
  }
}

/// Outside of kernels and on stacks there is nothing to see.
bool visible(std::uintptr_t address) {
  if (!this_lane || on_a_stack(address)) return false;
  if (!this_block->doubts.empty()) settle_doubts(*this_block);
  return true;
}

}  // namespace

void observed_access(const volatile void* pointer, unsigned bytes, unsigned piece, bool write, std::uint32_t pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (bytes == 0 || !visible(address)) return;
  access_at(*this_block, *this_lane, address, bytes, piece, !write, write, site_at(pc, piece, write, false), false);
}

void access_range(const volatile void* pointer, std::size_t bytes, bool write, std::uint32_t pc) {
  const bool words = reinterpret_cast<std::uintptr_t>(pointer) % 4 == 0 && bytes % 4 == 0;
  observed_access(pointer, static_cast<unsigned>(bytes), words ? 4 : 1, write, pc);
}

void atomic_access(const volatile void* pointer, unsigned bytes, bool reads, bool writes, int order, std::uint32_t pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!visible(address)) return;
  if (address % bytes != 0) misaligned(bytes, writes, pc);
  Block& block = *this_block;
  Lane& lane = *this_lane;
  if (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST) fence(block, lane);
  pass_flag(block, lane, address, reads, writes);
  // A plain load is the first half of a compare-and-swap loop; the loop is one operation.
  access_at(block, lane, address, bytes, writes ? bytes : 0, reads, writes, site_at(pc, bytes, writes, true), true);
}

}  // namespace capstone_emu::hooks
