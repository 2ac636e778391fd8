// The few functions of the driver API that kernels' host code needs: tensor maps. See cuda_api.cpp for how
// this is compiled.
#include <cuda.h>

#include <cstring>

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

extern "C" CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
extern "C" CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS               ? "no error"
          : error == CUDA_ERROR_INVALID_VALUE ? "invalid argument"
                                              : "operation not supported";
  return CUDA_SUCCESS;
}

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
