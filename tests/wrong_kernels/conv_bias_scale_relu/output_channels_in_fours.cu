// cause: unwritten
// mistake: c_out / 4 groups of channels are computed, and the last c_out % 4 channels are left out.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_four_channels(const float* x, const float* weight, const float* bias, const float* scale,
                                   float* y, int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  const int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t co = (int64_t)blockIdx.y * 4, img = blockIdx.z;
  if (p >= h * w) return;
  const int64_t py = p / w, px = p % w;
  float acc[4] = {0, 0, 0, 0};
  for (int64_t ci = 0; ci < c_in; ++ci)
    for (int t = 0; t < 9; ++t) {
      const int64_t iy = py + t / 3 - 1, ix = px + t % 3 - 1;
      if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
      const float v = x[((img * c_in + ci) * h + iy) * w + ix];
      for (int c = 0; c < 4; ++c)
        if (co + c < c_out) acc[c] += v * weight[((co + c) * c_in + ci) * 9 + t];
    }
  for (int c = 0; c < 4; ++c)
    if (co + c < c_out)
      y[(img * c_out + co + c) * h * w + p] = fmaxf((acc[c] + bias[co + c]) * scale[co + c], 0.0f);
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  const unsigned groups = c_out < 4 ? 1 : (unsigned)(c_out / 4);
  dim3 grid((unsigned)((h * w + 127) / 128), groups, (unsigned)n);
  conv_four_channels<<<grid, 128, 0, stream>>>(x, weight, bias, scale, y, c_in, h, w, c_out);
}
