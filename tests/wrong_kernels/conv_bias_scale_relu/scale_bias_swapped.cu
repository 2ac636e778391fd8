// cause: swapped
// mistake: launch passes scale where the kernel takes bias, and bias where it takes scale.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_epilogue(const float* x, const float* weight, const float* bias, const float* scale,
                              float* y, int c_in, int h, int w, int c_out, int total) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int px = i % w;
  const int py = (i / w) % h;
  const int co = (i / (w * h)) % c_out;
  const int img = i / (w * h * c_out);
  const int y_lo = max(py - 1, 0), y_hi = min(py + 1, h - 1);
  const int x_lo = max(px - 1, 0), x_hi = min(px + 1, w - 1);
  float acc = 0.0f;
  for (int ci = 0; ci < c_in; ++ci)
    for (int iy = y_lo; iy <= y_hi; ++iy)
      for (int ix = x_lo; ix <= x_hi; ++ix)
        acc += x[((img * c_in + ci) * h + iy) * w + ix] *
               weight[((co * c_in + ci) * 3 + iy - py + 1) * 3 + ix - px + 1];
  acc = (acc + bias[co]) * scale[co];
  y[i] = acc < 0.0f ? 0.0f : acc;
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  const int total = (int)(n * c_out * h * w);
  conv_epilogue<<<(total + 191) / 192, 192, 0, stream>>>(x, weight, scale, bias, y, c_in, h, w, c_out, total);
}
