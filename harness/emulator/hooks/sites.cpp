#include "hooks/sites.h"

#include <cstdlib>

#include "hooks/reserve.h"

// From the linker: where the program's code ends.
extern "C" const char etext;

namespace capstone_emu::hooks {

Site* sites = nullptr;
Spotter* spotters = nullptr;
std::uint64_t* executed = nullptr;
std::uint8_t duties = kCount;

namespace {

SiteId g_sites = 0;
std::vector<std::uint32_t>& g_executed_blocks = *new std::vector<std::uint32_t>;

}  // namespace

void Counts::add(const Counts& o) {
  global_requests += o.global_requests;
  sectors += o.sectors;
  ideal_sectors += o.ideal_sectors;
  global_bytes += o.global_bytes;
  global_lanes += o.global_lanes;
  shared_requests += o.shared_requests;
  wavefronts += o.wavefronts;
  ideal_wavefronts += o.ideal_wavefronts;
  shared_bytes += o.shared_bytes;
  shared_lanes += o.shared_lanes;
  loads += o.loads;
  stores += o.stores;
  store_sectors += o.store_sectors;
  atomics += o.atomics;
  barriers += o.barriers;
  flops += o.flops;
  tensor_loaded += o.tensor_loaded;
  tensor_stored += o.tensor_stored;
  engine_read += o.engine_read;
  engine_written += o.engine_written;
  bulk += o.bulk;
  for (std::size_t i = 0; i < flops_of_kind.size(); ++i) flops_of_kind[i] += o.flops_of_kind[i];
}

void prepare_sites() {
  if (sites) return;
  const std::size_t text = reinterpret_cast<std::uintptr_t>(&etext) + 16;
  spotters = reserve<Spotter>(text);
  executed = reserve<std::uint64_t>(text);
  sites = reserve<Site>(kMaxSites);
}

SiteId new_site(std::uint32_t pc, unsigned size, bool write, bool atomic) {
  // a program with a million accesses does not compile within the limits
  if (g_sites + 1 >= kMaxSites) std::abort();
  const SiteId id = ++g_sites;
  Site& site = *new (&sites[id]) Site;
  site.pc = pc;
  site.size = static_cast<std::uint8_t>(size);
  site.write = write;
  site.atomic = atomic;
  return spotters[pc].site = id;
}

SiteId site_count() { return g_sites; }

void block_executed(std::uint32_t pc) {
  std::uint64_t& count = executed[pc];
  if (__builtin_expect(count == 0, 0)) g_executed_blocks.push_back(pc);
  ++count;
}

std::vector<std::pair<std::uint32_t, std::uint64_t>> take_executed_blocks() {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> taken;
  for (std::uint32_t pc : g_executed_blocks) {
    std::uint64_t& count = executed[pc];
    taken.emplace_back(pc, count);
    count = 0;
  }
  g_executed_blocks.clear();
  return taken;
}

}  // namespace capstone_emu::hooks
