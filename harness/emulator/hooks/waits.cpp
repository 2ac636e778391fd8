#include "hooks/waits.h"

#include <map>
#include <string>
#include <vector>

#include "hooks/access.h"
#include "hooks/block.h"

namespace capstone_emu::hooks {
namespace {

struct WaitEntry {
  WaitStep step;
  std::uint32_t thread;
  const void* object;
  std::uint64_t value;
};
constexpr std::size_t kMostEntries = 1u << 16;  // a page of a lecture needs far less

enum class Recording { kOff, kOn, kEnded };
Recording recording = Recording::kOff;
// Never destroyed, because a program reports after its statics are destroyed.
std::vector<WaitEntry>& wait_entries = *new std::vector<WaitEntry>;

}  // namespace

void record_waits(bool wanted) {
  recording = wanted ? Recording::kOn : Recording::kOff;
  wait_entries.clear();
}

void note_step(WaitStep step, const void* object, std::uint64_t value) {
  if (recording != Recording::kOn || !this_block || this_block->index != 0 ||
      wait_entries.size() == kMostEntries)
    return;
  const std::uint32_t thread = this_lane ? this_lane->linear : 0;
  // A tensor copy comes in pieces.
  if (step == WaitStep::kCopy && !wait_entries.empty()) {
    WaitEntry& last = wait_entries.back();
    if (last.step == step && last.thread == thread && last.object == object) {
      last.value += value;
      return;
    }
  }
  wait_entries.push_back({step, thread, object, value});
}

void end_waits() {
  if (recording == Recording::kOn) recording = Recording::kEnded;
}

Json take_waits() {
  if (recording == Recording::kOff) return nullptr;
  std::map<const void*, std::size_t> numbers;
  Json list = Json::array();
  for (const WaitEntry& entry : wait_entries)
    list.push_back({std::string(1, static_cast<char>(entry.step)), entry.thread,
                    numbers.try_emplace(entry.object, numbers.size()).first->second, entry.value});
  record_waits(false);
  return list;
}

}  // namespace capstone_emu::hooks
