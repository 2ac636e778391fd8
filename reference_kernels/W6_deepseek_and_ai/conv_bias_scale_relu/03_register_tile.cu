// Rung 3: a thread computes 4 x 2 pixels of eight output channels; the next channels arrive meanwhile.
//
// Changed     64 sums per thread instead of 8. A block makes 32 x 16 pixels of 32 output channels, so x is
//             read once. Input and filters come four channels at a time by asynchronous copies into one of
//             two buffers.
// Why         rung 2 loads one filter value from shared memory for each multiply-add. Here a thread loads,
//             for each input channel, a 6 x 4 patch (8 loads) and 9 x 8 taps (18 loads, the same for the
//             whole warp, so each is one broadcast) and makes 576 multiply-adds of them: 1 load instruction
//             for 21.
// Prediction  bound by the FMA pipes at last: 3x to 4x rung 2; ahead of library + three kernels, whose
//             epilogue alone moves the output six times.
//
// Shapes      x [n, c_in, h, w], weight [c_out, c_in, 3, 3], bias, scale [c_out], y [n, c_out, h, w]; NCHW;
//             padding 1, stride 1; any sizes with n up to 65535.
// Launch      <<<(tiles of an image, c_out / 32, n), 256>>>; a warp works on 32 x 8 pixels of one group of 8
//             channels.
// Resources   at most 128 registers: two blocks per multiprocessor; 30.4 KB of shared memory.
// Cost        n * c_out * h * w * (18 * c_in + 3) FLOPs; 4 * (x + y) bytes and a border of 20 % around each
//             tile of x.
// Divides     no divisibility is required: what lies beyond an edge is zero, results beyond one are not
//             stored. w % 4 == 0 gives 16-byte stores.
// Source      the register tile of a GEMM (L5, rung 5) carried over to a direct convolution; nothing is
//             unfolded.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTileW = 32, kTileH = 16, kTileOut = 32;  // a block
constexpr int kPatchW = 4, kPatchH = 2, kOut = 8;       // a thread
constexpr int kChannels = 4;                            // input channels a stage
constexpr int kThreads = 256;
constexpr int kAcross = kTileW / kPatchW, kDown = kTileH / kPatchH;
static_assert(kAcross * kDown * (kTileOut / kOut) == kThreads, "the threads cover the tile");
static_assert(kAcross * kDown % 32 == 0, "all lanes of a warp have the same output channels: filters are broadcast");

constexpr int kHaloW = kTileW + 2, kHaloH = kTileH + 2;
constexpr int kStride = kTileW + 4;                                     // of a row in shared memory: a multiple of 4
constexpr int kCopies = (kHaloW * kHaloH + kThreads - 1) / kThreads;    // inputs a thread fetches of each channel
constexpr int kTaps = kChannels * 9;                                    // of an output channel, a stage
constexpr int kOutStep = kThreads / kTaps;                              // output channels fetched at once
constexpr int kFilterStride = kTileOut + 4;                             // spreads the transposing copies over the banks

struct __align__(16) Stage {
  float x[kChannels][kHaloH * kStride];
  float weight[kTaps][kFilterStride];  // [channel and tap][output channel]
};

/// The loads of one thread, worked out once: they fall on the same places of every channel's tile.
struct Loader {
  const float* source[kCopies];  // in the next channel's plane
  bool exists[kCopies];          // inside the image (and inside the tile: the last copies are not a full set)
  int target[kCopies];           // within Stage::x[channel]
  const float* filters;          // this thread's tap of the next channels, output channel 0
  int tap, first_out;            // where it goes in Stage::weight
  int plane, filter_step;        // elements from one channel of x, one output channel of weight, to the next
  int channels_left, out0, c_out;

  __device__ Loader(const float* image, const float* weight, int c_in, int h, int w, int c_out_, int row0, int column0,
                    int out0_)
      : plane(h * w), filter_step(c_in * 9), channels_left(c_in), out0(out0_), c_out(c_out_) {
    const int thread = threadIdx.x;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = (thread + i * kThreads) / kHaloW, column = (thread + i * kThreads) % kHaloW;
      const int from_row = row0 + row - 1, from_column = column0 + column - 1;
      exists[i] = row < kHaloH && from_row >= 0 && from_row < h && from_column >= 0 && from_column < w;
      source[i] = exists[i] ? image + from_row * w + from_column : image;
      target[i] = row < kHaloH ? row * kStride + column : -1;
    }
    tap = thread % kTaps, first_out = thread / kTaps;
    filters = weight + tap;
  }

  /// What lies outside the image is zero in both buffers once and for all, and no copy ever overwrites it.
  __device__ void clear_outside(Stage& stage) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i)
      if (!exists[i] && target[i] >= 0)
        for (int c = 0; c < kChannels; ++c) stage.x[c][target[i]] = 0;
  }

  /// Starts the copies of the next four input channels (or those that are left) and of their filters.
  __device__ void fetch(Stage& stage) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c, source[i] += plane)
        if (exists[i] && c < channels_left)
          __pipeline_memcpy_async(&stage.x[c][target[i]], source[i], sizeof(float));
    }
    if (tap < channels_left * 9) {
#pragma unroll
      for (int i = 0; i < kTileOut; i += kOutStep) {
        const int out = first_out + i;
        const int from = min(out0 + out, c_out - 1);  // beyond c_out: anything defined, its results are not stored
        if (first_out < kOutStep && out < kTileOut)   // the last threads have no whole set of taps
          __pipeline_memcpy_async(&stage.weight[tap][out], filters + from * filter_step, sizeof(float));
      }
    }
    __pipeline_commit();
    filters += kTaps;
    channels_left -= kChannels;
  }
};

/// Adds one input channel to the sums. `patch` is the upper left corner of the thread's inputs, `taps` its
/// filters.
__device__ void accumulate(const float* patch, const float (*taps)[kFilterStride],
                           float (&sum)[kOut][kPatchH][kPatchW]) {
  float value[kPatchH + 2][kPatchW + 2];
#pragma unroll
  for (int row = 0; row < kPatchH + 2; ++row) {
    const float4 left = *reinterpret_cast<const float4*>(patch + row * kStride);
    const float2 right = *reinterpret_cast<const float2*>(patch + row * kStride + 4);
    value[row][0] = left.x, value[row][1] = left.y, value[row][2] = left.z, value[row][3] = left.w;
    value[row][4] = right.x, value[row][5] = right.y;
  }
#pragma unroll
  for (int tap = 0; tap < 9; ++tap) {
    const float4 low = *reinterpret_cast<const float4*>(&taps[tap][0]);
    const float4 high = *reinterpret_cast<const float4*>(&taps[tap][4]);
    const float filter[kOut] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int o = 0; o < kOut; ++o)
#pragma unroll
      for (int i = 0; i < kPatchH; ++i)
#pragma unroll
        for (int j = 0; j < kPatchW; ++j) sum[o][i][j] += filter[o] * value[i + tap / 3][j + tap % 3];
  }
}

__global__ void __launch_bounds__(kThreads, 2)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         const float* __restrict__ scale, float* __restrict__ y, int c_in, int h, int w, int c_out) {
  __shared__ Stage stages[2];
  const int tiles_across = (w + kTileW - 1) / kTileW;
  const int row0 = blockIdx.x / tiles_across * kTileH, column0 = blockIdx.x % tiles_across * kTileW;
  const int out0 = blockIdx.y * kTileOut;
  const int64_t plane = static_cast<int64_t>(h) * w;
  const float* image = x + blockIdx.z * c_in * plane;
  Loader loader(image, weight, c_in, h, w, c_out, row0, column0, out0);

  const int pixel_thread = threadIdx.x % (kAcross * kDown);
  const int my_row = pixel_thread / kAcross * kPatchH, my_column = pixel_thread % kAcross * kPatchW;
  const int my_out = threadIdx.x / (kAcross * kDown) * kOut;

  float sum[kOut][kPatchH][kPatchW] = {};
  loader.clear_outside(stages[0]);
  loader.clear_outside(stages[1]);
  loader.fetch(stages[0]);
  int present = 0;
  for (int first = 0; first < c_in; first += kChannels, present ^= 1) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this stage has come for all threads, and all have done with the other buffer
    if (first + kChannels < c_in) loader.fetch(stages[present ^ 1]);
    const Stage& stage = stages[present];
    const int channels = min(kChannels, c_in - first);
#pragma unroll 1  // 600 instructions a channel: unrolled, the loop would not fit the instruction cache
    for (int c = 0; c < channels; ++c)
      accumulate(&stage.x[c][my_row * kStride + my_column],
                 reinterpret_cast<const float(*)[kFilterStride]>(&stage.weight[c * 9][my_out]), sum);
  }

  // The epilogue: bias, scale and ReLU on the sums in registers.
  float shift[kOut], factor[kOut];
#pragma unroll
  for (int o = 0; o < kOut; ++o) {
    const int out = min(out0 + my_out + o, c_out - 1);
    shift[o] = bias[out];
    factor[o] = scale[out];
  }
  const int column = column0 + my_column;
#pragma unroll
  for (int i = 0; i < kPatchH; ++i) {
    const int row = row0 + my_row + i;
    if (row >= h || column >= w) continue;
    float* to = y + (blockIdx.z * static_cast<int64_t>(c_out) + out0 + my_out) * plane + row * w + column;
#pragma unroll
    for (int o = 0; o < kOut; ++o, to += plane) {
      if (out0 + my_out + o >= c_out) break;
      float result[kPatchW];
#pragma unroll
      for (int j = 0; j < kPatchW; ++j) result[j] = fmaxf((sum[o][i][j] + shift[o]) * factor[o], 0.0f);
      if (w % 4 == 0) {
        *reinterpret_cast<float4*>(to) = make_float4(result[0], result[1], result[2], result[3]);
      } else {
#pragma unroll
        for (int j = 0; j < kPatchW; ++j)
          if (column + j < w) to[j] = result[j];
      }
    }
  }
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,3,3]*/,
                       const float* bias /*[c_out]*/, const float* scale /*[c_out]*/, float* y /*[n,c_out,h,w]*/,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* /*workspace*/,
                       cudaStream_t stream) {
  const int64_t tiles = (h + kTileH - 1) / kTileH * ((w + kTileW - 1) / kTileW);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>((c_out + kTileOut - 1) / kTileOut),
                  static_cast<unsigned>(n));
  conv<<<grid, kThreads, 0, stream>>>(x, weight, bias, scale, y, static_cast<int>(c_in), static_cast<int>(h),
                                      static_cast<int>(w), static_cast<int>(c_out));
}
