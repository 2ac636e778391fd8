// The part of the driver API that a program needs whose kernels are launched with <<<>>>: tensor maps, the
// device, contexts, memory, streams and events. Handles are those of the runtime API. Modules, and with them
// cuLaunchKernel(), hold code for GPUs: there is nothing to load. See cuda_api.cpp for how this is compiled.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/tensor_map.h"

#if CUDA_VERSION >= 12000
namespace {

using capstone_emu::Element;
using capstone_emu::TensorMap;

bool element_of(CUtensorMapDataType type, Element& element) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      element = Element::kU8;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
      element = Element::kU16;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
      element = Element::kU32;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
      element = Element::kS32;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
      element = Element::kU64;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
      element = Element::kS64;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
      element = Element::kF16;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      element = Element::kF32;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      element = Element::kF64;
      return true;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      element = Element::kBf16;
      return true;
    default:
      return false;
  }
}

/// @return 0 for none; -1 for what is not emulated.
int span_of(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
      return 0;
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return 64;
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return 128;
    default:
      return -1;
  }
}

}  // namespace

extern "C" CUresult cuTensorMapEncodeTiled(CUtensorMap* result, CUtensorMapDataType type, cuuint32_t rank,
                                           void* address, const cuuint64_t* extents,
                                           const cuuint64_t* strides, const cuuint32_t* box,
                                           const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                           CUtensorMapFloatOOBfill fill) {
  TensorMap map{};
  const int span = span_of(swizzle);
  if (!result || rank < 1 || rank > 5 || reinterpret_cast<std::uintptr_t>(address) % 16)
    return CUDA_ERROR_INVALID_VALUE;
  if (!element_of(type, map.element) || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || span < 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  const unsigned size = capstone_emu::bytes_of(map.element);
  map.magic = TensorMap::kMagic;
  map.rank = static_cast<std::uint8_t>(rank);
  map.swizzle = static_cast<std::uint8_t>(span);
  map.nan_fill = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  map.address = reinterpret_cast<std::uint64_t>(address);
  map.stride[0] = size;
  for (unsigned d = 0; d < rank; ++d) {
    if (extents[d] == 0 || extents[d] > (1ull << 32) || box[d] == 0 || box[d] > 256 || steps[d] == 0 ||
        steps[d] > 8)
      return CUDA_ERROR_INVALID_VALUE;
    if (d && (strides[d - 1] % 16 || strides[d - 1] >= 1ull << 40)) return CUDA_ERROR_INVALID_VALUE;
    map.extent[d] = static_cast<std::uint32_t>(extents[d] > 0xffffffffull ? 0xffffffffull : extents[d]);
    if (d) map.stride[d] = strides[d - 1];
    map.box[d] = static_cast<std::uint16_t>(box[d]);
    map.step[d] = static_cast<std::uint8_t>(steps[d]);
  }
  const unsigned inner = box[0] * size;
  if (inner % 16 || (span && inner > static_cast<unsigned>(span))) return CUDA_ERROR_INVALID_VALUE;
  std::memset(result, 0, sizeof *result);
  std::memcpy(result, &map, sizeof map);
  return CUDA_SUCCESS;
}
#endif

namespace {

struct CUctx {
  unsigned flags;
};
/// There is one device, whose primary context is current where no other is: the runtime API makes it so.
/// Others differ in their handles only.
CUctx g_primary{0};
thread_local std::vector<CUcontext> g_contexts;

CUcontext handle_of(CUctx* context) { return reinterpret_cast<CUcontext>(context); }
void* pointer_of(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
/// The errors of both interfaces have the same numbers, as far as the emulator gives them.
CUresult result_of(cudaError_t error) { return static_cast<CUresult>(error); }
cudaStream_t stream_of(CUstream stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t event_of_driver(CUevent event) { return reinterpret_cast<cudaEvent_t>(event); }

CUresult create_context(CUcontext* context, unsigned flags, CUdevice device) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  *context = handle_of(new CUctx{flags});
  g_contexts.push_back(*context);
  return CUDA_SUCCESS;
}

CUresult fill(CUdeviceptr to, const void* value, std::size_t size, std::size_t count) {
  std::vector<char> values(size * count);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(values.data() + i * size, value, size);
  return result_of(cudaMemcpy(pointer_of(to), values.data(), values.size(), cudaMemcpyHostToDevice));
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return result_of(cudaRuntimeGetVersion(version)); }
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS                 ? "CUDA_SUCCESS"
          : error == CUDA_ERROR_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
          : error == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_INVALID_DEVICE  ? "CUDA_ERROR_INVALID_DEVICE"
          : error == CUDA_ERROR_INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
          : error == CUDA_ERROR_LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
          : error == CUDA_ERROR_NOT_SUPPORTED   ? "CUDA_ERROR_NOT_SUPPORTED"
                                                : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}

// ---- the device and contexts ------------------------------------------------------------------------------
CUresult cuDeviceGetCount(int* count) { return result_of(cudaGetDeviceCount(count)); }
CUresult cuDeviceGet(CUdevice* device, int number) {
  if (number != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device)) return result_of(error);
  if (length < 1) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t kept = std::min(std::strlen(properties.name), static_cast<std::size_t>(length) - 1);
  std::memcpy(name, properties.name, kept);
  name[kept] = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  size_t available;
  return result_of(cudaMemGetInfo(&available, bytes));
}
/// Attributes have the same numbers in both interfaces.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
    *value = 1;
    return CUDA_SUCCESS;
  }
  return result_of(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  return cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}
#if CUDA_VERSION >= 13000
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned flags, CUdevice device) {
  return create_context(context, flags, device);
}
#else
CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return create_context(context, flags, device);
}
#endif
CUresult cuCtxDestroy(CUcontext context) {
  if (!context || context == handle_of(&g_primary)) return CUDA_ERROR_INVALID_CONTEXT;
  g_contexts.erase(std::remove(g_contexts.begin(), g_contexts.end(), context), g_contexts.end());
  delete reinterpret_cast<CUctx*>(context);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  *context = handle_of(&g_primary);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = g_contexts.empty() ? handle_of(&g_primary) : g_contexts.back();
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  g_contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  if (g_contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = g_contexts.back();
  g_contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  if (!g_contexts.empty()) g_contexts.pop_back();
  if (context) g_contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() { return result_of(cudaDeviceSynchronize()); }

// ---- memory -----------------------------------------------------------------------------------------------
CUresult cuMemAlloc(CUdeviceptr* memory, size_t bytes) {
  void* pointer = nullptr;
  const cudaError_t error = bytes ? cudaMalloc(&pointer, bytes) : cudaErrorInvalidValue;
  *memory = reinterpret_cast<CUdeviceptr>(pointer);
  return result_of(error);
}
CUresult cuMemFree(CUdeviceptr memory) { return result_of(cudaFree(pointer_of(memory))); }
CUresult cuMemAllocHost(void** memory, size_t bytes) { return result_of(cudaMallocHost(memory, bytes)); }
CUresult cuMemFreeHost(void* memory) { return result_of(cudaFreeHost(memory)); }
CUresult cuMemGetInfo(size_t* available, size_t* total) {
  return result_of(cudaMemGetInfo(available, total));
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return result_of(cudaMemcpy(pointer_of(to), from, bytes, cudaMemcpyHostToDevice));
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return result_of(cudaMemcpy(to, pointer_of(from), bytes, cudaMemcpyDeviceToHost));
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return result_of(cudaMemcpy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDeviceToDevice));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return result_of(cudaMemcpyAsync(pointer_of(to), from, bytes, cudaMemcpyHostToDevice, stream_of(stream)));
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return result_of(cudaMemcpyAsync(to, pointer_of(from), bytes, cudaMemcpyDeviceToHost, stream_of(stream)));
}
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) { return fill(to, &value, 1, count); }
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) { return fill(to, &value, 4, count); }

// ---- streams and events -----------------------------------------------------------------------------------
CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return result_of(cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), flags));
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return result_of(cudaStreamCreateWithPriority(reinterpret_cast<cudaStream_t*>(stream), flags, priority));
}
CUresult cuStreamSynchronize(CUstream stream) { return result_of(cudaStreamSynchronize(stream_of(stream))); }
CUresult cuStreamDestroy(CUstream stream) { return result_of(cudaStreamDestroy(stream_of(stream))); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return result_of(cudaStreamWaitEvent(stream_of(stream), event_of_driver(event), flags));
}
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return result_of(cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), flags));
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return result_of(cudaEventRecord(event_of_driver(event), stream_of(stream)));
}
CUresult cuEventSynchronize(CUevent event) { return result_of(cudaEventSynchronize(event_of_driver(event))); }
CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return result_of(cudaEventElapsedTime(milliseconds, event_of_driver(begin), event_of_driver(end)));
}
CUresult cuEventDestroy(CUevent event) { return result_of(cudaEventDestroy(event_of_driver(event))); }

}  // extern "C"

/// The address of a driver function by its name, or null.
void* capstone_emu_driver_function(const char* name) {
#if CUDA_VERSION >= 12000
  if (std::strcmp(name, "cuTensorMapEncodeTiled") == 0)
    return reinterpret_cast<void*>(cuTensorMapEncodeTiled);
#endif
  if (std::strcmp(name, "cuInit") == 0) return reinterpret_cast<void*>(cuInit);
  if (std::strcmp(name, "cuGetErrorString") == 0) return reinterpret_cast<void*>(cuGetErrorString);
  return nullptr;
}
