#include "harness/analysis/explain/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr double kSectorsAClock = 2, kFlopsAClock = 256;
// A factor at which an excess is worth advice.
constexpr double kNotable = 1.25, kAgain = 1.5, kRepeated = 4;
// Sectors of a request above the fewest, where only its first address is at fault; below, other causes are
// likelier.
constexpr double kOneMore = 1.01, kNearlyOneMore = 0.8;
constexpr double kFullLanes = 28;
constexpr std::size_t kAdvice = 3;
constexpr double kLeastShare = 0.02;  // share of a line that is worth advice

std::string times(double factor) {
  return factor < 9.95 ? fmt::format("{:.1f} times", factor) : fmt::format("{:.0f} times", factor);
}

/// Loads and stores apart, where a line has both and they differ.
std::string sectors_of(const LineCounts& c) {
  const double ideal = c.global.ideal_per_request();
  if (c.loads > 0 && c.stores > 0) {
    const double load = double(c.global.units - c.store_sectors) / double(c.loads),
                 store = double(c.store_sectors) / double(c.stores);
    if (std::max(load, store) >= kNotable * std::min(load, store))
      return fmt::format(
          "a load of a warp touches {:.1f} sectors of 32 bytes and a store {:.1f}, where {:.1f} would do",
          load, store, ideal);
  }
  return fmt::format("a request of a warp touches {:.1f} sectors of 32 bytes where {:.1f} would do",
                     c.global.units_per_request(), ideal);
}

}  // namespace

double modelled_clocks(const LineCounts& c) {
  return double(c.global.units) / kSectorsAClock + double(c.shared.units) + double(c.flops) / kFlopsAClock;
}

double l1_passes(const LineCounts& c) {
  return double(c.shared.units) + std::max(double(c.global.requests), double(c.global.units) / 4);
}

Advice advice_on(const LineCounts& c, const KernelCounts& kernel, double compulsory_bytes, double moved_bytes,
                 std::string_view needed) {
  Advice advice{kernel.kernel, c.file, c.line, c.share, {}, {}, {}};
  const auto say = [&advice](const char* pattern, std::string what, std::string remedy) {
    advice.pattern = pattern;
    advice.what = std::move(what);
    advice.remedy = std::move(remedy);
    return advice;
  };
  const double global = double(c.global.units) / kSectorsAClock, shared = double(c.shared.units),
               arithmetic = double(c.flops) / kFlopsAClock;

  const bool few_lanes = c.global.requests_of_lanes() > 0 && c.global.lanes_per_request() < kFullLanes;
  if (c.atomics > 0 && c.global.requests > 0 && c.atomics * 2 >= c.global.active_lanes)
    return say(
        "atomics", fmt::format("{} atomic operations of single lanes on global memory", c.atomics),
        !few_lanes && c.global.units_per_request() >= kAgain
            ? "give each block a copy of the counters in shared memory, count there, and add each counter "
              "to global memory once per block (a privatised histogram)"
            : "add up within a warp first (__shfl_down_sync or a shared array), and let one lane per block "
              "do the atomic operation");
  if (global >= shared && global >= arithmetic) {
    const double more = c.global.units_per_request() - c.global.ideal_per_request();
    if (!few_lanes && more <= kOneMore && more >= kNearlyOneMore)
      return say(
          "misaligned",
          fmt::format("{}: lanes are neighbours, but the first address is no multiple of 32 bytes",
                      sectors_of(c)),
          "let each row begin at a multiple of 32 bytes (pad its length, or shift the index of all threads); "
          "the L1 cache serves most of what neighbouring warps share, and float4 would be misaligned here");
    if (c.global.excess() >= kNotable)
      return say(
          "uncoalesced", fmt::format("{}: {} the traffic", sectors_of(c), times(c.global.excess())),
          "let neighbouring threads (threadIdx.x) access neighbouring addresses; where the layout forbids "
          "it, read rows into shared memory first");
    if (few_lanes)
      return say("divergence",
                 fmt::format("only {:.1f} of 32 lanes are active in an access", c.global.lanes_per_request()),
                 "make the condition the same for a whole warp, or give work to each thread of a warp");
    if (compulsory_bytes > 0 && double(c.global.bytes) >= kRepeated * compulsory_bytes)
      return say(
          "redundant loads",
          fmt::format("requests {} in total, {} what {}: the same values are loaded repeatedly",
                      format_bytes(double(c.global.bytes)), times(double(c.global.bytes) / compulsory_bytes),
                      needed),
          "load a tile once into shared memory, or compute several results per thread in registers, and use "
          "each value many times");
    if (compulsory_bytes > 0 && moved_bytes >= kAgain * compulsory_bytes)
      return say("traffic",
                 fmt::format("moves {}; all lines together move {} what {}", format_bytes(c.moved_bytes()),
                             times(moved_bytes / compulsory_bytes), needed),
                 "read each value once: keep it in registers or shared memory, take larger tiles, or fuse "
                 "kernels");
    const double bytes_a_lane =
        c.global.active_lanes ? double(c.global.bytes) / double(c.global.active_lanes) : 0;
    if (bytes_a_lane > 0 && bytes_a_lane <= 4)
      return say(
          "traffic",
          fmt::format("moves {} in requests of {:.0f} bytes per lane, with the minimum number of sectors",
                      format_bytes(double(c.global.units) * 32), bytes_a_lane),
          "float4 (16 bytes per lane) needs a quarter of the instructions; the number of sectors stays the "
          "same");
    return say("traffic",
               fmt::format("moves {}{}, with the minimum number of sectors per request",
                           format_bytes(double(c.global.units) * 32),
                           c.global.bulk && !c.global.requests_of_lanes() ? " by bulk copies" : ""),
               "only moving less data helps: fuse kernels, or use a smaller type");
  }
  if (shared >= arithmetic) {
    if (c.shared.excess() >= kNotable)
      return say(
          "bank conflict",
          fmt::format("a request of a warp takes {:.1f} wavefronts of shared memory where {:.1f} would do: "
                      "{} as long",
                      c.shared.units_per_request(), c.shared.ideal_per_request(), times(c.shared.excess())),
          "several lanes access one bank: pad the rows by one element (tile[32][33]), swizzle the column, or "
          "let neighbouring lanes access neighbouring columns; in a reduction, add s[threadIdx.x + n] to "
          "s[threadIdx.x], and halve n");
    if (c.shared.lanes_per_request() < kFullLanes)
      return say(
          "divergence",
          fmt::format("only {:.1f} of 32 lanes are active in an access", c.shared.lanes_per_request()),
          "make the condition the same for a whole warp, or give work to each thread of a warp; in a "
          "reduction, let the first threads work (threadIdx.x < n, with n halved) and not every second one "
          "(threadIdx.x % (2 * n) == 0)");
    return say("traffic",
               fmt::format("{} wavefronts of shared memory, none wasted, for {} FLOP on the same line",
                           c.shared.units, c.flops),
               "only fewer accesses help: compute several results per thread, so that each value read from "
               "shared memory is used more than once");
  }
  return say("arithmetic", fmt::format("{} FLOP; memory is the smaller part of this line", c.flops),
             "this is the necessary work: do less of it, or use tensor cores if the tolerance allows");
}

void rank_lines(Explanation& e,
                const std::function<double(const KernelCounts&, const LineCounts&)>& clocks_of) {
  double all = 0;
  for (const KernelCounts& kernel : e.kernels)
    for (const LineCounts& line : kernel.lines) all += clocks_of(kernel, line);
  struct Ranked {
    const KernelCounts* kernel;
    const LineCounts* line;
  };
  std::vector<Ranked> ranked;
  for (KernelCounts& kernel : e.kernels)
    for (LineCounts& line : kernel.lines) {
      line.share = all > 0 ? clocks_of(kernel, line) / all : 0;
      if (line.line > 0 && line.share >= kLeastShare) ranked.push_back({&kernel, &line});
    }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.line->share > b.line->share; });
  if (ranked.size() > kAdvice) ranked.resize(kAdvice);
  e.advice.clear();
  for (const Ranked& r : ranked)
    e.advice.push_back(
        advice_on(*r.line, *r.kernel, e.compulsory_bytes, e.moved_bytes(), e.what_is_compulsory()));
}

}  // namespace capstone
