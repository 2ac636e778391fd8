// malloc and new of a candidate (harness/runtime/build/emulated.cpp): what a kernel allocates is memory that
// kernels may touch.
#include <atomic>
#include <cstdlib>
#include <new>

#include "hooks/block.h"
#include "runtime/observe.h"

namespace {

std::atomic<std::size_t> g_given_to_kernels{0};

void* allocate(std::size_t bytes, bool zeroed) {
  void* memory = zeroed ? std::calloc(bytes, 1) : std::malloc(bytes);
  if (!memory || !capstone_emu::hooks::this_lane) return memory;
  const capstone_emu::observe::Silence own;
  ++g_given_to_kernels;
  capstone_emu::hooks::add_allocation(memory, bytes ? bytes : 1, "memory of malloc or new", zeroed);
  return memory;
}

void release(void* memory) {
  if (memory && g_given_to_kernels) {
    const capstone_emu::observe::Silence own;
    capstone_emu::hooks::remove_allocation(memory);
  }
  std::free(memory);
}

}  // namespace

extern "C" {

void* capstone_emu_malloc(std::size_t bytes) { return allocate(bytes, false); }
void* capstone_emu_calloc(std::size_t count, std::size_t bytes) { return allocate(count * bytes, true); }
void capstone_emu_free(void* memory) { release(memory); }
// new, new[], and delete with and without the size
void* capstone_emu__Znwm(std::size_t bytes) { return allocate(bytes, false); }
void* capstone_emu__Znam(std::size_t bytes) { return allocate(bytes, false); }
void capstone_emu__ZdlPv(void* memory) { release(memory); }
void capstone_emu__ZdlPvm(void* memory, std::size_t) { release(memory); }
void capstone_emu__ZdaPv(void* memory) { release(memory); }
void capstone_emu__ZdaPvm(void* memory, std::size_t) { release(memory); }

}  // extern "C"
