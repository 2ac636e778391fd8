// The slice of the CUDA runtime API that a kernel's host code uses, on ordinary memory. It is the one part of the
// runtime that needs CUDA's headers (their structures change between versions), so it is compiled beside a candidate,
// with the headers that the candidate sees, and kept in the cache.
#include <cuda_runtime.h>

#include <chrono>
#include <cstring>

#include "../include/capstone_emulator/core.h"

namespace {

// What the emulated device looks like. The count of multiprocessors is small, so that grids sized by it stay small.
constexpr int kMultiprocessors = 8, kThreadsPerMultiprocessor = 2048, kL2Bytes = 50 << 20;
constexpr std::size_t kGlobalMemory = std::size_t{8} << 30, kDefaultShared = 48 * 1024;

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) capstone_emu::last_error() = error;
  return error;
}

cudaError_t allocate(void** pointer, std::size_t bytes) {
  if (!pointer) return remember(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > kGlobalMemory) return remember(cudaErrorMemoryAllocation);
  *pointer = capstone_emu::allocate_device_memory(bytes);
  return *pointer ? cudaSuccess : remember(cudaErrorMemoryAllocation);
}

/// Memory that the host writes without telling us.
cudaError_t allocate_for_host(void** pointer, std::size_t bytes) {
  const cudaError_t error = allocate(pointer, bytes);
  if (error == cudaSuccess) capstone_emu::memory_written(*pointer, bytes);
  return error;
}

cudaError_t release(void* pointer) {
  if (!pointer || capstone_emu::release_device_memory(pointer)) return cudaSuccess;
  return remember(cudaErrorInvalidValue);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes) {
  if (bytes && (!to || !from)) return remember(cudaErrorInvalidValue);
  if (bytes) std::memmove(to, from, bytes);
  capstone_emu::memory_written(to, bytes);
  return cudaSuccess;
}

cudaError_t copy_2d(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                    std::size_t height) {
  if (width > to_pitch || width > from_pitch) return remember(cudaErrorInvalidPitchValue);
  for (std::size_t row = 0; row < height; ++row)
    std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  if (height) capstone_emu::memory_written(to, (height - 1) * to_pitch + width);
  return cudaSuccess;
}

struct Event {
  std::chrono::steady_clock::time_point time;
};
Event* event_of(cudaEvent_t handle) { return reinterpret_cast<Event*>(handle); }

/// Streams do nothing: all work is complete when it was asked for. The handle only has to be distinct.
cudaError_t make_stream(cudaStream_t* stream) {
  *stream = reinterpret_cast<cudaStream_t>(new char);
  return cudaSuccess;
}

int attribute_value(cudaDeviceAttr attribute) {
  const int arch = capstone_emu::emulated_arch();
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: return kMultiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return kThreadsPerMultiprocessor;
    case cudaDevAttrMaxThreadsPerBlock: return 1024;
    case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 0x7fffffff;
    case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxSharedMemoryPerBlock: return kDefaultShared;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(capstone_emu::shared_memory_capacity());
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(capstone_emu::shared_memory_capacity()) + 1024;
    case cudaDevAttrMaxRegistersPerBlock: case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
    case cudaDevAttrComputeCapabilityMajor: return arch / 100;
    case cudaDevAttrComputeCapabilityMinor: return arch % 100 / 10;
    case cudaDevAttrL2CacheSize: return kL2Bytes;
    case cudaDevAttrUnifiedAddressing: case cudaDevAttrManagedMemory: case cudaDevAttrMemoryPoolsSupported: return 1;
    default: return 0;
  }
}

}  // namespace

extern "C" {

// ---- memory ---------------------------------------------------------------------------------------------------------
cudaError_t cudaMalloc(void** pointer, size_t bytes) { return allocate(pointer, bytes); }
cudaError_t cudaFree(void* pointer) { return release(pointer); }
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) { return allocate(pointer, bytes); }
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return release(pointer); }
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) { return allocate_for_host(pointer, bytes); }
cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return allocate_for_host(pointer, bytes); }
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return allocate_for_host(pointer, bytes); }
cudaError_t cudaFreeHost(void* pointer) { return release(pointer); }
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
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) { return copy(to, from, bytes); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  return copy(to, from, bytes);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (bytes && !to) return remember(cudaErrorInvalidValue);
  if (bytes) std::memset(to, value, bytes);
  capstone_emu::memory_written(to, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) { return cudaMemset(to, value, bytes); }
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t) {
  for (size_t row = 0; row < height; ++row) std::memset(static_cast<char*>(to) + row * pitch, value, width);
  if (height) capstone_emu::memory_written(to, (height - 1) * pitch + width);
  return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind) {
  return copy(const_cast<char*>(static_cast<const char*>(symbol)) + offset, from, bytes);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind) {
  return copy(to, static_cast<const char*>(symbol) + offset, bytes);
}

// ---- errors ---------------------------------------------------------------------------------------------------------
cudaError_t cudaGetLastError() {
  const auto error = static_cast<cudaError_t>(capstone_emu::last_error());
  capstone_emu::last_error() = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(capstone_emu::last_error()); }
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidPitchValue: return "cudaErrorInvalidPitchValue";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    default: return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidPitchValue: return "invalid pitch argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "unknown error";
  }
}
const char* capstone_emu_error_text(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

// ---- streams and events ---------------------------------------------------------------------------------------------
cudaError_t cudaDeviceSynchronize() { return cudaPeekAtLastError(); }
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return make_stream(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return make_stream(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<char*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaPeekAtLastError(); }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  event_of(event)->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(event_of(end)->time - event_of(begin)->time).count();
  return cudaSuccess;
}

// ---- functions ------------------------------------------------------------------------------------------------------
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
  const std::size_t by_shared =
      dynamic_shared ? (capstone_emu::shared_memory_capacity() + 1024) / (dynamic_shared + 1024) : 32;
  const std::size_t by_threads = static_cast<std::size_t>(kThreadsPerMultiprocessor / threads);
  *blocks = static_cast<int>(by_shared < by_threads ? by_shared : by_threads);
  if (*blocks > 32) *blocks = 32;
  return cudaSuccess;
}

// ---- device ---------------------------------------------------------------------------------------------------------
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : remember(cudaErrorInvalidDevice); }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
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
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  return cudaSuccess;
}

}  // extern "C"
