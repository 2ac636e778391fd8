// Rung 1: convolution with ReLU, then the pool: two kernels and a tensor between them.
//
// Changed     nothing yet: eager's three kernels (convolution, ReLU, pool), the second in the first's
//             registers.
// Why         a correct kernel first. Inputs and filters come from the caches.
// Prediction  the convolution takes nearly all of the time, at a tenth of the FMA peak.
// Came        7.13 ms on an H100, 2.96 TFLOP/s. 17 % of the native baseline.
//
// Shapes      x [n, c_in, h, w], weight [c_out, c_in, 11, 11], bias [c_out]; convolved [n, c_out, oh, ow]
//             with oh = (h - 7) / 4 + 1, ow = (w - 7) / 4 + 1 (stride 4, padding 2); y [n, c_out, ph, pw]
//             with ph = (oh - 3) / 2 + 1, pw = (ow - 3) / 2 + 1; any sizes with n, c_out <= 65535.
// Launch      <<<(oh * ow / 256, c_out, n), 256>>>, <<<(ph * pw / 256, c_out, n), 256>>>.
// Resources   about 40 registers; no shared memory; workspace for the convolved tensor.
// Cost        n * c_out * oh * ow * (242 * c_in + 2) FLOPs; the convolved tensor is written and read
//             once.
// Divides     no divisibility is required.
// Source      the definitions, as every framework has them.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256;
constexpr int kKernel = 11, kStep = 4, kPad = 2;  // of the convolution
constexpr int kWindow = 3;                        // of the pool, whose step is 2

/// As a framework has them: what is not a number stays it.
__device__ float relu(float v) { return v < 0 ? 0.0f : v; }
__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }

__global__ void conv_relu(const float* x, const float* weight, const float* bias, float* y, int c_in, int h,
                          int w, int c_out, int oh, int ow) {
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
  y[(image * c_out + out) * oh * ow + pixel] = relu(sum + bias[out]);
}

__global__ void pool(const float* x, float* y, int c_out, int oh, int ow, int ph, int pw) {
  const int pixel = blockIdx.x * kThreads + threadIdx.x;
  if (pixel >= ph * pw) return;
  const int64_t plane = int64_t{blockIdx.z} * c_out + blockIdx.y;
  const float* from = x + (plane * oh + pixel / pw * 2) * ow + pixel % pw * 2;
  float most = from[0];
  for (int r = 0; r < kWindow; ++r)
    for (int s = 0; s < kWindow; ++s) most = larger(most, from[r * ow + s]);
  y[plane * ph * pw + pixel] = most;
}

int convolved(int64_t extent) { return static_cast<int>(extent + 2 * kPad - kKernel) / kStep + 1; }
int pooled(int extent) { return (extent - kWindow) / 2 + 1; }

extern "C" size_t workspace_bytes(int64_t n, int64_t /*c_in*/, int64_t h, int64_t w, int64_t c_out) {
  return static_cast<size_t>(n * c_out * convolved(h) * convolved(w)) * sizeof(float);
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,11,11]*/,
                       const float* bias /*[c_out]*/, float* y /*[n,c_out,ph,pw]*/, int64_t n, int64_t c_in,
                       int64_t h, int64_t w, int64_t c_out, void* workspace, cudaStream_t stream) {
  const int oh = convolved(h), ow = convolved(w), ph = pooled(oh), pw = pooled(ow);
  float* const between = static_cast<float*>(workspace);
  const auto grid = [&](int pixels) {
    return dim3(static_cast<unsigned>((pixels + kThreads - 1) / kThreads), static_cast<unsigned>(c_out),
                static_cast<unsigned>(n));
  };
  conv_relu<<<grid(oh * ow), kThreads, 0, stream>>>(x, weight, bias, between, static_cast<int>(c_in),
                                                    static_cast<int>(h), static_cast<int>(w),
                                                    static_cast<int>(c_out), oh, ow);
  pool<<<grid(ph * pw), kThreads, 0, stream>>>(between, y, static_cast<int>(c_out), oh, ow, ph, pw);
}
