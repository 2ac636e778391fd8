#include "runtime/allocations.h"

#include <map>
#include <mutex>

namespace capstone_emu {
namespace {

constexpr std::size_t kNear = 1 << 20;  // [B]

std::mutex g_mutex;
std::map<const char*, Allocation>& table() {  // used during static initialisation of the candidate
  static auto* all = new std::map<const char*, Allocation>;
  return *all;
}

std::size_t distance_to(const Allocation& a, const char* p) {
  if (p < a.begin) return static_cast<std::size_t>(a.begin - p);
  const char* end = a.begin + a.bytes;
  return p < end ? 0 : static_cast<std::size_t>(p - end) + 1;
}

}  // namespace

void add_allocation(Allocation allocation) {
  std::lock_guard lock(g_mutex);
  table().insert_or_assign(allocation.begin, std::move(allocation));
}

void forget_allocation(const void* begin) {
  std::lock_guard lock(g_mutex);
  table().erase(static_cast<const char*>(begin));
}

std::optional<Allocation> nearest_allocation(const void* address) {
  const char* p = static_cast<const char*>(address);
  std::lock_guard lock(g_mutex);
  const Allocation* best = nullptr;
  const auto after = table().upper_bound(p);
  if (after != table().end()) best = &after->second;
  if (after != table().begin()) {
    const Allocation& before = std::prev(after)->second;
    if (!best || distance_to(before, p) <= distance_to(*best, p)) best = &before;
  }
  if (!best || distance_to(*best, p) > kNear) return std::nullopt;
  return *best;
}

}  // namespace capstone_emu
