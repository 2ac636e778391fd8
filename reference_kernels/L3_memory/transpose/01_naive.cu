// Rung 1: one thread, one element.
//
// Changed     nothing yet: each thread moves one element; a warp reads a piece of a row and writes a piece of
//             a column.
// Why         the beginning of the ladder. Reads are coalesced; the 32 writes of a warp fall into 32
//             different lines.
// Prediction  a sector of 32 bytes for each 4 that are written, for which the L2 cache compensates in part:
//             20 to 35 % of a copy.
//
// Shapes      x [rows, cols], y [cols, rows], row-major; rows up to 2^19.
// Launch      blocks of 32 x 8 threads over (cols, rows).
// Resources   about 16 registers, no shared memory.
// Cost        no FLOPs; 8 rows cols bytes.
// Divides     no divisibility is required: threads outside leave.
// Source      the formula.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWidth = 32, kHeight = 8;

__global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t cols) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWidth + threadIdx.x;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kHeight + threadIdx.y;
  if (row < rows && column < cols) y[column * rows + row] = x[row * cols + column];
}

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[cols,rows]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((cols + kWidth - 1) / kWidth), static_cast<unsigned>((rows + kHeight - 1) / kHeight));
  transpose<<<grid, dim3(kWidth, kHeight), 0, stream>>>(x, y, rows, cols);
}
