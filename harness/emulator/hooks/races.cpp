// Races, uninitialised reads and bounds, one access at a time.
#include "harness/emulator/hooks/access.h"
#include "harness/emulator/hooks/findings.h"
#include "harness/emulator/runtime/where.h"

namespace capstone_emu::hooks {
namespace {

std::string short_name(const char* label) {  // "tile in kernel.cu:12" → "tile"
  const std::string text(label);
  return text.substr(0, text.find(" in "));
}

/// The shared variable at an offset; empty when there is none.
std::string shared_name(const Block& block, std::size_t offset) {
  for (const auto& [begin, bytes] : block.variables) {
    if (offset - begin >= bytes) continue;
    for (const SharedSlot& slot : shared_slots())
      if (slot.offset == begin) return "shared memory `" + short_name(slot.name) + "`";
    return "dynamic shared memory";
  }
  return {};
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

Finding blank(FindingKind kind, const Block& block) {
  Finding finding{};
  finding.kind = kind;
  finding.kernel = running_launch.config->kernel;
  finding.grid = running_launch.config->grid;
  finding.block_dim = running_launch.config->block;
  finding.now.block = finding.before.block = block.index;
  return finding;
}

Party party_of(const Stamp& stamp, bool write, std::uint64_t block) {
  const Site& site = sites[stamp.site];
  return {site.pc, block, stamp.thread, write, stamp.pending != 0, site.atomic};
}

/// One place of memory: which space, and what to call it.
struct Target {
  Allocation* allocation;  // null: shared memory
  std::size_t offset;      // in the allocation or the block's shared memory
  bool shared() const { return !allocation; }
  std::uintptr_t address(const Block& block) const { return (allocation ? allocation->begin : block.shared) + offset; }
  std::string name(const Block& block) const {
    if (allocation) return "`" + allocation->name + "` at byte " + std::to_string(offset);
    std::string name = shared_name(block, offset);
    for (const auto& [begin, bytes] : block.variables)
      if (offset - begin < bytes) name += " at byte " + std::to_string(offset - begin);
    return name;
  }
};

void report_race(FindingKind kind, Block& block, const Target& target, const Stamp& before, bool before_writes,
                 const Stamp& me, bool writes) {
  if (is_known(kind, sites[me.site].pc, sites[before.site].pc)) return;
  Finding finding = blank(kind, block);
  finding.object = target.name(block);
  finding.shared = target.shared();
  finding.now = party_of(me, writes, block.index);
  const bool own = target.shared() || before.pending || before.time >= block.last_turn;
  finding.before = party_of(before, before_writes, own ? block.index : running_launch.block_at(before.time));
  finding.same_warp = finding.now.block == finding.before.block && me.thread / kWarpSize == before.thread / kWarpSize;
  keep_finding(std::move(finding));
}

/// Two atomic or volatile accesses do not race, except that volatile does not make the lanes of a warp run in lock-step.
bool excused(const Stamp& a, const Stamp& b, bool shared) {
  if (!a.relaxed || !b.relaxed) return false;
  return !shared || a.thread / kWarpSize != b.thread / kWarpSize || sites[a.site].atomic || sites[b.site].atomic;
}

struct Context {
  Block& block;
  Lane& lane;
  Target target;
  bool shared;
  Time phase;  // readers of this time and later may race with a write that comes now
};

bool conflicts(const Context& c, const Stamp& before, const Stamp& me) {
  if (before.time == 0) return false;
  if (before.pending) return true;
  return !happened_before(before, c.shared, c.block, c.lane) && !excused(before, me, c.shared);
}

void read_cell(const Context& c, Cell& cell, const Stamp& me) {
  if (conflicts(c, cell.write, me)) report_race(FindingKind::kRace, c.block, c.target, cell.write, true, me, false);
  Stamp &a = cell.reads[0], &b = cell.reads[1];
  auto same = [&](const Stamp& s) { return s.thread == me.thread && (c.shared || s.time >= c.block.last_turn); };
  auto far = [&](const Stamp& s, const Stamp& t) {  // ordered by fewer kinds of synchronisation
    if (!c.shared && (s.time >= c.block.last_turn) != (t.time >= c.block.last_turn)) return true;
    return s.thread / kWarpSize != t.thread / kWarpSize;
  };
  auto old = [&](const Stamp& s) { return s.time == 0 || happened_before(s, c.shared, c.block, c.lane); };
  if (a.time == 0 || same(a) || old(a)) {
    a = me;
  } else if (b.time == 0 || same(b) || old(b) || (!far(a, b) && far(a, me))) {
    b = me;
  }
  if (b.time && far(a, b)) cell.spread = c.phase;
}

void write_cell(const Context& c, Cell& cell, const Stamp& me, unsigned bytes) {
  if (conflicts(c, cell.write, me)) {
    if (cell.write.relaxed || me.relaxed || cell.write.pending || me.pending) {
      report_race(FindingKind::kRace, c.block, c.target, cell.write, true, me, true);
    } else if (!is_known(FindingKind::kRace, sites[me.site].pc, sites[cell.write.site].pc)) {
      Doubt doubt{c.target.address(c.block), bytes, 0, cell.write, me};
      std::memcpy(&doubt.before, reinterpret_cast<const void*>(doubt.address), bytes);
      c.block.doubts.push_back(doubt);
    }
  }
  for (const Stamp& read : cell.reads)
    if (conflicts(c, read, me)) report_race(FindingKind::kRace, c.block, c.target, read, false, me, true);
  cell.write = me;
  cell.spread = 0;
}

void report_uninitialised(const Context& c, const Stamp& me) {
  if (is_known(FindingKind::kUninitialised, sites[me.site].pc, 0)) return;
  Finding finding = blank(FindingKind::kUninitialised, c.block);
  finding.object = c.target.name(c.block);
  finding.shared = c.shared;
  finding.now = party_of(me, false, c.block.index);
  keep_finding(std::move(finding));
}

bool is_ready(const Context& c, const Cell& cell) {
  if (!c.shared) return c.target.allocation->written || cell.ready != 0;
  return cell.ready >= c.block.begin;
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

void touch_range(Block& block, Lane& lane, Allocation* allocation, std::size_t offset, unsigned bytes, bool reads,
                 bool writes, Stamp me) {
  Shadow& shadow = allocation ? allocation->shadow : *block.shadow;
  Context c{block, lane, {allocation, offset}, !allocation, allocation ? running_launch.begin : block.barrier};
  for (std::size_t at = offset, end = offset + bytes; at < end;) {
    Cell& word = shadow.word(at);
    const bool whole = at % 4 == 0 && end - at >= 4;
    if (word.ready == kSplit && c.shared && word.spread < block.begin) word = Cell{};  // an earlier block split it
    c.target.offset = at;
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

void finish_copy(Block& block, Lane& lane, const PendingCopy& copy) {
  const std::size_t begin = reinterpret_cast<std::uintptr_t>(copy.to) - block.shared;
  auto finish = [&](Stamp& write) {
    if (!write.pending || write.thread != lane.linear) return;
    write.pending = false;
    write.time = lane.time;
  };
  for (std::size_t at = begin; at < begin + copy.bytes; at += 4) {
    Cell& word = block.shadow->word(at);
    finish(word.write);
    for (unsigned i = 0; word.ready == kSplit && i < 4; ++i) finish(block.shadow->byte(at + i).write);
  }
}

void settle_doubts(Block& block) {
  std::vector<Doubt> doubts;
  doubts.swap(block.doubts);
  for (const Doubt& doubt : doubts) {
    std::uint32_t after = 0;
    std::memcpy(&after, reinterpret_cast<const void*>(doubt.address), doubt.bytes);
    Allocation* allocation = doubt.address - block.shared < block.shared_bytes ? nullptr : find_allocation(doubt.address);
    const Target target{allocation, doubt.address - (allocation ? allocation->begin : block.shared)};
    report_race(after == doubt.before ? FindingKind::kSameValue : FindingKind::kRace, block, target, doubt.first, true,
                doubt.second, true);
  }
}

void require_shared_variable(const Block& block, std::size_t offset, unsigned bytes, bool write, std::uint32_t pc) {
  for (const auto& [begin, size] : block.variables)
    if (offset - begin < size && bytes <= size - (offset - begin)) return;
  Finding finding = blank(FindingKind::kOutOfBounds, block);
  finding.object = nearest_shared(block, offset);
  finding.bytes = bytes;
  finding.shared = true;
  stop_at(std::move(finding), pc, write);
}

Allocation* allocation_at(std::uintptr_t address, unsigned bytes, bool write, std::uint32_t pc) {
  if (is_thread_state(address)) return nullptr;
  Allocation* allocation = find_allocation(address);
  if (allocation && allocation->contains(address, bytes)) return allocation;
  Finding finding = blank(FindingKind::kOutOfBounds, *this_block);
  finding.object = nearest_allocation(address);
  if (finding.object.empty()) finding.object = address < 65536 ? "the null pointer" : "a host pointer: no allocation of the device holds this address";
  finding.bytes = bytes;
  stop_at(std::move(finding), pc, write);
}

void misaligned(unsigned bytes, bool write, std::uint32_t pc) {
  Finding finding = blank(FindingKind::kMisaligned, *this_block);
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
