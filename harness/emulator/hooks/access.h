#pragma once
// One access of a CUDA thread to memory: is it allowed, does it race, and what does it cost?
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hooks/block.h"
#include "hooks/findings.h"
#include "runtime/fiber.h"

namespace capstone_emu::hooks {

/// The stacks of all fibers lie in one range: local variables are not tracked.
inline bool on_a_stack(std::uintptr_t address) { return address - fiber_stacks.begin < fiber_stacks.bytes; }
/// threadIdx and similar variables.
inline bool is_thread_state(std::uintptr_t address) {
  constexpr std::uintptr_t kNear = 4096;
  return address - reinterpret_cast<std::uintptr_t>(&thread_state) + kNear < 2 * kNear;
}

/// A finding with the running launch and this block; the caller fills in the rest (shadow.cpp).
Finding blank_finding(FindingKind kind, const Block& block);

// shadow.cpp. The kernel ends at the first access that is out of bounds or misaligned.
[[noreturn]] void stop_at(Finding finding, std::uint32_t pc, bool write);
[[noreturn]] void misaligned(unsigned bytes, bool write, std::uint32_t pc);
void require_shared_variable(const Block& block, std::size_t offset, unsigned bytes, bool write,
                             std::uint32_t pc);
/// Null: no memory of the program, but the emulator's own.
Allocation* allocation_at(std::uintptr_t address, unsigned bytes, bool write, std::uint32_t pc);
/// A place in memory.
struct Spot {
  Allocation* allocation;  ///< of global memory; else null
  Block* home;             ///< whose shared memory; else null
  std::size_t offset;      ///< in the allocation, or in the block's shared memory
  static Spot in(Allocation& allocation, std::uintptr_t address) {
    return {&allocation, nullptr, address - allocation.begin};
  }
  static Spot in(Block& home, std::uintptr_t address) { return {nullptr, &home, address - home.shared}; }
  std::uintptr_t address() const { return (allocation ? allocation->begin : home->shared) + offset; }
};
/// Records the access in the shadow of the memory.
void touch_range(Block& block, Lane& lane, Spot place, unsigned bytes, bool reads, bool writes, Stamp me);
/// The place of an access, within its variable or allocation; an access out of bounds ends the kernel. False:
/// the emulator's own memory.
bool find_place(Block& block, std::uintptr_t address, unsigned bytes, bool write, SiteId site, Spot& place);

inline Stamp stamp_of(const Lane& lane, SiteId site, bool relaxed) {
  return {lane.time, site, lane.linear, relaxed, false};
}

/// The usual cases: the word was written, and what others did to it happened before (their stamps are older
/// than `floor`) or was this thread (stamps from `own` on are of this block).
/// @return false when this is not enough to decide
template <bool kWrite>
inline bool quick_touch(Cell& cell, const Stamp& me, Time floor, Time own, Time ready_from) {
  auto settled = [&](const Stamp& s) {
    return !s.asynchronous && (s.time < floor || (s.time >= own && s.thread == me.thread));
  };
  if (cell.ready < ready_from || !settled(cell.write)) return false;
  if (!kWrite) return cell.spread == floor;
  if (cell.ready == kSplit || !settled(cell.reads[0]) || !settled(cell.reads[1])) return false;
  cell.write = me;
  cell.spread = 0;
  return true;
}
template <unsigned N, bool kWrite>
inline bool quick_touches(Shadow& shadow, std::size_t offset, const Stamp& me, Time floor, Time own,
                          Time ready_from) {
  if (N < 4) return false;
  for (unsigned i = 0; i < N; i += 4)
    if (!quick_touch<kWrite>(shadow.word(offset + i), me, floor, own, ready_from)) return false;
  return true;
}

inline Allocation* allocation_for(SiteId site, std::uintptr_t address, unsigned bytes, bool write,
                                  std::uint32_t pc) {
  Allocation*& hint = sites[site].hint;
  if (__builtin_expect(hint && hint->contains(address, bytes), 1)) return hint;
  Allocation* found = allocation_at(address, bytes, write, pc);
  if (found) hint = found;
  return found;
}

/// Registers that an instruction will write: accumulators of a wgmma, or what a tcgen05.ld loads (wgmma.cpp).
void note_results(const void* const* results, unsigned count, bool loaded, std::uint32_t pc);
/// Reports an access to an accumulator whose wgmma was not waited for (wgmma.cpp).
void require_finished(const Lane& lane, std::uintptr_t address, std::size_t bytes, bool write,
                      std::uint32_t pc);

/// Of code that no kernel runs.
void host_access(std::uintptr_t address, bool write, std::uint32_t pc);

template <unsigned N, bool kWrite, bool kVolatile>
inline void access(const volatile void* pointer, std::uint32_t pc) {
  memory_is_current();
  Lane* lane = this_lane;
  if (!lane) {
    if (__builtin_expect(!this_block, 0)) host_access(reinterpret_cast<std::uintptr_t>(pointer), kWrite, pc);
    return;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (on_a_stack(address)) {
    if (__builtin_expect(!lane->results.empty(), 0)) require_finished(*lane, address, N, kWrite, pc);
    return;
  }
  if (kVolatile && !kWrite) spin_hint();  // a loop that polls a flag
  if (kVolatile && kWrite) before_store(*lane, address);
  if (__builtin_expect(address % N != 0, 0)) misaligned(N, kWrite, pc);
  Block& block = *this_block;
  if (__builtin_expect(!block.doubts.empty(), 0)) settle_doubts(block);
  const SiteId site = site_at(pc, N, kWrite, false);
  const std::size_t offset = address - block.shared;
  const Stamp me = stamp_of(*lane, site, kVolatile);
  if (offset < block.shared_bytes) {
    trace(block, *lane, site, offset | kSharedBit);
    // Other blocks of a cluster know nothing of this one's barriers.
    if (!kVolatile && !block.cluster &&
        quick_touches<N, kWrite>(*block.shadow, offset, me, block.barrier, block.begin, block.begin))
      return;
    require_shared_variable(block, offset, N, kWrite, pc);
    touch_range(block, *lane, {nullptr, &block, offset}, N, !kWrite, kWrite, me);
  } else if (Block* home =
                 __builtin_expect(block.cluster != nullptr, 0) ? home_of(block, address) : nullptr) {
    const Spot place = Spot::in(*home, address);
    trace(block, *lane, site, place.offset | kSharedBit);
    require_shared_variable(*home, place.offset, N, kWrite, pc);
    touch_range(block, *lane, place, N, !kWrite, kWrite, me);
  } else {
    Allocation* allocation = allocation_for(site, address, N, kWrite, pc);
    if (!allocation) return;
    if (allocation->counted) trace(block, *lane, site, address);
    const std::size_t at = address - allocation->begin;
    if (kVolatile || !quick_touches<N, kWrite>(allocation->shadow, at, me, running_launch.floor,
                                               block.last_turn, allocation->written ? 0 : 1))
      touch_range(block, *lane, {allocation, nullptr, at}, N, !kWrite, kWrite, me);
  }
  if (!kVolatile) return;
  pass_flag(block, *lane, address, !kWrite, kWrite);
  if (kWrite)
    relaxed_write(*lane, address, N, me, false);
  else
    relaxed_read(block, *lane, address, N, lane->last_fence, pc);
}

inline std::uint32_t number(const void* pc) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pc));
}

/// An access by the emulator on behalf of the running thread, counted in pieces of `piece` bytes.
void observed_access(const volatile void* pointer, unsigned bytes, unsigned piece, bool write,
                     std::uint32_t pc);

/// What a copy engine did for `thread` at the place is done: `finished` says when, and whether it counts as
/// the thread's own.
void finish_asynchronous(Spot place, unsigned bytes, unsigned thread, bool writes, Stamp finished);

/// Unfinished loads into the block's shared memory, and its wgmma, end with the block.
void forget_loads(const Block& block);
void forget_multiplies(Block& block);
/// What the wgmma of a warp group read in the first `groups` of its groups is read at `done`.
void finish_reads(Block& block, unsigned warp_group, unsigned groups, Time done);

/// An access that the compiler could not give one size: a structure, or an array.
void access_range(const volatile void* pointer, std::size_t bytes, bool write, std::uint32_t pc);

/// Reports a race when the write `before` at `pointer` did not happen before the running thread's use of it.
void require_order(Block& block, Lane& lane, const void* pointer, const Stamp& before, std::uint32_t pc);

/// A compare-and-swap follows: the plain read of the same place by this thread is the first half of the usual
/// loop.
void swap_begins(const volatile void* pointer, unsigned bytes);

/// An atomic operation; `order` is one of __ATOMIC_….
void atomic_access(const volatile void* pointer, unsigned bytes, bool reads, bool writes, int order,
                   std::uint32_t pc);

}  // namespace capstone_emu::hooks
