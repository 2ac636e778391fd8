// Rung 1: convolution, scan, gate: three kernels, one thread a channel.
//
// Changed     nothing yet: the formulas, one after the other. The sixteen states of a channel live in the
//             registers of one thread, which makes all the steps.
// Why         the beginning of the ladder: right, coalesced, and as sequential as the formula looks.
// Prediction  8192 threads make 2048 dependent steps: latency, not bandwidth. A few percent of a copy.
//
// Shapes      u, z, dt, y [b, l, e]; into, out_of [b, l, 16]; fp32, row-major; l and b up to 65 535.
// Launch      128 threads over channels; (steps, batches) of blocks, the scan: batches.
// Resources   about 60 registers; b l e floats of workspace.
// Cost        239 b l e FLOPs; the tensors and, three times more, what lies between the kernels.
// Divides     no divisibility is required.
// Source      A. Gu and T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023.
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int kThreads = 128, kStates = 16, kTaps = 4;

__device__ float silu(float x) { return x / (1 + expf(-x)); }
__device__ float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

/// v = silu(causal convolution of u). One element per thread; neighbouring channels are neighbouring lanes.
__global__ void convolve(const float* __restrict__ u, const float* __restrict__ conv, const float* __restrict__ bias, float* __restrict__ v, int64_t l, int64_t e) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (channel >= e) return;
  const int64_t t = blockIdx.y, row = blockIdx.z * l + t;
  float sum = bias[channel];
  for (int k = 0; k < kTaps; ++k)
    if (t - (kTaps - 1) + k >= 0) sum += conv[channel * kTaps + k] * u[(row - (kTaps - 1) + k) * e + channel];
  v[row * e + channel] = silu(sum);
}

/// The states of one channel in the registers of one thread, step by step. Leaves the sums over the states in
/// y.
__global__ void scan(const float* __restrict__ v, const float* __restrict__ dt, const float* __restrict__ into, const float* __restrict__ out_of,
                     const float* __restrict__ log_a, const float* __restrict__ dt_bias, float* __restrict__ y, int64_t l, int64_t e) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (channel >= e) return;
  float a[kStates], h[kStates] = {};
  for (int n = 0; n < kStates; ++n) a[n] = -expf(log_a[channel * kStates + n]);
  for (int64_t t = 0; t < l; ++t) {
    const int64_t row = blockIdx.y * l + t;
    const float delta = softplus(dt[row * e + channel] + dt_bias[channel]), push = delta * v[row * e + channel];
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kStates; ++n) {
      h[n] = expf(delta * a[n]) * h[n] + push * into[row * kStates + n];
      sum += out_of[row * kStates + n] * h[n];
    }
    y[row * e + channel] = sum;
  }
}

/// y = (y + skip v) silu(z)
__global__ void gate(const float* __restrict__ v, const float* __restrict__ z, const float* __restrict__ skip, float* __restrict__ y, int64_t e) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (channel >= e) return;
  const int64_t at = (static_cast<int64_t>(blockIdx.z) * gridDim.y + blockIdx.y) * e + channel;
  y[at] = (y[at] + skip[channel] * v[at]) * silu(z[at]);
}

extern "C" size_t workspace_bytes(int64_t b, int64_t l, int64_t e) { return static_cast<size_t>(b * l * e) * sizeof(float); }

extern "C" void launch(const float* u /*[b,l,e]*/, const float* z /*[b,l,e]*/, const float* dt /*[b,l,e]*/, const float* into /*[b,l,16]*/,
                       const float* out_of /*[b,l,16]*/, const float* conv /*[e,4]*/, const float* bias /*[e]*/, const float* log_a /*[e,16]*/,
                       const float* skip /*[e]*/, const float* dt_bias /*[e]*/, float* y /*[b,l,e]*/, int64_t b, int64_t l, int64_t e, void* workspace, cudaStream_t stream) {
  float* v = static_cast<float*>(workspace);
  const unsigned across = static_cast<unsigned>((e + kThreads - 1) / kThreads), steps = static_cast<unsigned>(l), batches = static_cast<unsigned>(b);
  convolve<<<dim3(across, steps, batches), kThreads, 0, stream>>>(u, conv, bias, v, l, e);
  scan<<<dim3(across, batches), kThreads, 0, stream>>>(v, dt, into, out_of, log_a, dt_bias, y, l, e);
  gate<<<dim3(across, steps, batches), kThreads, 0, stream>>>(v, z, skip, y, e);
}
