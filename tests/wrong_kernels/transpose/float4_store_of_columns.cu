// cause: misaligned
// line: 19
// mistake: four elements are stored as float4 in rows of y whose length is no multiple of 4.
#include <cuda_runtime.h>

#include <cstdint>

// Each thread reads four rows of one column and stores them side by side.
__global__ void transpose_vec4(const float* x, float* y, int64_t rows, int64_t cols) {
  int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int64_t r = ((int64_t)blockIdx.y * blockDim.y + threadIdx.y) * 4;
  if (c >= cols || r >= rows) return;
  if (r + 3 < rows) {
    float4 v;
    v.x = x[r * cols + c];
    v.y = x[(r + 1) * cols + c];
    v.z = x[(r + 2) * cols + c];
    v.w = x[(r + 3) * cols + c];
    *reinterpret_cast<float4*>(y + c * rows + r) = v;
  } else {
    for (int64_t i = r; i < rows && i < r + 4; ++i) y[c * rows + i] = x[i * cols + c];
  }
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 block(32, 4);
  dim3 grid((cols + 31) / 32, (rows + 15) / 16);
  transpose_vec4<<<grid, block, 0, stream>>>(x, y, rows, cols);
}
