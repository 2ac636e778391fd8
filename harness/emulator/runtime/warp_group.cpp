// wgmma. The four warps of a warp group multiply together, and a group of instructions completes for all of
// them. A thread that has waited may therefore let a tile be overwritten that the other warps read, too. In
// the emulator each warp computes its 16 rows when it issues the instruction.
#include "runtime/scheduler.h"

namespace capstone_emu {

bool BlockRunner::group_multiplied(unsigned count) const {
  constexpr unsigned kWarps = 4;
  const unsigned first = thread_->linear / kWarpSize / kWarps * kWarps;
  for (unsigned w = first; w < first + kWarps && w * kWarpSize < count_; ++w)
    if (warps_[w].multiplies < count) return false;
  return true;
}

void wgmma_done() { ++BlockRunner::current()->warp().multiplies; }

void wgmma_committed() {
  BlockRunner& runner = *BlockRunner::current();
  runner.multiply_groups().push_back(runner.warp().multiplies);
  observe::multiplies_committed();
}

void wgmma_awaited(unsigned still_pending) {
  BlockRunner& runner = *BlockRunner::current();
  const std::vector<unsigned>& groups = runner.multiply_groups();
  if (groups.size() <= still_pending) return;
  const unsigned count = groups[groups.size() - 1 - still_pending];
  while (!runner.group_multiplied(count)) yield_to_others();
  observe::multiplies_awaited(still_pending);
}

}  // namespace capstone_emu
