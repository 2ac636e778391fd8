// cp.async and related instructions. A schedule performs each copy at once or as late as the program allows,
// so that a missing wait shows.
#include "runtime/scheduler.h"
#include "runtime/shadow.h"

namespace capstone_emu {
namespace {

void perform(const AsyncCopy& copy) {
  const unsigned copied = copy.bytes - copy.zero_filled;
  std::memcpy(copy.to, copy.from, copied);
  std::memset(static_cast<char*>(copy.to) + copied, 0, copy.zero_filled);
}

/// All but the last groups of the thread.
void finish_groups(unsigned still_pending) {
  BlockRunner& runner = *BlockRunner::current();
  CopyQueue& queue = runner.copies();
  if (queue.committed.size() <= still_pending) return;
  const std::size_t finished = queue.committed.size() - still_pending;
  for (std::size_t i = 0; i < finished; ++i)
    for (const AsyncCopy& copy : queue.committed[i]) perform(copy);
  queue.committed.erase(queue.committed.begin(),
                        queue.committed.begin() + static_cast<std::ptrdiff_t>(finished));
  const bool stores = !queue.open_stores.empty() || !queue.committed_stores.empty();
  if (queue.committed.empty() && queue.open.empty() && !stores) runner.thread().has_copies = false;
}

}  // namespace

void async_copy(void* to, const void* from, unsigned bytes, unsigned zero_filled) {
  BlockRunner& runner = *BlockRunner::current();
  check_access(from, bytes - zero_filled, false);
  check_access(to, bytes, true);
  observe::copy_issued(to, from, bytes, zero_filled, __builtin_return_address(0));
  const AsyncCopy copy{to, from, bytes, zero_filled};
  if (runner.grid().settings.copies_early()) return perform(copy);
  runner.note_copies();
  runner.copies().open.push_back(copy);
}

void async_commit() {
  observe::copies_committed();
  BlockRunner& runner = *BlockRunner::current();
  if (runner.grid().settings.copies_early()) return;
  CopyQueue& queue = runner.copies();
  runner.note_copies();
  queue.committed.push_back(std::move(queue.open));
  queue.open.clear();
}

void async_wait(unsigned still_pending) {
  observe::copies_awaited(still_pending);
  finish_groups(still_pending);
}

void async_report_to(const std::uint64_t* barrier) {
  observe::copies_report_to(barrier);
  async_commit();
  finish_groups(0);
}

}  // namespace capstone_emu
