#pragma once
// Which bytes of the arena belong to a tensor during one run.
#include <cstddef>
#include <vector>

#include "runtime/json.h"

namespace capstone_emu {

/// In memory-checked candidates everything between the given extents is out of bounds while this lives.
class Extents {
 public:
  /// @param list  [{"name": "x", "at": OFFSET, "bytes": N}, …]; empty: the whole arena may be accessed
  /// @throws std::runtime_error  an extent lies outside of the arena
  Extents(const Json& list, char* arena, std::size_t bytes);
  ~Extents();
  Extents(const Extents&) = delete;
  Extents& operator=(const Extents&) = delete;

 private:
  char* arena_;
  std::size_t bytes_;
  std::vector<const char*> added_;
};

}  // namespace capstone_emu
