#include "worker/extents.h"

#include <stdexcept>

#include "runtime/allocations.h"
#include "runtime/shadow.h"

namespace capstone_emu {

Extents::Extents(const Json& list, char* arena, std::size_t bytes) : arena_(arena), bytes_(bytes) {
  if (list.empty()) return;
  for (const Json& extent : list)
    if (const std::size_t at = extent.at("at"), length = extent.at("bytes");
        at % 8 || at > bytes || length > bytes - at)
      throw std::runtime_error("an extent lies outside of the arena");
  poison(arena, bytes);
  for (const Json& extent : list) {
    const char* begin = arena + extent["at"].get<std::size_t>();
    const std::size_t length = extent["bytes"];
    unpoison(begin, length);
    add_allocation({begin, length, extent.at("name")});
    added_.push_back(begin);
  }
}

Extents::~Extents() {
  unpoison(arena_, bytes_);
  for (const char* begin : added_) forget_allocation(begin);
}

}  // namespace capstone_emu
