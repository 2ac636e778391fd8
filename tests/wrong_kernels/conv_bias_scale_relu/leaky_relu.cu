// cause: constant
// mistake: negative values are multiplied by 0.01 instead of being set to zero.
#include <cuda_runtime.h>

#include <cstdint>

constexpr float kSlope = 0.01f;

__device__ float activation(float v) { return v > 0.0f ? v : kSlope * v; }

__global__ void conv_bias_scale_act(const float* x, const float* weight, const float* bias,
                                    const float* scale, float* y, int c_in, int h, int w, int c_out) {
  __shared__ float k[16 * 9];
  const int co = blockIdx.y, img = blockIdx.z;
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  const int py = p / w, px = p % w;
  float acc = 0.0f;
  for (int c0 = 0; c0 < c_in; c0 += 16) {  // sixteen input channels at a time
    const int count = min(16, c_in - c0);
    for (int i = threadIdx.x; i < count * 9; i += blockDim.x) k[i] = weight[(co * c_in + c0) * 9 + i];
    __syncthreads();
    if (p < h * w) {
      for (int c = 0; c < count; ++c)
        for (int t = 0; t < 9; ++t) {
          const int iy = py + t / 3 - 1, ix = px + t % 3 - 1;
          if (iy >= 0 && iy < h && ix >= 0 && ix < w)
            acc += k[c * 9 + t] * x[((img * c_in + c0 + c) * h + iy) * w + ix];
        }
    }
    __syncthreads();
  }
  if (p < h * w) y[(img * c_out + co) * h * w + p] = activation((acc + bias[co]) * scale[co]);
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((h * w + 63) / 64), (unsigned)c_out, (unsigned)n);
  conv_bias_scale_act<<<grid, 64, 0, stream>>>(x, weight, bias, scale, y, (int)c_in, (int)h, (int)w,
                                               (int)c_out);
}
