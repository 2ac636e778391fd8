// Rung 3: spill: more chains than registers.
//
// Changed     compared with the sound kernel (rung 8), a thread takes 16 columns at once instead of one after
//             the other.
// Why         sixteen independent chains hide the latency of a step, on paper. Values and step counts are
//             more than the 32 registers that eight blocks on an SM leave to a thread; the compiler keeps the
//             rest in local memory, and every step goes there.
// Prediction  requests to local memory: hundreds per warp instead of none. No other counter moves.
//
// Shapes      x, y [rows, cols], row-major, fp32; steps [cols]; drive [16].
// Launch      blocks of 32 x 8 threads; a tile of 32 x 128 a block.
// Resources   32 registers, and what the compiler spills; 17 KB of shared memory.
// Cost        2 FLOPs per step; 8 rows cols bytes.
// Divides     no divisibility is required: what lies outside is neither read nor written.
// Source      this project.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 32, kHeight = 8, kPushes = 16;
constexpr int kChains = 16, kWidth = kHeight * kChains;  // columns of a warp, of a block

__global__ void __launch_bounds__(kTile* kHeight, 8)
    advance(const float* __restrict__ x, const int32_t* __restrict__ steps, const float* __restrict__ drive, float* __restrict__ y, float damping,
            int64_t rows, int64_t cols) {
  __shared__ float tile[kTile][kWidth + 1];  // padded: columns are read, too
  __shared__ float push[kPushes];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile, column0 = static_cast<int64_t>(blockIdx.x) * kWidth;
  const int lane = threadIdx.x;
  if (threadIdx.y == 0 && lane < kPushes) push[lane] = drive[lane];
  for (int i = threadIdx.y; i < kTile; i += kHeight)
    for (int j = lane; j < kWidth; j += kTile)
      tile[i][j] = row0 + i < rows && column0 + j < cols ? x[(row0 + i) * cols + column0 + j] : 0.0f;
  __syncthreads();  // the tile is complete
  const int first = threadIdx.y * kChains;
  float v[kChains];
  int32_t left[kChains], most = 0;
#pragma unroll
  for (int j = 0; j < kChains; ++j) {
    v[j] = tile[lane][first + j];
    left[j] = column0 + first + j < cols ? steps[column0 + first + j] : 0;
    most = max(most, left[j]);
  }
  for (int32_t s = 0; s < most; ++s) {
    const float pushed = push[s % kPushes];
#pragma unroll
    for (int j = 0; j < kChains; ++j) v[j] = s < left[j] ? damping * v[j] + pushed : v[j];
  }
#pragma unroll
  for (int j = 0; j < kChains; ++j) tile[lane][first + j] = v[j];
  __syncthreads();  // all have arrived
  for (int i = threadIdx.y; i < kTile; i += kHeight)
    for (int j = lane; j < kWidth; j += kTile)
      if (row0 + i < rows && column0 + j < cols) y[(row0 + i) * cols + column0 + j] = tile[i][j];
}

extern "C" void launch(const float* x /*[rows,cols]*/, const int32_t* steps /*[cols]*/, const float* drive /*[16]*/, float* y /*[rows,cols]*/,
                       float damping, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((cols + kWidth - 1) / kWidth), static_cast<unsigned>((rows + kTile - 1) / kTile));
  advance<<<grid, dim3(kTile, kHeight), 0, stream>>>(x, steps, drive, y, damping, rows, cols);
}
