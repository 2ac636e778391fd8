// What the candidate's own objects tell the hooks through core.h.
#include "runtime/observe.h"

#include "runtime/stream_order.h"

namespace capstone_emu {

void memory_allocated(const void* begin, std::size_t bytes, bool written) {
  observe::allocated(begin, bytes, written);
}
void memory_freed(const void* begin) { observe::freed(begin); }
void memory_written(const void* begin, std::size_t bytes) {
  sources_may_change(begin, bytes);
  observe::written_by_host(begin, bytes);
}

#if CAPSTONE_EMULATOR_HOOKS
void release_through(const void* object) { observe::releases(object); }
void acquire_through(const void* object) { observe::acquires(object); }
void report_flops(std::uint64_t count) { observe::flops(count, __builtin_return_address(0)); }
#endif

}  // namespace capstone_emu
