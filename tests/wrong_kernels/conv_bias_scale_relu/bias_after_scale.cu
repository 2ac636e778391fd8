// cause: missing_term
// mistake: the bias is added after the multiplication by scale instead of before it.
#include <cuda_runtime.h>

#include <cstdint>

// One thread computes all output channels of a pixel, eight at a time.
__global__ void conv_channels(const float* x, const float* weight, const float* bias, const float* scale,
                              float* y, int n, int c_in, int h, int w, int c_out) {
  const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  const int img = blockIdx.y;
  if (pixel >= h * w) return;
  const int py = pixel / w, px = pixel % w;
  for (int c0 = 0; c0 < c_out; c0 += 8) {
    float acc[8] = {};
    for (int ci = 0; ci < c_in; ++ci)
      for (int t = 0; t < 9; ++t) {
        const int iy = py + t / 3 - 1, ix = px + t % 3 - 1;
        if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
        const float v = x[((img * c_in + ci) * h + iy) * w + ix];
        for (int c = 0; c < 8 && c0 + c < c_out; ++c) acc[c] += v * weight[((c0 + c) * c_in + ci) * 9 + t];
      }
    for (int c = 0; c < 8 && c0 + c < c_out; ++c) {
      const float v = acc[c] * scale[c0 + c] + bias[c0 + c];
      y[(img * c_out + c0 + c) * h * w + pixel] = v > 0.0f ? v : 0.0f;
    }
  }
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((h * w + 127) / 128), (unsigned)n);
  conv_channels<<<grid, 128, 0, stream>>>(x, weight, bias, scale, y, (int)n, (int)c_in, (int)h, (int)w,
                                          (int)c_out);
}
