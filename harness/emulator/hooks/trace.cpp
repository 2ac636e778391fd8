// The threads of a warp run one after another here, together on a GPU. What each of them accessed is kept
// until all lanes have reached a barrier or a collective. Then the accesses are grouped as the hardware would
// make them: of the lanes' next accesses, those at the lowest program counter go first, together. Code is
// laid out in source order, so lanes that leave a loop early or skip a branch wait there for the others, as
// they do behind a branch on a GPU.
#include "hooks/block.h"
#include "hooks/traffic.h"

namespace capstone_emu::hooks {
namespace {

constexpr unsigned kMaxYields = 4 * kMaxThreads;

/// One instruction of a warp.
void count(const Block& block, SiteId id, std::uint32_t lanes, const std::uint64_t* addresses) {
  Site& site = sites[id];
  Counts& counts = site.counts;
  site.used = true;
  if (site.size == 0) {
    ++counts.barriers;
    return;
  }
  // One instruction may reach both spaces through a generic pointer; each is a separate request.
  std::uint32_t shared = 0;
  std::uint64_t offsets[kWarpSize];
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    offsets[l] = addresses[l] & ~kSharedBit;
    shared |= static_cast<std::uint32_t>(addresses[l] >> 63) << l;
  }
  const auto active = static_cast<unsigned>(__builtin_popcount(lanes));
  if (site.atomic) counts.atomics += active;
  if (shared) {
    const SharedCost cost = shared_cost({shared, site.size, offsets, site.write});
    const auto n = static_cast<unsigned>(__builtin_popcount(shared));
    ++counts.shared_requests;
    counts.wavefronts += cost.wavefronts;
    counts.ideal_wavefronts += cost.ideal;
    counts.shared_lanes += n;
    counts.shared_bytes += n * site.size;
    if (!site.shared) site.shared = shared_label(block, offsets[__builtin_ctz(shared)]);
  }
  if (const std::uint32_t global = lanes & ~shared) {
    const GlobalCost cost = global_cost({global, site.size, offsets, site.write});
    const auto n = static_cast<unsigned>(__builtin_popcount(global));
    ++counts.global_requests;
    ++(site.write ? counts.stores : counts.loads);
    counts.sectors += cost.sectors;
    if (site.write) counts.store_sectors += cost.sectors;
    counts.ideal_sectors += cost.ideal;
    counts.global_lanes += n;
    counts.global_bytes += n * site.size;
  }
}

/// All lanes made the same accesses in the same order: the usual case.
bool count_converged(const Block& block, Lane* lanes, unsigned width, unsigned accesses) {
  for (unsigned l = 1; l < width; ++l)
    if (lanes[l].traced != accesses ||
        std::memcmp(lanes[l].trace_sites, lanes[0].trace_sites, accesses * sizeof(SiteId)) != 0)
      return false;
  const std::uint32_t all = width == kWarpSize ? ~0u : (1u << width) - 1;
  std::uint64_t addresses[kWarpSize];
  for (unsigned i = 0; i < accesses; ++i) {
    for (unsigned l = 0; l < width; ++l) addresses[l] = lanes[l].trace_addresses[i];
    count(block, lanes[0].trace_sites[i], all, addresses);
  }
  return true;
}

/// Groups what is traced; stops where a lane of `needed` has nothing left, because its next access is not
/// known yet.
void count_diverged(const Block& block, Lane* lanes, unsigned width, std::uint32_t needed) {
  unsigned next[kWarpSize] = {};
  std::uint64_t addresses[kWarpSize];
  for (;;) {
    std::uint32_t lowest = ~0u, group = 0;
    SiteId site = 0;
    bool unknown = false;
    for (unsigned l = 0; l < width; ++l) {
      if (next[l] == lanes[l].traced) {
        unknown |= (needed >> l & 1u) != 0;
        continue;
      }
      const SiteId id = lanes[l].trace_sites[next[l]];
      const std::uint32_t pc = sites[id].pc;
      if (pc > lowest) continue;
      if (pc < lowest) {
        lowest = pc;
        group = 0;
        site = id;
      }
      group |= 1u << l;
      addresses[l] = lanes[l].trace_addresses[next[l]];
    }
    if (!group || unknown) break;
    for (std::uint32_t rest = group; rest; rest &= rest - 1) ++next[__builtin_ctz(rest)];
    count(block, site, group, addresses);
  }
  for (unsigned l = 0; l < width; ++l) {
    Lane& lane = lanes[l];
    const unsigned left = lane.traced - next[l];
    std::memmove(lane.trace_sites, lane.trace_sites + next[l], left * sizeof(SiteId));
    std::memmove(lane.trace_addresses, lane.trace_addresses + next[l], left * sizeof(std::uint64_t));
    lane.traced = left;
  }
}

unsigned width_of(const Block& block, unsigned warp) {
  return std::min(kWarpSize, block.count - warp * kWarpSize);
}

/// Lanes of the warp that can continue and make further accesses.
std::uint32_t running_lanes(const Block& block, unsigned warp) {
  std::uint32_t running = 0;
  for (unsigned l = 0; l < width_of(block, warp); ++l) {
    const State state = block.runner->state_of(warp * kWarpSize + l);
    if (state == State::kNotStarted || state == State::kReady || state == State::kRunning) running |= 1u << l;
  }
  return running;
}

}  // namespace

void count_warp(Block& block, unsigned warp) {
  Lane* lanes = &block.lanes[warp * kWarpSize];
  const unsigned width = width_of(block, warp);
  if (counting() && !count_converged(block, lanes, width, lanes[0].traced))
    count_diverged(block, lanes, width, 0);
  for (unsigned l = 0; l < width; ++l) lanes[l].traced = 0;
}

// A long stretch without a barrier: the thread lets the rest of its warp catch up, then what is known is
// counted.
void trace_is_full(Block& block, Lane& lane) {
  const unsigned warp = lane.warp();
  Lane* lanes = &block.lanes[warp * kWarpSize];
  auto someone_is_behind = [&] {
    for (std::uint32_t rest = running_lanes(block, warp); rest; rest &= rest - 1)
      if (lanes[__builtin_ctz(rest)].traced < kTraceCapacity) return true;
    return false;
  };
  for (unsigned i = 0; i < kMaxYields && lane.traced == kTraceCapacity && someone_is_behind(); ++i)
    yield_to_others();
  if (!counting() && lane.traced == kTraceCapacity)
    for (unsigned l = 0; l < width_of(block, warp); ++l) lanes[l].traced = 0;
  if (lane.traced == kTraceCapacity)
    count_diverged(block, lanes, width_of(block, warp), running_lanes(block, warp));
  if (lane.traced == kTraceCapacity) count_diverged(block, lanes, width_of(block, warp), 0);
}

}  // namespace capstone_emu::hooks
