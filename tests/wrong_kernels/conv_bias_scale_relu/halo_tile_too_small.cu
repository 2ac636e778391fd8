// cause: out_of_bounds
// line: 21
// mistake: the shared tile has no room for the halo: it is 16 x 16 instead of 18 x 18.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int T = 16;
constexpr int S = T;

__global__ void conv_shared(const float* x, const float* weight, const float* bias, const float* scale,
                            float* y, int c_in, int h, int w, int c_out) {
  __shared__ float tile[S * S];
  const int id = threadIdx.y * T + threadIdx.x;
  const int col = blockIdx.x * T + threadIdx.x, row = blockIdx.y * T + threadIdx.y;
  const int img = blockIdx.z / c_out, co = blockIdx.z % c_out;
  float acc = bias[co];
  for (int ci = 0; ci < c_in; ++ci) {
    for (int i = id; i < (T + 2) * (T + 2); i += T * T) {
      const int r = blockIdx.y * T + i / (T + 2) - 1, c = blockIdx.x * T + i % (T + 2) - 1;
      tile[i] = r >= 0 && r < h && c >= 0 && c < w ? x[((img * c_in + ci) * h + r) * w + c] : 0.0f;
    }
    __syncthreads();
    for (int ky = 0; ky < 3; ++ky)
      for (int kx = 0; kx < 3; ++kx)
        acc += tile[(threadIdx.y + ky) * (T + 2) + threadIdx.x + kx] *
               weight[(co * c_in + ci) * 9 + ky * 3 + kx];
    __syncthreads();
  }
  if (col < w && row < h) y[((img * c_out + co) * h + row) * w + col] = fmaxf(acc * scale[co], 0.0f);
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((w + T - 1) / T, (h + T - 1) / T, n * c_out);
  conv_shared<<<grid, dim3(T, T), 0, stream>>>(x, weight, bias, scale, y, (int)c_in, (int)h, (int)w,
                                               (int)c_out);
}
