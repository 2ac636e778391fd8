// Rung 2: a thread computes 8 pixels of 8 output channels; every fourth column lies side by side.
//
// Changed     a block makes 11 rows of 56 pixels of 48 output channels. For each input channel it loads
//             its 51 rows and the filters into shared memory. There the columns are sorted by their
//             remainder modulo 4: with a stride of 4, the inputs of neighbouring pixels then lie side by
//             side.
// Why         rung 1 loads two values for each multiply-add. Here 16 loads bring the inputs of one filter
//             row, 22 the filter values of 8 channels (the same for nearly all lanes: a broadcast), and
//             serve 704 multiply-adds.
// Prediction  bound by the FMA pipes: 96 % of the lanes and 98 % of the pixels work, and the last round
//             of blocks is not full: 70 % of the peak, 0.45 ms at the measure size.
// Came        648 us on an H100, 32.57 TFLOP/s, 11.00 times the rung before. 187 % of the native baseline.
//
// Shapes      x [n, c_in, h, w], weight [c_out, c_in, 11, 11], bias [c_out], y [n, c_out, oh, ow] with oh
//             = (h - 7) / 4 + 1, ow = (w - 7) / 4 + 1; stride 4, padding 2; any sizes with n <= 65535.
// Launch      <<<(tiles of an image, c_out / 48, n), 480>>>; 462 threads compute, all load.
// Resources   at most 128 registers; one block per multiprocessor; two input channels in 151 KB of shared
//             memory, of which one is on its way (cp.async).
// Cost        n * c_out * oh * ow * (242 * c_in + 1) FLOPs; x is read c_out / 48 times, from L2 after the
//             first.
// Divides     no divisibility is required: what lies outside the image is zero, results outside are not
//             stored.
// Source      the register tile of a GEMM (L5, rung 5) carried over to a direct convolution.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kKernel = 11, kStep = 4, kPad = 2;
constexpr int kRun = 4;                  // neighbouring pixels of a thread
constexpr int kRuns = 2;                 // of them, kAcross runs apart
constexpr int kOut = 8;                  // output channels of a thread
constexpr int kAcross = 7, kDown = 11;   // threads of a tile
constexpr int kGroups = 6;               // of kOut output channels
constexpr int kStages = 2, kBlocks = 1;  // channels in shared memory; blocks of a multiprocessor
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
constexpr int kTileFloats = kRows * kRowStride + kRows / kStep * kShift + kShift;
constexpr int kStageFloats = kTileFloats + kTaps * kTapStride;

/// Where a row of the image lies in shared memory. The output row of a thread below is four rows further on,
/// and kShift more: then eight neighbouring lanes, seven of one row and one of the next, read 32 banks.
__device__ int place_of(int row) { return row * kRowStride + row / kStep * kShift; }

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

__global__ void __launch_bounds__(kThreads, kBlocks)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, int c_in, int h, int w, int c_out, int oh, int ow) {
  extern __shared__ float4 shared[];
  float* const stages = reinterpret_cast<float*>(shared);
  const int tiles_across = (ow + kTileW - 1) / kTileW;
  const int row0 = static_cast<int>(blockIdx.x) / tiles_across * kDown,
            column0 = static_cast<int>(blockIdx.x) % tiles_across * kTileW;
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

  const int row = row0 + my_row;
  if (threadIdx.x >= kWorkers || row >= oh) return;
#pragma unroll
  for (int o = 0; o < kOut; ++o) {
    const int out = out0 + group * kOut + o;
    if (out >= c_out) break;
    float* to = y + ((blockIdx.z * int64_t{c_out} + out) * oh + row) * ow;
    const float shift = bias[out];
#pragma unroll
    for (int k = 0; k < kRuns; ++k)
#pragma unroll
      for (int j = 0; j < kRun; ++j) {
        const int column = column0 + my_column + k * kAcross * kRun + j;
        if (column < ow) to[column] = sum[o][k][j] + shift;
      }
  }
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,11,11]*/,
                       const float* bias /*[c_out]*/, float* y /*[n,c_out,oh,ow]*/, int64_t n, int64_t c_in,
                       int64_t h, int64_t w, int64_t c_out, void* /*workspace*/, cudaStream_t stream) {
  const int oh = static_cast<int>(h + 2 * kPad - kKernel) / kStep + 1,
            ow = static_cast<int>(w + 2 * kPad - kKernel) / kStep + 1;
  const int tiles = (oh + kDown - 1) / kDown * ((ow + kTileW - 1) / kTileW);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>((c_out + kTileOut - 1) / kTileOut),
                  static_cast<unsigned>(n));
  constexpr int kBytes = kStages * kStageFloats * static_cast<int>(sizeof(float));
  cudaFuncSetAttribute(conv, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  conv<<<grid, kThreads, kBytes, stream>>>(x, weight, bias, y, static_cast<int>(c_in), static_cast<int>(h),
                                           static_cast<int>(w), static_cast<int>(c_out), oh, ow);
}
