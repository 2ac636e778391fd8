// Rung 6: tail wave: one block too many.
//
// Changed     compared with the sound kernel (rung 8), one block more than the GPU holds at once, each with
//             an equal share of the tiles.
// Why         all blocks but one run at once; then one runs alone, while every other SM has nothing to do.
//             With many small blocks the last round is short.
// Prediction  waves: 1.001, of which the last is empty but for one block: 50 % of the room instead of 3 %. No
//             other counter moves.
//
// Shapes      x, y [rows, cols], row-major, fp32; steps [cols]; drive [16].
// Launch      blocks of 32 x 8 threads, one more than fit at once; a share of the tiles of 32 x 32 a block.
// Resources   at most 32 registers; 4.3 KB of shared memory.
// Cost        2 FLOPs per step; 8 rows cols bytes.
// Divides     no divisibility is required: what lies outside is neither read nor written.
// Source      this project.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 32, kHeight = 8, kPushes = 16;

__global__ void __launch_bounds__(kTile* kHeight, 8)
    advance(const float* __restrict__ x, const int32_t* __restrict__ steps, const float* __restrict__ drive, float* __restrict__ y, float damping,
            int64_t rows, int64_t cols) {
  __shared__ float tile[kTile][kTile + 1];  // padded: columns are read, too
  __shared__ float push[kPushes];
  const int64_t across = (cols + kTile - 1) / kTile, tiles = across * ((rows + kTile - 1) / kTile);
  const int64_t begin = tiles * blockIdx.x / gridDim.x, end = tiles * (blockIdx.x + 1) / gridDim.x;
  const int lane = threadIdx.x;
  if (threadIdx.y == 0 && lane < kPushes) push[lane] = drive[lane];
  for (int64_t t = begin; t < end; ++t) {
    const int64_t row0 = t / across * kTile, column0 = t % across * kTile;
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
    __syncthreads();  // nobody needs the tile any more
  }
}

extern "C" void launch(const float* x /*[rows,cols]*/, const int32_t* steps /*[cols]*/, const float* drive /*[16]*/, float* y /*[rows,cols]*/,
                       float damping, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  int processors = 0, resident = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, advance, kTile * kHeight, 0);
  const unsigned grid = static_cast<unsigned>(processors * resident + 1);
  advance<<<grid, dim3(kTile, kHeight), 0, stream>>>(x, steps, drive, y, damping, rows, cols);
}
