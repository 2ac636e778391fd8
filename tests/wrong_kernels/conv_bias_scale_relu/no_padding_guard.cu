// cause: out_of_bounds
// line: 18
// mistake: the taps are read without a test, so that those of the padding lie outside of the image.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_naive(const float* x, const float* weight, const float* bias, const float* scale,
                           float* y, int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * c_out * h * w) return;
  const int64_t px = i % w, py = i / w % h, co = i / (w * h) % c_out, img = i / (w * h * c_out);
  float acc = bias[co];
  for (int64_t ci = 0; ci < c_in; ++ci)
    for (int ky = 0; ky < 3; ++ky)
      for (int kx = 0; kx < 3; ++kx) {
        const int64_t iy = py + ky - 1, ix = px + kx - 1;
        acc += x[((img * c_in + ci) * h + iy) * w + ix] * weight[((co * c_in + ci) * 3 + ky) * 3 + kx];
      }
  y[i] = fmaxf(acc * scale[co], 0.0f);
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  const int64_t total = n * c_out * h * w;
  conv_naive<<<(unsigned)((total + 255) / 256), 256, 0, stream>>>(x, weight, bias, scale, y, n, c_in, h, w,
                                                                  c_out);
}
