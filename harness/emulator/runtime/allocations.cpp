#include "runtime/allocations.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "include/capstone_emulator/core.h"
#include "runtime/shadow.h"

namespace capstone_emu {
namespace {

constexpr std::size_t kNear = 1 << 20;                 // [B]
constexpr std::size_t kAlignment = 256, kGuard = 256;  // [B]
const char* const kDeviceMemory = "memory of cudaMalloc";

std::mutex g_mutex;
std::atomic<long> g_live{0};
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

long live_device_allocations() { return g_live; }

void* allocate_device_memory(std::size_t bytes) {
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  char* memory = static_cast<char*>(std::aligned_alloc(kAlignment, rounded + 2 * kGuard));
  if (!memory) return nullptr;
  char* begin = memory + kGuard;
  std::memset(begin, 0xFF, bytes);
  poison(memory, rounded + 2 * kGuard);
  unpoison(begin, bytes);
  add_allocation({begin, bytes, kDeviceMemory});
  ++g_live;
  return begin;
}

bool release_device_memory(void* pointer) {
  std::lock_guard lock(g_mutex);
  const auto it = table().find(static_cast<char*>(pointer));
  if (it == table().end() || it->second.freed || it->second.name != kDeviceMemory) return false;
  --g_live;
  if (shadow_active()) {  // never handed out again, so that later uses are seen
    it->second.freed = true;
    poison(pointer, it->second.bytes, kShadeFreed);
  } else {
    table().erase(it);
    std::free(static_cast<char*>(pointer) - kGuard);
  }
  return true;
}

}  // namespace capstone_emu
