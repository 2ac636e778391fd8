// What code compiled with -fsanitize=address calls; see shadow.h. Inline checks call __asan_report_* when an
// access is bad, functions with many accesses call __asan_load* and __asan_store*.
#include <pthread.h>

#include <cstdio>
#include <cstring>

#include "runtime/allocations.h"
#include "runtime/scheduler.h"
#include "runtime/shadow.h"
#include "runtime/where.h"

namespace capstone_emu {
namespace {

/// libasan's description of one instrumented variable of the program.
struct Global {
  const char* begin;
  std::size_t size, size_with_redzone;
  const char *name, *module;
  std::size_t dynamic_initialisation;
  struct Location {
    const char* file;
    int line, column;
  } const* location;
  std::size_t odr_indicator;
};

/// The frame of an instrumented function starts with this word, then the description of its variables.
constexpr std::size_t kFrameMagic = 0x41b58ab3;

/// The stack that the caller runs on: [begin, end).
struct Stack {
  const char *begin, *end;
};
Stack current_stack() {
  if (BlockRunner* runner = BlockRunner::current()) {
    const Fiber& fiber = *runner->thread().fiber;
    return {fiber.stack, fiber.stack + fiber.size};
  }
  static thread_local Stack own{};
  if (!own.begin) {
    pthread_attr_t attributes;
    void* begin = nullptr;
    std::size_t size = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
      ::pthread_attr_getstack(&attributes, &begin, &size);
      ::pthread_attr_destroy(&attributes);
    }
    own = {static_cast<const char*>(begin), static_cast<const char*>(begin) + size};
  }
  return own;
}

std::string distance(const char* address, const char* begin, std::size_t bytes) {
  if (address < begin) return std::to_string(begin - address) + " bytes before the start of ";
  return std::to_string(address - begin - static_cast<std::ptrdiff_t>(bytes)) + " bytes past the end of ";
}

/// "4 bytes past the end of the local array acc (64 bytes)". The description reads "2 32 4 7 value:12 64 40 8
/// local:13": how many variables; of each its offset, its size, and the length of the name that follows, with
/// its line.
std::string describe_local(const char* address) {
  const Stack stack = current_stack();
  if (address < stack.begin || address >= stack.end) return {};
  const char* p =
      reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{7});
  for (; p > stack.begin; p -= 8) {
    std::size_t words[2];
    std::memcpy(words, p, sizeof words);
    if (words[0] != kFrameMagic || shade_of(p) != kShadeStackLeft) continue;
    const char* text = reinterpret_cast<const char*>(words[1]);
    int count = 0, used = 0;
    if (std::sscanf(text, "%d%n", &count, &used) != 1) return {};
    text += used;
    std::string best;
    std::size_t nearest = ~std::size_t{0};
    for (int i = 0; i < count; ++i) {
      std::size_t offset = 0, size = 0, length = 0;
      if (std::sscanf(text, "%zu %zu %zu %n", &offset, &size, &length, &used) != 3) break;
      text += used;
      std::string name(text, length);
      text += length;
      name = name.substr(0, name.find(':'));
      const char* begin = p + offset;
      const std::size_t away =
          address < begin ? static_cast<std::size_t>(begin - address)
                          : static_cast<std::size_t>(address - begin) - (address < begin + size ? 0 : size);
      if (away >= nearest) continue;
      nearest = away;
      best =
          (address >= begin && address < begin + size ? std::string("in ") : distance(address, begin, size)) +
          "the local variable " + name + " (" + std::to_string(size) + " bytes)";
    }
    return best;
  }
  return {};
}

std::string describe_place(const char* address) {
  const std::uint8_t shade = shade_of(address);
  if (BlockRunner* runner = BlockRunner::current())
    if (std::string text = runner->describe_shared(address); !text.empty()) return text;
  if (shade == kShadeStackLeft || shade == kShadeStackMiddle || shade == kShadeStackRight ||
      shade == kShadeAfterScope)
    if (std::string text = describe_local(address); !text.empty()) return text;
  if (const auto near = nearest_allocation(address)) {
    if (near->freed) return "in " + near->name + ", which was freed";
    return distance(address, near->begin, near->bytes) + near->name + " (" + std::to_string(near->bytes) +
           " bytes)";
  }
  return "far from everything that was allocated";
}

void report(const void* address, std::size_t bytes, bool write) {
  const char* bad = first_forbidden(address, bytes);
  if (!bad) return;
  const std::uint8_t shade = shade_of(bad);
  const char* what = shade == kShadeFreed        ? "use of freed memory"
                     : shade == kShadeAfterScope ? "use of a variable after its scope"
                                                 : "out of bounds";
  std::string file;
  int line = 0;
  locate_in_source(call_chain(), file, line);
  std::string message = std::string(what) + ": " + (write ? "write" : "read") + " of " +
                        std::to_string(bytes) + " bytes, " + describe_place(bad);
  const char* hint =
      shade == kShadeFreed || shade == kShadeAfterScope ? "keep the memory alive for as long as it is used"
      : message.find("did not ask for") != std::string::npos
          ? "ask for it in the launch: the third argument in <<<blocks, threads, bytes>>>"
          : "check the index against the extent: a missing guard (`if (i < n)`) on a ragged size, "
            "another array's stride, or an array that is too small";
  if (BlockRunner* runner = BlockRunner::current())
    runner->fail(FailureKind::kUndefinedBehaviour, file.c_str(), line, std::move(message), hint);
  // Host code goes on; the worker answers with the failure when launch() returns.
  record_failure({FailureKind::kUndefinedBehaviour,
                  "in host code: " + message,
                  {},
                  {},
                  std::nullopt,
                  std::nullopt,
                  file,
                  line,
                  hint});
}

}  // namespace

void check_access(const void* address, std::size_t bytes, bool write) { report(address, bytes, write); }

}  // namespace capstone_emu

using namespace capstone_emu;

extern "C" {

void __asan_init() { map_shadow(); }
void __asan_version_mismatch_check_v8() {}
void __asan_before_dynamic_init(const char*) {}
void __asan_after_dynamic_init() {}

#define CAPSTONE_ASAN_ACCESS(size)                                                                    \
  void __asan_report_load##size##_noabort(const void* address) { report(address, size, false); }      \
  void __asan_report_store##size##_noabort(const void* address) { report(address, size, true); }      \
  void __asan_load##size##_noabort(const void* address) {                                             \
    if (__builtin_expect(first_forbidden(address, size) != nullptr, 0)) report(address, size, false); \
  }                                                                                                   \
  void __asan_store##size##_noabort(const void* address) {                                            \
    if (__builtin_expect(first_forbidden(address, size) != nullptr, 0)) report(address, size, true);  \
  }
CAPSTONE_ASAN_ACCESS(1)
CAPSTONE_ASAN_ACCESS(2)
CAPSTONE_ASAN_ACCESS(4)
CAPSTONE_ASAN_ACCESS(8)
CAPSTONE_ASAN_ACCESS(16)
#undef CAPSTONE_ASAN_ACCESS
void __asan_report_load_n_noabort(const void* address, std::size_t bytes) { report(address, bytes, false); }
void __asan_report_store_n_noabort(const void* address, std::size_t bytes) { report(address, bytes, true); }
void __asan_loadN_noabort(const void* address, std::size_t bytes) { report(address, bytes, false); }
void __asan_storeN_noabort(const void* address, std::size_t bytes) { report(address, bytes, true); }

void __asan_register_globals(const Global* globals, std::size_t count) {
  for (const Global* g = globals; g != globals + count; ++g) {
    unpoison(g->begin, g->size);
    poison(g->begin + g->size, g->size_with_redzone - g->size, kShadeGlobal);
    add_allocation({g->begin, g->size, std::string("the variable ") + g->name});
  }
}
void __asan_unregister_globals(const Global* globals, std::size_t count) {
  for (const Global* g = globals; g != globals + count; ++g) unpoison(g->begin, g->size_with_redzone);
}

void __asan_poison_stack_memory(const void* begin, std::size_t bytes) {
  poison(begin, bytes, kShadeAfterScope);
}
void __asan_unpoison_stack_memory(const void* begin, std::size_t bytes) { unpoison(begin, bytes); }

// Arrays of variable length: red zones of 32 bytes on both sides.
void __asan_alloca_poison(const char* begin, std::size_t bytes) {
  const std::size_t padded = (bytes + 31) & ~std::size_t{31};
  poison(begin - 32, 32, kShadeAllocaLeft);
  unpoison(begin, bytes);
  poison(begin + bytes, padded + 32 - bytes, kShadeAllocaRight);
}
void __asan_allocas_unpoison(const char* top, const char* bottom) {
  if (top && top <= bottom) unpoison(top, static_cast<std::size_t>(bottom - top));
}

// Before an exception, or another way to leave frames without running their cleanup.
void __asan_handle_no_return() {
  const Stack stack = current_stack();
  const char* here = reinterpret_cast<const char*>(
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) & ~std::uintptr_t{7});
  if (here >= stack.begin && here < stack.end) unpoison(here, static_cast<std::size_t>(stack.end - here));
}

}  // extern "C"
