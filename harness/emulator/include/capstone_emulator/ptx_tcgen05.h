#pragma once
#pragma GCC system_header
// What the rewriter makes of tcgen05 and the runtime does not do.
#include "ptx_mma.h"
#include "tensor_memory.h"

namespace capstone_emu::ptx {

inline void tensor_alloc(char* to, unsigned columns, unsigned group, const char* file, int line) {
  require_aligned(to, 4, "tcgen05.alloc", file, line);
  if (!is_shared(to)) undefined_behaviour(file, line, "tcgen05.alloc: %p is not in this block's shared memory", static_cast<void*>(to));
  const std::uint32_t address = tensor_allocate(shared_address(to), columns, group, file, line);
  if (address != ~std::uint32_t{0}) std::memcpy(to, &address, sizeof address);
  __syncwarp(~0u, file, line);
}
template <class... Operands>
inline __attribute__((always_inline)) void tensor_loading(const Operands&... results) {
  if constexpr (observed_by_hooks) {
    const void* const places[] = {place_of(results)...};
    tensor_loads_into(places, sizeof...(results));
  }
}

}  // namespace capstone_emu::ptx
