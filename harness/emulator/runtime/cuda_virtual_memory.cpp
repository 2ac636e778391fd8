// The driver API's virtual memory management. Addresses are reserved as pages without access; memory is a
// file in memory that is mapped there. See cuda_api.cpp for how this file is compiled.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/capstone_emulator/core.h"

namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;  // [B]

struct Memory {
  int file;
  std::size_t bytes;
};
Memory* memory_of(CUmemGenericAllocationHandle handle) { return reinterpret_cast<Memory*>(handle); }
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult result_of(bool good, CUresult error = CUDA_ERROR_INVALID_VALUE) {
  return good ? CUDA_SUCCESS : error;
}
bool whole_pages(CUdeviceptr address, std::size_t bytes) {
  return bytes && bytes % kGranularity == 0 && address % kGranularity == 0;
}

}  // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long) {
  if (!whole_pages(0, bytes) || (alignment & (alignment - 1))) return CUDA_ERROR_INVALID_VALUE;
  if (alignment < kGranularity) alignment = kGranularity;
  void* range = ::mmap(pointer(wanted), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // again, and cut to measure
  if (range != MAP_FAILED && reinterpret_cast<CUdeviceptr>(range) % alignment != 0) {
    ::munmap(range, bytes);
    range = ::mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range != MAP_FAILED) {
      char* const begin = static_cast<char*>(range);
      const std::size_t before = (alignment - reinterpret_cast<CUdeviceptr>(begin) % alignment) % alignment;
      if (before) ::munmap(begin, before);
      if (before < alignment) ::munmap(begin + before + bytes, alignment - before);
      range = begin + before;
    }
  }
  if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  capstone_emu::register_host_memory(range, bytes);  // kernels may use it
  *address = reinterpret_cast<CUdeviceptr>(range);
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  capstone_emu::register_host_memory(pointer(address), 0);
  return result_of(::munmap(pointer(address), bytes) == 0);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  if (!whole_pages(0, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const int file = ::memfd_create("device memory", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    if (file >= 0) ::close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Memory{file, bytes});
  return CUDA_SUCCESS;
}
/// The memory itself lives on while it is mapped.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  ::close(memory_of(handle)->file);
  delete memory_of(handle);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  const Memory& memory = *memory_of(handle);
  if (!whole_pages(address, bytes) || offset > memory.bytes || bytes > memory.bytes - offset)
    return CUDA_ERROR_INVALID_VALUE;
  return result_of(::mmap(pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory.file,
                          static_cast<off_t>(offset)) != MAP_FAILED);
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* wanted, size_t count) {
  if (count == 0) return CUDA_SUCCESS;
  const CUmemAccess_flags access = wanted[count - 1].flags;
  const int protection = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                         : access == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                                      : PROT_NONE;
  if (::mprotect(pointer(address), bytes, protection) != 0) return CUDA_ERROR_INVALID_VALUE;
  capstone_emu::memory_allocated(pointer(address), bytes, true);
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  capstone_emu::memory_freed(pointer(address));
  return result_of(::mmap(pointer(address), bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED);
}

}  // extern "C"
