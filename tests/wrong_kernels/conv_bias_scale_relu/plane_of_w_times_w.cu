// cause: stride
// line: 20
// mistake: the size of a channel is taken as w * w instead of h * w.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_rows(const float* x, const float* weight, const float* bias, const float* scale,
                          float* y, int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  const int64_t co = blockIdx.y, img = blockIdx.z, py = blockIdx.x;
  const int64_t plane = w * w;
  for (int64_t px = threadIdx.x; px < w; px += blockDim.x) {
    float acc = bias[co];
    for (int64_t ci = 0; ci < c_in; ++ci) {
      const float* in = x + img * c_in * h * w + ci * plane;
      const float* k = weight + (co * c_in + ci) * 9;
      for (int ky = 0; ky < 3; ++ky)
        for (int kx = 0; kx < 3; ++kx) {
          const int64_t iy = py + ky - 1, ix = px + kx - 1;
          if (iy >= 0 && iy < h && ix >= 0 && ix < w) acc += in[iy * w + ix] * k[ky * 3 + kx];
        }
    }
    y[((img * c_out + co) * h + py) * w + px] = fmaxf(acc * scale[co], 0.0f);
  }
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  conv_rows<<<dim3((unsigned)h, (unsigned)c_out, (unsigned)n), 64, 0, stream>>>(x, weight, bias, scale, y,
                                                                                c_in, h, w, c_out);
}
