// Rung 1: uncoalesced: lanes a row apart.
//
// Changed     compared with the sound kernel (rung 8), no tile; each lane goes to its own row in global
//             memory.
// Why         the lanes are rows, so that all make the same number of steps; their addresses then lie a whole
//             row apart.
// Prediction  sectors per request: 32 for x and y instead of 4; over all requests 3 becomes 22. No other
//             counter moves.
//
// Shapes      x, y [rows, cols], row-major, fp32; steps [cols]; drive [16].
// Launch      blocks of 32 x 8 threads; 32 x 32 elements a block.
// Resources   at most 32 registers; 64 bytes of shared memory.
// Cost        2 FLOPs per step; 8 rows cols bytes.
// Divides     no divisibility is required: what lies outside is neither read nor written.
// Source      this project.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 32, kHeight = 8, kPushes = 16;

__global__ void __launch_bounds__(kTile* kHeight, 8)
    advance(const float* __restrict__ x, const int32_t* __restrict__ steps, const float* __restrict__ drive, float* __restrict__ y, float damping,
            int64_t rows, int64_t cols) {
  __shared__ float push[kPushes];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile, column0 = static_cast<int64_t>(blockIdx.x) * kTile;
  const int lane = threadIdx.x;
  if (threadIdx.y == 0 && lane < kPushes) push[lane] = drive[lane];
  __syncthreads();
  for (int c = threadIdx.y; c < kTile && column0 + c < cols; c += kHeight) {
    const int32_t n = steps[column0 + c];
    if (row0 + lane >= rows) continue;
    float v = x[(row0 + lane) * cols + column0 + c];
    for (int32_t s = 0; s < n; ++s) v = damping * v + push[s % kPushes];
    y[(row0 + lane) * cols + column0 + c] = v;
  }
}

extern "C" void launch(const float* x /*[rows,cols]*/, const int32_t* steps /*[cols]*/, const float* drive /*[16]*/, float* y /*[rows,cols]*/,
                       float damping, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((cols + kTile - 1) / kTile), static_cast<unsigned>((rows + kTile - 1) / kTile));
  advance<<<grid, dim3(kTile, kHeight), 0, stream>>>(x, steps, drive, y, damping, rows, cols);
}
