// Rung 1: y = relu((conv3x3(x) + bias) * scale) straight from the definition, one thread an output element.
//
// Changed     eager's four kernels (convolution, bias, scale, ReLU) become one: the thread that has the sum
//             finishes it.
// Why         the epilogue costs three operations, but as separate kernels it moves the output six more
//             times.
// Prediction  the epilogue's traffic is gone; the convolution itself is slow: two loads per multiply-add,
//             from the caches. Slower than the library's convolution, perhaps level with library + three
//             kernels.
//
// Shapes      x [n, c_in, h, w], weight [c_out, c_in, 3, 3], bias, scale [c_out], y [n, c_out, h, w]; NCHW;
//             padding 1, stride 1; any sizes with n and c_out up to 65535.
// Launch      <<<(h * w / 256, c_out, n), 256>>>; a warp computes 32 neighbouring pixels.
// Resources   about 40 registers; no shared memory.
// Cost        n * c_out * h * w * (18 * c_in + 3) FLOPs; best 4 * (x + y + weight) bytes.
// Divides     no divisibility is required.
// Source      the definition of a convolution (cross-correlation, as in every framework).
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void conv(const float* x, const float* weight, const float* bias, const float* scale, float* y, int c_in,
                     int h, int w, int c_out) {
  const int pixel = blockIdx.x * kThreads + threadIdx.x;
  const int out = blockIdx.y;
  const int64_t image = blockIdx.z;
  if (pixel >= h * w) return;
  const int row = pixel / w, column = pixel % w;

  float sum = 0;
  for (int in = 0; in < c_in; ++in) {
    const float* plane = x + (image * c_in + in) * h * w;
    const float* filter = weight + (static_cast<int64_t>(out) * c_in + in) * 9;
    for (int r = 0; r < 3; ++r) {
      for (int s = 0; s < 3; ++s) {
        const int i = row + r - 1, j = column + s - 1;
        if (i >= 0 && i < h && j >= 0 && j < w) sum += plane[static_cast<int64_t>(i) * w + j] * filter[r * 3 + s];
      }
    }
  }
  y[(image * c_out + out) * h * w + pixel] = fmaxf((sum + bias[out]) * scale[out], 0.0f);
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,3,3]*/,
                       const float* bias /*[c_out]*/, const float* scale /*[c_out]*/, float* y /*[n,c_out,h,w]*/,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((h * w + kThreads - 1) / kThreads), static_cast<unsigned>(c_out),
                  static_cast<unsigned>(n));
  conv<<<grid, kThreads, 0, stream>>>(x, weight, bias, scale, y, static_cast<int>(c_in), static_cast<int>(h),
                                      static_cast<int>(w), static_cast<int>(c_out));
}
