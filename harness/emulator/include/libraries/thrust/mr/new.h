#pragma once
#pragma GCC system_header
// Stands for Thrust's header of this name, through which its C++ back end allocates: memory that kernels may use, too.
#include <thrust/mr/memory_resource.h>

#include <new>

THRUST_NAMESPACE_BEGIN
namespace mr {

class new_delete_resource_base : public memory_resource<> {
 public:
  void* do_allocate(std::size_t bytes, std::size_t = THRUST_MR_DEFAULT_ALIGNMENT) override {
    void* memory = nullptr;
    if (::cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal) != cudaSuccess) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t = THRUST_MR_DEFAULT_ALIGNMENT) override {
    ::cudaFree(memory);
  }
};
class new_delete_resource final : public new_delete_resource_base {};

}  // namespace mr
THRUST_NAMESPACE_END

namespace capstone_emu {
/// Its algorithms run as host code, on memory of cudaMalloc() as well.
inline const bool thrust_opens_device_memory = (keep_device_memory_open(), true);
}  // namespace capstone_emu
