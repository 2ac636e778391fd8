// cause: stale_tile
// mistake: the pointer of the plane does not advance with the channel: each step loads the tile of channel 0.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int T = 16;

__global__ void conv_tile(const float* x, const float* weight, const float* bias, const float* scale,
                          float* y, int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  __shared__ float tile[T + 2][T + 2];
  const int64_t bx = (int64_t)blockIdx.x * T, by = (int64_t)blockIdx.y * T;
  const int64_t img = blockIdx.z / c_out, co = blockIdx.z % c_out;
  float acc = 0.0f;
  for (int64_t ci = 0; ci < c_in; ++ci) {
    const float* plane = x + img * c_in * h * w;
    for (int r = threadIdx.y; r < T + 2; r += T)
      for (int c = threadIdx.x; c < T + 2; c += T) {
        const int64_t iy = by + r - 1, ix = bx + c - 1;
        tile[r][c] = (iy < 0 || iy >= h || ix < 0 || ix >= w) ? 0.0f : plane[iy * w + ix];
      }
    __syncthreads();
#pragma unroll
    for (int t = 0; t < 9; ++t)
      acc += tile[threadIdx.y + t / 3][threadIdx.x + t % 3] * weight[(co * c_in + ci) * 9 + t];
    __syncthreads();
  }
  const int64_t px = bx + threadIdx.x, py = by + threadIdx.y;
  if (px < w && py < h) y[((img * c_out + co) * h + py) * w + px] = fmaxf((acc + bias[co]) * scale[co], 0.0f);
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((w + T - 1) / T), (unsigned)((h + T - 1) / T), (unsigned)(n * c_out));
  conv_tile<<<grid, dim3(T, T), 0, stream>>>(x, weight, bias, scale, y, c_in, h, w, c_out);
}
