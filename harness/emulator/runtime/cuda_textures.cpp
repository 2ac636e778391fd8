// CUDA arrays, texture objects and surface objects. Which element a coordinate means: CUDA C++ Programming
// Guide 13.0, "Texture Fetching" (nearest-point sampling, linear filtering) and "Texture and Surface Memory"
// (address modes); surfaces: "Surface Functions". See cuda_api.cpp for how this is compiled.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "include/capstone_emulator/textures.h"
#include "runtime/streams.h"

using capstone_emu::enqueue;
using capstone_emu::remember;

namespace {

/// Rows lie one behind the other, and planes or layers behind those. Extents count elements; those of missing
/// dimensions are 0, as cudaMalloc3DArray() has them.
struct Array {
  cudaChannelFormatDesc channel;
  cudaExtent extent;
  unsigned flags;
  char* memory;
};
constexpr int kLive = 0x7e87;
/// A texture or surface: what it reads, in elements. Objects that were destroyed stay, so that their use is
/// seen.
struct Object {
  int state = kLive;
  cudaResourceDesc resource{};
  cudaTextureDesc sampling{};
  cudaChannelFormatDesc channel{};
  char* memory = nullptr;
  long extent[3] = {0, 0, 0}, layers = 0;
  std::size_t pitch = 0;  // [B] between rows
  int dimensions = 0;
  unsigned element = 0;  // [B]
};

unsigned bytes_of(const cudaChannelFormatDesc& c) { return static_cast<unsigned>(c.x + c.y + c.z + c.w) / 8; }
Array* array_of(cudaArray_const_t handle) { return reinterpret_cast<Array*>(const_cast<cudaArray*>(handle)); }
Object* object_of(unsigned long long handle) { return reinterpret_cast<Object*>(handle); }

bool has_known_format(const cudaChannelFormatDesc& c) {
  const int first = c.x, sizes[] = {c.y, c.z, c.w};
  bool ended = false;
  for (const int size : sizes) {
    if (size && (ended || size != first)) return false;
    ended |= size == 0;
  }
  const bool is_float = c.f == cudaChannelFormatKindFloat;
  return (is_float || c.f == cudaChannelFormatKindSigned || c.f == cudaChannelFormatKindUnsigned) &&
         (first == 32 || first == 16 || (first == 8 && !is_float));
}

cudaError_t allocate_array(cudaArray_t* result, const cudaChannelFormatDesc* channel, cudaExtent extent,
                           unsigned flags) {
  if (!result || !channel || !has_known_format(*channel) || extent.width == 0)
    return remember(cudaErrorInvalidValue);
  if (flags & cudaArrayCubemap) return remember(cudaErrorNotSupported);
  const std::size_t elements =
      extent.width * std::max<std::size_t>(extent.height, 1) * std::max<std::size_t>(extent.depth, 1);
  void* memory = nullptr;
  if (const cudaError_t error = cudaMalloc(&memory, elements * bytes_of(*channel))) return error;
  *result = reinterpret_cast<cudaArray_t>(new Array{*channel, extent, flags, static_cast<char*>(memory)});
  return cudaSuccess;
}

/// Takes from the resource what both kinds of objects need.
cudaError_t describe(Object& object, const cudaResourceDesc& resource) {
  object.resource = resource;
  switch (resource.resType) {
    case cudaResourceTypeArray: {
      const Array* const array = array_of(resource.res.array.array);
      if (!array) return cudaErrorInvalidValue;
      const bool layered = array->flags & cudaArrayLayered;
      object.channel = array->channel;
      object.memory = array->memory;
      object.extent[0] = static_cast<long>(array->extent.width);
      object.extent[1] = static_cast<long>(array->extent.height);
      (layered ? object.layers : object.extent[2]) = static_cast<long>(array->extent.depth);
      object.dimensions = object.extent[2] ? 3 : object.extent[1] ? 2 : 1;
      object.pitch = array->extent.width * bytes_of(array->channel);
      break;
    }
    case cudaResourceTypeLinear:
      object.channel = resource.res.linear.desc;
      object.memory = static_cast<char*>(resource.res.linear.devPtr);
      if (bytes_of(object.channel) == 0) return cudaErrorInvalidChannelDescriptor;
      object.extent[0] = static_cast<long>(resource.res.linear.sizeInBytes / bytes_of(object.channel));
      object.dimensions = 1;
      break;
    case cudaResourceTypePitch2D:
      object.channel = resource.res.pitch2D.desc;
      object.memory = static_cast<char*>(resource.res.pitch2D.devPtr);
      object.extent[0] = static_cast<long>(resource.res.pitch2D.width);
      object.extent[1] = static_cast<long>(resource.res.pitch2D.height);
      object.pitch = resource.res.pitch2D.pitchInBytes;
      object.dimensions = 2;
      if (object.pitch % 32 || object.pitch < resource.res.pitch2D.width * bytes_of(object.channel))
        return cudaErrorInvalidPitchValue;
      break;
    default:
      return cudaErrorNotSupported;  // mipmaps
  }
  if (!has_known_format(object.channel)) return cudaErrorInvalidChannelDescriptor;
  if (!object.memory || object.extent[0] == 0) return cudaErrorInvalidValue;
  if (resource.resType != cudaResourceTypeArray && reinterpret_cast<std::uintptr_t>(object.memory) % 16)
    return cudaErrorInvalidValue;  // GPUs want 512 bytes (textureAlignment)
  object.element = bytes_of(object.channel);
  return cudaSuccess;
}

/// 8- and 16-bit integers become floats of [0, 1] or [-1, 1] if cudaReadModeNormalizedFloat asks for it.
bool normalizes(const Object& o) {
  return o.sampling.readMode == cudaReadModeNormalizedFloat && o.channel.x < 32 &&
         o.channel.f != cudaChannelFormatKindFloat;
}
bool gives_floats(const Object& o) { return o.channel.f == cudaChannelFormatKindFloat || normalizes(o); }

template <class T>
T loaded(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

capstone_emu::Texel element_at(const Object& o, const char* from) {
  capstone_emu::Texel texel{};
  texel.is_float = gives_floats(o);
  const int bits = o.channel.x, parts = static_cast<int>(o.element) * 8 / bits;
  for (int i = 0; i < parts; ++i, from += bits / 8) {
    auto& part = texel.component[i];
    if (o.channel.f == cudaChannelFormatKindFloat) {
      part.f = bits == 32 ? loaded<float>(from) : __half2float(loaded<__half>(from));
      continue;
    }
    const bool is_signed = o.channel.f == cudaChannelFormatKindSigned;
    int value = 0;
    if (bits == 8) value = is_signed ? loaded<signed char>(from) : loaded<unsigned char>(from);
    if (bits == 16) value = is_signed ? loaded<short>(from) : loaded<unsigned short>(from);
    if (bits == 32) value = loaded<int>(from);
    if (!normalizes(o))
      part.i = value;
    else
      part.f = std::max(-1.0f, static_cast<float>(value) / static_cast<float>((1 << (bits - is_signed)) - 1));
  }
  return texel;
}

/// The element that index i of an axis of n elements means; -1: the border colour.
long addressed(long i, long n, cudaTextureAddressMode mode, bool normalized) {
  if (i >= 0 && i < n) return i;
  if (mode == cudaAddressModeBorder) return -1;
  if (normalized && mode == cudaAddressModeWrap) return ((i % n) + n) % n;
  if (normalized && mode == cudaAddressModeMirror) {
    const long period = ((i % (2 * n)) + 2 * n) % (2 * n);
    return period < n ? period : 2 * n - 1 - period;
  }
  return i < 0 ? 0 : n - 1;
}

capstone_emu::Texel element_of(const Object& o, const long (&index)[3], long layer) {
  long at[3] = {0, 0, 0};
  for (int axis = 0; axis < o.dimensions; ++axis) {
    at[axis] =
        addressed(index[axis], o.extent[axis], o.sampling.addressMode[axis], o.sampling.normalizedCoords);
    if (at[axis] >= 0) continue;
    capstone_emu::Texel border{};
    border.is_float = gives_floats(o);
    for (int i = 0; i < 4; ++i)
      if (border.is_float)
        border.component[i].f = o.sampling.borderColor[i];
      else
        border.component[i].i = static_cast<int>(o.sampling.borderColor[i]);
    return border;
  }
  const long plane = at[2] + layer, row = plane * std::max(o.extent[1], 1L) + at[1];
  return element_at(
      o, o.memory + static_cast<std::size_t>(row) * o.pitch + static_cast<std::size_t>(at[0]) * o.element);
}

/// Of an axis: a coordinate in elements. Those that are not numbers, or too large, stay in range of a long.
float in_elements(const Object& o, int axis, float coordinate) {
  if (o.sampling.normalizedCoords) {
    if (o.sampling.addressMode[axis] == cudaAddressModeWrap) coordinate -= std::floor(coordinate);
    coordinate *= static_cast<float>(o.extent[axis]);
  }
  return std::isnan(coordinate) ? 0.0f : std::clamp(coordinate, -1e9f, 1e9f);
}

/// Where a linear filter begins, and how much the element behind counts: 8 bits of a fraction.
long filtered_from(float coordinate, float& weight) {
  const float from = std::floor(coordinate - 0.5f);
  weight = std::round((coordinate - 0.5f - from) * 256.0f) / 256.0f;
  return static_cast<long>(from);
}

const Object& live_object(unsigned long long handle, const char* function, const char* file, int line) {
  const Object* const object = object_of(handle);
  if (!object)
    capstone_emu::undefined_behaviour(file, line, "%s: the object is 0: it was never created", function);
  if (object->state != kLive)
    capstone_emu::undefined_behaviour(file, line, "%s: the object was destroyed", function);
  return *object;
}

void check_dimensions(const Object& o, const char* function, int dimensions, bool layered, long layer,
                      const char* file, int line) {
  if (o.resource.resType == cudaResourceTypeLinear)
    capstone_emu::undefined_behaviour(file, line, "%s of linear memory: only tex1Dfetch() reads it",
                                      function);
  if (o.dimensions != dimensions || (o.layers > 0) != layered)
    capstone_emu::undefined_behaviour(file, line, "%s of an object of %d dimensions%s", function,
                                      o.dimensions, o.layers ? " in layers" : "");
  if (layered && (layer < 0 || layer >= o.layers))
    capstone_emu::undefined_behaviour(file, line, "%s: there is no layer %ld", function, layer);
}

struct ArrayPart {
  char* begin;
  std::size_t pitch;
};
/// Rows of an array from a place on; null when they are not all in it. @param x, width  in bytes
ArrayPart part_of(cudaArray_const_t handle, std::size_t x, std::size_t y, std::size_t width,
                  std::size_t height) {
  const Array* const array = array_of(handle);
  const std::size_t pitch = array ? array->extent.width * bytes_of(array->channel) : 0;
  if (!array || x + width > pitch || y + height > std::max<std::size_t>(array->extent.height, 1))
    return {nullptr, 0};
  return {array->memory + y * pitch + x, pitch};
}

/// Bytes that go on from row to row, as the functions without 2D in their name copy them.
cudaError_t copy_flat(cudaArray_const_t handle, std::size_t x, std::size_t y, void* other, std::size_t bytes,
                      bool to_array, cudaMemcpyKind kind) {
  const Array* const array = array_of(handle);
  if (!array) return remember(cudaErrorInvalidValue);
  const std::size_t pitch = array->extent.width * bytes_of(array->channel), first = y * pitch + x;
  if (first + bytes > pitch * std::max<std::size_t>(array->extent.height, 1))
    return remember(cudaErrorInvalidValue);
  char* const memory = array->memory + first;
  return to_array ? cudaMemcpy(memory, other, bytes, kind) : cudaMemcpy(other, memory, bytes, kind);
}

}  // namespace

namespace capstone_emu {

cudaPitchedPtr memory_of(cudaArray_const_t handle, unsigned& element) {
  const Array& array = *array_of(handle);
  element = bytes_of(array.channel);
  return {array.memory, array.extent.width * element, array.extent.width,
          std::max<std::size_t>(array.extent.height, 1)};
}

Texel fetch_texture(cudaTextureObject_t texture, int index, const char* file, int line) {
  const Object& o = live_object(texture, "tex1Dfetch", file, line);
  if (o.resource.resType != cudaResourceTypeLinear)
    undefined_behaviour(file, line,
                        "tex1Dfetch of a CUDA array or of pitched memory: it reads linear memory");
  if (index < 0 || index >= o.extent[0]) {
    Texel zero{};
    zero.is_float = gives_floats(o);
    return zero;
  }
  return element_at(o, o.memory + static_cast<std::size_t>(index) * o.element);
}

Texel read_texture(cudaTextureObject_t texture, const TextureRequest& request, const char* file, int line) {
  const Object& o = live_object(texture, request.function, file, line);
  check_dimensions(o, request.function, request.dimensions, request.layered, 0, file, line);
  const long layer = request.layered ? std::clamp(static_cast<long>(request.layer), 0L, o.layers - 1) : 0;
  const float coordinate[3] = {request.x, request.y, request.z};
  long first[3] = {0, 0, 0};
  float weight[3] = {0, 0, 0};
  const bool linear = o.sampling.filterMode == cudaFilterModeLinear;
  for (int axis = 0; axis < o.dimensions; ++axis) {
    const float x = in_elements(o, axis, coordinate[axis]);
    first[axis] = linear ? filtered_from(x, weight[axis]) : static_cast<long>(std::floor(x));
  }
  if (!linear) return element_of(o, first, layer);
  Texel sum{};
  sum.is_float = true;
  for (int corner = 0; corner < 1 << o.dimensions; ++corner) {
    long index[3] = {first[0], first[1], first[2]};
    float share = 1;
    for (int axis = 0; axis < o.dimensions; ++axis) {
      const bool behind = corner >> axis & 1;
      index[axis] += behind;
      share *= behind ? weight[axis] : 1 - weight[axis];
    }
    if (share == 0) continue;
    const Texel texel = element_of(o, index, layer);
    for (int i = 0; i < 4; ++i) sum.component[i].f += share * texel.component[i].f;
  }
  return sum;
}

Texel gather_texture(cudaTextureObject_t texture, float x, float y, int which, const char* file, int line) {
  const Object& o = live_object(texture, "tex2Dgather", file, line);
  check_dimensions(o, "tex2Dgather", 2, false, 0, file, line);
  if (which < 0 || which > 3) undefined_behaviour(file, line, "tex2Dgather: there is no component %d", which);
  float unused;
  const long column = filtered_from(in_elements(o, 0, x), unused),
             row = filtered_from(in_elements(o, 1, y), unused);
  // Counter-clockwise from the lower left one, where "lower" is the larger y.
  const long offsets[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  Texel result{};
  for (int i = 0; i < 4; ++i) {
    const Texel texel = element_of(o, {column + offsets[i][0], row + offsets[i][1], 0}, 0);
    result.component[i] = texel.component[which];
    result.is_float = texel.is_float;
  }
  return result;
}

char* surface_memory(cudaSurfaceObject_t surface, const char* function, int dimensions, bool layered, int x,
                     int y, int z, unsigned bytes, cudaSurfaceBoundaryMode mode, const char* file, int line) {
  const Object& o = live_object(surface, function, file, line);
  check_dimensions(o, function, dimensions, layered, layered ? z : 0, file, line);
  if (bytes != o.element)
    undefined_behaviour(file, line, "%s of %u bytes, but the surface has elements of %u bytes", function,
                        bytes, o.element);
  if (x % static_cast<int>(bytes))
    undefined_behaviour(file, line, "%s: x = %d is not a multiple of %u: it counts bytes, x * sizeof(type)",
                        function, x, bytes);
  long at[3] = {x / static_cast<int>(bytes), y, layered ? 0 : z};
  for (int axis = 0; axis < dimensions; ++axis) {
    if (at[axis] >= 0 && at[axis] < o.extent[axis]) continue;
    if (mode == cudaBoundaryModeTrap)
      undefined_behaviour(file, line, "%s: %c = %ld is outside of the surface%s", function, "xyz"[axis],
                          axis ? at[axis] : x, axis ? "" : " (x counts bytes)");
    if (mode == cudaBoundaryModeZero) return nullptr;
    at[axis] = at[axis] < 0 ? 0 : o.extent[axis] - 1;
  }
  const long plane = layered ? z : at[2], row = plane * std::max(o.extent[1], 1L) + at[1];
  return o.memory + static_cast<std::size_t>(row) * o.pitch + static_cast<std::size_t>(at[0]) * o.element;
}

void wrong_texel_type(bool wants_float, const char* file, int line) {
  undefined_behaviour(file, line,
                      wants_float
                          ? "a float is read from a texture of integers: give it cudaReadModeNormalizedFloat"
                          : "an integer is read from a texture that gives floats");
}

}  // namespace capstone_emu

extern "C" {

// ---- arrays -----------------------------------------------------------------------------------------------
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channel, size_t width,
                            size_t height, unsigned flags) {
  return allocate_array(array, channel, {width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channel, cudaExtent extent,
                              unsigned flags) {
  return allocate_array(array, channel, extent, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  if (!array) return cudaSuccess;
  const cudaError_t error = cudaFree(array_of(array)->memory);
  delete array_of(array);
  return error;
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* channel, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
  if (!array) return remember(cudaErrorInvalidValue);
  if (channel) *channel = array_of(array)->channel;
  if (extent) *extent = array_of(array)->extent;
  if (flags) *flags = array_of(array)->flags;
  return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* channel, cudaArray_const_t array) {
  return cudaArrayGetInfo(channel, nullptr, nullptr, const_cast<cudaArray_t>(array));
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  const ArrayPart part = part_of(to, x, y, width, height);
  if (!part.begin) return remember(cudaErrorInvalidValue);
  return cudaMemcpy2D(part.begin, part.pitch, from, pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                  size_t width, size_t height, cudaMemcpyKind kind) {
  const ArrayPart part = part_of(from, x, y, width, height);
  if (!part.begin) return remember(cudaErrorInvalidValue);
  return cudaMemcpy2D(to, pitch, part.begin, part.pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                     size_t from_x, size_t from_y, size_t width, size_t height,
                                     cudaMemcpyKind kind) {
  const ArrayPart part = part_of(to, to_x, to_y, width, height);
  if (!part.begin) return remember(cudaErrorInvalidValue);
  return cudaMemcpy2DFromArray(part.begin, part.pitch, from, from_x, from_y, width, height, kind);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  const ArrayPart part = part_of(to, x, y, width, height);
  if (!part.begin) return remember(cudaErrorInvalidValue);
  return cudaMemcpy2DAsync(part.begin, part.pitch, from, pitch, width, height, kind, stream);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                       size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  const ArrayPart part = part_of(from, x, y, width, height);
  if (!part.begin) return remember(cudaErrorInvalidValue);
  return cudaMemcpy2DAsync(to, pitch, part.begin, part.pitch, width, height, kind, stream);
}
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                              cudaMemcpyKind kind) {
  return copy_flat(to, x, y, const_cast<void*>(from), bytes, true, kind);
}
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind) {
  return copy_flat(from, x, y, to, bytes, false, kind);
}

// ---- textures and surfaces --------------------------------------------------------------------------------
cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* sampling, const cudaResourceViewDesc* view) {
  if (!texture || !resource || !sampling) return remember(cudaErrorInvalidValue);
  if (view) return remember(cudaErrorNotSupported);
  Object object;
  object.sampling = *sampling;
  if (const cudaError_t error = describe(object, *resource)) return remember(error);
  const bool linear = resource->resType == cudaResourceTypeLinear;
  if (sampling->filterMode == cudaFilterModeLinear && (linear || !gives_floats(object)))
    return remember(linear ? cudaErrorInvalidValue : cudaErrorInvalidFilterSetting);
  if (linear && sampling->normalizedCoords) return remember(cudaErrorInvalidValue);
  *texture = reinterpret_cast<cudaTextureObject_t>(new Object(object));
  return cudaSuccess;
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  capstone_emu::finish_streams();
  if (texture) object_of(texture)->state = 0;
  return cudaSuccess;
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t texture) {
  *resource = object_of(texture)->resource;
  return cudaSuccess;
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* sampling, cudaTextureObject_t texture) {
  *sampling = object_of(texture)->sampling;
  return cudaSuccess;
}
/// Of an array that was made with cudaArraySurfaceLoadStore.
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource) {
  if (!surface || !resource || resource->resType != cudaResourceTypeArray || !resource->res.array.array ||
      !(array_of(resource->res.array.array)->flags & cudaArraySurfaceLoadStore))
    return remember(cudaErrorInvalidValue);
  Object object;
  if (const cudaError_t error = describe(object, *resource)) return remember(error);
  *surface = reinterpret_cast<cudaSurfaceObject_t>(new Object(object));
  return cudaSuccess;
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
  return cudaDestroyTextureObject(surface);
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t surface) {
  return cudaGetTextureObjectResourceDesc(resource, surface);
}

}  // extern "C"
