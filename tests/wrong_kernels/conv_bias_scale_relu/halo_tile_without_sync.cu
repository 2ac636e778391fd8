// cause: race
// line: 25
// mistake: the tile with its halo is read before all threads have filled it.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int T = 8;

__global__ void conv_halo(const float* x, const float* weight, const float* bias, const float* scale,
                          float* y, int c_in, int h, int w, int c_out) {
  __shared__ float tile[T + 2][T + 2];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int x0 = blockIdx.x * T, y0 = blockIdx.y * T;
  const int co = blockIdx.z % c_out, img = blockIdx.z / c_out;
  float acc = bias[co];
  for (int ci = 0; ci < c_in; ++ci) {
    for (int i = ty * T + tx; i < (T + 2) * (T + 2); i += T * T) {
      const int r = i / (T + 2), c = i % (T + 2);
      const int iy = y0 + r - 1, ix = x0 + c - 1;
      tile[r][c] = iy >= 0 && iy < h && ix >= 0 && ix < w ? x[((img * c_in + ci) * h + iy) * w + ix] : 0.0f;
    }
    const float* k = weight + (co * c_in + ci) * 9;
    for (int ky = 0; ky < 3; ++ky)
      for (int kx = 0; kx < 3; ++kx) acc += tile[ty + ky][tx + kx] * k[ky * 3 + kx];
    __syncthreads();
  }
  if (x0 + tx < w && y0 + ty < h)
    y[((img * c_out + co) * h + y0 + ty) * w + x0 + tx] = fmaxf(acc * scale[co], 0.0f);
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((w + T - 1) / T), (unsigned)((h + T - 1) / T), (unsigned)(n * c_out));
  conv_halo<<<grid, dim3(T, T), 0, stream>>>(x, weight, bias, scale, y, (int)c_in, (int)h, (int)w,
                                             (int)c_out);
}
