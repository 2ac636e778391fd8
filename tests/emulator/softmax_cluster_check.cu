// The softmax rung that shares long rows over a cluster: the problem's check sizes are too short to reach
// that.
#include "05_cluster.cu"  // of reference_kernels/L8_attention/softmax

#include <cmath>
#include <cstdio>
#include <vector>

static bool right(int64_t rows, int64_t cols) {
  std::vector<float> x(rows * cols), y(rows * cols);
  unsigned state = 12345;
  for (float& v : x) v = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 22) - 2;
  x[cols / 2] = 30;  // one block's maximum is far above the others'
  float *dx, *dy;
  cudaMalloc(&dx, x.size() * 4);
  cudaMalloc(&dy, y.size() * 4);
  cudaMemcpy(dx, x.data(), x.size() * 4, cudaMemcpyHostToDevice);
  launch(dx, dy, rows, cols, nullptr, nullptr);
  if (cudaDeviceSynchronize() != cudaSuccess) return false;
  cudaMemcpy(y.data(), dy, y.size() * 4, cudaMemcpyDeviceToHost);
  cudaFree(dx);
  cudaFree(dy);
  for (int64_t r = 0; r < rows; ++r) {
    double maximum = -1e30, sum = 0;
    for (int64_t c = 0; c < cols; ++c) maximum = std::fmax(maximum, x[r * cols + c]);
    for (int64_t c = 0; c < cols; ++c) sum += std::exp(x[r * cols + c] - maximum);
    for (int64_t c = 0; c < cols; ++c) {
      const double expected = std::exp(x[r * cols + c] - maximum) / sum;
      if (std::fabs(y[r * cols + c] - expected) > 1e-7 + 1e-4 * expected) {
        std::printf("FAIL: row %d, column %d of %d x %d: %g instead of %g\n", int(r), int(c), int(rows), int(cols), y[r * cols + c], expected);
        return false;
      }
    }
  }
  return true;
}

int main() {
  // one block; two, ragged; four with an empty last part; eight; too long for a cluster
  const bool ok = right(3, 4096) && right(3, 9001) && right(2, 16390) && right(1, 65536) && right(1, 65537);
  std::printf(ok ? "PASS\n" : "FAIL\n");
  return ok ? 0 : 1;
}
