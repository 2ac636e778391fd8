// cause: off_by_one
// mistake: the window starts at the pixel itself instead of one above and one to the left of it.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_simple(const float* x, const float* weight, const float* bias, const float* scale,
                            float* y, int c_in, int h, int w, int c_out) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int co = blockIdx.z % c_out;
  int b = blockIdx.z / c_out;
  if (col >= w || row >= h) return;
  float s = 0;
  for (int ci = 0; ci < c_in; ci++) {
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) {
        int r = row + i;
        int c = col + j;
        if (r >= 0 && r < h && c >= 0 && c < w) {
          s += x[b * c_in * h * w + ci * h * w + r * w + c] * weight[co * c_in * 9 + ci * 9 + i * 3 + j];
        }
      }
    }
  }
  s = (s + bias[co]) * scale[co];
  y[b * c_out * h * w + co * h * w + row * w + col] = s > 0 ? s : 0;
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 threads(8, 8);
  dim3 blocks((w + 7) / 8, (h + 7) / 8, n * c_out);
  conv_simple<<<blocks, threads, 0, stream>>>(x, weight, bias, scale, y, c_in, h, w, c_out);
}
