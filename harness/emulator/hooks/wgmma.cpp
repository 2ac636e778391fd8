// What a wgmma works on from its issue until a thread has waited for its group. Its accumulators are
// registers on a GPU and variables on a thread's stack here; only another wgmma may touch them. Its matrices
// in shared memory may not be overwritten.
#include <algorithm>

#include "hooks/access.h"
#include "hooks/findings.h"
#include "hooks/waits.h"
#include "runtime/observe.h"

namespace capstone_emu {

using namespace hooks;

namespace {

/// Later instructions may continue with the accumulators of earlier ones: the last group counts.
void add_result(Lane& lane, const PendingResult& fresh) {
  for (PendingResult& known : lane.results)
    if (known.begin == fresh.begin && known.end == fresh.end) {
      known = fresh;
      return;
    }
  lane.results.push_back(fresh);
  lane.uses_engines = true;
}

}  // namespace

void report_wgmma() {
  if (this_lane) this_lane->multiplies = this_lane->uses_engines = true;
}

void hooks::note_results(const void* const* results, unsigned count, bool loaded, std::uint32_t pc) {
  if (!this_lane) return;
  this_lane->multiplies = false;
  constexpr std::uintptr_t kRegister = 4;  // [B]
  for (unsigned i = 0; i < count;) {       // as few ranges as there are
    const auto begin = reinterpret_cast<std::uintptr_t>(results[i]);
    unsigned next = i + 1;
    while (next < count && reinterpret_cast<std::uintptr_t>(results[next]) == begin + (next - i) * kRegister)
      ++next;
    if (begin)
      add_result(*this_lane,
                 {begin, begin + (next - i) * kRegister, this_lane->result_groups + 1, pc, loaded});
    i = next;
  }
}

void wgmma_issued(const void* const* results, unsigned count) {
  note_results(results, count, false, number(__builtin_return_address(0)));
}

void wgmma_reads(const void* pointer, bool counted) {
  if (!this_lane) return;
  Block& block = *this_block;
  Lane& lane = *this_lane;
  if (!block.doubts.empty()) settle_doubts(block);
  constexpr unsigned kBytes = 16;
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(pointer) - block.shared;
  const SiteId site = site_at(number(__builtin_return_address(0)), kBytes, false, false);
  if (counted) trace(block, lane, site, offset | kSharedBit);
  require_shared_variable(block, offset, kBytes, false, sites[site].pc);
  touch_range(block, lane, {nullptr, &block, offset}, kBytes, true, false,
              {kUnfinished, site, lane.linear / kWarpGroupSize * kWarpGroupSize, true, true});
  block.multipliers[lane.linear / kWarpGroupSize].pending.push_back({pointer, lane.result_groups});
}

namespace observe {

void multiplies_committed() {
  if (!this_lane) return;
  this_lane->uses_engines = true;
  ++this_lane->result_groups;
  note_step(WaitStep::kCommit);
}

void multiplies_awaited(unsigned still_pending) {
  if (!this_lane) return;
  note_step(WaitStep::kDone, nullptr, still_pending);
  Block& block = *this_block;
  Lane& lane = *this_lane;
  std::erase_if(lane.results, [&](const PendingResult& r) {
    return !r.loaded && r.group + still_pending <= lane.result_groups;
  });
  const unsigned groups = lane.result_groups - still_pending;  // over, for all four warps
  const unsigned warp_group = lane.linear / kWarpGroupSize;
  MultiplierReads& reads = block.multipliers[warp_group];
  if (groups > reads.finished.size()) {
    const Time done = ++now;
    finish_reads(block, warp_group, groups, done);
    reads.finished.resize(groups, done);
    lane.time = ++now;
  }
  Knowledge known;
  known[block.index].add(kMultiplier + warp_group * kWarpGroupSize, reads.finished[groups - 1] + 1);
  learn(lane, known);
}

}  // namespace observe

namespace hooks {

void finish_reads(Block& block, unsigned warp_group, unsigned groups, Time done) {
  const unsigned thread = warp_group * kWarpGroupSize;
  std::erase_if(block.multipliers[warp_group].pending, [&](const MultiplierReads::Piece& piece) {
    if (piece.group >= groups) return false;
    finish_asynchronous(Spot::in(block, reinterpret_cast<std::uintptr_t>(piece.from)), 16, thread, false,
                        {done, 0, thread, true, true});
    return true;
  });
}

void forget_multiplies(Block& block) {
  for (unsigned g = 0; g * kWarpGroupSize < block.count; ++g) {
    finish_reads(block, g, ~0u, now);
    block.multipliers[g].finished.clear();
  }
}

void require_finished(const Lane& lane, std::uintptr_t address, std::size_t bytes, bool write,
                      std::uint32_t pc) {
  if (lane.multiplies) return;
  const auto touched = std::find_if(lane.results.begin(), lane.results.end(), [&](const PendingResult& r) {
    return address < r.end && address + bytes > r.begin;
  });
  if (touched == lane.results.end() || is_known(FindingKind::kUnfinishedResult, pc, touched->pc)) return;
  const Block& block = *this_block;
  Finding finding = blank_finding(FindingKind::kUnfinishedResult, block);
  finding.object = touched->loaded ? "a register of tcgen05.ld" : "an accumulator of wgmma";
  finding.now = {pc, block.index, lane.linear, write, false, false};
  finding.before = {touched->pc, block.index, lane.linear, true, true, false};
  finding.bytes = static_cast<unsigned>(bytes);
  keep_finding(std::move(finding));
}

}  // namespace hooks
}  // namespace capstone_emu
