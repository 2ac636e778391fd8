// Rung 4: the row is read once and stays on the chip until it is written.
//
// Changed     a block holds its whole row: kVectors float4 per thread in registers, and what registers cannot
//             hold in shared memory. Maximum, exponentials and scaling then cost no global reads; every
//             exponential is taken once. With the row at hand the plain maximum-then-sum order is cheaper
//             than the online one.
// Why         a multiprocessor has 256 KB of registers besides its shared memory: on Hopper a row of up to 90
//             000 floats fits, and 2 floats per element is all that has to move.
// Prediction  2 floats per element instead of 3: 1.5x rung 3 where rows do not fit a cache. Where they do
//             (4096 columns) the second read was cheap already, and the gain is half the exponentials: at
//             least 90 % of a copy.
//
// Shapes      x, y [rows, cols], row-major; any rows, any cols. Rows that begin inside an aligned vector as
//             in rung 3.
// Launch      <<<rows, 256>>> up to 8 192 columns, <<<rows, 1024>>> above, with 4 bytes of dynamic shared
//             memory for every column beyond 32 768. Rows longer than the chip holds take the two-read kernel
//             of rung 3.
// Resources   at most 64 registers, so that 1024 threads fit; shared memory as above + 256 bytes.
// Cost        4 * rows * cols FLOPs; 8 * rows * cols bytes: all that has to move.
// Divides     no divisibility is required; x and y must share their alignment (both bases are 256-byte
//             aligned).
// Source      register-resident rows as in persistent-softmax kernels; the register and shared split is this
//             project's.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstddef>
#include <cstdint>

constexpr int kMostThreads = 1024;
constexpr int kMostVectors = 8;  // float4 a thread in registers

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

/// The first kVectors * blockDim.x vectors of the row lie in registers, the rest in `rest`. A thread touches
/// only its own vectors there, so no barrier guards them.
template <int kVectors>
__global__ void __launch_bounds__(kMostThreads)
    softmax_one_read(const float* __restrict__ x, float* __restrict__ y, int cols) {
  extern __shared__ float4 rest[];
  __shared__ float partial[2][32];
  const Row row(blockIdx.x, cols);
  const int vectors = row.vectors();
  const int in_registers = kVectors * static_cast<int>(blockDim.x);
  const int lane = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);

  float4 held[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = k * step + lane;
    held[k] = i < vectors ? row.load(x, i) : make_float4(-FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX);
  }
  float maximum = -FLT_MAX;
  for (int i = in_registers + lane; i < vectors; i += step) {
    const float4 v = row.load(x, i);
    rest[i - in_registers] = v;
    maximum = fmaxf(maximum, largest(v));
  }
#pragma unroll
  for (int k = 0; k < kVectors; ++k) maximum = fmaxf(maximum, largest(held[k]));
  maximum = block_reduce(maximum, -FLT_MAX, partial[0], Maximum());

  float sum = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    held[k] = exponentials(held[k], maximum);
    sum += total(held[k]);
  }
  for (int i = in_registers + lane; i < vectors; i += step) {
    const float4 e = exponentials(rest[i - in_registers], maximum);
    rest[i - in_registers] = e;
    sum += total(e);
  }
  const float scale = 1 / block_reduce(sum, 0.0f, partial[1], Sum());

#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = k * step + lane;
    if (i < vectors) row.store_scaled(y, i, held[k], scale);
  }
  for (int i = in_registers + lane; i < vectors; i += step) row.store_scaled(y, i, rest[i - in_registers], scale);
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

/// Dynamic shared memory that a block may request on this device, bytes.
int64_t most_shared_bytes() {
  int device = 0, bytes = 48 << 10;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return bytes - 1024;  // room for the partial results
}

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[rows,cols]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  const int columns = static_cast<int>(cols);
  const int64_t vectors = cols % 4 == 0 ? cols / 4 : cols / 4 + 2;  // a ragged row touches up to two more
  if (vectors <= 256 * kMostVectors) {
    const auto kernel = vectors <= 256   ? softmax_one_read<1>
                        : vectors <= 512 ? softmax_one_read<2>
                        : vectors <= 1024 ? softmax_one_read<4>
                                          : softmax_one_read<8>;
    kernel<<<blocks, 256, 0, stream>>>(x, y, columns);
    return;
  }
  const int64_t beyond_registers = vectors - kMostThreads * kMostVectors;
  const int64_t shared_bytes = beyond_registers > 0 ? beyond_registers * 16 : 0;
  if (shared_bytes > most_shared_bytes()) {
    softmax_two_reads<<<blocks, kMostThreads, 0, stream>>>(x, y, columns);
    return;
  }
  const auto kernel = vectors <= kMostThreads * 4 ? softmax_one_read<4> : softmax_one_read<8>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  kernel<<<blocks, kMostThreads, shared_bytes, stream>>>(x, y, columns);
}
