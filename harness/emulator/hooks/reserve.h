#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace capstone_emu::hooks {

/// Memory for `count` elements that costs nothing until it is touched, all zero.
template <class T>
T* reserve(std::size_t count) {
  void* memory = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(memory);
}
template <class T>
void unreserve(T* memory, std::size_t count) {
  if (memory) ::munmap(memory, count * sizeof(T));
}

}  // namespace capstone_emu::hooks
