// tcgen05. Tensor memory is an allocation like others, with a shadow. What tcgen05.ld and .st move is
// unfinished until the warp's wait; what tcgen05.mma, .cp and .shift touch, in shared memory, too, until the
// phase of the mbarrier is over that it was committed to. PTX ISA 9.0, 9.7.16.6.
#include "hooks/access.h"
#include "hooks/copies.h"
#include "runtime/observe.h"

namespace capstone_emu {

using namespace hooks;

void tensor_loads_into(const void* const* registers, unsigned count) {
  note_results(registers, count, true, number(__builtin_return_address(0)));
}

namespace observe {

void tensor_memory_begins(const void* begin, std::size_t bytes) {
  add_allocation(begin, bytes, "tensor memory", false, false);
  find_allocation(reinterpret_cast<std::uintptr_t>(begin))->pipelined = true;
}
void tensor_memory_ends(const void* begin) { remove_allocation(begin); }

void tensor_moved(const void* word, bool write, const void* pc) {
  if (!this_lane) return;
  Lane& lane = *this_lane;
  const SiteId site = site_at(number(pc), 4, write, false);
  touch_range(*this_block, lane, spot_at(*this_block, word), 4, !write, write,
              {kUnfinished, site, lane.linear, false, true});
  sites[site].used = true;
  (write ? sites[site].counts.tensor_stored : sites[site].counts.tensor_loaded) += 4;
  lane.tensor_moves.push_back({word, write});
  lane.uses_engines = true;
}

void tensor_moves_awaited(bool writes) {
  if (!this_lane) return;
  Lane& lane = *this_lane;
  std::erase_if(lane.tensor_moves, [&](const TensorWord& move) {
    if (move.write != writes) return false;
    finish_asynchronous(spot_at(*this_block, move.word), 4, lane.linear, writes,
                        {lane.time, 0, lane.linear, false, false});
    return true;
  });
  if (!writes) std::erase_if(lane.results, [](const PendingResult& r) { return r.loaded; });
}

void engine_touches(const void* begin, unsigned bytes, bool reads, bool writes, const void* pc) {
  if (!this_lane) return;
  memory_is_current();
  Block& block = *this_block;
  Lane& lane = *this_lane;
  if (!block.doubts.empty()) settle_doubts(block);
  const SiteId site = site_at(number(pc) - (writes ? 0 : 1), 16, writes, false);
  Spot place{};
  if (!find_place(block, reinterpret_cast<std::uintptr_t>(begin), bytes, writes, site, place)) return;
  touch_range(block, lane, place, bytes, reads, writes, {kUnfinished, site, lane.linear, false, true});
  if (place.allocation && place.allocation->pipelined) {  // tensor memory
    sites[site].used = true;
    if (reads) sites[site].counts.engine_read += bytes;
    if (writes) sites[site].counts.engine_written += bytes;
  }
  lane.engine.push_back({begin, bytes, writes});
  lane.uses_engines = true;
}

/// A commit covers all that its thread has issued, also what an earlier commit has told another barrier.
void engine_committed(std::uint64_t* const* barriers, unsigned count, const void* pc) {
  if (!this_lane) return;
  Lane& lane = *this_lane;
  ++lane.commits;
  std::erase_if(lane.engine, [&](EnginePiece& piece) {
    if (piece.commit == 0) piece.commit = lane.commits;
    return piece.commit <= lane.commits_done;
  });
  for (unsigned i = 0; i < count; ++i) {
    barrier_used(barriers[i], pc);
    releases(barriers[i]);  // the work came after what its thread knew, such as tiles that had arrived
    for (const EnginePiece& piece : lane.engine)
      report_to(barriers[i], piece.begin, piece.bytes, piece.writes);
    report_commit_to(barriers[i], lane.commits);
  }
}

}  // namespace observe
}  // namespace capstone_emu
