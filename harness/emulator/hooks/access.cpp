#include "hooks/access.h"

#include "hooks/findings.h"

namespace capstone_emu::hooks {
namespace {

/// Shared, global or neither, with bounds checked and the access traced in pieces of `piece` bytes (0: not
/// traced).
void access_at(Block& block, Lane& lane, std::uintptr_t address, unsigned bytes, unsigned piece, bool reads,
               bool writes, SiteId site, bool relaxed) {
  Spot place{};
  if (!find_place(block, address, bytes, writes, site, place)) return;
  if (place.home || place.allocation->counted)
    for (unsigned i = 0; piece && i < bytes; i += piece)
      trace(block, lane, site, place.home ? (place.offset + i) | kSharedBit : address + i);
  touch_range(block, lane, place, bytes, reads, writes, stamp_of(lane, site, relaxed));
}

/// Outside of kernels and on stacks there is nothing to see.
bool visible(std::uintptr_t address) {
  memory_is_current();
  if (!this_lane || on_a_stack(address)) return false;
  if (!this_block->doubts.empty()) settle_doubts(*this_block);
  return true;
}

}  // namespace

bool find_place(Block& block, std::uintptr_t address, unsigned bytes, bool write, SiteId site, Spot& place) {
  const std::uint32_t pc = sites[site].pc;
  if (Block* home = home_of(block, address)) {
    place = Spot::in(*home, address);
    require_shared_variable(*home, place.offset, bytes, write, pc);
    return true;
  }
  Allocation* allocation = allocation_for(site, address, bytes, write, pc);
  if (allocation) place = Spot::in(*allocation, address);
  return allocation != nullptr;
}

void host_access(std::uintptr_t address, bool write, std::uint32_t pc) {
  const Allocation* allocation = find_allocation(address);
  if (!allocation || !allocation->tensor || is_known(FindingKind::kHostAccess, pc, 0)) return;
  Finding finding{};
  finding.kind = FindingKind::kHostAccess;
  finding.kernel = "launch()";
  finding.grid = finding.block_dim = {1, 1, 1};
  finding.object = "`" + allocation->name + "`";
  finding.now = {pc, 0, 0, write, false, false};
  keep_finding(std::move(finding));
}

void observed_access(const volatile void* pointer, unsigned bytes, unsigned piece, bool write,
                     std::uint32_t pc) {
  memory_is_current();
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (this_lane && !this_lane->results.empty() && on_a_stack(address))
    require_finished(*this_lane, address, bytes, write, pc);
  if (bytes == 0 || !visible(address)) return;
  access_at(*this_block, *this_lane, address, bytes, piece, !write, write, site_at(pc, piece, write, false),
            false);
}

void access_range(const volatile void* pointer, std::size_t bytes, bool write, std::uint32_t pc) {
  const bool words = reinterpret_cast<std::uintptr_t>(pointer) % 4 == 0 && bytes % 4 == 0;
  observed_access(pointer, static_cast<unsigned>(bytes), words ? 4 : 1, write, pc);
}

void atomic_access(const volatile void* pointer, unsigned bytes, bool reads, bool writes, int order,
                   std::uint32_t pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!visible(address)) return;
  if (address % bytes != 0) misaligned(bytes, writes, pc);
  Block& block = *this_block;
  Lane& lane = *this_lane;
  if (writes && !reads) before_store(lane, address);
  const bool fences = order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
  const Time ordered = lane.last_fence;
  if (fences) fence(block, lane);
  pass_flag(block, lane, address, reads, writes);
  // A plain load is the first half of a compare-and-swap loop; the loop is one operation.
  const SiteId site = site_at(pc, bytes, writes, true);
  access_at(block, lane, address, bytes, writes ? bytes : 0, reads, writes, site, true);
  if (writes)
    relaxed_write(lane, address, bytes, stamp_of(lane, site, true), fences);
  else
    relaxed_read(block, lane, address, bytes, ordered, pc);
}

}  // namespace capstone_emu::hooks
