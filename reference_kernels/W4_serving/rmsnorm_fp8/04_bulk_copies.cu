// Rung 4: bulk copies. A block stays, and its next rows travel to shared memory by themselves.
//
// Changed     as many blocks as fit stay and take every gridDim.x-th row. One thread asks for a whole row
//             with one instruction (cp.async.bulk) and an mbarrier says when it is there; three rows of a
//             block are on their way or in use. The weight stays in registers. Lanes read vectors side by
//             side, then neighbours exchange one, so that each owns 16 numbers in a row. Blocks that would
//             have one row less than others are not started.
// Why         a block of rung 3 loads, computes, stores, and ends; then the next one begins with nothing on
//             its way. Each row reads 16 KB of weight from L2 to L1 as well, as much as the row itself. And
//             a load of a warp touches 32 sectors for 16 sectors' worth of numbers.
// Prediction  1.03x to 1.05x at 8192 rows. At 256 rows there is no next row, and nothing changes.
// Came        72.5 us on an H100, 2805 GB/s, 0.97 times the rung before. 359 % of the native baseline.
//
// Shapes      x [rows, cols], w [cols], bf16; codes [rows, cols], e4m3; scales [rows, cols/128], fp32.
// Launch      <<<blocks that fit, cols / 16 threads, at most 512>>>.
// Resources   at most 64 registers; three rows of shared memory, 48 KB at 8192 columns.
// Cost        8 * rows * cols FLOPs; 3 * rows * cols bytes, and the weight once for each block.
// Divides     cols % 128 == 0 (the problem says so); cols <= 16384.
// Source      bulk copies and mbarriers, PTX ISA; they need a GPU of compute capability 9.0.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

constexpr int kThreads = 512;                                   // of a block, at most
constexpr int kOwn = 16, kGroup = 128, kLanes = kGroup / kOwn;  // neighbours of a thread; lanes of a group
constexpr int kStages = 3;                                      // rows of a block on their way or in use
constexpr float kLargest = 448, kLeast = 1e-10f;  // of e4m3; of a group's maximum, so that no scale is zero

/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

/// 16 neighbours, two in a word.
struct Own {
  unsigned word[kOwn / 2];
};
/// The first of the columns that a thread owns in the k-th piece of a row. A warp's piece is 512 columns:
/// even lanes own the first half, odd ones the second.
__device__ int first_column(int k) {
  const int lane = threadIdx.x % 32, warp = (threadIdx.x + k * blockDim.x) / 32;
  return warp * 32 * kOwn + lane % 2 * 16 * kOwn + lane / 2 * kOwn;
}
/// What a thread owns in the k-th piece. A load of the warp fetches 512 bytes in a row: lane l gets vector l
/// of either half. Then neighbours exchange one vector: the even lane gets the second of its two, the odd one
/// the first.
__device__ Own load(const __nv_bfloat16* row, int k, int cols) {
  const int lane = threadIdx.x % 32, column = (threadIdx.x - lane + k * blockDim.x) * kOwn + lane * 8;
  uint4 half[2];
#pragma unroll
  for (int h = 0; h < 2; ++h)
    half[h] = column + 256 * h < cols ? *reinterpret_cast<const uint4*>(row + column + 256 * h)
                                      : make_uint4(0, 0, 0, 0);
  const bool odd = lane % 2 == 1;
  uint4 other = odd ? half[0] : half[1];
  other.x = __shfl_xor_sync(0xffffffffu, other.x, 1), other.y = __shfl_xor_sync(0xffffffffu, other.y, 1);
  other.z = __shfl_xor_sync(0xffffffffu, other.z, 1), other.w = __shfl_xor_sync(0xffffffffu, other.w, 1);
  const uint4 a = odd ? other : half[0], b = odd ? half[1] : other;
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}
__device__ float squares(const Own& own) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kOwn / 2; ++i)
    sum += low(own.word[i]) * low(own.word[i]) + high(own.word[i]) * high(own.word[i]);
  return sum;
}
/// Four codes, the first in the lowest byte.
__device__ unsigned codes_of(float a, float b, float c, float d) {
  const unsigned first = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
  const unsigned second = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, __NV_E4M3);
  return first | second << 16;
}

// ---- bulk copies: an mbarrier's phase ends when the bytes that it was told to expect are there ------------
__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void init(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(barrier)) : "memory");
}
__device__ void copy_bulk(void* to, const void* from, unsigned bytes, uint64_t* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          address(to)),
      "l"(from), "r"(bytes), "r"(address(barrier))
      : "memory");
}
/// Until the phase of this parity is over.
__device__ void wait(uint64_t* barrier, int parity) {
  uint32_t over = 0;
  while (!over)
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(over)
        : "r"(address(barrier)), "r"(parity)
        : "memory");
}

/// The sum of `v` over the block, in every thread. `partial` must not be in use.
__device__ float block_sum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < static_cast<int>(blockDim.x) / 32; ++warp) sum += partial[warp];
  return sum;
}

/// What a thread makes of its neighbours, once the row's norm is known.
__device__ void quantise(const Own& x, const Own& w, float norm, __nv_fp8_e4m3* codes,
                         float* scale_of_group) {
  float v[kOwn], largest = kLeast;
#pragma unroll
  for (int i = 0; i < kOwn / 2; ++i) {
    v[2 * i] = low(x.word[i]) * norm * low(w.word[i]);
    v[2 * i + 1] = high(x.word[i]) * norm * high(w.word[i]);
    largest = fmaxf(largest, fmaxf(fabsf(v[2 * i]), fabsf(v[2 * i + 1])));
  }
#pragma unroll
  for (int offset = kLanes; offset > 1; offset /= 2)  // every other lane
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  const float scale = largest * (1 / kLargest), reciprocal = kLargest / largest;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) v[i] *= reciprocal;
  if (codes == nullptr) return;  // behind the end of the row
  *reinterpret_cast<uint4*>(codes) =
      make_uint4(codes_of(v[0], v[1], v[2], v[3]), codes_of(v[4], v[5], v[6], v[7]),
                 codes_of(v[8], v[9], v[10], v[11]), codes_of(v[12], v[13], v[14], v[15]));
  if (threadIdx.x % (2 * kLanes) < 2) *scale_of_group = scale;
}

template <int kChunks>
__global__ void __launch_bounds__(kThreads)
    rmsnorm_fp8(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                __nv_fp8_e4m3* __restrict__ codes, float* __restrict__ scales, float eps, int64_t rows,
                int cols) {
  extern __shared__ uint4 ring[];  // kStages rows
  __shared__ uint64_t arrived[kStages];
  __shared__ float partial[2][kThreads / 32];  // two, so that one barrier a row suffices
  const auto row_at = [&](int stage) { return reinterpret_cast<__nv_bfloat16*>(ring) + stage * cols; };
  const auto fetch = [&](int64_t row, int stage) {  // by one thread
    if (row < rows)
      copy_bulk(row_at(stage), x + row * cols, static_cast<unsigned>(cols) * 2, arrived + stage);
  };
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) init(arrived + stage);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // the copy engine sees them, too
    for (int stage = 0; stage < kStages; ++stage) fetch(blockIdx.x + int64_t{stage} * gridDim.x, stage);
  }
  Own weight[kChunks];
#pragma unroll
  for (int k = 0; k < kChunks; ++k) {
    weight[k] = load(w, k, cols);
  }
  __syncthreads();  // the barriers are ready
  int stage = 0, phase = 0, parity = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, parity ^= 1) {
    wait(arrived + stage, phase);
    Own held[kChunks];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kChunks; ++k) {
      held[k] = load(row_at(stage), k, cols);
      sum += squares(held[k]);
    }
    const float norm = rsqrtf(block_sum(sum, partial[parity]) / static_cast<float>(cols) + eps);
    if (threadIdx.x == 0)
      fetch(row + int64_t{kStages} * gridDim.x, stage);  // behind the barrier: all have read
    const int64_t start = row * cols;
#pragma unroll
    for (int k = 0; k < kChunks; ++k) {
      const int i = first_column(k);
      quantise(held[k], weight[k], norm, i < cols ? codes + start + i : nullptr,
               scales + (start + i) / kGroup);
    }
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, const __nv_bfloat16* w /*[cols]*/,
                       __nv_fp8_e4m3* codes /*[rows,cols]*/, float* scales /*[rows,cols / 128]*/, float eps,
                       int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  const int threads = static_cast<int>(std::min<int64_t>(kThreads, (cols / kOwn + 31) / 32 * 32));
  const auto kernel = cols <= kOwn * kThreads ? rmsnorm_fp8<1> : rmsnorm_fp8<2>;
  const int shared_bytes = kStages * static_cast<int>(cols) * 2;
  int device = 0, multiprocessors = 0, resident = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads,
                                                static_cast<size_t>(shared_bytes));
  const int64_t most = int64_t{multiprocessors} * resident, rounds = (rows + most - 1) / most;
  const int64_t blocks = (rows + rounds - 1) / rounds;  // all with as many rows, but for the last ones
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), static_cast<size_t>(shared_bytes),
           stream>>>(x, w, codes, scales, eps, rows, static_cast<int>(cols));
}
