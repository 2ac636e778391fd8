// Accumulators of wgmma: registers on a GPU, variables on a thread's stack here. From the issue of an instruction until its group
// was waited for nobody but another wgmma may touch them.
#include <algorithm>

#include "harness/emulator/hooks/access.h"
#include "harness/emulator/hooks/findings.h"

namespace capstone_emu {

using namespace hooks;

namespace {

/// Later instructions may go on with the accumulators of earlier ones: the last group counts.
void add_result(Lane& lane, std::uintptr_t begin, std::uintptr_t end, std::uint32_t pc) {
  const unsigned group = lane.result_groups + 1;
  for (PendingResult& known : lane.results)
    if (known.begin == begin && known.end == end) {
      known.group = group;
      known.pc = pc;
      return;
    }
  lane.results.push_back({begin, end, group, pc});
}

}  // namespace

void wgmma_begins() {
  if (this_lane) this_lane->multiplies = true;
}

void wgmma_issued(const void* const* results, unsigned count) {
  if (!this_lane) return;
  this_lane->multiplies = false;
  const std::uint32_t pc = number(__builtin_return_address(0));
  constexpr std::uintptr_t kRegister = 4;  // [B]
  for (unsigned i = 0; i < count;) {  // as few ranges as there are
    const auto begin = reinterpret_cast<std::uintptr_t>(results[i]);
    unsigned next = i + 1;
    while (next < count && reinterpret_cast<std::uintptr_t>(results[next]) == begin + (next - i) * kRegister) ++next;
    if (begin) add_result(*this_lane, begin, begin + (next - i) * kRegister, pc);
    i = next;
  }
}

void wgmma_committed() {
  if (this_lane) ++this_lane->result_groups;
}

void wgmma_awaited(unsigned still_pending) {
  if (!this_lane) return;
  std::erase_if(this_lane->results, [&](const PendingResult& r) { return r.group + still_pending <= this_lane->result_groups; });
}

namespace hooks {

void require_finished(const Lane& lane, std::uintptr_t address, std::size_t bytes, bool write, std::uint32_t pc) {
  if (lane.multiplies) return;
  const auto touched = std::find_if(lane.results.begin(), lane.results.end(),
                                    [&](const PendingResult& r) { return address < r.end && address + bytes > r.begin; });
  if (touched == lane.results.end() || is_known(FindingKind::kUnfinishedResult, pc, touched->pc)) return;
  const Block& block = *this_block;
  Finding finding = blank_finding(FindingKind::kUnfinishedResult, block);
  finding.object = "an accumulator of wgmma";
  finding.now = {pc, block.index, lane.linear, write, false, false};
  finding.before = {touched->pc, block.index, lane.linear, true, true, false};
  finding.bytes = static_cast<unsigned>(bytes);
  keep_finding(std::move(finding));
}

}  // namespace hooks
}  // namespace capstone_emu
