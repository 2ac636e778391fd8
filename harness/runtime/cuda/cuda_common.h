#pragma once
// Shared by the CUDA programs: the driver's functions, opened at run time, and memory at addresses that mean
// the same in every process.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/base/packet.h"

namespace capstone::gpu {

/// Names the failing call and the runtime's message; becomes a `launch_error` or `exception` answer.
struct CudaFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess)
    throw CudaFailure(std::string(call) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) +
                      ")");
}
#define CAPSTONE_CUDA(call) ::capstone::gpu::check((call), #call)

/// One function of the driver. The programs do not link libcuda, so they build on machines without a driver.
inline void* driver_symbol(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) throw CudaFailure("libcuda.so.1 cannot be opened: no NVIDIA driver is visible here");
  void* function = ::dlsym(library, name);
  if (!function) throw CudaFailure(std::string("the NVIDIA driver lacks ") + name + ": it is too old");
  return function;
}
#define CAPSTONE_TEXT_(name) #name
#define CAPSTONE_TEXT(name) CAPSTONE_TEXT_(name)
/// cuda.h maps many names to versioned ones. The string is made after that mapping, so both agree.
#define CAPSTONE_DRIVER(name)                                                                   \
  ([] {                                                                                         \
    static const auto function =                                                                \
        reinterpret_cast<decltype(&name)>(::capstone::gpu::driver_symbol(CAPSTONE_TEXT(name))); \
    return function;                                                                            \
  }())
inline void check(CUresult code, const char* call) {
  if (code == CUDA_SUCCESS) return;
  const char* text = "unknown error";
  CAPSTONE_DRIVER(cuGetErrorString)(code, &text);
  throw CudaFailure(std::string(call) + ": " + text);
}
/// Calls a driver function and throws its error message.
#define CAPSTONE_CU(name, ...) ::capstone::gpu::check(CAPSTONE_DRIVER(name)(__VA_ARGS__), #name)

inline CUmemAllocationProp shareable_memory() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  int device = 0;
  cudaGetDevice(&device);
  p.location.id = device;
  return p;
}
inline std::size_t in_granules(std::size_t bytes) {
  CUmemAllocationProp properties = shareable_memory();
  std::size_t granule = 0;
  CAPSTONE_CU(cuMemGetAllocationGranularity, &granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  return (bytes + granule - 1) / granule * granule;
}
inline void allow_access(CUdeviceptr address, std::size_t bytes) {
  CUmemAccessDesc access{};
  access.location = shareable_memory().location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CAPSTONE_CU(cuMemSetAccess, address, bytes, &access, 1);
}

/// Device memory that several processes map, each at the same fixed address, so that a pointer captured in
/// one process is valid in the others.
class Arena {
 public:
  static constexpr CUdeviceptr kAddress = 0x700000000000ull;
  /// for memory that only trusted processes map
  static constexpr CUdeviceptr kExpectedAddress = 0x710000000000ull;

  explicit Arena(CUdeviceptr wanted = kAddress) : wanted_(wanted) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { drop(); }

  /// Allocates the memory and returns a descriptor to pass to another process; the caller closes it.
  int create(std::size_t bytes) {
    drop();
    CUmemAllocationProp properties = shareable_memory();
    size_ = in_granules(bytes);
    CAPSTONE_CU(cuMemCreate, &handle_, size_, &properties, 0);
    map();
    int fd = -1;
    CAPSTONE_CU(cuMemExportToShareableHandle, &fd, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    return fd;
  }

  /// Memory of this process only, at the same address.
  void create_private(std::size_t bytes) {
    drop();
    CUmemAllocationProp properties = shareable_memory();
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    size_ = in_granules(bytes);
    CAPSTONE_CU(cuMemCreate, &handle_, size_, &properties, 0);
    map();
  }

  /// Maps memory that the GPU host created; closes `fd`.
  void import(int fd, std::size_t bytes) {
    drop();
    size_ = in_granules(bytes);
    CUresult code = CAPSTONE_DRIVER(cuMemImportFromShareableHandle)(
        &handle_, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ::close(fd);
    check(code, "cuMemImportFromShareableHandle");
    map();
  }

  char* base() const { return reinterpret_cast<char*>(address_); }
  std::size_t size() const { return size_; }
  /// Whether the memory is at the requested fixed address; only then is a captured graph valid in another
  /// process.
  bool at_fixed_address() const { return address_ == wanted_; }

 private:
  static constexpr std::size_t kLeastReserved = std::size_t{1} << 30;

  void map() {
    // Small reservations come from a pool and ignore the requested address.
    reserved_ = std::max(size_, kLeastReserved);
    CAPSTONE_CU(cuMemAddressReserve, &address_, reserved_, 0, wanted_, 0);
    CAPSTONE_CU(cuMemMap, address_, size_, 0, handle_, 0);
    allow_access(address_, size_);
  }
  void drop() {
    if (!address_) return;
    CAPSTONE_DRIVER(cuMemUnmap)(address_, size_);
    CAPSTONE_DRIVER(cuMemAddressFree)(address_, reserved_);
    CAPSTONE_DRIVER(cuMemRelease)(handle_);
    address_ = 0;
  }

  CUdeviceptr wanted_, address_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  std::size_t size_ = 0, reserved_ = 0;
};

/// A submission's private memory in replayed execution: a large address range at a fixed place, backed by
/// memory only as far as it is used.
class Scratch {
 public:
  static constexpr CUdeviceptr kAddress = 0x720000000000ull;
  static constexpr std::size_t kReach = std::size_t{1} << 40;

  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (!address_) return;
    CAPSTONE_DRIVER(cuMemUnmap)(address_, size_);
    CAPSTONE_DRIVER(cuMemAddressFree)(address_, kReach);
    for (CUmemGenericAllocationHandle handle : parts_) CAPSTONE_DRIVER(cuMemRelease)(handle);
  }

  /// Backs at least `bytes` from the start. Returns where the new memory begins, and its size.
  std::pair<char*, std::size_t> grow(std::size_t bytes) {
    if (bytes <= size_) return {base() + size_, 0};
    if (!address_) {
      CAPSTONE_CU(cuMemAddressReserve, &address_, kReach, 0, kAddress, 0);
      if (address_ != kAddress) throw CudaFailure("the address range for private memory is taken");
    }
    CUmemAllocationProp properties = shareable_memory();
    const std::size_t more = in_granules(bytes - size_);
    CUmemGenericAllocationHandle handle = 0;
    CAPSTONE_CU(cuMemCreate, &handle, more, &properties, 0);
    parts_.push_back(handle);
    CAPSTONE_CU(cuMemMap, address_ + size_, more, 0, handle, 0);
    allow_access(address_ + size_, more);
    char* fresh = base() + size_;
    size_ += more;
    return {fresh, more};
  }
  char* base() const { return reinterpret_cast<char*>(kAddress); }
  std::size_t size() const { return size_; }

 private:
  CUdeviceptr address_ = 0;
  std::size_t size_ = 0;
  std::vector<CUmemGenericAllocationHandle> parts_;
};

/// Turns a CUDA error after a launch into an answer.
inline Json launch_failure(cudaError_t left, cudaError_t finished) {
  bool at_launch = left != cudaSuccess;
  cudaError_t code = at_launch ? left : finished;
  Json answer{{"ok", false},
              {"kind", at_launch ? "launch_error" : "undefined_behaviour"},
              {"message", std::string(at_launch ? "the launch failed: " : "the kernel failed: ") +
                              cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")"}};
  switch (code) {
    case cudaErrorInvalidConfiguration:
      answer["hint"] = "too many threads a block (1024 at most), or an empty grid";
      break;
    case cudaErrorInvalidValue:
      answer["hint"] =
          "often more than 48 KB of dynamic shared memory without cudaFuncSetAttribute("
          "…MaxDynamicSharedMemorySize…)";
      break;
    case cudaErrorIllegalAddress:
      answer["hint"] =
          "an index leaves its tensor: run `compute-sanitizer`, or measure with --backend emulated for the "
          "line";
      break;
    case cudaErrorMisalignedAddress:
      answer["hint"] =
          "a vector load (float4) at an address that is not a multiple of its size: rows need not be aligned";
      break;
    case cudaErrorNoKernelImageForDevice:
      answer["hint"] = "the kernel was built for another architecture";
      break;
    default:
      break;
  }
  return answer;
}

/// A submission's shared object with its adapter.
struct Submission {
  using Call = void (*)(const void* const*, void*, void*, void*);
  using Size = std::size_t (*)(const void* const*);
  using Prepare = void (*)(const void* const*, void*, void*);
  using Label = const char* (*)();
  Call call = nullptr;
  Size workspace = nullptr;
  Size prepared = nullptr;  ///< null: the problem has no prepare()
  Prepare prepare = nullptr;
  Label label = nullptr;

  explicit Submission(const char* path) {
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(std::string("the built kernel cannot be loaded: ") + ::dlerror());
    call = reinterpret_cast<Call>(::dlsym(library, "capstone_call"));
    workspace = reinterpret_cast<Size>(::dlsym(library, "capstone_workspace_bytes"));
    prepared = reinterpret_cast<Size>(::dlsym(library, "capstone_prepared_bytes"));
    prepare = reinterpret_cast<Prepare>(::dlsym(library, "capstone_prepare"));
    label = reinterpret_cast<Label>(::dlsym(library, "baseline_label"));
    if (!call || !workspace) throw std::runtime_error("the built kernel lacks its adapter");
  }
};

/// Argument slots of the adapter: 8 bytes each, and the pointers to them.
class Slots {
 public:
  /// `expected`: base address of the expected values; only in trusted processes.
  Slots(const Json& args, char* arena, char* expected = nullptr) {
    values_.reserve(args.size());
    for (const Json& arg : args) {
      std::uint64_t bits = 0;
      if (arg.contains("at")) {
        char* address = arena + arg["at"].get<std::size_t>();
        std::memcpy(&bits, &address, sizeof address);
      } else if (arg.contains("expected")) {
        char* address = expected + arg["expected"].get<std::size_t>();
        std::memcpy(&bits, &address, sizeof address);
      } else if (arg.contains("f32")) {
        float value = arg["f32"].get<float>();
        std::memcpy(&bits, &value, sizeof value);
      } else if (arg.contains("f64")) {
        double value = arg["f64"].get<double>();
        std::memcpy(&bits, &value, sizeof value);
      } else {
        std::int64_t value = arg.begin().value().get<std::int64_t>();
        std::memcpy(&bits, &value, sizeof value);
      }
      values_.push_back(bits);
    }
    for (std::uint64_t& value : values_) pointers_.push_back(&value);
  }
  const void* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::uint64_t> values_;
  std::vector<const void*> pointers_;
};

/// An offset of the request as an address; null if it is absent or null.
inline void* at_offset(const Json& request, const char* key, char* arena, char* expected = nullptr) {
  auto at = request.find(key);
  if (at != request.end() && at->is_object()) return expected + at->at("expected").get<std::size_t>();
  return at != request.end() && at->is_number() ? arena + at->get<std::size_t>() : nullptr;
}

#ifdef __CUDACC__
/// Keeps the GPU busy while the host enqueues a launch, so that the enqueue time does not appear between the
/// events.
static __global__ void spin(long long nanoseconds) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}
#endif

/// Answers requests until the judge closes the channel. `handle(request, fd, give)` answers one; `give` is a
/// descriptor to send with the answer.
template <class Handle>
int serve(Handle&& handle) {
  ::signal(SIGPIPE, SIG_IGN);
  WorkerChannel channel;
  while (std::optional<Packet> packet = channel.receive()) {
    const Json& request = packet->message;
    if (request.value("op", "") == "quit") {
      channel.send({{"ok", true}});
      return 0;
    }
    Json answer;
    int give = -1;
    try {
      answer = handle(request, packet->fd.release(), give);
    } catch (const std::exception& problem) {
      answer = {{"ok", false}, {"kind", "exception"}, {"message", problem.what()}};
    }
    channel.send(answer, give);
    if (give >= 0) ::close(give);
  }
  return 0;
}

}  // namespace capstone::gpu
