// cause: missing_term
// mistake: ReLU is not applied.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_direct(const float* x, const float* weight, const float* bias, const float* scale,
                            float* y, int c_in, int h, int w, int c_out) {
  const int px = blockIdx.x * blockDim.x + threadIdx.x;
  const int py = blockIdx.y * blockDim.y + threadIdx.y;
  const int co = blockIdx.z % c_out, img = blockIdx.z / c_out;
  if (px >= w || py >= h) return;
  float acc = 0.0f;
  for (int ci = 0; ci < c_in; ++ci) {
    const float* plane = x + (size_t)(img * c_in + ci) * h * w;
    const float* k = weight + (co * c_in + ci) * 9;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx)
        if (py + dy >= 0 && py + dy < h && px + dx >= 0 && px + dx < w)
          acc += plane[(py + dy) * w + px + dx] * k[(dy + 1) * 3 + dx + 1];
  }
  y[((size_t)(img * c_out + co) * h + py) * w + px] = (acc + bias[co]) * scale[co];
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  dim3 block(16, 16);
  dim3 grid((w + 15) / 16, (h + 15) / 16, n * c_out);
  conv_direct<<<grid, block, 0, stream>>>(x, weight, bias, scale, y, (int)c_in, (int)h, (int)w, (int)c_out);
}
