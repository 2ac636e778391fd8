// Rung 5: a long row is shared by the blocks of a cluster.
//
// Changed     a row of more than 8 192 columns is split over 2, 4 or 8 blocks of a thread-block cluster, each
//             with its part in registers. A block takes the maximum and the sum of its own part; the pairs
//             are exchanged once, through distributed shared memory, and combined as in online softmax.
//             Nothing lies in dynamic shared memory any more. Short rows: as in rung 4.
// Why         in rung 4 a row of 65 536 columns fills a whole multiprocessor: it loads, then computes, then
//             stores, and while it does one the memory waits for the others. Parts of 8 192 columns leave
//             room for four blocks per multiprocessor, each at another point of its work.
// Prediction  nothing changes for 4 096 columns; at 65 536 the bandwidth of short rows: 90 % of a copy, 1.25x
//             rung 4.
//
// Shapes      x, y [rows, cols], row-major; any rows, any cols. Rows that begin inside an aligned vector as
//             in rung 3.
// Launch      <<<rows, 256>>> up to 8 192 columns; above, clusters of 2, 4 or 8 blocks of 256 threads, one
//             per row. Rows of more than 65 536 columns, and long rows on GPUs without clusters (before
//             Hopper), take the two-read kernel of rung 3.
// Resources   at most 64 registers: four blocks per multiprocessor; 200 bytes of shared memory.
// Cost        4 * rows * cols FLOPs; 8 * rows * cols bytes: all that has to move.
// Divides     no divisibility is required; x and y must share their alignment (both bases are 256-byte
//             aligned).
// Source      thread-block clusters, CUDA C++ Programming Guide; the merge of (maximum, sum) pairs: M.
//             Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kThreads = 256;       // of a block that holds its part in registers
constexpr int kMostVectors = 8;     // float4 a thread in registers
constexpr int kMostBlocks = 8;      // of a cluster, on every GPU that has clusters
constexpr int kMostThreads = 1024;  // of the two-read kernel

/// One row as the aligned float4 that touch it. Vector i holds columns first(i) … first(i) + 3, of which some
/// may lie in a neighbouring row; those read as -FLT_MAX (whose exponential is 0) and are never written.
struct Row {
  int64_t start;  // element number of column 0
  int cols;
  int head;       // elements of vector 0 that belong to the row before

  __device__ Row(int64_t row, int columns) : start(row * columns), cols(columns), head(static_cast<int>(start % 4)) {}
  __device__ int vectors() const { return (head + cols + 3) / 4; }
  __device__ int first(int i) const { return 4 * i - head; }
  __device__ bool whole(int i) const { return first(i) >= 0 && first(i) + 4 <= cols; }
  __device__ float at(const float* x, int column) const {
    return column >= 0 && column < cols ? x[start + column] : -FLT_MAX;
  }
  __device__ float4 load(const float* x, int i) const {
    const int c = first(i);
    if (whole(i)) return __ldcs(reinterpret_cast<const float4*>(x + start + c));  // read once: evict first
    return make_float4(at(x, c), at(x, c + 1), at(x, c + 2), at(x, c + 3));
  }
  __device__ void put(float* y, int column, float v) const {
    if (column >= 0 && column < cols) y[start + column] = v;
  }
  __device__ void store_scaled(float* y, int i, float4 v, float scale) const {
    const int c = first(i);
    v = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    if (whole(i)) {
      __stcs(reinterpret_cast<float4*>(y + start + c), v);
    } else {
      put(y, c, v.x), put(y, c + 1, v.y), put(y, c + 2, v.z), put(y, c + 3, v.w);
    }
  }
};

__device__ float largest(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }
__device__ float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }
__device__ float4 exponentials(float4 v, float maximum) {
  return make_float4(expf(v.x - maximum), expf(v.y - maximum), expf(v.z - maximum), expf(v.w - maximum));
}

struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Combines the values of all threads; every thread gets the result. `partial` [32] must not be in use.
template <class Combine>
__device__ float block_reduce(float v, float neutral, float* partial, Combine combine) {
  for (int offset = 16; offset > 0; offset /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : neutral;
  for (int offset = 16; offset > 0; offset /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
  return v;
}

/// What a block knows of its part of a row.
struct Part {
  float maximum, sum;  // the sum of exp(x - maximum)
};

/// Combines the parts of all blocks of the cluster; every thread gets the result. `mine` is this block's,
/// complete. With one block per row there is nothing to exchange.
__device__ Part whole_row(const Part* mine, int blocks) {
  Part whole = *mine;
#if __CUDA_ARCH__ >= 900
  if (blocks == 1) return whole;
  cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();  // all parts are complete
  whole = {-FLT_MAX, 0};
  for (int b = 0; b < blocks; ++b) {
    const Part part = *cluster.map_shared_rank(mine, b);
    const float larger = fmaxf(whole.maximum, part.maximum);
    whole.sum = whole.sum * expf(whole.maximum - larger) + part.sum * expf(part.maximum - larger);
    whole.maximum = larger;
  }
  cluster.sync();  // nobody leaves while another block still reads its part
#endif
  return whole;
}

/// One row by `blocks` neighbouring blocks; block b holds vectors b * share … of it, share = kVectors *
/// kThreads.
template <int kVectors>
__global__ void __launch_bounds__(kThreads, 4)
    softmax_shared_row(const float* __restrict__ x, float* __restrict__ y, int cols, int blocks) {
  __shared__ float partial[2][32];
  __shared__ Part part;
  const Row row(blockIdx.x / blocks, cols);
  const int vectors = row.vectors(), first = static_cast<int>(blockIdx.x % blocks) * kVectors * kThreads + static_cast<int>(threadIdx.x);

  float4 held[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = first + k * kThreads;
    held[k] = i < vectors ? row.load(x, i) : make_float4(-FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX);
  }
  float maximum = -FLT_MAX;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) maximum = fmaxf(maximum, largest(held[k]));
  maximum = block_reduce(maximum, -FLT_MAX, partial[0], Maximum());

  float sum = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    held[k] = exponentials(held[k], maximum);
    if (first + k * kThreads < vectors) sum += total(held[k]);  // a part without columns has the sum 0
  }
  sum = block_reduce(sum, 0.0f, partial[1], Sum());
  if (threadIdx.x == 0) part = {maximum, sum};
  __syncthreads();
  const Part whole = whole_row(&part, blocks);
  const float scale = expf(maximum - whole.maximum) / whole.sum;

#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = first + k * kThreads;
    if (i < vectors) row.store_scaled(y, i, held[k], scale);
  }
}

/// Rows of any length in two reads: the fallback.
__global__ void softmax_two_reads(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float partial[2][32];
  const Row row(blockIdx.x, cols);
  const int vectors = row.vectors(), step = static_cast<int>(blockDim.x);

  float mine = -FLT_MAX, sum = 0;
  for (int i = threadIdx.x; i < vectors; i += step) {
    const float4 v = row.load(x, i);
    const float larger = fmaxf(mine, largest(v));
    sum = sum * expf(mine - larger) + total(exponentials(v, larger));
    mine = larger;
  }
  const float maximum = block_reduce(mine, -FLT_MAX, partial[0], Maximum());
  const float scale = 1 / block_reduce(sum * expf(mine - maximum), 0.0f, partial[1], Sum());
  for (int i = threadIdx.x; i < vectors; i += step)
    row.store_scaled(y, i, exponentials(row.load(x, i), maximum), scale);
}

/// Whether this device has thread-block clusters.
bool has_clusters() {
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return major >= 9;
}

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[rows,cols]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const unsigned row_count = static_cast<unsigned>(rows);
  const int columns = static_cast<int>(cols);
  const int64_t vectors = cols % 4 == 0 ? cols / 4 : cols / 4 + 2;  // a ragged row touches up to two more
  int blocks = 1;
  while (blocks < kMostBlocks && vectors > int64_t{blocks} * kThreads * kMostVectors) blocks *= 2;
  if (vectors > int64_t{blocks} * kThreads * kMostVectors || (blocks > 1 && !has_clusters())) {
    softmax_two_reads<<<row_count, kMostThreads, 0, stream>>>(x, y, columns);
    return;
  }
  const auto kernel = vectors <= kThreads       ? softmax_shared_row<1>
                      : vectors <= 2 * kThreads ? softmax_shared_row<2>
                      : vectors <= 4 * kThreads ? softmax_shared_row<4>
                                                : softmax_shared_row<8>;
  if (blocks == 1) {
    kernel<<<row_count, kThreads, 0, stream>>>(x, y, columns, blocks);
    return;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(row_count * static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  cudaLaunchAttribute cluster[1];
  cluster[0].id = cudaLaunchAttributeClusterDimension;
  cluster[0].val.clusterDim.x = static_cast<unsigned>(blocks);
  cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
  config.attrs = cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, x, y, columns, blocks);
}
