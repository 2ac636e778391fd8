// Native baseline: inclusive prefix sum, fp32, in three steps: sums of the pieces, a scan of those by one block, and a scan
// of the pieces that begins with them. 3 n floats move.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kEach = 16;
constexpr int64_t kPiece = int64_t{kThreads} * kEach;

__device__ float inclusive_in_warp(float v) {
  for (int offset = 1; offset < 32; offset *= 2) {
    const float below = __shfl_up_sync(0xffffffffu, v, offset);
    if (threadIdx.x % 32 >= offset) v += below;
  }
  return v;
}

/// The sum of `v` over all threads below this one; the block's total goes to `total`. Barriers before and after use.
__device__ float exclusive_in_block(float v, float& total) {
  __shared__ float warps[kWarps];
  const float inclusive = inclusive_in_warp(v);
  __syncthreads();
  if (threadIdx.x % 32 == 31) warps[threadIdx.x / 32] = inclusive;
  __syncthreads();
  float before = 0;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < static_cast<int>(threadIdx.x) / 32) before += warps[w];
    total += warps[w];
  }
  const float own = __shfl_up_sync(0xffffffffu, inclusive, 1);
  return before + (threadIdx.x % 32 == 0 ? 0.0f : own);
}

__global__ void sum_pieces(const float* __restrict__ x, float* __restrict__ sums, int64_t n) {
  const int64_t first = blockIdx.x * kPiece;
  float sum = 0, total;
  for (int i = 0; i < kEach; ++i)
    if (const int64_t at = first + i * kThreads + threadIdx.x; at < n) sum += x[at];
  exclusive_in_block(sum, total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

/// One block turns the sums of the pieces into what lies before each piece.
__global__ void scan_sums(float* sums, int64_t pieces) {
  float carry = 0;
  for (int64_t first = 0; first < pieces; first += kThreads) {
    const int64_t i = first + threadIdx.x;
    float total;
    const float before = exclusive_in_block(i < pieces ? sums[i] : 0.0f, total);
    if (i < pieces) sums[i] = carry + before;
    carry += total;
  }
}

__global__ void scan_pieces(const float* __restrict__ x, const float* __restrict__ sums, float* __restrict__ y, int64_t n) {
  const int64_t first = blockIdx.x * kPiece;
  float carry = sums[blockIdx.x];
  for (int i = 0; i < kEach; ++i) {
    const int64_t at = first + i * kThreads + threadIdx.x;
    const float v = at < n ? x[at] : 0.0f;
    float total;
    const float before = exclusive_in_block(v, total);
    if (at < n) y[at] = carry + (before + v);
    carry += total;
  }
}

int64_t pieces_of(int64_t n) { return (n + kPiece - 1) / kPiece; }

}  // namespace

extern "C" const char* baseline_label() { return "native prefix sum: sums, scan of the sums, scan; fp32"; }

extern "C" size_t workspace_bytes(int64_t n) { return static_cast<size_t>(pieces_of(n)) * sizeof(float); }

extern "C" void launch(const float* x /*[n]*/, float* y /*[n]*/, int64_t n, void* workspace, cudaStream_t stream) {
  float* sums = static_cast<float*>(workspace);
  const unsigned pieces = static_cast<unsigned>(pieces_of(n));
  sum_pieces<<<pieces, kThreads, 0, stream>>>(x, sums, n);
  scan_sums<<<1, kThreads, 0, stream>>>(sums, pieces);
  scan_pieces<<<pieces, kThreads, 0, stream>>>(x, sums, y, n);
}
