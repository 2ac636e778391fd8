#include "runtime/shadow.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace capstone_emu {
namespace {

// Where GCC expects the shadow (its asan_shadow_offset hook): these are part of the ABI.
#if defined(__x86_64__)
constexpr std::uintptr_t kOffset = 0x7fff8000, kTop = 0x800000000000;
#elif defined(__aarch64__)
constexpr std::uintptr_t kOffset = std::uintptr_t{1} << 36, kTop = std::uintptr_t{1} << 48;
#else
constexpr std::uintptr_t kOffset = 0, kTop = 0;
#endif

bool g_active = false;

std::uint8_t* shadow_of(std::uintptr_t address) {
  return reinterpret_cast<std::uint8_t*>((address >> 3) + kOffset);
}
std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

bool shadow_active() { return g_active; }

void map_shadow() {
  if (g_active) return;
  // Untouched pages cost nothing; a fork copies only the touched ones.
  void* wanted = reinterpret_cast<void*>(kOffset);
  void* got = kTop == 0 ? MAP_FAILED
                        : ::mmap(wanted, kTop >> 3, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != wanted) {
    std::fputs("capstone: no address space for the shadow memory of the memory-checked build\n", stderr);
    ::_exit(127);
  }
  ::madvise(wanted, kTop >> 3, MADV_DONTDUMP);
  g_active = true;
}

void poison(const void* begin, std::size_t bytes, Shade shade) {
  if (!g_active || bytes == 0) return;
  // The granule in which a permitted region ends already says how many of its bytes are permitted.
  const std::uintptr_t first = (number(begin) + 7) & ~std::uintptr_t{7}, end = number(begin) + bytes;
  if (end > first) std::memset(shadow_of(first), shade, (end - first + 7) / 8);
}

void unpoison(const void* begin, std::size_t bytes) {
  if (!g_active) return;
  std::memset(shadow_of(number(begin)), 0, bytes / 8);
  if (bytes % 8) *shadow_of(number(begin) + bytes) = static_cast<std::uint8_t>(bytes % 8);
}

std::uint8_t shade_of(const void* address) {
  if (!g_active || number(address) >= kTop) return 0;
  const std::uint8_t value = *shadow_of(number(address));
  if (value == 0 || (value < 8 && (number(address) & 7) < value)) return 0;
  // Past the end inside a granule: the next granule knows why.
  return value < 8
             ? shadow_of(number(address))[1] ? shadow_of(number(address))[1] : std::uint8_t{kShadeRedZone}
             : value;
}

const char* first_forbidden(const void* begin, std::size_t bytes) {
  if (!g_active) return nullptr;
  const char* p = static_cast<const char*>(begin);
  for (std::size_t i = 0; i < bytes; ++i)
    if (shade_of(p + i)) return p + i;
  return nullptr;
}

}  // namespace capstone_emu
