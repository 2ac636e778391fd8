// Rung 1: tensor cores: inputs and filters rounded to fp16, sums in fp32.
//
// Changed     against the ladder of conv2d: a product of matrices, 96 output channels by 56 pixels of a
//             row, by mma.sync. The inputs are rounded to fp16 on their way into shared memory. Nothing
//             is unfolded: two neighbouring columns of the image are two neighbouring elements of the
//             inner dimension, so a fragment is two loads of 4 bytes from the image itself.
// Why         the tolerance of this problem is 1e-2, absolute and relative. That leaves room for fp16 (an
//             error of 5e-4), and the tensor cores multiply 15 times as fast as the FMA pipes.
// Prediction  23 GFLOP at 600 TFLOP/s are 40 us, and 176 MB at 4 TB/s are 44 us: both in 90 us, five
//             times the fp32 kernel.
// Came        258 us on an H100, 684 GB/s. 340 % of the native baseline.
//
// Shapes      x [n, c_in, h, w], weight [c_out, c_in, 11, 11], bias [c_out], y [n, c_out, oh, ow] with oh
//             = (h - 7) / 4 + 1, ow = (w - 7) / 4 + 1; stride 4, padding 2; any sizes with c_in <= 6.
// Launch      a kernel that rounds and orders the filters; then blocks of 256 threads, two per
//             multiprocessor, that take every tile in turn.
// Resources   at most 128 registers, 84 of them sums; 109 KB of shared memory at c_in = 3.
// Cost        n * c_out * oh * ow * (242 * c_in + 1) FLOPs, 10 % more with the padding; x is read 1.4
//             times, mostly from L2.
// Divides     no divisibility is required: what lies outside the image is zero, results outside are not
//             stored.
// Source      implicit GEMM, as in CUTLASS; the inner dimension in the order (row, channel, column) is
//             ours.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

constexpr int kKernel = 11, kStep = 4, kPad = 2;
constexpr int kTaps = 12;                          // of a filter row, with a zero behind
constexpr int kDown = 4, kPixels = 56;             // rows and columns of a tile
constexpr int kTilesM = 6, kTilesN = kPixels / 8;  // of 16 channels, of 8 pixels
constexpr int kHalf = kTilesM / 2;                 // a warp has three tiles of channels of one row
constexpr int kWarps = kDown * 2, kThreads = kWarps * 32;
constexpr int kChannels = kTilesM * 16;               // of a tile
constexpr int kRows = (kDown - 1) * kStep + kKernel;  // of the image
constexpr int kWidth = kPixels * kStep + 8;  // columns of the image, rounded up: also those of the last zero

/// The inner dimension: filter row, channel, column. 16 of it are a step.
__host__ __device__ int steps_of(int c_in) { return (kKernel * c_in * kTaps + 15) / 16; }
/// Rows of shared memory: one more for the step that goes beyond the last filter row.
__host__ __device__ int lines_of(int c_in) { return kRows * c_in + 1; }

/// Fragments of the filters: [tile of 96 channels][step][16 channels][lane][8 halves].
__global__ void order(const float* weight, uint4* fragments, int c_in, int c_out) {
  const int steps = steps_of(c_in), index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int tiles = (c_out + kChannels - 1) / kChannels;
  if (index >= tiles * steps * kTilesM * 32) return;
  const int lane = index % 32, m = index / 32 % kTilesM, step = index / (32 * kTilesM) % steps;
  const int channel0 = index / (32 * kTilesM * steps) * kChannels + m * 16 + lane / 4;
  union {
    __half half[8];
    uint4 vector;
  } packed;
  for (int i = 0; i < 8;
       ++i) {  // registers of the fragment: (row, k), (row + 8, k), (row, k + 8), (row + 8, k + 8)
    const int out = channel0 + i / 2 % 2 * 8, k = step * 16 + lane % 4 * 2 + i / 4 * 8 + i % 2;
    const int line = k / kTaps, s = k % kTaps, r = line / c_in, in = line % c_in;
    const bool exists = out < c_out && r < kKernel && s < kKernel;
    packed.half[i] =
        __float2half_rn(exists ? weight[((int64_t{out} * c_in + in) * kKernel + r) * kKernel + s] : 0.0f);
  }
  fragments[index] = packed.vector;
}

__device__ void multiply(float (&d)[4], const uint4& a, unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

struct Tile {
  int64_t image;
  int row, column;  // of the output
  __device__ Tile(int index, int down, int across) {
    column = index % across * kPixels, row = index / across % down * kDown;
    image = index / (across * down);
  }
};

/// The tile's part of the image, rounded to fp16; a thread takes pairs of columns. Outside of the image: 0.
__device__ void load(__half2* lines, const float* x, const Tile& tile, int c_in, int h, int w) {
  const int row0 = tile.row * kStep - kPad, column0 = tile.column * kStep - kPad;
#pragma unroll 8
  for (int i = threadIdx.x; i < lines_of(c_in) * (kWidth / 2); i += kThreads) {
    const int line = i / (kWidth / 2), column = column0 + i % (kWidth / 2) * 2;
    const int row = row0 + line / c_in;
    float2 pair = make_float2(0, 0);
    if (line < kRows * c_in && row >= 0 && row < h) {
      const float* from = x + ((tile.image * c_in + line % c_in) * h + row) * int64_t{w} + column;
      if (w % 2 == 0) {  // column is even: a pair is inside or outside
        if (column >= 0 && column < w) pair = __ldg(reinterpret_cast<const float2*>(from));
      } else {
        if (column >= 0 && column < w) pair.x = from[0];
        if (column + 1 >= 0 && column + 1 < w) pair.y = from[1];
      }
    }
    lines[i] = __floats2half2_rn(pair.x, pair.y);
  }
}

template <int kIn>  // input channels; 0: any
__global__ void __launch_bounds__(kThreads, 2)
    conv(const float* __restrict__ x, const uint4* __restrict__ fragments, const float* __restrict__ bias,
         float* __restrict__ y, int any_in, int h, int w, int c_out, int oh, int ow, int tiles) {
  extern __shared__ uint4 shared[];
  const int c_in = kIn > 0 ? kIn : any_in;
  const int steps = steps_of(c_in), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint4* const filters = shared;
  __half2* const lines = reinterpret_cast<__half2*>(shared + steps * kTilesM * 32);
  const int out0 = static_cast<int>(blockIdx.y) * kChannels;
  for (int i = threadIdx.x; i < steps * kTilesM * 32; i += kThreads)
    filters[i] = fragments[int64_t{blockIdx.y} * steps * kTilesM * 32 + i];

  const int my_row = warp / 2, m0 = warp % 2 * kHalf, down = (oh + kDown - 1) / kDown,
            across = (ow + kPixels - 1) / kPixels;
#pragma unroll 1
  for (int index = static_cast<int>(blockIdx.x); index < tiles; index += static_cast<int>(gridDim.x)) {
    const Tile tile(index, down, across);
    load(lines, x, tile, c_in, h, w);
    __syncthreads();

    float sum[kHalf][kTilesN][4] = {};
    const unsigned* const mine =
        reinterpret_cast<const unsigned*>(lines) + my_row * kStep * c_in * (kWidth / 2) + lane / 4 * 2;
    const uint4* const my_filters = filters + m0 * 32 + lane;
    int line[2], s[2];  // where the lane's two pairs of a step lie: k = line * 12 + s
    for (int i = 0; i < 2; ++i)
      line[i] = (lane % 4 * 2 + i * 8) / kTaps, s[i] = (lane % 4 * 2 + i * 8) % kTaps;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      uint4 a[kHalf];
#pragma unroll
      for (int m = 0; m < kHalf; ++m) a[m] = my_filters[(step * kTilesM + m) * 32];
      const unsigned* const first = mine + line[0] * (kWidth / 2) + s[0] / 2;
      const unsigned* const second = mine + line[1] * (kWidth / 2) + s[1] / 2;
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
        const unsigned b0 = first[n * 8 * kStep / 2], b1 = second[n * 8 * kStep / 2];
#pragma unroll
        for (int m = 0; m < kHalf; ++m) multiply(sum[m][n], a[m], b0, b1);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {  // 16 further: one line and 4 columns
        s[i] += 4, ++line[i];
        if (s[i] >= kTaps) s[i] -= kTaps, ++line[i];
      }
    }

    const int row = tile.row + my_row;
#pragma unroll
    for (int m = 0; m < kHalf; ++m)
#pragma unroll
      for (int low = 0; low < 2; ++low) {
        const int out = out0 + (m0 + m) * 16 + lane / 4 + low * 8;
        if (row >= oh || out >= c_out) continue;
        const float shift = bias[out];
        float* to = y + ((tile.image * c_out + out) * oh + row) * ow + tile.column + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < kTilesN; ++n) {
          const int column = tile.column + n * 8 + lane % 4 * 2;
          if (column < ow) to[n * 8] = sum[m][n][low * 2] + shift;
          if (column + 1 < ow) to[n * 8 + 1] = sum[m][n][low * 2 + 1] + shift;
        }
      }
    __syncthreads();  // all have done with this part of the image
  }
}

int convolved(int64_t extent) { return static_cast<int>(extent + 2 * kPad - kKernel) / kStep + 1; }
size_t fragments_of(int64_t c_in, int64_t c_out) {
  return static_cast<size_t>((c_out + kChannels - 1) / kChannels * steps_of(static_cast<int>(c_in)) *
                             kTilesM * 32);
}

extern "C" size_t workspace_bytes(int64_t /*n*/, int64_t c_in, int64_t /*h*/, int64_t /*w*/, int64_t c_out) {
  return fragments_of(c_in, c_out) * sizeof(uint4);
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,11,11]*/,
                       const float* bias /*[c_out]*/, float* y /*[n,c_out,oh,ow]*/, int64_t n, int64_t c_in,
                       int64_t h, int64_t w, int64_t c_out, void* workspace, cudaStream_t stream) {
  const int oh = convolved(h), ow = convolved(w), in = static_cast<int>(c_in), out = static_cast<int>(c_out);
  uint4* const fragments = static_cast<uint4*>(workspace);
  order<<<static_cast<unsigned>((fragments_of(c_in, c_out) + 127) / 128), 128, 0, stream>>>(weight, fragments,
                                                                                            in, out);

  const int bytes = steps_of(in) * kTilesM * 32 * 16 + lines_of(in) * kWidth * 2;
  const auto kernel = in == 3 ? conv<3> : conv<0>;
  int device = 0, processors = 0, resident = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, static_cast<size_t>(bytes));
  const int64_t tiles = n * ((oh + kDown - 1) / kDown) * ((ow + kPixels - 1) / kPixels);
  const int64_t blocks = std::min<int64_t>(tiles, int64_t{processors} * std::max(resident, 1));
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>((c_out + kChannels - 1) / kChannels));
  kernel<<<grid, kThreads, static_cast<size_t>(bytes), stream>>>(x, fragments, bias, y, in,
                                                                 static_cast<int>(h), static_cast<int>(w),
                                                                 out, oh, ow, static_cast<int>(tiles));
}
