// The slice of the CUDA runtime API that a kernel's host code uses, on ordinary memory. It is the one part of
// the runtime that needs CUDA's headers. Their structures change between versions, so it is compiled with the
// headers that the candidate sees. capstone does that when it builds a candidate, and keeps the object in its
// cache.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "include/capstone_emulator/core.h"
#include "runtime/habits.h"
#include "runtime/stream_order.h"
#include "runtime/streams.h"

using capstone_emu::enqueue;
using capstone_emu::kMultiprocessors;
using capstone_emu::kThreadsPerMultiprocessor;
using capstone_emu::remember;

namespace capstone_emu {
cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}
}  // namespace capstone_emu

// cuda_driver.cpp
void* capstone_emu_driver_function(const char* name);

namespace {

constexpr int kL2Bytes = 50 << 20;
constexpr std::size_t kGlobalMemory = std::size_t{8} << 30, kDefaultShared = 48 * 1024;

/// After a kernel has failed, every call returns its error.
cudaError_t failed_before() { return static_cast<cudaError_t>(capstone_emu::kernel_error()); }

cudaError_t allocate(void** pointer, std::size_t bytes, bool for_host_too = false) {
  if (const cudaError_t error = failed_before()) return error;
  if (!pointer) return remember(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > kGlobalMemory) return remember(cudaErrorMemoryAllocation);
  *pointer = capstone_emu::allocate_device_memory(bytes, for_host_too);
  if (!*pointer) return remember(cudaErrorMemoryAllocation);
  capstone_emu::memory_allocated(*pointer, bytes, for_host_too);
  capstone_emu::host_goes_on();
  return cudaSuccess;
}

cudaError_t release(void* pointer) {
  if (!pointer) return cudaSuccess;
  if (!capstone_emu::release_device_memory(pointer)) return remember(cudaErrorInvalidValue);
  capstone_emu::memory_freed(pointer);
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind = cudaMemcpyDefault) {
  if (const cudaError_t error = failed_before()) return error;
  if (bytes && (!to || !from || !capstone_emu::may_copy(to, from, bytes, kind)))
    return remember(cudaErrorInvalidValue);
  const capstone_emu::DeviceMemoryUse use;
  if (bytes) std::memmove(to, from, bytes);
  capstone_emu::memory_written(to, bytes);
  return cudaSuccess;
}

cudaError_t copy_2d(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                    std::size_t width, std::size_t height, cudaMemcpyKind kind = cudaMemcpyDefault) {
  if (const cudaError_t error = failed_before()) return error;
  if (width > to_pitch || width > from_pitch) return remember(cudaErrorInvalidPitchValue);
  for (const std::size_t row : {std::size_t{0}, height - 1})
    if (width && height &&
        !capstone_emu::may_copy(static_cast<char*>(to) + row * to_pitch,
                                static_cast<const char*>(from) + row * from_pitch, width, kind))
      return remember(cudaErrorInvalidValue);
  const capstone_emu::DeviceMemoryUse use;
  for (std::size_t row = 0; row < height; ++row)
    std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
                width);
  if (height) capstone_emu::memory_written(to, (height - 1) * to_pitch + width);
  return cudaSuccess;
}

int attribute_value(cudaDeviceAttr attribute) {
  const int arch = capstone_emu::emulated_arch();
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      return kMultiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return kThreadsPerMultiprocessor;
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kDefaultShared;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(capstone_emu::shared_memory_capacity());
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(capstone_emu::shared_memory_capacity()) + 1024;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return 65536;
    case cudaDevAttrComputeCapabilityMajor:
      return arch / 100;
    case cudaDevAttrComputeCapabilityMinor:
      return arch % 100 / 10;
    case cudaDevAttrL2CacheSize:
      return kL2Bytes;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return capstone_emu::kBlocksPerMultiprocessor;
    case cudaDevAttrTotalConstantMemory:
      return 65536;
    case cudaDevAttrClockRate:
      return 1000000;  // [kHz]
    case cudaDevAttrMemoryClockRate:
      return 1000000;  // [kHz]
    case cudaDevAttrGlobalMemoryBusWidth:
      return 64;
    case cudaDevAttrClusterLaunch:
      return arch >= 900;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrStreamPrioritiesSupported:
      return 1;
    default:
      return 0;
  }
}

struct ErrorWords {
  cudaError_t error;
  const char *name, *text;
};
#define CAPSTONE_ERROR(name, text) \
  { name, #name, text }
constexpr ErrorWords kErrors[] = {
    CAPSTONE_ERROR(cudaSuccess, "no error"),
    CAPSTONE_ERROR(cudaErrorInvalidValue, "invalid argument"),
    CAPSTONE_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    CAPSTONE_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    CAPSTONE_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    CAPSTONE_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    CAPSTONE_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    CAPSTONE_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    CAPSTONE_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    CAPSTONE_ERROR(cudaErrorAssert, "device-side assert triggered"),
    CAPSTONE_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    CAPSTONE_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    CAPSTONE_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    CAPSTONE_ERROR(cudaErrorNotSupported, "operation not supported"),
    CAPSTONE_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    CAPSTONE_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    CAPSTONE_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    CAPSTONE_ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    CAPSTONE_ERROR(cudaErrorInvalidFilterSetting, "invalid filter setting"),
    CAPSTONE_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    CAPSTONE_ERROR(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    CAPSTONE_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
};
#undef CAPSTONE_ERROR
ErrorWords error_of(cudaError_t error) {
  for (const ErrorWords& one : kErrors)
    if (one.error == error) return one;
  return {error, "cudaErrorUnknown", "unknown error"};
}

}  // namespace

extern "C" {

// ---- memory -----------------------------------------------------------------------------------------------
cudaError_t cudaMalloc(void** pointer, size_t bytes) { return allocate(pointer, bytes); }
cudaError_t cudaFree(void* pointer) {
  capstone_emu::finish_streams();
  return release(pointer);
}
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) { return allocate(pointer, bytes); }
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
/// Fresh pages of managed memory hold zeros, and programs count on it.
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  const cudaError_t error = allocate(pointer, bytes, true);
  if (error == cudaSuccess && bytes) std::memset(*pointer, 0, bytes);
  return error;
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return allocate(pointer, bytes, true); }
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return allocate(pointer, bytes, true); }
cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return cudaSuccess;
}
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return allocate(pointer, *pitch * height);
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  *available = *total = kGlobalMemory;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  capstone_emu::finish_streams();
  capstone_emu::host_goes_on();  // a kernel's error comes first
  const cudaError_t error = copy(to, from, bytes, kind);
  capstone_emu::host_goes_on();
  return error;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return enqueue(stream, [=] {
    const cudaError_t error = copy(to, from, bytes, kind);
    if (error == cudaSuccess) capstone_emu::source_is_read(from, bytes);
    return error;
  });
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return copy(to, from, bytes);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return enqueue(stream, [=] { return copy(to, from, bytes); });
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  capstone_emu::finish_streams();
  return copy_2d(to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return enqueue(stream, [=] { return copy_2d(to, to_pitch, from, from_pitch, width, height); });
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  pointer->xsize = extent.width;
  pointer->ysize = extent.height;
  return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width, extent.height * extent.depth);
}
/// Where a CUDA array takes part, extents and places count its elements; else bytes.
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* given) {
  cudaMemcpy3DParms in_bytes = *given;
  const cudaMemcpy3DParms* const p = &in_bytes;
  unsigned element = 1;
  if (p->srcArray) {
    in_bytes.srcPtr = capstone_emu::memory_of(p->srcArray, element);
    in_bytes.srcPos.x *= element;
  }
  if (p->dstArray) {
    in_bytes.dstPtr = capstone_emu::memory_of(p->dstArray, element);
    in_bytes.dstPos.x *= element;
  }
  in_bytes.extent.width *= element;
  for (const auto& [used, pitch, x, y] : {std::tuple{p->srcArray, p->srcPtr.pitch, p->srcPos.x, p->srcPos.y},
                                          std::tuple{p->dstArray, p->dstPtr.pitch, p->dstPos.x, p->dstPos.y}})
    if (used && x + p->extent.width > pitch) return remember(cudaErrorInvalidValue);
  capstone_emu::finish_streams();
  auto at = [](const cudaPitchedPtr& memory, const cudaPos& from, size_t plane) {
    return static_cast<char*>(memory.ptr) + ((from.z + plane) * memory.ysize + from.y) * memory.pitch +
           from.x;
  };
  for (size_t plane = 0; plane < p->extent.depth; ++plane)
    if (const cudaError_t error =
            copy_2d(at(p->dstPtr, p->dstPos, plane), p->dstPtr.pitch, at(p->srcPtr, p->srcPos, plane),
                    p->srcPtr.pitch, p->extent.width, p->extent.height);
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  const cudaMemcpy3DParms kept = *p;
  return enqueue(stream, [kept] { return cudaMemcpy3D(&kept); });
}
cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  const capstone_emu::DeviceMemoryUse use;
  for (size_t row = 0; row < extent.height * extent.depth; ++row) {
    const size_t plane = row / extent.height;
    std::memset(static_cast<char*>(memory.ptr) + (plane * memory.ysize + row % extent.height) * memory.pitch,
                value, extent.width);
  }
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (const cudaError_t error = failed_before()) return error;
  if (bytes && (!to || !capstone_emu::may_set(to, bytes))) return remember(cudaErrorInvalidValue);
  const capstone_emu::DeviceMemoryUse use;
  if (bytes) std::memset(to, value, bytes);
  capstone_emu::memory_written(to, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return enqueue(stream, [=] { return cudaMemset(to, value, bytes); });
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  if (width > pitch) return remember(cudaErrorInvalidValue);
  const capstone_emu::DeviceMemoryUse use;
  for (size_t row = 0; row < height; ++row) std::memset(static_cast<char*>(to) + row * pitch, value, width);
  if (height) capstone_emu::memory_written(to, (height - 1) * pitch + width);
  return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return enqueue(stream, [=] { return cudaMemset2D(to, pitch, value, width, height); });
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  if (!memory || !bytes) return remember(cudaErrorInvalidValue);
  capstone_emu::register_host_memory(memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  capstone_emu::register_host_memory(memory, 0);
  return cudaSuccess;
}
cudaError_t cudaHostGetFlags(unsigned* flags, void*) {
  *flags = cudaHostAllocDefault;
  return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
#else
cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
#endif
/// What kernels can reach is called device memory, because code asks before it passes a pointer on.
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->type = cudaMemoryTypeDevice;
  if (capstone_emu::is_host_memory(pointer)) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  attributes->devicePointer = attributes->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  static char only;
  *pool = reinterpret_cast<cudaMemPool_t>(&only);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind) {
  return copy(const_cast<char*>(static_cast<const char*>(symbol)) + offset, from, bytes);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind) {
  return copy(to, static_cast<const char*>(symbol) + offset, bytes);
}

// ---- errors -----------------------------------------------------------------------------------------------
cudaError_t cudaGetLastError() {
  const auto error = static_cast<cudaError_t>(capstone_emu::last_error());
  capstone_emu::last_error() = failed_before();
  return error;
}
cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(capstone_emu::last_error()); }
const char* cudaGetErrorName(cudaError_t error) { return error_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return error_of(error).text; }
const char* capstone_emu_error_text(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

// ---- synchronisation --------------------------------------------------------------------------------------
cudaError_t cudaDeviceSynchronize() {
  if (capstone_emu::in_kernel())
    capstone_emu::not_judgeable(nullptr, 0, "cudaDeviceSynchronize() in a kernel, which CUDA 12 removed");
  capstone_emu::saw_device_wait();
  capstone_emu::finish_streams();
  capstone_emu::host_goes_on();
  return cudaPeekAtLastError();
}
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

// ---- functions --------------------------------------------------------------------------------------------
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > capstone_emu::shared_memory_capacity())
    return remember(cudaErrorInvalidValue);
  auto& limit = capstone_emu::dynamic_shared_limit();
  if (static_cast<std::size_t>(value) > limit) limit = static_cast<std::size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(capstone_emu::dynamic_shared_limit());
  attributes->binaryVersion = attributes->ptxVersion = capstone_emu::emulated_arch() / 10;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads,
                                                          size_t dynamic_shared) {
  if (threads <= 0 || threads > 1024) return remember(cudaErrorInvalidValue);
  *blocks = capstone_emu::resident_blocks(static_cast<unsigned>(threads), dynamic_shared);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                   int threads, size_t dynamic_shared,
                                                                   unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic_shared);
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, const void*, const cudaLaunchConfig_t*) {
  *blocks = 8;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void*, const cudaLaunchConfig_t*) {
  *clusters = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void*, int, int) {
  *bytes = capstone_emu::shared_memory_capacity();
  return cudaSuccess;
}

// ---- device -----------------------------------------------------------------------------------------------
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : remember(cudaErrorInvalidDevice); }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return cudaGetDevice(device); }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = cudaDeviceScheduleAuto;
  return cudaSuccess;
}
cudaError_t cudaInitDevice(int, unsigned, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return remember(cudaErrorPeerAccessUnsupported); }
cudaError_t cudaDeviceDisablePeerAccess(int) { return remember(cudaErrorPeerAccessNotEnabled); }
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  *value = 0;
  return remember(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  *value = limit == cudaLimitMallocHeapSize   ? kGlobalMemory
           : limit == cudaLimitPrintfFifoSize ? 1u << 20
                                              : 1024;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int) {
  if (length > 0) std::snprintf(text, static_cast<size_t>(length), "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
/// Today's GPUs have no others.
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  *function = capstone_emu_driver_function(symbol);
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *function ? cudaSuccess : remember(cudaErrorSymbolNotFound);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPoint(symbol, function, flags, result);
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute_value(attribute);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return remember(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "capstone emulated device (CPU)");
  properties->major = attribute_value(cudaDevAttrComputeCapabilityMajor);
  properties->minor = attribute_value(cudaDevAttrComputeCapabilityMinor);
  properties->multiProcessorCount = kMultiprocessors;
  properties->warpSize = 32;
  properties->totalGlobalMem = kGlobalMemory;
  properties->totalConstMem = 65536;
  properties->l2CacheSize = kL2Bytes;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->sharedMemPerBlock = kDefaultShared;
  properties->sharedMemPerBlockOptin = capstone_emu::shared_memory_capacity();
  properties->sharedMemPerMultiprocessor = capstone_emu::shared_memory_capacity() + 1024;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxBlocksPerMultiProcessor = capstone_emu::kBlocksPerMultiprocessor;
  properties->cooperativeLaunch = properties->managedMemory = properties->unifiedAddressing = 1;
  properties->concurrentKernels = properties->canMapHostMemory = properties->concurrentManagedAccess = 1;
  properties->clusterLaunch = capstone_emu::emulated_arch() >= 900;
  properties->memoryBusWidth = attribute_value(cudaDevAttrGlobalMemoryBusWidth);
  properties->memPitch = 0x7fffffff;
  properties->textureAlignment = 512;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  return cudaSuccess;
}

}  // extern "C"
