#pragma once
// What the player and the CUDA worker share: the driver's virtual-memory calls, and one arena of device memory.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace capstone::gpu {

/// Carries the failing call and the runtime's words; becomes a `launch_error` or `exception` answer.
struct CudaFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess)
    throw CudaFailure(std::string(call) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")");
}
#define CAPSTONE_CUDA(call) ::capstone::gpu::check((call), #call)

/// The driver API, opened at run time: neither program links libcuda, so both build on a machine without a driver.
struct Driver {
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) free_address;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemExportToShareableHandle) export_handle;
  decltype(&cuMemImportFromShareableHandle) import_handle;
  decltype(&cuGetErrorString) error_string;

  static const Driver& get() {
    static const Driver driver;
    return driver;
  }
  void check(CUresult code, const char* call) const {
    if (code == CUDA_SUCCESS) return;
    const char* text = "unknown error";
    error_string(code, &text);
    throw CudaFailure(std::string(call) + ": " + text);
  }

 private:
  Driver() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) throw CudaFailure("libcuda.so.1 cannot be opened: no NVIDIA driver is visible here");
    auto load = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (!function) throw CudaFailure(std::string("the NVIDIA driver lacks ") + name + ": it is too old");
    };
    load(reserve, "cuMemAddressReserve");
    load(free_address, "cuMemAddressFree");
    load(create, "cuMemCreate");
    load(release, "cuMemRelease");
    load(map, "cuMemMap");
    load(unmap, "cuMemUnmap");
    load(set_access, "cuMemSetAccess");
    load(granularity, "cuMemGetAllocationGranularity");
    load(export_handle, "cuMemExportToShareableHandle");
    load(import_handle, "cuMemImportFromShareableHandle");
    load(error_string, "cuGetErrorString");
  }
};

/// Device memory that two processes map. Asked for at one fixed address in both, so that a pointer recorded in one
/// means the same in the other.
class Arena {
 public:
  static constexpr CUdeviceptr kAddress = 0x700000000000ull;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { drop(); }

  /// Allocates and returns a descriptor to hand to another process; the caller closes it.
  int create(std::size_t bytes) {
    drop();
    const Driver& driver = Driver::get();
    CUmemAllocationProp properties = this->properties();
    std::size_t granule = 0;
    driver.check(driver.granularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), "cuMemGetAllocationGranularity");
    size_ = (bytes + granule - 1) / granule * granule;
    driver.check(driver.create(&handle_, size_, &properties, 0), "cuMemCreate");
    map();
    int fd = -1;
    driver.check(driver.export_handle(&fd, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), "cuMemExportToShareableHandle");
    return fd;
  }

  /// Maps memory that the player made; closes `fd`.
  void import(int fd, std::size_t bytes) {
    drop();
    const Driver& driver = Driver::get();
    CUmemAllocationProp properties = this->properties();
    std::size_t granule = 0;
    driver.check(driver.granularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), "cuMemGetAllocationGranularity");
    size_ = (bytes + granule - 1) / granule * granule;
    CUresult code = driver.import_handle(&handle_, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ::close(fd);
    driver.check(code, "cuMemImportFromShareableHandle");
    map();
  }

  char* base() const { return reinterpret_cast<char*>(address_); }
  std::size_t size() const { return size_; }

 private:
  static CUmemAllocationProp properties() {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    int device = 0;
    cudaGetDevice(&device);
    p.location.id = device;
    return p;
  }
  void map() {
    const Driver& driver = Driver::get();
    driver.check(driver.reserve(&address_, size_, 0, kAddress, 0), "cuMemAddressReserve");
    driver.check(driver.map(address_, size_, 0, handle_, 0), "cuMemMap");
    CUmemAccessDesc access{};
    access.location = properties().location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver.check(driver.set_access(address_, size_, &access, 1), "cuMemSetAccess");
  }
  void drop() {
    if (!address_) return;
    const Driver& driver = Driver::get();
    driver.unmap(address_, size_);
    driver.free_address(address_, size_);
    driver.release(handle_);
    address_ = 0;
  }

  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  std::size_t size_ = 0;
};

}  // namespace capstone::gpu
