// cause: logic
// mistake: the 3 x 3 filter is turned by 180 degrees, as in the mathematical convolution.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_flipped(const float* x, const float* weight, const float* bias, const float* scale,
                             float* y, int c_in, int h, int w, int c_out) {
  extern __shared__ float k[];  // the filters of this output channel
  const int co = blockIdx.y, img = blockIdx.z;
  for (int i = threadIdx.x; i < c_in * 9; i += blockDim.x) k[i] = weight[co * c_in * 9 + i];
  __syncthreads();
  const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= h * w) return;
  const int py = pixel / w, px = pixel % w;
  float acc = bias[co];
  for (int ci = 0; ci < c_in; ++ci)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const int iy = py - dy, ix = px - dx;
        if (iy >= 0 && iy < h && ix >= 0 && ix < w)
          acc += x[((img * c_in + ci) * h + iy) * w + ix] * k[ci * 9 + (dy + 1) * 3 + dx + 1];
      }
  y[(img * c_out + co) * h * w + pixel] = fmaxf(acc * scale[co], 0.0f);
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((h * w + 127) / 128), (unsigned)c_out, (unsigned)n);
  conv_flipped<<<grid, 128, c_in * 9 * sizeof(float), stream>>>(x, weight, bias, scale, y, (int)c_in, (int)h,
                                                                (int)w, (int)c_out);
}
