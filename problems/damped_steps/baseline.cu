// Native baseline: the steps as a framework makes them: factor and offset of each column by one kernel, then one multiply-add an element.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256;

/// After its steps a column's value is factor * v + offset. One thread a column.
__global__ void solve_columns(const int32_t* __restrict__ steps, const float* __restrict__ drive, float2* __restrict__ motion, float damping, int64_t cols) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c >= cols) return;
  float factor = 1, offset = 0;
  for (int32_t s = 0; s < steps[c]; ++s) {
    factor *= damping;
    offset = damping * offset + drive[s % 16];
  }
  motion[c] = make_float2(factor, offset);
}

/// One block a row at a time.
__global__ void move(const float* __restrict__ x, const float2* __restrict__ motion, float* __restrict__ y, int64_t rows, int64_t cols) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c >= cols) return;
  const float2 m = motion[c];
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) y[r * cols + c] = m.x * x[r * cols + c] + m.y;
}

}  // namespace

extern "C" const char* baseline_label() { return "native: each column solved once, then a multiply-add an element, fp32"; }

extern "C" size_t workspace_bytes(int64_t /*rows*/, int64_t cols) { return static_cast<size_t>(cols) * sizeof(float2); }

extern "C" void launch(const float* x /*[rows,cols]*/, const int32_t* steps /*[cols]*/, const float* drive /*[16]*/, float* y /*[rows,cols]*/,
                       float damping, int64_t rows, int64_t cols, void* workspace, cudaStream_t stream) {
  float2* motion = static_cast<float2*>(workspace);
  const unsigned blocks = static_cast<unsigned>((cols + kThreads - 1) / kThreads);
  solve_columns<<<blocks, kThreads, 0, stream>>>(steps, drive, motion, damping, cols);
  move<<<dim3(blocks, static_cast<unsigned>(rows < 1024 ? rows : 1024)), kThreads, 0, stream>>>(x, motion, y, rows, cols);
}
