// cause: uninitialised
// line: 23
// mistake: each thread loads one weight into shared memory: weights beyond the block size are never loaded.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128;

__global__ void conv_shared_weights(const float* x, const float* weight, const float* bias,
                                    const float* scale, float* y, int c_in, int h, int w, int c_out) {
  extern __shared__ float k[];
  const int co = blockIdx.y, img = blockIdx.z;
  if (threadIdx.x < c_in * 9) k[threadIdx.x] = weight[co * c_in * 9 + threadIdx.x];
  __syncthreads();
  for (int p = blockIdx.x * kThreads + threadIdx.x; p < h * w; p += gridDim.x * kThreads) {
    const int py = p / w, px = p % w;
    float acc = 0.0f;
    for (int ci = 0; ci < c_in; ++ci)
      for (int t = 0; t < 9; ++t) {
        const int iy = py + t / 3 - 1, ix = px + t % 3 - 1;
        if (iy >= 0 && iy < h && ix >= 0 && ix < w)
          acc += x[((img * c_in + ci) * h + iy) * w + ix] * k[ci * 9 + t];
      }
    y[(img * c_out + co) * h * w + p] = fmaxf((acc + bias[co]) * scale[co], 0.0f);
  }
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid(4, (unsigned)c_out, (unsigned)n);
  conv_shared_weights<<<grid, kThreads, c_in * 9 * sizeof(float), stream>>>(
      x, weight, bias, scale, y, (int)c_in, (int)h, (int)w, (int)c_out);
}
