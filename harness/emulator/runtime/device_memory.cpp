// Memory of cudaMalloc, cudaMallocManaged and cudaMallocHost. It comes from ranges of addresses of its own,
// so that no write beyond its end reaches the emulator's heap, and the kind of a pointer is known. For whole
// programs, it is checked what pointers are used for.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "include/capstone_emulator/core.h"
#include "runtime/allocations.h"
#include "runtime/scheduler.h"
#include "runtime/shadow.h"
#include "runtime/stream_order.h"
#include "runtime/where.h"

// From the linker: static storage of the program.
extern "C" const char __executable_start, end;

namespace capstone_emu {
namespace {

constexpr std::size_t kAlignment = 256, kGuard = 256, kPage = 4096;  // [B]
constexpr std::size_t kLargestRange = std::size_t{1} << 40, kSmallestRange = std::size_t{1} << 30;
constexpr std::uintptr_t kFirstAddress = 65536;  // pointers below are null pointers, and offsets from one
constexpr int kGuardByte = 0xFA;
// Closing device memory to the host takes time for each page: so only up to this size, and not in long loops.
constexpr std::size_t kMostClosed = std::size_t{16} << 20;
constexpr unsigned kAlwaysClosed = 32;
// cudaMemcpyKind
constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3;

std::size_t rounded_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

/// Addresses from which pieces are cut. A freed piece is used again for one of its size.
struct Range {
  char *begin = nullptr, *top = nullptr;
  std::size_t bytes = 0;
  std::map<std::size_t, std::vector<char*>> freed{};

  bool contains(const void* p) const { return p >= begin && p < top; }
  bool reserve() {
    for (bytes = kLargestRange; bytes >= kSmallestRange; bytes /= 2) {
      void* got =
          ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (got == MAP_FAILED) continue;
      begin = top = static_cast<char*>(got);
      return true;
    }
    return false;
  }
  char* cut(std::size_t size) {
    if (std::vector<char*>& same = freed[size]; !same.empty()) {
      char* piece = same.back();
      same.pop_back();
      return piece;
    }
    if (!begin && !reserve()) return nullptr;
    if (size > bytes - static_cast<std::size_t>(top - begin)) return nullptr;
    return std::exchange(top, top + size);
  }
  void put_back(char* piece, std::size_t size) {
    char* const page = reinterpret_cast<char*>(rounded_up(reinterpret_cast<std::uintptr_t>(piece), kPage));
    if (size > 64 * kPage) ::madvise(page, (size - kPage) / kPage * kPage, MADV_DONTNEED);
    freed[size].push_back(piece);
  }
};

struct Piece {
  std::size_t bytes;
  bool for_host_too;
};

/// All of this is used while static storage of the program is initialised and destroyed.
struct Memory {
  std::mutex mutex;
  Range device, shared;  // closed to the host; open to it
  std::map<char*, Piece> live;
  std::map<const char*, std::size_t> registered;  // host memory that the program has made known to CUDA
  std::uint64_t checked_launches = 0;             // when the guards were last looked at
  const char* last_kernel = nullptr;
  unsigned waits = 0;  // of the host, while it was open
};
Memory& memory_state() {
  static auto* instance = new Memory;
  return *instance;
}

bool g_checked = false;
// Those that use device memory now; -1: it is closed.
std::atomic<int> g_users{0};

std::size_t outer_size(std::size_t bytes) { return rounded_up(bytes, kAlignment) + 2 * kGuard; }

void protect(const Range& range, int protection) {
  if (range.top > range.begin)
    ::mprotect(range.begin, rounded_up(static_cast<std::size_t>(range.top - range.begin), kPage), protection);
}

/// The live piece that holds the address, or null.
const std::pair<char* const, Piece>* piece_at(const void* address) {
  auto& live = memory_state().live;
  auto after = live.upper_bound(static_cast<char*>(const_cast<void*>(address)));
  if (after == live.begin()) return nullptr;
  --after;
  return static_cast<const char*>(address) < after->first + after->second.bytes ? &*after : nullptr;
}

bool is_registered(const void* address) {
  const auto& known = memory_state().registered;
  auto after = known.upper_bound(static_cast<const char*>(address));
  if (after == known.begin()) return false;
  --after;
  return static_cast<const char*>(address) < after->first + after->second;
}

enum class Place { kUnknown, kHost, kDevice, kNowhere };
/// kNowhere: an address of device memory that is not allocated, or not that far. kUnknown: both sides may use
/// it.
Place place_of(const void* address, std::size_t bytes) {
  Memory& s = memory_state();
  const bool device = s.device.contains(address);
  if (device || s.shared.contains(address)) {
    const auto* piece = piece_at(address);
    if (!piece || static_cast<const char*>(address) + bytes > piece->first + piece->second.bytes)
      return Place::kNowhere;
    return device ? Place::kDevice : Place::kUnknown;
  }
  const bool is_static = address >= &__executable_start && address < &end;
  return is_static || is_registered(address) ? Place::kUnknown : Place::kHost;
}

bool decline(const std::string& what, const char* hint) {
  std::string file;
  int line = 0;
  locate_in_source(call_chain(), file, line);
  record_failure({FailureKind::kLaunchError, what, {}, {}, std::nullopt, std::nullopt, file, line, hint});
  return false;
}

bool decline_place(const char* call, const char* role, const void* address, std::size_t bytes) {
  const auto* piece = piece_at(address);
  const std::string size = std::to_string(bytes) + " bytes";
  if (piece)
    return decline(std::string(call) + ": the " + role + " has fewer than " + size + " left of the " +
                       std::to_string(piece->second.bytes) + " that were allocated",
                   "sizes are in bytes: count * sizeof(type)");
  return decline(
      std::string(call) + ": the " + role + " is device memory that is not allocated, or was freed",
      "check the pointer");
}

/// How many bytes of a guard were overwritten.
std::size_t overwritten(const char* guard, std::size_t bytes) {
  static const std::vector<char> kUntouched(kGuard + kAlignment, static_cast<char>(kGuardByte));
  if (std::memcmp(guard, kUntouched.data(), bytes) == 0) return 0;
  return static_cast<std::size_t>(
      std::count_if(guard, guard + bytes, [](char c) { return c != static_cast<char>(kGuardByte); }));
}

void check_guards(Memory& s) {
  const std::uint64_t launches = launches_so_far();
  if (std::exchange(s.checked_launches, launches) == launches) return;
  for (const auto& [begin, piece] : s.live) {
    const std::size_t before = overwritten(begin - kGuard, kGuard),
                      behind = overwritten(begin + piece.bytes,
                                           rounded_up(piece.bytes, kAlignment) - piece.bytes + kGuard);
    if (!before && !behind) continue;
    std::memset(begin - kGuard, kGuardByte, kGuard);
    std::memset(begin + piece.bytes, kGuardByte, rounded_up(piece.bytes, kAlignment) - piece.bytes + kGuard);
    record_failure(
        {FailureKind::kUndefinedBehaviour,
         "memory was written out of bounds: " + std::to_string(before ? before : behind) + " bytes " +
             (before ? "before the start" : "past the end") + " of memory of cudaMalloc (" +
             std::to_string(piece.bytes) + " bytes)",
         s.last_kernel ? s.last_kernel : "",
         {},
         std::nullopt,
         std::nullopt,
         {},
         0,
         "found after that kernel, or one shortly before: capstone run --check memory names the line",
         kErrorIllegalAddress});
    last_error() = kErrorIllegalAddress;
    return;
  }
}

}  // namespace

bool& pointers_are_checked() { return g_checked; }

void use_device_memory() {
  if (!g_checked) return;
  for (int users = g_users;;) {
    if (users < 0) {
      std::lock_guard lock(memory_state().mutex);
      if (g_users < 0) {
        protect(memory_state().device, PROT_READ | PROT_WRITE);
        g_users = 0;
      }
      users = g_users;
    } else if (g_users.compare_exchange_weak(users, users + 1)) {
      return;
    }
  }
}
void leave_device_memory() {
  if (g_checked) --g_users;
}

void keep_device_memory_open() { ++g_users; }

void host_goes_on() {
  look_at_sources();
  if (!g_checked || shadow_active() || g_users < 0) return;
  use_device_memory();
  Memory& s = memory_state();
  std::lock_guard lock(s.mutex);
  check_guards(s);
  const unsigned waits = ++s.waits;
  const bool close = static_cast<std::size_t>(s.device.top - s.device.begin) <= kMostClosed &&
                     (waits <= kAlwaysClosed || std::has_single_bit(waits));
  if (int only_this = 1; close && g_users.compare_exchange_strong(only_this, -1))
    protect(s.device, PROT_NONE);
  else
    leave_device_memory();
}

long live_device_allocations() {
  std::lock_guard lock(memory_state().mutex);
  return static_cast<long>(memory_state().live.size());
}

void* allocate_device_memory(std::size_t bytes, bool for_host_too) {
  const DeviceMemoryUse use;
  Memory& s = memory_state();
  std::lock_guard lock(s.mutex);
  const std::size_t outer = outer_size(bytes);
  char* const memory = (for_host_too ? s.shared : s.device).cut(outer);
  if (!memory) return nullptr;
  char* const begin = memory + kGuard;
  std::memset(memory, kGuardByte, kGuard);
  std::memset(begin, 0xFF, bytes);
  std::memset(begin + bytes, kGuardByte, static_cast<std::size_t>(memory + outer - begin) - bytes);
  poison(memory, outer);
  unpoison(begin, bytes);
  add_allocation({begin, bytes, kDeviceMemory});
  s.live[begin] = {bytes, for_host_too};
  return begin;
}

bool release_device_memory(void* pointer) {
  look_at_sources();
  const DeviceMemoryUse use;
  Memory& s = memory_state();
  std::lock_guard lock(s.mutex);
  char* const begin = static_cast<char*>(pointer);
  const auto it = s.live.find(begin);
  if (it == s.live.end()) {
    if (!g_checked) return false;
    const auto* inside = piece_at(pointer);
    return inside
               ? decline("cudaFree: the pointer lies within an allocation, not at its begin",
                         "free the pointer that cudaMalloc gave")
               : decline(std::string("cudaFree: ") + (s.device.contains(pointer) || s.shared.contains(pointer)
                                                          ? "this memory was freed before"
                                                          : "the pointer does not come from cudaMalloc"),
                         "each cudaMalloc needs exactly one cudaFree; memory of malloc() needs free()");
  }
  if (g_checked && !shadow_active()) check_guards(s);
  const Piece piece = it->second;
  s.live.erase(it);
  if (shadow_active()) {  // never handed out again, so that later uses are seen
    add_allocation({begin, piece.bytes, kDeviceMemory, true});
    poison(begin, piece.bytes, kShadeFreed);
  } else {
    forget_allocation(begin);
    (piece.for_host_too ? s.shared : s.device).put_back(begin - kGuard, outer_size(piece.bytes));
  }
  return true;
}

bool is_device_only(const void* address) { return memory_state().device.contains(address); }
bool is_pinned(const void* address) {
  std::lock_guard lock(memory_state().mutex);
  return memory_state().shared.contains(address) || is_registered(address);
}

void register_host_memory(const void* begin, std::size_t bytes) {
  look_at_sources();
  std::lock_guard lock(memory_state().mutex);
  if (bytes)
    memory_state().registered[static_cast<const char*>(begin)] = bytes;
  else
    memory_state().registered.erase(static_cast<const char*>(begin));
}

bool may_copy(const void* to, const void* from, std::size_t bytes, int kind) {
  if (!g_checked) return true;
  std::lock_guard lock(memory_state().mutex);
  const Place target = place_of(to, bytes), source = place_of(from, bytes);
  if (target == Place::kNowhere) return decline_place("cudaMemcpy", "target", to, bytes);
  if (source == Place::kNowhere) return decline_place("cudaMemcpy", "source", from, bytes);
  const bool to_device = kind == kHostToDevice || kind == kDeviceToDevice,
             from_device = kind == kDeviceToHost || kind == kDeviceToDevice;
  if (kind > kDeviceToDevice) return true;  // cudaMemcpyDefault
  constexpr const char* kHint = "the target comes first; cudaMemcpyDefault finds the direction itself";
  if (target == (to_device ? Place::kHost : Place::kDevice))
    return decline(std::string("cudaMemcpy: wrong direction: the target is ") +
                       (to_device ? "host" : "device") + " memory",
                   kHint);
  if (source == (from_device ? Place::kHost : Place::kDevice))
    return decline(std::string("cudaMemcpy: wrong direction: the source is ") +
                       (from_device ? "host" : "device") + " memory",
                   kHint);
  return true;
}

bool may_set(const void* to, std::size_t bytes) {
  if (!g_checked) return true;
  std::lock_guard lock(memory_state().mutex);
  const Place target = place_of(to, bytes);
  if (target == Place::kNowhere) return decline_place("cudaMemset", "target", to, bytes);
  return target != Place::kHost || decline("cudaMemset: the target is host memory", "use memset() there");
}

bool is_host_memory(const void* address) {
  if (!g_checked || in_kernel() || reinterpret_cast<std::uintptr_t>(address) < kFirstAddress) return false;
  std::lock_guard lock(memory_state().mutex);
  // An address just outside of an allocation may be meant: it need not be used.
  return !memory_state().device.contains(address) && !memory_state().shared.contains(address) &&
         place_of(address, 1) == Place::kHost;
}

void saw_launch_of(const char* kernel) { memory_state().last_kernel = kernel; }

}  // namespace capstone_emu
