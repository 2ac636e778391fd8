#pragma once
#pragma GCC system_header
// What the stand-ins for NVIDIA's libraries share. Each call is a launch: it waits in its stream, is captured
// into graphs, and has its pointers and accesses checked like a kernel.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "execution.h"

namespace capstone_emu::library {

/// Runs `body(block)` for each block. @param pointers  of device memory, to be checked
/// @return whether the call was accepted, and no kernel has failed
template <class Body, class... Pointers>
inline bool run(const char* name, cudaStream_t stream, dim3 blocks, Body body, Pointers... pointers) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return true;
  launch(
      config(name, "a library", 0, blocks, dim3(1), 0, stream),
      [body](auto&...) mutable { body(dim3(blockIdx.x, blockIdx.y, blockIdx.z)); }, pointers...);
  return last_error() == cudaSuccess;
}

/// For a result that the host waits for: memory that both sides may use.
template <class T>
class Shared {
 public:
  Shared() { ::cudaMallocManaged(reinterpret_cast<void**>(&memory_), sizeof(T), cudaMemAttachGlobal); }
  ~Shared() { ::cudaFree(memory_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* get() const { return memory_; }
  T awaited() const {
    finish_streams();
    return *memory_;
  }

 private:
  T* memory_ = nullptr;
};

inline constexpr std::size_t kChunk = 4096;  // elements that one block works on
inline unsigned chunks(std::size_t n) { return static_cast<unsigned>((n + kChunk - 1) / kChunk); }

/// Element `i` of memory whose type is known when the program runs.
template <class T>
inline T loaded(const void* from, cudaDataType type, std::size_t i) {
  switch (type) {
    case CUDA_R_32F:
      return static_cast<T>(static_cast<const float*>(from)[i]);
    case CUDA_R_64F:
      return static_cast<T>(static_cast<const double*>(from)[i]);
    case CUDA_R_16F:
      return static_cast<T>(__half2float(static_cast<const __half*>(from)[i]));
    case CUDA_R_16BF:
      return static_cast<T>(__bfloat162float(static_cast<const __nv_bfloat16*>(from)[i]));
    case CUDA_R_32I:
      return static_cast<T>(static_cast<const std::int32_t*>(from)[i]);
    default:  // is_known() has seen to it
      return static_cast<T>(static_cast<const std::int8_t*>(from)[i]);
  }
}
template <class T>
inline void store(void* to, cudaDataType type, std::size_t i, T value) {
  switch (type) {
    case CUDA_R_32F:
      static_cast<float*>(to)[i] = static_cast<float>(value);
      break;
    case CUDA_R_64F:
      static_cast<double*>(to)[i] = static_cast<double>(value);
      break;
    case CUDA_R_16F:
      static_cast<__half*>(to)[i] = __float2half(static_cast<float>(value));
      break;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16(static_cast<float>(value));
      break;
    case CUDA_R_32I:
      static_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(value);
      break;
    default:
      static_cast<std::int8_t*>(to)[i] = static_cast<std::int8_t>(value);
  }
}
inline bool is_known(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF ||
         type == CUDA_R_32I || type == CUDA_R_8I;
}

}  // namespace capstone_emu::library
