// Reads that come early, and updates that are interrupted.
//
// Atomic and volatile accesses never race, but they may be the parts of an error all the same: `++` on a
// volatile counter loses updates, and a volatile result may arrive after the flag that announces it. Threads
// run one after another here, so neither would ever show. Two things that a GPU may do are done on purpose:
//   - The first thread that reads such a write gets the value from before it, unless something orders the
//   write
//     before the read. A poll reads again; a lost update, or a missing fence, makes the result wrong.
//   - A thread that stores where it has just loaded lets other threads run in between.
// Both are legal for every right kernel, so nothing is reported here: the outputs decide.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <unordered_map>

#include "hooks/access.h"

namespace capstone_emu::hooks {

EarlyValue early_value;

namespace {

constexpr unsigned kMostBytes = 16;           // of one access
constexpr std::size_t kMostLines = 1u << 16;  // of memory whose writes are remembered
constexpr std::size_t kMostNotes = 3;
constexpr unsigned kMostInterruptions = 4;  // of one thread

/// An atomic or volatile write that no other thread has seen yet.
struct Write {
  std::uintptr_t address;
  unsigned bytes;
  Stamp stamp;
  unsigned char before[kMostBytes];
  std::shared_ptr<const Time> fenced;  ///< when its thread made a fence after it; 0: not yet
  bool overlaps(std::uintptr_t other, unsigned n) const {
    return address < other + n && other < address + bytes;
  }
};

/// By 16 bytes of memory. No access crosses them: all are aligned.
std::unordered_map<std::uintptr_t, std::vector<Write>>& writes() {
  static auto* all = new std::unordered_map<std::uintptr_t, std::vector<Write>>;
  return *all;
}
/// Lines used last, by their number: a histogram writes few of them in turn, and a hash table is slow at
/// that.
struct RecentLine {
  std::uintptr_t line;
  std::vector<Write>* writes;  ///< null: none
};
RecentLine recent_lines[256];

std::vector<Write>& writes_of(std::uintptr_t line) {
  RecentLine& recent = recent_lines[line % std::size(recent_lines)];
  if (!recent.writes || recent.line != line) {
    if (writes().size() >= kMostLines) forget_relaxed_writes();
    recent = {line, &writes()[line]};
  }
  return *recent.writes;
}

std::vector<Finding>& notes() {
  static auto* all = new std::vector<Finding>;
  return *all;
}

void note_early_read(Block& block, const Block* home, const Stamp& before, std::uint32_t pc) {
  for (const Finding& note : notes())
    if (note.now.pc == pc && note.before.pc == sites[before.site].pc) return;
  if (notes().size() >= kMostNotes) return;
  Finding finding = blank_finding(FindingKind::kEarlyRead, block);
  finding.now = {pc, block.index, this_lane->linear, false, false, false};
  finding.before = {sites[before.site].pc, owner_of(before, home, block), before.thread, true, false, false};
  notes().push_back(std::move(finding));
}

}  // namespace

void end_early_value() {
  std::memcpy(reinterpret_cast<void*>(early_value.address), early_value.now, early_value.bytes);
  early_value.bytes = 0;
}

void relaxed_read(Block& block, Lane& lane, std::uintptr_t address, unsigned bytes, Time ordered,
                  std::uint32_t pc) {
  lane.loaded = address;
  const auto found = writes().find(address / kMostBytes);
  if (found == writes().end()) return;
  const Block* home = home_of(block, address);
  std::erase_if(found->second, [&](const Write& write) {
    if (!write.overlaps(address, bytes) || happened_before(write.stamp, home, block, lane)) return false;
    const bool visible =
        *write.fenced && *write.fenced < ordered;  // fences are in one order that all threads see
    if (visible || write.address != address || write.bytes != bytes) return true;
    auto* place = reinterpret_cast<unsigned char*>(address);
    if (std::memcmp(place, write.before, bytes) != 0) note_early_read(block, home, write.stamp, pc);
    early_value.address = address;
    early_value.bytes = bytes;
    duties |= kSettle;
    std::memcpy(early_value.now, place, bytes);
    std::memcpy(place, write.before, bytes);
    return true;  // from now on it is seen
  });
}

void relaxed_write(Lane& lane, std::uintptr_t address, unsigned bytes, const Stamp& me, bool fences) {
  lane.loaded = 0;
  if (bytes > kMostBytes) return;
  std::vector<Write>& line = writes_of(address / kMostBytes);
  auto known = std::find_if(line.begin(), line.end(), [&](const Write& write) {
    return write.address == address && write.bytes == bytes;
  });
  if (known == line.end()) {
    std::erase_if(line, [&](const Write& write) { return write.overlaps(address, bytes); });
    known = line.insert(line.end(), {address, bytes, me, {}, nullptr});
  }
  Write& write = *known;
  write.stamp = me;
  const void* const place = reinterpret_cast<const void*>(address);
  if (bytes == 4)  // of a size that is known, it needs no call
    std::memcpy(write.before, place, 4);
  else
    std::memcpy(write.before, place, bytes);
  if (fences) {
    write.fenced = std::make_shared<const Time>(now);
  } else {
    if (!lane.next_fence) lane.next_fence = std::make_shared<Time>(0);
    write.fenced = lane.next_fence;
  }
}

void before_store(Lane& lane, std::uintptr_t address) {
  if (lane.loaded != address || lane.interruptions == kMostInterruptions) return;
  ++lane.interruptions;
  for (int turns = 0; turns < 2; ++turns)
    yield_to_others();  // a thread that has not started gets its turn second
}

void forget_relaxed_writes() {
  writes().clear();
  std::fill(std::begin(recent_lines), std::end(recent_lines), RecentLine{});
}

std::vector<Finding> take_early_reads() { return std::exchange(notes(), {}); }

}  // namespace capstone_emu::hooks
