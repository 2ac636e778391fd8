#include "runtime/fiber.h"

#include <sys/mman.h>

#include <mutex>
#if !CAPSTONE_NATIVE_SWITCH
#include <ucontext.h>

#include <new>
#endif

#include "runtime/shadow.h"

namespace capstone_emu {
namespace {

// Untouched pages cost nothing, so the stack is generous: local arrays of CUDA threads live on it.
constexpr std::size_t kStackSize = 256 * 1024;
constexpr std::size_t kCheckedStackSize = 1024 * 1024;  // red zones around local arrays make frames larger
constexpr std::size_t kMaxStacks = 304 * 1024;
// Linux allows 65530 mappings, and a stack with a guard is two. Further ones have room between them instead.
constexpr std::size_t kGuardedStacks = 28672;
constexpr unsigned kColourStep = 320, kColours = 16384;  // [B]

/// The next free stack, ready to be used. Null when the range is used up.
char* next_stack() {
  static std::mutex mutex;
  static std::size_t used = 0;
  std::lock_guard lock(mutex);
  if (!fiber_stacks.begin) {
    const std::size_t bytes = kMaxStacks * (stack_size() + kStackGuard);
    void* range = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return nullptr;
    fiber_stacks = {reinterpret_cast<std::uintptr_t>(range), bytes};
  }
  if (used == kMaxStacks) return nullptr;
  const std::size_t guard = used < kGuardedStacks ? kStackGuard : 0;
  char* const below = reinterpret_cast<char*>(fiber_stacks.begin + used * (stack_size() + kStackGuard));
  if (::mprotect(below + guard, stack_size() + kStackGuard - guard, PROT_READ | PROT_WRITE) != 0)
    return nullptr;
  ++used;
  return below + kStackGuard;
}

}  // namespace

StackRange fiber_stacks;
bool is_local(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) - fiber_stacks.begin < fiber_stacks.bytes;
}

std::size_t stack_size() { return shadow_active() ? kCheckedStackSize : kStackSize; }

Fiber* allocate_fiber(std::size_t index) {
  char* const stack = next_stack();
  if (!stack) return nullptr;
  auto* fiber = new Fiber;
  fiber->stack = stack;
  fiber->size = stack_size();
  fiber->colour = static_cast<unsigned>(index * kColourStep % kColours);
  return fiber;
}

#if CAPSTONE_NATIVE_SWITCH

void* prepare_stack(Fiber& fiber, void (*entry)()) {
  // A function expects its stack pointer 16-byte aligned before the call pushed the return address.
  auto** top = reinterpret_cast<void**>(fiber.stack + fiber.size - 128 - fiber.colour);
#if defined(__x86_64__)
  *--top = nullptr;  // the return address of `entry`, which never returns
  *--top = reinterpret_cast<void*>(entry);
#else
  *--top = reinterpret_cast<void*>(entry);
  *--top = nullptr;  // frame pointer
#endif
  return top;
}

#else

void switch_stack(void** save, void* to) {
  ucontext_t here;
  *save = &here;
  ::swapcontext(&here, static_cast<ucontext_t*>(to));
}

void* prepare_stack(Fiber& fiber, void (*entry)()) {
  char* top = fiber.stack + fiber.size - 128 - fiber.colour;
  auto* context =
      new (reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(top) - sizeof(ucontext_t)) & ~63ul))
          ucontext_t;
  ::getcontext(context);
  context->uc_stack.ss_sp = fiber.stack;
  context->uc_stack.ss_size = static_cast<std::size_t>(reinterpret_cast<char*>(context) - fiber.stack);
  context->uc_link = nullptr;
  ::makecontext(context, entry, 0);
  return context;
}

#endif

}  // namespace capstone_emu
