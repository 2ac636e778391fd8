// cause: logic
// mistake: the padding repeats the pixels of the edge instead of being zero.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_clamped(const float* x, const float* weight, const float* bias, const float* scale,
                             float* y, int c_in, int h, int w, int c_out) {
  const int px = blockIdx.x * 32 + threadIdx.x;
  const int py = blockIdx.y * 4 + threadIdx.y;
  if (px >= w || py >= h) return;
  const int img = blockIdx.z;
  for (int co = 0; co < c_out; ++co) {
    float acc = 0.0f;
    for (int ci = 0; ci < c_in; ++ci) {
      const float* in = x + (img * c_in + ci) * h * w;
      for (int ky = 0; ky < 3; ++ky)
        for (int kx = 0; kx < 3; ++kx) {
          const int iy = min(max(py + ky - 1, 0), h - 1);
          const int ix = min(max(px + kx - 1, 0), w - 1);
          acc += in[iy * w + ix] * weight[(co * c_in + ci) * 9 + ky * 3 + kx];
        }
    }
    y[((img * c_out + co) * h + py) * w + px] = fmaxf((acc + bias[co]) * scale[co], 0.0f);
  }
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((w + 31) / 32), (unsigned)((h + 3) / 4), (unsigned)n);
  conv_clamped<<<grid, dim3(32, 4), 0, stream>>>(x, weight, bias, scale, y, (int)c_in, (int)h, (int)w,
                                                 (int)c_out);
}
