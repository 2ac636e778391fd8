#pragma once
// What a thread knows to have happened before: time stamps of other threads, carried by fences and flags.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace capstone_emu::hooks {

/// Logical time: one counter for all blocks, so that a later stamp never has a smaller time. 0: never.
using Time = std::uint32_t;

/// Stands for what copy engines do for a thread: only the barrier that they report to orders that.
inline constexpr unsigned kEngine = 1024;
/// The same for wgmma: ordered by waiting for its group.
inline constexpr unsigned kMultiplier = 2048;

/// Of one block: everything stamped before `all` by threads, and everything that thread t stamped before the
/// time kept for t.
class BlockKnowledge {
 public:
  Time all = 0;

  bool covers(unsigned thread, Time time) const {
    if (time < all && thread < kEngine) return true;
    auto it = find(thread);
    return it != some_.end() && it->first == thread && time < it->second;
  }
  void add(unsigned thread, Time before) {
    if (before <= all && thread < kEngine) return;
    auto it = some_.begin() + (find(thread) - some_.begin());
    if (it != some_.end() && it->first == thread)
      it->second = std::max(it->second, before);
    else
      some_.insert(it, {thread, before});
  }
  void join(const BlockKnowledge& other) {
    all = std::max(all, other.all);
    std::vector<std::pair<std::uint32_t, Time>> merged;
    merged.reserve(some_.size() + other.some_.size());
    auto a = some_.cbegin(), b = other.some_.cbegin();
    while (a != some_.cend() || b != other.some_.cend()) {
      std::pair<std::uint32_t, Time> next;
      if (b == other.some_.cend() || (a != some_.cend() && a->first < b->first))
        next = *a++;
      else if (a == some_.cend() || b->first < a->first)
        next = *b++;
      else
        next = {a->first, std::max(a->second, b->second)}, ++a, ++b;
      if (next.second > all || next.first >= kEngine) merged.push_back(next);
    }
    some_ = std::move(merged);
  }

 private:
  std::vector<std::pair<std::uint32_t, Time>>::const_iterator find(unsigned thread) const {
    return std::lower_bound(some_.begin(), some_.end(), thread,
                            [](const auto& e, unsigned t) { return e.first < t; });
  }
  std::vector<std::pair<std::uint32_t, Time>> some_;  // ascending by thread
};

/// By block of the running grid.
using Knowledge = std::map<std::uint64_t, BlockKnowledge>;

inline void join(Knowledge& into, const Knowledge& other) {
  for (const auto& [block, knowledge] : other) into[block].join(knowledge);
}
inline bool covers(const Knowledge& knowledge, std::uint64_t block, unsigned thread, Time time) {
  auto it = knowledge.find(block);
  return it != knowledge.end() && it->second.covers(thread, time);
}

}  // namespace capstone_emu::hooks
