// Rung 5: four by four elements a thread, 16 bytes an access on all four ways.
//
// Changed     a thread loads a 4 x 4 square as four float4, turns it in registers, and stores it to shared
//             memory as four float4; what it writes to y are float4, too. The tile is 64 x 64. Tiles are
//             taken in bands of 16 tile rows, column by column within a band, so that the blocks that run
//             together read and write neighbouring memory.
// Why         rung 4 has 16 bytes in flight per thread, here it is 64; and 256 bytes of a row at a time
//             instead of 128. Where a row is 128 KB long, tiles in plain order write to every page of the
//             matrix at once.
// Prediction  a fourth of the instructions, four times the bytes in flight: 1.1x to 1.2x rung 4; 90 % of a
//             copy or more.
//
// Shapes      x [rows, cols], y [cols, rows], row-major; any sizes below 2^31 tiles.
// Launch      blocks of 256 threads; a tile of 64 x 64 a block, bands as above in one dimension.
// Resources   about 40 registers; 16 KB of shared memory.
// Cost        no FLOPs; 8 rows cols bytes.
// Divides     rows % 4 == 0 and cols % 4 == 0 for 16-byte accesses; any other shape runs rung 4's kernel.
// Source      the 4 x 4 square in registers is this project's; exclusive-or layout as in rung 4.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 64, kVectors = kTile / 4;  // of a tile's row
constexpr int kThreads = kVectors * kVectors;    // a 4 x 4 square each
constexpr int kBand = 16;                        // tile rows of x

/// The tile's transpose. Vector v of row c (a column of x) lies at v ^ (c / 4 % 8): eight threads that store
/// one vector of every fourth row, or load eight neighbouring vectors of one row, meet eight different groups
/// of four banks.
struct Tile {
  float4 vector[kTile][kVectors];
  __device__ float4& at(int c, int v) { return vector[c][v ^ (c / 4 % 8)]; }
};

__global__ void transpose_vectors(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t cols) {
  __shared__ Tile tile;
  // Tile rows come in bands; within a band, all of a tile column before the next one. The last band may be
  // lower.
  const int64_t tile_rows = (rows + kTile - 1) / kTile, tile_columns = (cols + kTile - 1) / kTile;
  const int64_t band = blockIdx.x / (kBand * tile_columns), within = blockIdx.x % (kBand * tile_columns);
  const int64_t height = tile_rows - band * kBand < kBand ? tile_rows - band * kBand : kBand;
  const int64_t row0 = (band * kBand + within % height) * kTile, column0 = within / height * kTile;
  const int tx = threadIdx.x % kVectors, ty = threadIdx.x / kVectors;

  if (row0 + 4 * ty < rows && column0 + 4 * tx < cols) {
    const float* from = x + (row0 + 4 * ty) * cols + column0 + 4 * tx;
    const float4 a = __ldcs(reinterpret_cast<const float4*>(from)), b = __ldcs(reinterpret_cast<const float4*>(from + cols)),
                 c = __ldcs(reinterpret_cast<const float4*>(from + 2 * cols)),
                 d = __ldcs(reinterpret_cast<const float4*>(from + 3 * cols));
    tile.at(4 * tx + 0, ty) = make_float4(a.x, b.x, c.x, d.x);
    tile.at(4 * tx + 1, ty) = make_float4(a.y, b.y, c.y, d.y);
    tile.at(4 * tx + 2, ty) = make_float4(a.z, b.z, c.z, d.z);
    tile.at(4 * tx + 3, ty) = make_float4(a.w, b.w, c.w, d.w);
  }
  __syncthreads();
#pragma unroll
  for (int c = ty; c < kTile; c += kVectors)
    if (column0 + c < cols && row0 + 4 * tx < rows)
      __stcs(reinterpret_cast<float4*>(y + (column0 + c) * rows + row0 + 4 * tx), tile.at(c, tx));
}

constexpr int kSmallTile = 32, kHeight = 8, kEach = kSmallTile / kHeight;  // elements a thread

__global__ void transpose_scalars(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t cols) {
  __shared__ float tile[kSmallTile][kSmallTile];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kSmallTile, column0 = static_cast<int64_t>(blockIdx.x) * kSmallTile;
  const int lane = threadIdx.x, first = threadIdx.y;

  float value[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int row = first + i * kHeight;
    value[i] = row0 + row < rows && column0 + lane < cols ? x[(row0 + row) * cols + column0 + lane] : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int row = first + i * kHeight;
    tile[row][lane ^ row] = value[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int column = first + i * kHeight;  // of x, a row of y
    if (column0 + column < cols && row0 + lane < rows)
      y[(column0 + column) * rows + row0 + lane] = tile[lane][column ^ lane];
  }
}

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[cols,rows]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  if (rows % 4 == 0 && cols % 4 == 0) {
    const int64_t tiles = (rows + kTile - 1) / kTile * ((cols + kTile - 1) / kTile);
    transpose_vectors<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(x, y, rows, cols);
    return;
  }
  const dim3 grid(static_cast<unsigned>((cols + kSmallTile - 1) / kSmallTile),
                  static_cast<unsigned>((rows + kSmallTile - 1) / kSmallTile));
  transpose_scalars<<<grid, dim3(kSmallTile, kHeight), 0, stream>>>(x, y, rows, cols);
}
