// cause: transposed
// mistake: the weights are indexed as [c_in, c_out] instead of [c_out, c_in].
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv2d(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  const int64_t px = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t py = blockIdx.y;
  const int64_t co = blockIdx.z % c_out;
  const int64_t img = blockIdx.z / c_out;
  if (px >= w) return;
  float sum = bias[co];
  for (int64_t ci = 0; ci < c_in; ++ci)
    for (int64_t ky = 0; ky < 3; ++ky)
      for (int64_t kx = 0; kx < 3; ++kx) {
        const int64_t iy = py + ky - 1, ix = px + kx - 1;
        const bool inside = iy >= 0 && iy < h && ix >= 0 && ix < w;
        const float v = inside ? x[((img * c_in + ci) * h + iy) * w + ix] : 0.0f;
        sum += v * weight[(ci * c_out + co) * 9 + ky * 3 + kx];
      }
  y[((img * c_out + co) * h + py) * w + px] = fmaxf(sum * scale[co], 0.0f);
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((w + 63) / 64), (unsigned)h, (unsigned)(n * c_out));
  conv2d<<<grid, 64, 0, stream>>>(x, weight, bias, scale, y, c_in, h, w, c_out);
}
