#pragma once
#pragma GCC system_header
// Texture and surface functions. cudaCreateTextureObject() and what an element is: runtime/cuda_textures.cpp.
#include "atomics.h"

namespace capstone_emu {

/// One element as registers hold it: four components of 32 bits; those that the texture lacks are zero.
struct Texel {
  union {
    float f;
    std::int32_t i;
  } component[4];
  bool is_float;
};
/// What a function of a kernel asks for. Coordinates are those of the call; `dimensions` counts no layer.
struct TextureRequest {
  const char* function;
  int dimensions;
  bool layered = false;
  float x, y = 0, z = 0;
  int layer = 0;
};
Texel read_texture(cudaTextureObject_t texture, const TextureRequest& request, const char* file, int line);
/// tex1Dfetch(): element `index` of linear memory.
Texel fetch_texture(cudaTextureObject_t texture, int index, const char* file, int line);
/// tex2Dgather(): component `which` of the four elements that a linear filter would mix.
Texel gather_texture(cudaTextureObject_t texture, float x, float y, int which, const char* file, int line);
/// Where `bytes` bytes of the surface lie; null where a read gives zeros and a write does nothing. Trapping
/// ends the kernel. @param x  in bytes
char* surface_memory(cudaSurfaceObject_t surface, const char* function, int dimensions, bool layered, int x,
                     int y, int z, unsigned bytes, cudaSurfaceBoundaryMode mode, const char* file, int line);
[[noreturn]] void wrong_texel_type(bool wants_float, const char* file, int line);

template <class T>
struct TexelType;
#define CAPSTONE_TEXEL(type, part, count) \
  template <>                             \
  struct TexelType<type> {                \
    using Part = part;                    \
    static constexpr int kParts = count;  \
  };
#define CAPSTONE_TEXELS(part, vector) \
  CAPSTONE_TEXEL(part, part, 1)       \
  CAPSTONE_TEXEL(vector##1, part, 1)  \
  CAPSTONE_TEXEL(vector##2, part, 2)  \
  CAPSTONE_TEXEL(vector##4, part, 4)
CAPSTONE_TEXEL(char, char, 1)
CAPSTONE_TEXELS(signed char, char)
CAPSTONE_TEXELS(unsigned char, uchar)
CAPSTONE_TEXELS(short, short)
CAPSTONE_TEXELS(unsigned short, ushort)
CAPSTONE_TEXELS(int, int)
CAPSTONE_TEXELS(unsigned, uint)
CAPSTONE_TEXELS(float, float)
#undef CAPSTONE_TEXELS
#undef CAPSTONE_TEXEL

template <class T>
inline T texel_as(const Texel& texel, const char* file, int line) {
  using Part = typename TexelType<T>::Part;
  constexpr bool kWantsFloat = std::is_same_v<Part, float>;
  if (texel.is_float != kWantsFloat) wrong_texel_type(kWantsFloat, file, line);
  Part parts[TexelType<T>::kParts];
  for (int i = 0; i < TexelType<T>::kParts; ++i)
    if constexpr (kWantsFloat)
      parts[i] = texel.component[i].f;
    else
      parts[i] = static_cast<Part>(texel.component[i].i);
  T result;
  __builtin_memcpy(&result, parts, sizeof result);
  return result;
}

template <class T>
inline T read_surface(const char* memory) {
  T value{};
  if (memory) __builtin_memcpy(&value, memory, sizeof value);
  return value;
}
template <class T>
inline void write_surface(char* memory, const T& value) {
  if (memory) __builtin_memcpy(memory, &value, sizeof value);
}

}  // namespace capstone_emu

// Each function also exists with a pointer to its result in front.
#define CAPSTONE_TEXTURE_FUNCTION(name, parameters, arguments, read)                                        \
  template <class T>                                                                                        \
  inline T name(cudaTextureObject_t texture, CAPSTONE_PARAMETERS parameters, CAPSTONE_SITE) {               \
    return capstone_emu::texel_as<T>(capstone_emu::read, file, line);                                       \
  }                                                                                                         \
  template <class T>                                                                                        \
  inline void name(T* result, cudaTextureObject_t texture, CAPSTONE_PARAMETERS parameters, CAPSTONE_SITE) { \
    *result = name<T>(texture, CAPSTONE_PARAMETERS arguments, file, line);                                  \
  }
#define CAPSTONE_PARAMETERS(...) __VA_ARGS__
CAPSTONE_TEXTURE_FUNCTION(tex1Dfetch, (int x), (x), fetch_texture(texture, x, file, line))
CAPSTONE_TEXTURE_FUNCTION(tex1D, (float x), (x), read_texture(texture, {"tex1D", 1, false, x}, file, line))
CAPSTONE_TEXTURE_FUNCTION(tex2D, (float x, float y), (x, y),
                          read_texture(texture, {"tex2D", 2, false, x, y}, file, line))
CAPSTONE_TEXTURE_FUNCTION(tex3D, (float x, float y, float z), (x, y, z),
                          read_texture(texture, {"tex3D", 3, false, x, y, z}, file, line))
CAPSTONE_TEXTURE_FUNCTION(tex1DLayered, (float x, int layer), (x, layer),
                          read_texture(texture, {"tex1DLayered", 1, true, x, 0, 0, layer}, file, line))
CAPSTONE_TEXTURE_FUNCTION(tex2DLayered, (float x, float y, int layer), (x, y, layer),
                          read_texture(texture, {"tex2DLayered", 2, true, x, y, 0, layer}, file, line))
// There are no mipmaps: every level of detail is the first.
CAPSTONE_TEXTURE_FUNCTION(tex1DLod, (float x, float level), (x, level),
                          read_texture(texture, {"tex1DLod", 1, false, x}, file, line))
CAPSTONE_TEXTURE_FUNCTION(tex2DLod, (float x, float y, float level), (x, y, level),
                          read_texture(texture, {"tex2DLod", 2, false, x, y}, file, line))
CAPSTONE_TEXTURE_FUNCTION(tex3DLod, (float x, float y, float z, float level), (x, y, z, level),
                          read_texture(texture, {"tex3DLod", 3, false, x, y, z}, file, line))
#undef CAPSTONE_PARAMETERS
#undef CAPSTONE_TEXTURE_FUNCTION
template <class T>
inline T tex2Dgather(cudaTextureObject_t texture, float x, float y, int which = 0, CAPSTONE_SITE) {
  return capstone_emu::texel_as<T>(capstone_emu::gather_texture(texture, x, y, which, file, line), file,
                                   line);
}

#define CAPSTONE_SURFACE_FUNCTIONS(name, parameters, arguments, dimensions, layered, y, z)                   \
  template <class T>                                                                                         \
  inline T name##read(cudaSurfaceObject_t surface, CAPSTONE_PARAMETERS parameters,                           \
                      cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, CAPSTONE_SITE) {                  \
    return capstone_emu::read_surface<T>(capstone_emu::surface_memory(                                       \
        surface, #name "read", dimensions, layered, x, y, z, sizeof(T), mode, file, line));                  \
  }                                                                                                          \
  template <class T>                                                                                         \
  inline void name##read(T* result, cudaSurfaceObject_t surface, CAPSTONE_PARAMETERS parameters,             \
                         cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, CAPSTONE_SITE) {               \
    *result = name##read<T>(surface, CAPSTONE_PARAMETERS arguments, mode, file, line);                       \
  }                                                                                                          \
  template <class T>                                                                                         \
  inline void name##write(T value, cudaSurfaceObject_t surface, CAPSTONE_PARAMETERS parameters,              \
                          cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, CAPSTONE_SITE) {              \
    capstone_emu::write_surface(capstone_emu::surface_memory(surface, #name "write", dimensions, layered, x, \
                                                             y, z, sizeof(T), mode, file, line),             \
                                value);                                                                      \
  }
#define CAPSTONE_PARAMETERS(...) __VA_ARGS__
CAPSTONE_SURFACE_FUNCTIONS(surf1D, (int x), (x), 1, false, 0, 0)
CAPSTONE_SURFACE_FUNCTIONS(surf2D, (int x, int y), (x, y), 2, false, y, 0)
CAPSTONE_SURFACE_FUNCTIONS(surf3D, (int x, int y, int z), (x, y, z), 3, false, y, z)
CAPSTONE_SURFACE_FUNCTIONS(surf1DLayered, (int x, int layer), (x, layer), 1, true, 0, layer)
CAPSTONE_SURFACE_FUNCTIONS(surf2DLayered, (int x, int y, int layer), (x, y, layer), 2, true, y, layer)
#undef CAPSTONE_PARAMETERS
#undef CAPSTONE_SURFACE_FUNCTIONS
