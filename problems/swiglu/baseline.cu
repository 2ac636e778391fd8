// Native baseline: one kernel, as serving libraries have it.
//
// A thread loads eight gates and the eight numbers that they let through, 16 bytes each, and stores eight
// results. Each byte moves once, so a good kernel ties.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256;
constexpr int kVectors = 1;           // of a thread
constexpr int64_t kMostRows = 65535;  // of a grid's second axis

/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ float gated(float gate, float up) { return gate / (1 + expf(-gate)) * up; }
__device__ unsigned gated(unsigned gate, unsigned up) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(gated(low(gate), low(up)), gated(high(gate), high(up)));
  return reinterpret_cast<const unsigned&>(both);
}

__global__ void __launch_bounds__(kThreads)
    swiglu(const uint4* __restrict__ x, uint4* __restrict__ y, int64_t rows, int vectors) {
  const int first = static_cast<int>(blockIdx.x) * kThreads * kVectors + static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const uint4* const gates = x + row * 2 * vectors;
    uint4 gate[kVectors], up[kVectors];
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (const int i = first + k * kThreads; i < vectors) {
        gate[k] = gates[i];
        up[k] = gates[vectors + i];
      }
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (const int i = first + k * kThreads; i < vectors)
        __stcs(y + row * vectors + i, make_uint4(gated(gate[k].x, up[k].x), gated(gate[k].y, up[k].y),
                                                 gated(gate[k].z, up[k].z), gated(gate[k].w, up[k].w)));
  }
}

/// Any cols: one result a thread, as in rung 1.
__global__ void swiglu_ragged(const __nv_bfloat16* x, __nv_bfloat16* y, int64_t rows, int64_t cols) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= cols) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const float gate = __bfloat162float(x[row * 2 * cols + column]);
    const float up = __bfloat162float(x[row * 2 * cols + cols + column]);
    y[row * cols + column] = __float2bfloat16(gate / (1 + expf(-gate)) * up);
  }
}

}  // namespace

extern "C" const char* baseline_label() { return "native: 1 kernel, 16-byte accesses, bf16"; }

extern "C" void launch(const __nv_bfloat16* x /*[rows,2 * cols]*/, __nv_bfloat16* y /*[rows,cols]*/,
                       int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  const unsigned across = static_cast<unsigned>(std::min(rows, kMostRows));
  if (cols % 8 != 0) {
    swiglu_ragged<<<dim3(static_cast<unsigned>((cols + kThreads - 1) / kThreads), across), kThreads, 0,
                    stream>>>(x, y, rows, cols);
    return;
  }
  constexpr int64_t kTile = 8 * kThreads * kVectors;  // columns of a block
  swiglu<<<dim3(static_cast<unsigned>((cols + kTile - 1) / kTile), across), kThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(x), reinterpret_cast<uint4*>(y), rows, static_cast<int>(cols / 8));
}
