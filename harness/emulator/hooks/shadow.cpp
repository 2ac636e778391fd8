// Races, uninitialised reads and bounds, one access at a time.
#include "hooks/access.h"
#include "hooks/findings.h"
#include "runtime/where.h"

namespace capstone_emu::hooks {

std::string short_name(const std::string& label) { return label.substr(0, label.find(" in ")); }

const char* shared_label(const Block& block, std::size_t offset) {
  for (const auto& [begin, bytes] : block.variables) {
    if (offset - begin >= bytes) continue;
    for (const SharedSlot& slot : shared_slots())
      if (block.statics + slot.offset == begin) return slot.name;
    return kDynamicShared;
  }
  return nullptr;
}

namespace {

/// The shared variable at an offset; empty when there is none.
std::string shared_name(const Block& block, std::size_t offset) {
  const char* label = shared_label(block, offset);
  if (!label) return {};
  return label == kDynamicShared ? label : "shared memory `" + short_name(label) + "`";
}

std::string nearest_shared(const Block& block, std::size_t offset) {
  std::size_t best = ~std::size_t{0};
  std::string text = "shared memory that no variable holds";
  for (const auto& [begin, bytes] : block.variables) {
    const bool past = offset >= begin + bytes;
    const std::size_t distance = past ? offset - begin - bytes : begin - offset;
    if (distance >= best) continue;
    best = distance;
    text = std::to_string(distance) + (past ? " bytes past the end of " : " bytes before the start of ") +
           shared_name(block, begin) + " (" + std::to_string(bytes) + " bytes)";
  }
  return text;
}

Party party_of(const Stamp& stamp, bool write, std::uint64_t block) {
  const Site& site = sites[stamp.site];
  return {site.pc, block, stamp.thread, write, stamp.asynchronous != 0, site.atomic};
}

std::string name_of(const Spot& place) {
  if (place.allocation) return "`" + place.allocation->name + "` at byte " + std::to_string(place.offset);
  std::string name = shared_name(*place.home, place.offset);
  for (const auto& [begin, bytes] : place.home->variables)
    if (place.offset - begin < bytes) name += " at byte " + std::to_string(place.offset - begin);
  return name;
}

void report_race(FindingKind kind, Block& block, const Spot& place, const Stamp& before, bool before_writes,
                 const Stamp& me, bool writes) {
  if (is_known(kind, sites[me.site].pc, sites[before.site].pc)) return;
  Finding finding = blank_finding(kind, block);
  finding.object = name_of(place);
  finding.shared = place.home != nullptr;
  finding.now = party_of(me, writes, block.index);
  finding.before = party_of(before, before_writes, owner_of(before, place.home, block));
  finding.same_warp =
      finding.now.block == finding.before.block && me.thread / kWarpSize == before.thread / kWarpSize;
  // Atomic accesses have been excused, so both are volatile.
  finding.lock_step = finding.same_warp && finding.shared && me.relaxed && before.relaxed;
  if (finding.lock_step && kind == FindingKind::kSameValue) return;
  if (finding.now.block == finding.before.block) finding.split = block.split;
  if (const ConcurrentLaunch* other = place.home ? nullptr : running_launch.concurrent_at(before.time)) {
    finding.other_launch = other->text;
    finding.same_warp = false;
    finding.split.clear();
  }
  keep_finding(std::move(finding));
}

/// Two atomic or volatile accesses do not race, except that volatile does not make the lanes of a warp run in
/// lock-step.
bool excused(const Stamp& a, const Stamp& b, bool shared) {
  if (!a.relaxed || !b.relaxed || a.multiplies() || b.multiplies()) return false;
  return !shared || a.thread / kWarpSize != b.thread / kWarpSize || sites[a.site].atomic ||
         sites[b.site].atomic;
}

struct Context {
  Block& block;
  Lane& lane;
  Spot place;
  Time phase;  // readers of this time and later may race with a write that comes now
  bool shared() const { return place.home != nullptr; }
  /// May a stamp be another block's?
  bool foreign(const Stamp& s) const { return (!shared() || block.cluster) && s.time < block.last_turn; }
};

bool conflicts(const Context& c, const Stamp& before, const Stamp& me) {
  if (before.time == 0) return false;
  if (c.place.allocation && c.place.allocation->pipelined && before.asynchronous && me.asynchronous &&
      before.thread == me.thread)
    return false;
  if (before.unfinished()) return true;
  return !happened_before(before, c.place.home, c.block, c.lane) && !excused(before, me, c.shared());
}

void read_cell(const Context& c, Cell& cell, const Stamp& me) {
  if (conflicts(c, cell.write, me))
    report_race(FindingKind::kRace, c.block, c.place, cell.write, true, me, false);
  Stamp &a = cell.reads[0], &b = cell.reads[1];
  auto same = [&](const Stamp& s) {
    if (me.multiplies()) return s.multiplies() && s.unfinished() && s.thread == me.thread;
    return s.thread == me.thread && !s.asynchronous && !c.foreign(s);
  };
  auto far = [&](const Stamp& s, const Stamp& t) {  // ordered by fewer kinds of synchronisation
    return s.asynchronous || c.foreign(s) != c.foreign(t) || s.thread / kWarpSize != t.thread / kWarpSize;
  };
  auto old = [&](const Stamp& s) {
    return s.time == 0 || (!s.unfinished() && happened_before(s, c.place.home, c.block, c.lane));
  };
  if (a.time == 0 || same(a) || old(a)) {
    a = me;
  } else if (b.time == 0 || same(b) || old(b) || (!far(a, b) && far(a, me))) {
    b = me;
  }
  if (b.time && far(a, b) && !old(b)) cell.spread = c.phase;
}

void write_cell(const Context& c, Cell& cell, const Stamp& me, unsigned bytes) {
  if (conflicts(c, cell.write, me)) {
    if (sites[cell.write.site].atomic || sites[me.site].atomic || cell.write.asynchronous ||
        me.asynchronous) {
      report_race(FindingKind::kRace, c.block, c.place, cell.write, true, me, true);
    } else if (!is_known(FindingKind::kRace, sites[me.site].pc, sites[cell.write.site].pc)) {
      Doubt doubt{c.place.address(), bytes, 0, cell.write, me};
      std::memcpy(&doubt.before, reinterpret_cast<const void*>(doubt.address), bytes);
      c.block.doubts.push_back(doubt);
      duties |= kSettle;
    }
  }
  for (const Stamp& read : cell.reads)
    if (conflicts(c, read, me)) report_race(FindingKind::kRace, c.block, c.place, read, false, me, true);
  cell.write = me;
  cell.spread = 0;
}

void report_uninitialised(const Context& c, const Stamp& me) {
  if (is_known(FindingKind::kUninitialised, sites[me.site].pc, 0)) return;
  Finding finding = blank_finding(FindingKind::kUninitialised, c.block);
  finding.object = name_of(c.place);
  finding.shared = c.shared();
  finding.now = party_of(me, false, c.block.index);
  keep_finding(std::move(finding));
}

bool is_ready(const Context& c, const Cell& cell) {
  if (!c.shared()) return c.place.allocation->written || cell.ready != 0;
  return cell.ready >= c.place.home->begin;
}

/// One cell, for a word or for a byte.
void touch(Context& c, Cell& cell, const Stamp& me, bool reads, bool writes, unsigned bytes) {
  if (reads) {
    if (!is_ready(c, cell)) report_uninitialised(c, me);
    if (!writes) return read_cell(c, cell, me);
  }
  write_cell(c, cell, me, bytes);
  if (!is_ready(c, cell)) cell.ready = now;
}

/// Threads share the word from now on: each of its bytes gets a cell.
void split(Shadow& shadow, std::size_t word) {
  Cell& cell = shadow.word(word);
  for (unsigned i = 0; i < 4; ++i) shadow.byte(word + i) = cell;
  cell = Cell{};
  cell.ready = kSplit;
  cell.spread = ++now;  // no phase has this number, so the quick path never takes the cell for a whole word
}

}  // namespace

Finding blank_finding(FindingKind kind, const Block& block) {
  Finding finding{};
  finding.kind = kind;
  finding.kernel = running_launch.config->kernel;
  finding.grid = running_launch.config->grid;
  finding.block_dim = running_launch.config->block;
  finding.now.block = finding.before.block = block.index;
  return finding;
}

void touch_range(Block& block, Lane& lane, Spot place, unsigned bytes, bool reads, bool writes, Stamp me) {
  Shadow& shadow = place.home ? *place.home->shadow : place.allocation->shadow;
  // Blocks of a cluster have no common phases, so both reads of a cell must be checked.
  const Time phase = !place.home ? running_launch.floor : block.cluster ? kUnfinished : block.barrier;
  Context c{block, lane, place, phase};
  for (std::size_t at = place.offset, end = at + bytes; at < end;) {
    Cell& word = shadow.word(at);
    const bool whole = at % 4 == 0 && end - at >= 4;
    // an earlier block split it
    if (word.ready == kSplit && place.home && word.spread < place.home->begin) word = Cell{};
    c.place.offset = at;
    if (whole && word.ready != kSplit) {
      touch(c, word, me, reads, writes, 4);
      at += 4;
      continue;
    }
    if (word.ready != kSplit) split(shadow, at & ~std::size_t{3});
    touch(c, shadow.byte(at), me, reads, writes, 1);
    ++at;
  }
}

void require_order(Block& block, Lane& lane, const void* pointer, const Stamp& before, std::uint32_t pc) {
  Block* home = home_of(block, reinterpret_cast<std::uintptr_t>(pointer));
  if (!home || happened_before(before, home, block, lane)) return;
  const Stamp me = stamp_of(lane, site_at(pc, 8, true, true), true);
  report_race(FindingKind::kRace, block, Spot::in(*home, reinterpret_cast<std::uintptr_t>(pointer)), before,
              true, me, true);
}

void finish_asynchronous(Spot place, unsigned bytes, unsigned thread, bool writes, Stamp finished) {
  Shadow& shadow = place.home ? *place.home->shadow : place.allocation->shadow;
  auto finish = [&](Stamp& stamp) {
    if (!stamp.unfinished() || stamp.thread != thread || stamp.relaxed != finished.relaxed) return;
    finished.site = stamp.site;
    stamp = finished;
  };
  auto finish_cell = [&](Cell& cell) {
    if (writes) return finish(cell.write);
    for (Stamp& read : cell.reads) finish(read);
  };
  for (std::size_t at = place.offset; at < place.offset + bytes; at += 4) {
    Cell& word = shadow.word(at);
    finish_cell(word);
    for (unsigned i = 0; word.ready == kSplit && i < 4; ++i) finish_cell(shadow.byte(at + i));
  }
}

void swap_begins(const volatile void* pointer, unsigned bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!this_lane || on_a_stack(address) || address % bytes != 0) return;
  Block* home = home_of(*this_block, address);
  Allocation* allocation = home ? nullptr : find_allocation(address);
  if (!home && !allocation) return;
  const std::size_t offset = address - (home ? home->shared : allocation->begin);
  Shadow& shadow = home ? *home->shadow : allocation->shadow;
  Cell& word = shadow.word(offset);
  for (const Stamp& read : (word.ready == kSplit ? shadow.byte(offset) : word).reads)
    if (read.time >= this_block->begin && !read.relaxed && !read.asynchronous &&
        read.thread == this_lane->linear)
      sites[read.site].begins_swap = true;
}

void settle() {
  memory_is_current();
  if (!this_lane) return;  // the runtime's own access: doubts are of the kernel's
  duties &= kCount;
  if (!this_block->doubts.empty()) settle_doubts(*this_block);
}

void settle_doubts(Block& block) {
  std::vector<Doubt> doubts;
  doubts.swap(block.doubts);
  for (const Doubt& doubt : doubts) {
    std::uint32_t after = 0;
    std::memcpy(&after, reinterpret_cast<const void*>(doubt.address), doubt.bytes);
    Block* home = home_of(block, doubt.address);
    Allocation* allocation = home ? nullptr : find_allocation(doubt.address);
    if (!home && !allocation) continue;  // released in between
    const Spot place = home ? Spot::in(*home, doubt.address) : Spot::in(*allocation, doubt.address);
    report_race(after == doubt.before ? FindingKind::kSameValue : FindingKind::kRace, block, place,
                doubt.first, true, doubt.second, true);
  }
}

void require_shared_variable(const Block& block, std::size_t offset, unsigned bytes, bool write,
                             std::uint32_t pc) {
  for (const auto& [begin, size] : block.variables)
    if (offset - begin < size && bytes <= size - (offset - begin)) return;
  Finding finding = blank_finding(FindingKind::kOutOfBounds, block);
  finding.object = nearest_shared(block, offset);
  finding.bytes = bytes;
  finding.shared = true;
  stop_at(std::move(finding), pc, write);
}

Allocation* allocation_at(std::uintptr_t address, unsigned bytes, bool write, std::uint32_t pc) {
  if (is_thread_state(address) || running_launch.holds_argument(address)) return nullptr;
  Allocation* allocation = find_allocation(address);
  if (allocation && allocation->contains(address, bytes)) return allocation;
  Finding finding = blank_finding(FindingKind::kOutOfBounds, *this_block);
  finding.object = nearest_allocation(address);
  if (finding.object.empty())
    finding.object = address < 65536 ? "the null pointer"
                     : is_device_only(reinterpret_cast<const void*>(address))
                         ? "device memory that is not allocated, or was freed"
                         : "a host pointer: no allocation of the device holds this address";
  finding.bytes = bytes;
  stop_at(std::move(finding), pc, write);
}

void misaligned(unsigned bytes, bool write, std::uint32_t pc) {
  Finding finding = blank_finding(FindingKind::kMisaligned, *this_block);
  finding.bytes = bytes;
  stop_at(std::move(finding), pc, write);
}

void stop_at(Finding finding, std::uint32_t pc, bool write) {
  finding.now = {pc, this_block->index, this_lane->linear, write, false, false};
  const Finding kept = finding;
  keep_finding(std::move(finding));
  std::string file;
  int line = 0;
  locate_in_source({reinterpret_cast<const void*>(static_cast<std::uintptr_t>(pc - 1))}, file, line);
  BlockRunner* runner = BlockRunner::current();
  runner->fail(FailureKind::kUndefinedBehaviour, file.c_str(), line, message_of(kept, {}, {}), hint_of(kept));
}

}  // namespace capstone_emu::hooks
