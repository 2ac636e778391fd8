// honest: sgemm whose sum over k is split among blocks. Every thread makes a fence, then a barrier, then one thread takes the ticket.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kTile = 16, kSplits = 4;

__global__ void product(const float* a, const float* b, float* c, float* parts, unsigned* tickets, int64_t m, int64_t k, int64_t n) {
  __shared__ float tile_a[kTile][kTile + 1], tile_b[kTile][kTile + 1];
  __shared__ bool last;
  const int64_t row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  const int64_t tiles = (k + kTile - 1) / kTile, first = tiles * blockIdx.z / kSplits, end = tiles * (blockIdx.z + 1) / kSplits;
  float sum = 0;
  for (int64_t tile = first; tile < end; ++tile) {
    const int64_t ka = tile * kTile + threadIdx.x, kb = tile * kTile + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0;
    tile_b[threadIdx.y][threadIdx.x] = kb < k && column < n ? b[kb * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  const bool inside = row < m && column < n;
  if (inside) parts[blockIdx.z * m * n + row * n + column] = sum;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicInc(&tickets[blockIdx.y * gridDim.x + blockIdx.x], kSplits - 1) == kSplits - 1;
  __syncthreads();
  if (!last || !inside) return;
  __threadfence();
  sum = 0;
  for (int split = 0; split < kSplits; ++split) sum += __ldcg(&parts[split * m * n + row * n + column]);
  c[row * n + column] = sum;
}

static size_t tiles_of(int64_t m, int64_t n) { return static_cast<size_t>((m + kTile - 1) / kTile * ((n + kTile - 1) / kTile)); }

extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t n) {
  return static_cast<size_t>(m * n) * kSplits * sizeof(float) + tiles_of(m, n) * sizeof(unsigned);
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, void* workspace, cudaStream_t stream) {
  auto* parts = static_cast<float*>(workspace);
  auto* tickets = reinterpret_cast<unsigned*>(parts + m * n * kSplits);
  cudaMemsetAsync(tickets, 0, tiles_of(m, n) * sizeof(unsigned), stream);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((m + kTile - 1) / kTile), kSplits);
  product<<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, c, parts, tickets, m, k, n);
}
