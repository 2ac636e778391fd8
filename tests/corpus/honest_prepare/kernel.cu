// Honest: Transposes the weights once in prepare(), untimed, and reads them so in launch().
#include <cuda_runtime.h>
#include <cstddef>
#include <cstdint>

__global__ void transpose(const float* w, float* t, int64_t ins, int64_t outs) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < ins * outs) t[i % ins * outs + i / ins] = w[i];
}

__global__ void linear(const float* x, const float* t, float* y, int64_t rows, int64_t ins, int64_t outs) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i >= rows * outs) return;
  float sum = 0;
  for (int64_t k = 0; k < ins; ++k) sum += x[i / outs * ins + k] * t[k * outs + i % outs];
  y[i] = sum;
}

extern "C" size_t prepared_bytes(int64_t, int64_t ins, int64_t outs) { return size_t(ins) * outs * sizeof(float); }

extern "C" void prepare(const float* w, int64_t, int64_t ins, int64_t outs, void* prepared, cudaStream_t stream) {
  transpose<<<unsigned((ins * outs + 255) / 256), 256, 0, stream>>>(w, static_cast<float*>(prepared), ins, outs);
}

extern "C" void launch(const float* x, const float*, float* y, int64_t rows, int64_t ins, int64_t outs, const void* prepared,
                       void*, cudaStream_t stream) {
  linear<<<unsigned((rows * outs + 255) / 256), 256, 0, stream>>>(x, static_cast<const float*>(prepared), y, rows, ins, outs);
}
