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

// The quick path decides the usual cases by times alone, and leaves all others to touch_range(). It is
// inlined by force: g++ would rather keep its parts in memory.
#define CAPSTONE_QUICK [[gnu::always_inline]] inline

/// What the quick path compares stamps with.
struct Horizon {
  Time floor;       ///< what was stamped before it happened before
  Time own;         ///< stamps from here on are of this block
  Time ready_from;  ///< a word that is ready since then was written
  Time launch;      ///< older stamps may be of another launch
};
CAPSTONE_QUICK Horizon horizon_of(const Block& block, const Allocation* allocation) {
  if (!allocation) return {block.barrier, block.begin, block.begin, block.begin};
  return {running_launch.floor, block.last_turn, allocation->written ? 0u : 1u, running_launch.begin};
}

/// It happened before, or was this thread.
CAPSTONE_QUICK bool is_settled(const Stamp& s, const Lane& lane, const Horizon& h) {
  return !s.asynchronous && (s.time < h.floor || (s.time >= h.own && s.thread == lane.linear));
}

/// The running thread knows nothing of what `s` says. False where that takes more than times to decide.
inline bool is_unordered(const Stamp& s, const Block& block, const Lane& lane, const Horizon& h) {
  if (s.asynchronous || s.time < h.launch || lane.learnt || block.learnt) return false;
  if (s.time < h.own) return s.time < block.begin;  // of another block, or of an earlier turn of this one
  return s.time >= block.barrier &&
         (s.thread / kWarpSize != lane.warp() ||
          (s.time >= block.warp[lane.warp()] && s.time >= lane.known[s.thread % kWarpSize]));
}

/// The word was written, by what happened before or was this thread.
CAPSTONE_QUICK bool is_readable(const Cell& cell, const Lane& lane, const Horizon& h) {
  return cell.ready >= h.ready_from && is_settled(cell.write, lane, h);
}
/// A read by the same warp since all of it met last: ordered with `me` by flags at most.
CAPSTONE_QUICK bool is_peer(const Stamp& s, const Stamp& me) {
  return s.time == me.time && s.thread / kWarpSize == me.thread / kWarpSize && !s.asynchronous;
}
/// As read_cell() (shadow.cpp). @return false when more is needed to decide; then nothing has been done
CAPSTONE_QUICK bool quick_read(Cell& cell, const Stamp& me, const Block& block, const Lane& lane,
                               const Horizon& h) {
  if (!is_readable(cell, lane, h)) return false;
  if (cell.spread == h.floor) return true;
  if (cell.ready == kSplit) return false;
  Stamp &a = cell.reads[0], &b = cell.reads[1];
  if (is_settled(a, lane, h)) {
    a = me;
    return true;
  }
  const bool peer = is_peer(a, me) && !lane.learnt && !block.learnt;
  if (!peer && !is_unordered(a, block, lane, h)) return false;
  auto far = [&](const Stamp& s, const Stamp& t) {
    return (s.time < h.own) != (t.time < h.own) || s.thread / kWarpSize != t.thread / kWarpSize;
  };
  if (is_settled(b, lane, h)) {
    b = me;
  } else {
    if (peer && is_peer(b, me)) return true;
    if (!is_unordered(b, block, lane, h)) return false;
    if (!far(a, b) && far(a, me)) b = me;
  }
  if (far(a, b)) cell.spread = h.floor;
  return true;
}
/// The same with fewer questions, for the first reader and for those of a word that has enough of them.
CAPSTONE_QUICK bool quickest_read(Cell& cell, const Lane& lane, SiteId site, Time floor, Time ready_from) {
  if (cell.ready < ready_from || cell.write.time >= floor || cell.write.asynchronous) return false;
  if (cell.spread == floor) return true;
  if (cell.ready == kSplit || cell.reads[0].time >= floor || cell.reads[0].asynchronous) return false;
  cell.reads[0] = stamp_of(lane, site, false);
  return true;
}
/// As write_cell().
CAPSTONE_QUICK bool quick_write(Cell& cell, const Stamp& me, const Lane& lane, const Horizon& h) {
  if (cell.ready < h.ready_from || cell.ready == kSplit || !is_settled(cell.write, lane, h) ||
      !is_settled(cell.reads[0], lane, h) || !is_settled(cell.reads[1], lane, h))
    return false;
  cell.write = me;
  cell.spread = 0;
  return true;
}

inline Allocation* allocation_for(SiteId site, std::uintptr_t address, unsigned bytes, bool write,
                                  std::uint32_t pc) {
  Spotter& spotter = spotters[sites[site].pc];
  if (spotter.hint && spotter.hint->contains(address, bytes)) {
    spotter.written = spotter.hint->written;
    return spotter.hint;
  }
  Allocation* found = allocation_at(address, bytes, write, pc);
  if (found) spotter.look_at(found);
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
[[gnu::noinline]] void access(const volatile void* pointer, std::uint32_t pc) {
  if (duties & kSettle) settle();
  Lane* lane = this_lane;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!lane) {
    if (host_is_watched && !this_block) host_access(address, kWrite, pc);
    return;
  }
  if (on_a_stack(address)) {
    if (!lane->results.empty()) require_finished(*lane, address, N, kWrite, pc);
    return;
  }
  if (kVolatile && !kWrite) spin_hint();  // a loop that polls a flag
  if (kVolatile && kWrite) before_store(*lane, address);
  if (address % N != 0) misaligned(N, kWrite, pc);
  Block& block = *this_block;
  const SiteId site = site_at(pc, N, kWrite, false);
  Spot place{};
  if (!find_place(block, address, N, kWrite, site, place)) return;
  if (place.home)
    trace(block, *lane, site, place.offset | kSharedBit);
  else if (place.allocation->counted)
    trace(block, *lane, site, address);
  const Stamp me = stamp_of(*lane, site, kVolatile);
  touch_range(block, *lane, place, N, !kWrite, kWrite, me);
  if (!kVolatile) return;
  pass_flag(block, *lane, address, !kWrite, kWrite);
  if (kWrite)
    relaxed_write(*lane, address, N, me, false);
  else
    relaxed_read(block, *lane, address, N, lane->last_fence, pc);
}

/// What an access of N bytes looks at: the cells of its words, or of its bytes.
template <unsigned N>
inline constexpr unsigned kCellsOf = N < 4 ? N : N / 4;

/// Reads of words whose readers are still to be kept. `allocation`: null: in the block's shared memory.
template <unsigned N>
[[gnu::noinline]] void read_words(const void* pointer, std::uint32_t pc, Cell* cells,
                                  const Allocation* allocation) {
  Block& block = *this_block;
  Lane& lane = *this_lane;
  const SiteId site = spotters[pc].site;
  const Stamp me = stamp_of(lane, site, false);
  const Horizon h = horizon_of(block, allocation);
  for (unsigned i = 0; i < kCellsOf<N>; ++i)
    if (!quick_read(cells[i], me, block, lane, h)) return access<N, false, false>(pointer, pc);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!allocation)
    trace(block, lane, site, (address - block.shared) | kSharedBit);
  else if (allocation->counted)
    trace(block, lane, site, address);
}

/// @param words, bytes  Spotter::cells, byte_cells of the memory
template <unsigned N, bool kWrite, bool kShared, bool kCounts>
CAPSTONE_QUICK void quick_access(const void* pointer, std::uint32_t pc, const Spotter& spotter,
                                 const Block& block, Lane& lane, std::uintptr_t words, std::uintptr_t bytes,
                                 std::uint64_t traced) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % N != 0 || lane.traced + 1 == kTraceCapacity) return access<N, kWrite, false>(pointer, pc);
  auto* cells = reinterpret_cast<Cell*>(words + address / 4 * sizeof(Cell));
  if (N < 4) {  // the word must have been split, and not by an earlier block
    if (cells->ready != kSplit || (kShared && cells->spread < block.begin))
      return access<N, kWrite, false>(pointer, pc);
    cells = reinterpret_cast<Cell*>(bytes + address * sizeof(Cell));
  }
  const Time floor = kShared ? block.barrier : running_launch.floor;
  const Time ready_from = kShared ? block.begin : spotter.written ? 0 : 1;
  for (unsigned i = 0; i < kCellsOf<N>; ++i) {
    if (!kWrite && !quickest_read(cells[i], lane, spotter.site, floor, ready_from))
      return read_words<N>(pointer, pc, cells, kShared ? nullptr : spotter.hint);
    if (kWrite && !quick_write(cells[i], stamp_of(lane, spotter.site, false), lane,
                               {floor, kShared ? block.begin : block.last_turn, ready_from, 0}))
      return access<N, kWrite, false>(pointer, pc);
  }
  if (!kShared && !spotter.counted) return;
  if (kCounts) keep_trace(lane, spotter.site, traced);
  ++lane.traced;
}

/// As access(), and first looks as far as it can without a call.
template <unsigned N, bool kWrite, bool kCounts>
CAPSTONE_QUICK void looked_access(const void* pointer, std::uint32_t pc) {
  Lane* const lane = this_lane;
  if (!lane) {
    if (host_is_watched) access<N, kWrite, false>(pointer, pc);
    return;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const Spotter& spotter = spotters[pc];
  const Block& block = *this_block;
  if (address - spotter.begin < spotter.first)
    return quick_access<N, kWrite, false, kCounts>(pointer, pc, spotter, block, *lane, spotter.cells,
                                                   spotter.byte_cells, address);
  const std::size_t offset = address - block.shared;
  if (offset < block.quick_bytes && spotter.site)
    return quick_access<N, kWrite, true, kCounts>(pointer, pc, spotter, block, *lane, block.cells,
                                                  block.byte_cells, offset | kSharedBit);
  if (!is_thread_state(address) && !running_launch.holds_argument(address) &&
      !(on_a_stack(address) && lane->results.empty()))
    access<N, kWrite, false>(pointer, pc);
}

template <unsigned N, bool kWrite>
[[gnu::noinline]] void dutiful_access(const void* pointer, std::uint32_t pc) {
  if (duties & kSettle) return access<N, kWrite, false>(pointer, pc);
  looked_access<N, kWrite, true>(pointer, pc);
}
/// What the compiler calls before a plain access.
template <unsigned N, bool kWrite>
CAPSTONE_QUICK void plain_access(const void* pointer, std::uint32_t pc) {
  if (duties) return dutiful_access<N, kWrite>(pointer, pc);
  looked_access<N, kWrite, false>(pointer, pc);
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
