// Asynchronous copies, from cp.async to TMA. What a copy engine touches is unfinished from the issue until a
// thread can know that it is done. Until then no thread may access the target of a load, or overwrite the
// source of a store.
#include "hooks/copies.h"

#include "hooks/traffic.h"
#include "hooks/waits.h"
#include "runtime/observe.h"

namespace capstone_emu::hooks {

Spot spot_at(Block& block, const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (Block* home = home_of(block, address)) return Spot::in(*home, address);
  return Spot::in(*find_allocation(address), address);
}

namespace {

void finish(const void* pointer, unsigned bytes, const Lane& lane, bool writes) {
  finish_asynchronous(spot_at(*this_block, pointer), bytes, lane.linear, writes,
                      {lane.time, 0, lane.linear, false, false});
}

/// The first `groups - still_pending` of the groups, taken out of the list.
template <class Group>
std::vector<Group> take_finished(std::vector<Group>& groups, unsigned still_pending) {
  const std::size_t count = groups.size() > still_pending ? groups.size() - still_pending : 0;
  const auto end = groups.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Group> finished(std::make_move_iterator(groups.begin()), std::make_move_iterator(end));
  groups.erase(groups.begin(), end);
  return finished;
}

/// A bulk load, or other work of an engine, whose barrier does not know of it yet.
struct Load {
  Spot place;
  unsigned bytes;
  Block* issuer;
  unsigned thread;
  bool writes = true;
  unsigned commit = 0;  ///< of tcgen05, counted by thread
};
std::map<std::uintptr_t, std::vector<Load>>& loads() {  // by barrier
  static auto* all = new std::map<std::uintptr_t, std::vector<Load>>;
  return *all;
}

/// The engine moves whole lines; no lane of a warp idles meanwhile.
void count_bulk(SiteId id, std::uintptr_t address, unsigned bytes, bool write) {
  constexpr std::uintptr_t kLine = 128;
  static std::uintptr_t last_sector = 0;  // pieces of one copy follow each other
  static SiteId last_site = 0;
  Site& site = sites[id];
  Counts& counts = site.counts;
  site.used = true;
  if (std::exchange(last_site, id) != id) last_sector = 0;
  for (std::uintptr_t sector = address / kSectorBytes; sector <= (address + bytes - 1) / kSectorBytes;
       ++sector) {
    if (sector == last_sector) continue;
    ++counts.sectors;
    counts.store_sectors += write;
    if (sector / (kLine / kSectorBytes) != last_sector / (kLine / kSectorBytes)) {
      ++counts.global_requests;
      ++(write ? counts.stores : counts.loads);
      ++counts.bulk;
    }
    last_sector = sector;
  }
  counts.global_bytes += bytes;
  counts.ideal_sectors = (counts.global_bytes + kSectorBytes - 1) / kSectorBytes;
}

/// One side of a bulk copy; its access ends the kernel when it is out of bounds.
void bulk_access(const void* pointer, unsigned bytes, bool write, bool relaxed, bool unfinished,
                 std::uint32_t pc) {
  memory_is_current();
  Block& block = *this_block;
  Lane& lane = *this_lane;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const SiteId site = site_at(pc, 16, write, relaxed);
  Spot place{};
  if (!find_place(block, address, bytes, write, site, place)) return;
  if (place.allocation && place.allocation->counted) count_bulk(site, address, bytes, write);
  const Stamp me{unfinished ? kUnfinished : lane.time, site, lane.linear, relaxed, unfinished};
  touch_range(block, lane, place, bytes, !write, write, me);
}

}  // namespace

void forget_loads(const Block& block) {
  for (auto& [barrier, pending] : loads())
    std::erase_if(pending, [&](const Load& load) {
      if (load.place.home != &block && load.issuer != &block) return false;
      // A commit that no thread waits for: the next block of this runner finds nothing unfinished.
      if (!load.writes && load.place.home && load.place.home->shadow)
        finish_asynchronous(load.place, load.bytes, load.thread, false, {now, 0, load.thread, false, true});
      return true;
    });
}

void report_to(const void* barrier, const void* begin, unsigned bytes, bool writes) {
  loads()[reinterpret_cast<std::uintptr_t>(barrier)].push_back(
      {spot_at(*this_block, begin), bytes, this_block, this_lane->linear, writes});
}
void report_commit_to(const void* barrier, unsigned commit) {
  loads()[reinterpret_cast<std::uintptr_t>(barrier)].push_back(
      {{}, 0, this_block, this_lane->linear, false, commit});
}

}  // namespace capstone_emu::hooks

namespace capstone_emu::observe {

using namespace hooks;

// ---- cp.async: its own thread waits -----------------------------------------------------------------------

void copy_issued(const void* to, const void* from, unsigned bytes, unsigned zero_filled, const void* pc) {
  if (!this_lane) return;
  const std::uint32_t place = number(pc);
  Block& block = *this_block;
  Lane& lane = *this_lane;
  const unsigned read = bytes - zero_filled;
  if (read) observed_access(from, read, read, false, place);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(to) - block.shared;
  const SiteId site = site_at(place - 1, bytes, true, false);  // another site than the load's
  require_shared_variable(block, offset, bytes, true, place);
  trace(block, lane, site, offset | kSharedBit);
  touch_range(block, lane, {nullptr, &block, offset}, bytes, false, true,
              {kUnfinished, site, lane.linear, false, true});
  lane.open.push_back({to, bytes});
  lane.uses_engines = true;
}

void copies_committed() {
  if (!this_lane) return;
  this_lane->uses_engines = true;
  this_lane->committed.push_back(std::move(this_lane->open));
  this_lane->open.clear();
}

void copies_awaited(unsigned still_pending) {
  if (!this_lane) return;
  for (const auto& group : take_finished(this_lane->committed, still_pending))
    for (const PendingCopy& copy : group) finish(copy.to, copy.bytes, *this_lane, true);
}

void copies_report_to(const void* barrier) {
  if (!this_lane) return;
  copies_committed();
  for (const auto& group : take_finished(this_lane->committed, 0))
    for (const PendingCopy& copy : group) report_to(barrier, copy.to, copy.bytes, true);
}

// ---- bulk copies: loads report to a barrier, stores are waited for by their thread ------------------------

void bulk_load(const void* to, const void* from, unsigned bytes, const void* barrier, const void* pc) {
  if (!this_lane) return;
  if (from) bulk_access(from, bytes, false, false, false, number(pc));
  bulk_access(to, bytes, true, false, true, number(pc) - 1);
  report_to(barrier, to, bytes, true);
  note_step(WaitStep::kCopy, barrier, bytes);
}

void copies_complete_on(const void* barrier) {
  if (!this_block) return;
  note_step(WaitStep::kOver, barrier);
  const auto object = reinterpret_cast<std::uintptr_t>(barrier);
  auto it = loads().find(object);
  if (it == loads().end() || it->second.empty()) return;
  // The stamp is given in this block's turn, so that it is this block's, whichever block issued the copy.
  const Time done = ++now;
  for (const Load& load : it->second) {
    if (load.commit) {
      Lane& issuer = load.issuer->lanes[load.thread];
      issuer.commits_done = std::max(issuer.commits_done, load.commit);
    }
    if (load.bytes)
      finish_asynchronous(load.place, load.bytes, load.thread, load.writes,
                          {done, 0, load.thread, false, true});
    publish_engine(*this_block, object, load.thread, done + 1);
  }
  it->second.clear();
  ++now;
  if (this_lane) this_lane->time = now;
}

void bulk_store(const void* to, const void* from, unsigned bytes, bool reduces, const void* pc) {
  if (!this_lane) return;
  bulk_access(from, bytes, false, false, true, number(pc) - 1);
  bulk_access(to, bytes, true, reduces, !reduces, number(pc));
  this_lane->uses_engines = true;
  this_lane->open_stores.push_back({reduces ? nullptr : to, from, bytes});
}

void bulk_committed() {
  if (!this_lane) return;
  this_lane->uses_engines = true;
  this_lane->committed_stores.push_back(std::move(this_lane->open_stores));
  this_lane->open_stores.clear();
}

void bulk_awaited(unsigned still_pending) {
  if (!this_lane) return;
  for (const auto& group : take_finished(this_lane->committed_stores, still_pending))
    for (const PendingStore& store : group) {
      finish(store.from, store.bytes, *this_lane, false);
      if (store.to) finish(store.to, store.bytes, *this_lane, true);
    }
}

}  // namespace capstone_emu::observe
