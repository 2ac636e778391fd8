// Rung 2: bank conflict: the tile without its padding.
//
// Changed     compared with the sound kernel (rung 8), the tile has 32 columns instead of 33. One character.
// Why         with 32 words a row, all elements of a column lie in one bank, and a warp that reads a column
//             waits 32 times.
// Prediction  wavefronts over ideal: 32 for the tile's columns, 6 over all of shared memory, instead of 1. No
//             other counter moves.
//
// Shapes      x, y [rows, cols], row-major, fp32; steps [cols]; drive [16].
// Launch      blocks of 32 x 8 threads; a tile of 32 x 32 a block.
// Resources   at most 32 registers; 4.2 KB of shared memory.
// Cost        2 FLOPs per step; 8 rows cols bytes.
// Divides     no divisibility is required: what lies outside is neither read nor written.
// Source      this project.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 32, kHeight = 8, kPushes = 16;

__global__ void __launch_bounds__(kTile* kHeight, 8)
    advance(const float* __restrict__ x, const int32_t* __restrict__ steps, const float* __restrict__ drive, float* __restrict__ y, float damping,
            int64_t rows, int64_t cols) {
  __shared__ float tile[kTile][kTile];
  __shared__ float push[kPushes];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile, column0 = static_cast<int64_t>(blockIdx.x) * kTile;
  const int lane = threadIdx.x;
  if (threadIdx.y == 0 && lane < kPushes) push[lane] = drive[lane];
  for (int i = threadIdx.y; i < kTile; i += kHeight)
    tile[i][lane] = row0 + i < rows && column0 + lane < cols ? x[(row0 + i) * cols + column0 + lane] : 0.0f;
  __syncthreads();  // the tile is complete
  for (int c = threadIdx.y; c < kTile && column0 + c < cols; c += kHeight) {
    const int32_t n = steps[column0 + c];  // the same for all lanes, which are rows
    float v = tile[lane][c];
    for (int32_t s = 0; s < n; ++s) v = damping * v + push[s % kPushes];
    tile[lane][c] = v;
  }
  __syncthreads();  // all have arrived
  for (int i = threadIdx.y; i < kTile; i += kHeight)
    if (row0 + i < rows && column0 + lane < cols) y[(row0 + i) * cols + column0 + lane] = tile[i][lane];
}

extern "C" void launch(const float* x /*[rows,cols]*/, const int32_t* steps /*[cols]*/, const float* drive /*[16]*/, float* y /*[rows,cols]*/,
                       float damping, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((cols + kTile - 1) / kTile), static_cast<unsigned>((rows + kTile - 1) / kTile));
  advance<<<grid, dim3(kTile, kHeight), 0, stream>>>(x, steps, drive, y, damping, rows, cols);
}
