// Rung 2: fused: the pool reads its neighbours in shared memory, and only its result is written.
//
// Changed     the register tile of conv2d's rung 2 with 19 rows instead of 11. Bias and ReLU are applied
//             to the sums in registers; the tile goes to shared memory, in the place of the inputs, and a
//             thread takes the maximum of nine values.
// Why         rung 1 reads two values for each multiply-add, and moves the convolved image twice, 232 MB.
//             Windows of 3 x 3 with a step of 2 overlap by a row: 9 pooled rows need 19, and three such
//             tiles make 57 rows of an image that has 55.
// Prediction  bound by the FMA pipes, as the convolution alone; 28 MB are written instead of 116.
//
// Shapes      x [n, c_in, h, w], weight [c_out, c_in, 11, 11], bias [c_out], y [n, c_out, ph, pw] with ph
//             = (oh - 3) / 2 + 1, oh = (h - 7) / 4 + 1, and so for w; any sizes with n <= 65535.
// Launch      <<<(tiles of an image, c_out / 24, n), 416>>>; 399 threads compute, all load.
// Resources   at most 128 registers; one block per multiprocessor; two channels in 191 KB of shared
//             memory.
// Cost        n * c_out * oh * ow * (242 * c_in + 2) FLOPs; x is read c_out / 24 times, from L2 after the
//             first.
// Divides     no divisibility is required: what lies outside the image is zero, results outside are not
//             stored.
// Source      the register tile of a GEMM (L5, rung 5) carried over to a direct convolution.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kKernel = 11, kStep = 4, kPad = 2;  // of the convolution
constexpr int kWindow = 3;                        // of the pool, whose step is 2
constexpr int kRun = 4;                           // neighbouring pixels of a thread
constexpr int kRuns = 2;                          // of them, kAcross runs apart
constexpr int kOut = 8;                           // output channels of a thread
constexpr int kAcross = 7, kDown = 19;            // threads of a tile
constexpr int kGroups = 3;                        // of kOut output channels
constexpr int kStages = 2, kBlocks = 1;           // channels in shared memory; blocks of a multiprocessor
constexpr int kTileW = kAcross * kRuns * kRun, kTileOut = kGroups * kOut;
constexpr int kWorkers = kAcross * kDown * kGroups, kThreads = (kWorkers + 31) / 32 * 32;
constexpr int kRows = (kDown - 1) * kStep + kKernel;  // of x
constexpr int kColumns = (kTileW + 2) * kStep;        // the last of them only fills a vector
constexpr int kPhase =
    (kColumns / kStep + 1 + 3) / 4 * 4;  // columns with the same remainder, a multiple of 4
constexpr int kRowStride = kStep * kPhase;
constexpr int kShift = kAcross * kRun;
constexpr int kTaps = kKernel * kKernel,
              kTapStride = kTileOut + 4;  // the padding spreads the turned filters over the banks
constexpr int kPooledW = 27,
              kPooledH = (kDown - 1) / 2;  // of a tile; the next one begins twice as many pixels on
constexpr int kSpare = kTileW + 1;         // a row of the tile when it is pooled
constexpr int kTileFloats = kRows * kRowStride + kRows / kStep * kShift + kShift;
constexpr int kStageFloats = kTileFloats + kTaps * kTapStride;

/// Where a row of the image lies in shared memory. The output row of a thread below is four rows further on,
/// and kShift more: then eight neighbouring lanes, seven of one row and one of the next, read 32 banks.
__device__ int place_of(int row) { return row * kRowStride + row / kStep * kShift; }
constexpr int kSharedFloats =
    kStages * kStageFloats > kTileOut* kDown* kSpare ? kStages* kStageFloats : kTileOut* kDown* kSpare;

/// Starts the copies of one input channel: the tile's rows of x, columns sorted by remainder, and the
/// filters, turned.
__device__ void fetch(float* tile, const float* plane, const float* weight, int h, int w, int c_in, int row0,
                      int column0, int out_left) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;  // a warp a row: no divisions
  float* const filters = tile + kTileFloats;
#pragma unroll 1
  for (int row = warp; row < kRows; row += kThreads / 32) {
    const int from_row = row0 + row;
    const bool row_inside = from_row >= 0 && from_row < h;
    const float* from = plane + (row_inside ? int64_t{from_row} * w : 0);
    float* const to = tile + place_of(row);
    for (int column = lane; column < kColumns; column += 32) {
      const int from_column = column0 + column;
      const bool inside = row_inside && from_column >= 0 && from_column < w;
      __pipeline_memcpy_async(to + column % kStep * kPhase + column / kStep,
                              inside ? from + from_column : plane, 4, inside ? 0 : 4);
    }
  }
#pragma unroll 1
  for (int out = warp; out < kTileOut; out += kThreads / 32) {
    const bool inside = out < out_left;
    const float* from = weight + (inside ? int64_t{out} * c_in * kTaps : 0);
    for (int tap = lane; tap < kTaps; tap += 32)
      __pipeline_memcpy_async(filters + tap * kTapStride + out, from + tap, 4, inside ? 0 : 4);
  }
  __pipeline_commit();
}

/// Adds one row of the filters. `row`: the thread's place in its row of the tile; `taps`: the row's filters.
__device__ void accumulate(const float* row, const float* taps, float (&sum)[kOut][kRuns][kRun]) {
#pragma unroll
  for (int phase = 0; phase < kStep; ++phase) {
    float value[kRuns][kRun + 2];
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      const float* from = row + phase * kPhase + k * kAcross * kRun;
      const float4 left = *reinterpret_cast<const float4*>(from);
      const float2 right = *reinterpret_cast<const float2*>(from + 4);
      value[k][0] = left.x, value[k][1] = left.y, value[k][2] = left.z, value[k][3] = left.w;
      value[k][4] = right.x, value[k][5] = right.y;
    }
#pragma unroll
    for (int a = 0; a * kStep + phase < kKernel; ++a) {
      const float* at = taps + (a * kStep + phase) * kTapStride;
      const float4 low = *reinterpret_cast<const float4*>(at),
                   high = *reinterpret_cast<const float4*>(at + 4);
      const float filter[kOut] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int o = 0; o < kOut; ++o)
#pragma unroll
        for (int k = 0; k < kRuns; ++k)
#pragma unroll
          for (int j = 0; j < kRun; ++j) sum[o][k][j] += filter[o] * value[k][a + j];
    }
  }
}

/// As a framework has them: what is not a number stays it.
__device__ float relu(float v) { return v < 0 ? 0.0f : v; }
__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }

__global__ void __launch_bounds__(kThreads, kBlocks)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, int c_in, int h, int w, int c_out, int ph, int pw) {
  extern __shared__ float4 shared[];
  float* const stages = reinterpret_cast<float*>(shared);
  const int tiles_across = (pw + kPooledW - 1) / kPooledW;
  const int row0 = static_cast<int>(blockIdx.x) / tiles_across * kPooledH * 2,
            column0 = static_cast<int>(blockIdx.x) % tiles_across * kPooledW * 2;
  const int out0 = static_cast<int>(blockIdx.y) * kTileOut;
  const int worker =
      min(static_cast<int>(threadIdx.x), kWorkers - 1);  // spare threads compute what is not stored
  const int pixel = worker % (kAcross * kDown), group = worker / (kAcross * kDown);
  const int my_row = pixel / kAcross, my_column = pixel % kAcross * kRun;
  const int64_t plane = int64_t{h} * w;

  float sum[kOut][kRuns][kRun] = {};
  const auto fetch_channel = [&](int in) {
    if (in < c_in)
      fetch(stages + in % kStages * kStageFloats, x + (blockIdx.z * int64_t{c_in} + in) * plane,
            weight + (int64_t{out0} * c_in + in) * kTaps, h, w, c_in, row0 * kStep - kPad,
            column0 * kStep - kPad, c_out - out0);
  };
  fetch_channel(0);
#pragma unroll 1
  for (int in = 0; in < c_in; ++in) {
    if (kStages == 1 && in > 0) {
      __syncthreads();  // all have done with the channel before
      fetch_channel(in);
    }
    __pipeline_wait_prior(0);
    __syncthreads();  // the channel has come for all threads, and all have done with the one before
    if (kStages > 1) fetch_channel(in + 1);
    const float* tile = stages + in % kStages * kStageFloats + my_column;
    const float* filters = stages + in % kStages * kStageFloats + kTileFloats + group * kOut;
#pragma unroll 1  // 700 multiply-adds a row: more would not fit the instruction cache
    for (int r = 0; r < kKernel; ++r)
      accumulate(tile + place_of(my_row * kStep + r), filters + r * kKernel * kTapStride, sum);
  }

  // Bias and ReLU on the sums in registers, then through shared memory, where the pool reads its neighbours.
  __syncthreads();  // all have done with the last channel
#pragma unroll
  for (int o = 0; o < kOut; ++o) {
    const float shift = bias[min(out0 + group * kOut + o, c_out - 1)];
    float* to = stages + ((group * kOut + o) * kDown + my_row) * kSpare + my_column;
#pragma unroll
    for (int k = 0; k < kRuns; ++k)
#pragma unroll
      for (int j = 0; j < kRun; ++j)
        if (threadIdx.x < kWorkers) to[k * kAcross * kRun + j] = relu(sum[o][k][j] + shift);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTileOut * kPooledH * kPooledW; i += kThreads) {
    const int column = i % kPooledW, row = i / kPooledW % kPooledH, out = i / (kPooledW * kPooledH);
    const int pooled_row = row0 / 2 + row, pooled_column = column0 / 2 + column;
    if (out0 + out >= c_out || pooled_row >= ph || pooled_column >= pw) continue;
    const float* from = stages + (out * kDown + row * 2) * kSpare + column * 2;
    float most = from[0];
#pragma unroll
    for (int k = 1; k < 9; ++k) most = larger(most, from[k / 3 * kSpare + k % 3]);
    y[((blockIdx.z * int64_t{c_out} + out0 + out) * ph + pooled_row) * pw + pooled_column] = most;
  }
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,11,11]*/,
                       const float* bias /*[c_out]*/, float* y /*[n,c_out,ph,pw]*/, int64_t n, int64_t c_in,
                       int64_t h, int64_t w, int64_t c_out, void* /*workspace*/, cudaStream_t stream) {
  const int oh = static_cast<int>(h + 2 * kPad - kKernel) / kStep + 1,
            ow = static_cast<int>(w + 2 * kPad - kKernel) / kStep + 1;
  const int ph = (oh - kWindow) / 2 + 1, pw = (ow - kWindow) / 2 + 1;
  const int tiles = (ph + kPooledH - 1) / kPooledH * ((pw + kPooledW - 1) / kPooledW);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>((c_out + kTileOut - 1) / kTileOut),
                  static_cast<unsigned>(n));
  constexpr int kBytes = kSharedFloats * static_cast<int>(sizeof(float));
  cudaFuncSetAttribute(conv, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  conv<<<grid, kThreads, kBytes, stream>>>(x, weight, bias, y, static_cast<int>(c_in), static_cast<int>(h),
                                           static_cast<int>(w), static_cast<int>(c_out), ph, pw);
}
