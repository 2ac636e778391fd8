// Rung 1: an 11 x 11 convolution straight from the definition, one thread an output element.
//
// Changed     nothing yet: three loops around one multiply-add.
// Why         a correct kernel first. Inputs and filters come from the caches.
// Prediction  two loads for each multiply-add, and neighbouring lanes read every fourth value of x: four
//             sectors of the L1 cache where one would do. A tenth of the FMA peak at most.
// Came        7.13 ms on an H100, 2.96 TFLOP/s. 17 % of the native baseline.
//
// Shapes      x [n, c_in, h, w], weight [c_out, c_in, 11, 11], bias [c_out], y [n, c_out, oh, ow] with oh
//             = (h - 7) / 4 + 1, ow = (w - 7) / 4 + 1; stride 4, padding 2; any sizes with n, c_out <=
//             65535.
// Launch      <<<(oh * ow / 256, c_out, n), 256>>>.
// Resources   about 40 registers; no shared memory.
// Cost        n * c_out * oh * ow * (242 * c_in + 1) FLOPs; best 4 * (x + weight + y) bytes.
// Divides     no divisibility is required.
// Source      the definition of a convolution (cross-correlation, as in every framework).
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kKernel = 11, kStep = 4, kPad = 2;

__global__ void conv(const float* x, const float* weight, const float* bias, float* y, int c_in, int h, int w,
                     int c_out, int oh, int ow) {
  const int pixel = blockIdx.x * kThreads + threadIdx.x;
  const int out = blockIdx.y;
  const int64_t image = blockIdx.z;
  if (pixel >= oh * ow) return;
  const int row0 = pixel / ow * kStep - kPad, column0 = pixel % ow * kStep - kPad;

  float sum = 0;
  for (int in = 0; in < c_in; ++in) {
    const float* plane = x + (image * c_in + in) * h * w;
    const float* filter = weight + (static_cast<int64_t>(out) * c_in + in) * kKernel * kKernel;
    for (int r = 0; r < kKernel; ++r) {
      for (int s = 0; s < kKernel; ++s) {
        const int i = row0 + r, j = column0 + s;
        if (i >= 0 && i < h && j >= 0 && j < w)
          sum += plane[static_cast<int64_t>(i) * w + j] * filter[r * kKernel + s];
      }
    }
  }
  y[(image * c_out + out) * oh * ow + pixel] = sum + bias[out];
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,11,11]*/,
                       const float* bias /*[c_out]*/, float* y /*[n,c_out,oh,ow]*/, int64_t n, int64_t c_in,
                       int64_t h, int64_t w, int64_t c_out, void* /*workspace*/, cudaStream_t stream) {
  const int oh = static_cast<int>(h + 2 * kPad - kKernel) / kStep + 1,
            ow = static_cast<int>(w + 2 * kPad - kKernel) / kStep + 1;
  const dim3 grid(static_cast<unsigned>((oh * ow + kThreads - 1) / kThreads), static_cast<unsigned>(c_out),
                  static_cast<unsigned>(n));
  conv<<<grid, kThreads, 0, stream>>>(x, weight, bias, y, static_cast<int>(c_in), static_cast<int>(h),
                                      static_cast<int>(w), static_cast<int>(c_out), oh, ow);
}
