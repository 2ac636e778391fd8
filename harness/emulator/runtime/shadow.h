#pragma once
// Shadow memory in AddressSanitizer's layout: one byte for every eight of the program. Code that was compiled
// with -fsanitize=address looks there before each access. The emulator fills it and does not link libasan. A
// bad access becomes a Failure of the kernel, with block and thread, and neither malloc nor signal handlers
// are taken over. In candidates that were built without the sanitizer there is no shadow and every function
// here does nothing.
#include <cstddef>
#include <cstdint>

namespace capstone_emu {

/// Values that the compiler writes for stacks, and the emulator's. They are those of libasan, so that tools
/// agree.
enum Shade : std::uint8_t {
  kShadeStackLeft = 0xf1,
  kShadeStackMiddle = 0xf2,
  kShadeStackRight = 0xf3,
  kShadeGlobal = 0xf9,
  kShadeAfterScope = 0xf8,
  kShadeRedZone = 0xfa,
  kShadeFreed = 0xfd,
  kShadeAllocaLeft = 0xca,
  kShadeAllocaRight = 0xcb,
};

bool shadow_active();
/// Reserves the shadow. Called by the constructors of instrumented code, before anything instrumented runs.
void map_shadow();

/// Forbids [begin, begin + bytes). `begin` is a multiple of 8, or the byte after a permitted region.
void poison(const void* begin, std::size_t bytes, Shade shade = kShadeRedZone);
/// Permits [begin, begin + bytes); `begin` is a multiple of 8.
void unpoison(const void* begin, std::size_t bytes);
/// The shade that forbids the byte; 0 when it may be accessed.
std::uint8_t shade_of(const void* address);

/// The first forbidden byte of an access, or null. For code of the runtime that touches memory on a kernel's
/// behalf.
const char* first_forbidden(const void* begin, std::size_t bytes);

/// Ends the running kernel when an access that the runtime makes for it is out of bounds.
void check_access(const void* address, std::size_t bytes, bool write);

}  // namespace capstone_emu
