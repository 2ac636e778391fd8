// Rung 2: the tile is turned in shared memory.
//
// Changed     a block reads a 32 x 32 tile row by row into shared memory, waits, and writes it column by
//             column: now a warp reads and writes 128 neighbouring bytes each time. A thread moves four
//             elements.
// Why         rung 1's writes use 4 bytes of each 32-byte sector. The price: a column of the tile lies in one
//             bank, so that each of its reads takes 32 wavefronts.
// Prediction  the bytes of a copy; bank conflicts are the next limit: 2x rung 1, 50 to 70 % of a copy.
//
// Shapes      x [rows, cols], y [cols, rows], row-major; rows up to 2^21.
// Launch      blocks of 32 x 8 threads; a tile of 32 x 32 a block, over (cols, rows).
// Resources   about 24 registers; 4 KB of shared memory.
// Cost        no FLOPs; 8 rows cols bytes.
// Divides     no divisibility is required: elements outside are neither read nor written.
// Source      G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA, 2009.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 32, kHeight = 8;

__global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t cols) {
  __shared__ float tile[kTile][kTile];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile, column0 = static_cast<int64_t>(blockIdx.x) * kTile;
  const int lane = threadIdx.x;

  for (int i = threadIdx.y; i < kTile; i += kHeight)
    if (row0 + i < rows && column0 + lane < cols) tile[i][lane] = x[(row0 + i) * cols + column0 + lane];
  __syncthreads();
  for (int i = threadIdx.y; i < kTile; i += kHeight)
    if (column0 + i < cols && row0 + lane < rows) y[(column0 + i) * rows + row0 + lane] = tile[lane][i];
}

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[cols,rows]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((cols + kTile - 1) / kTile), static_cast<unsigned>((rows + kTile - 1) / kTile));
  transpose<<<grid, dim3(kTile, kHeight), 0, stream>>>(x, y, rows, cols);
}
