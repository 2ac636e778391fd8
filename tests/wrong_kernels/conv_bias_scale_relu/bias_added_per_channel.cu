// cause: missing_term
// mistake: the bias is added inside the loop over the input channels, so c_in times.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_grid_stride(const float* __restrict__ x, const float* __restrict__ weight,
                                 const float* __restrict__ bias, const float* __restrict__ scale,
                                 float* __restrict__ y, int64_t total, int c_in, int h, int w, int c_out) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < total;
       i += (int64_t)gridDim.x * blockDim.x) {
    const int px = i % w, py = i / w % h, co = i / (w * h) % c_out;
    const int64_t img = i / ((int64_t)w * h * c_out);
    float acc = 0.0f;
    for (int ci = 0; ci < c_in; ++ci) {
      const float* in = x + (img * c_in + ci) * h * w;
      const float* k = weight + (co * c_in + ci) * 9;
      for (int ky = 0; ky < 3; ++ky) {
        const int iy = py + ky - 1;
        if (iy < 0 || iy >= h) continue;
        for (int kx = 0; kx < 3; ++kx) {
          const int ix = px + kx - 1;
          if (ix >= 0 && ix < w) acc = fmaf(in[iy * w + ix], k[ky * 3 + kx], acc);
        }
      }
      acc += bias[co];
    }
    y[i] = fmaxf(0.0f, acc * scale[co]);
  }
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  conv_grid_stride<<<128, 256, 0, stream>>>(x, weight, bias, scale, y, n * c_out * h * w, (int)c_in, (int)h,
                                            (int)w, (int)c_out);
}
