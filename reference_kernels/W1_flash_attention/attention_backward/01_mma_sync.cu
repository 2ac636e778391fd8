// Rung 1: one walk over the scores, on tensor cores, and dq by atomic sums.
//
// Changed     the first rung of this ladder. A block owns 64 keys of a head, 16 a warp, and keeps their dk
//             and dv in registers. It walks over the queries of all heads that share these keys, 64 at a
//             time, and computes their weights again from the logsumexp. Every block adds its part of dq to
//             memory.
// Why         eager PyTorch writes four n x n matrices a head and reads them six times.
// Prediction  130 to 200 TFLOP/s: half of what mma.sync reaches in the forward pass, because every operand
//             comes from shared memory for 16 rows only, and five products share the block with atomics.
// Came        124 TFLOP/s on an H100, a little less.
//
// Shapes      q, o, dout, dq [h, n, d], k, v, dk, dv [hk, n, d], bf16, row-major; lse [h, n], fp32.
// Launch      three kernels: row sums of dout * o; 128 threads per 64 keys of a head of k; dq to bf16.
// Resources   40 or 72 KB of shared memory; workspace 4 h n d bytes for dq's sums, 4 h n for delta.
// Cost        10 h n n d FLOPs; 8 (h + hk) n d bytes, and n / 64 atomic sums for each element of dq.
// Divides     d is 64 or 128 and hk divides h (the problem says so); n anything.
// Source      FlashAttention-2, T. Dao (2023), section on the backward pass.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

using bf16 = __nv_bfloat16;
constexpr int kWarps = 4, kThreads = 32 * kWarps, kTile = 16 * kWarps;  // keys a block, and queries a step

/// A tile in shared memory: panels of 64 columns; 16-byte piece p of row r lies at p ^ (r % 8).
__device__ int place(int row, int piece) {
  return (piece / 8 * kTile + row) * 128 + (piece % 8 ^ row % 8) * 16;
}
__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

/// 64 rows of a head, 16 bytes at a time; past the last one, zeros.
template <int kDim>
__device__ void fetch(uint8_t* to, const bf16* from, int first, int n) {
  constexpr int kPieces = kDim / 8;
#pragma unroll
  for (int i = threadIdx.x; i < kTile * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces, there = first + row < n ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + place(row, piece))),
                 "l"(from + static_cast<int64_t>(there ? first + row : 0) * kDim + piece * 8), "r"(there)
                 : "memory");
  }
}
__device__ void all_arrived() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ void matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row)));
}
__device__ void matrices_turned(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row)));
}
__device__ void multiply(float* d, const uint32_t* a, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ uint32_t pair(float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}

/// d [16 of the left tile's rows, 64 of the right one's] = left rows . right rows, over kDim columns.
template <int kDim>
__device__ void rows_times_rows(float (&d)[8][4], const uint8_t* left, int first_row, const uint8_t* right) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kDim / 16; ++i) {
    uint32_t a[4];
    matrices(a, left + place(first_row + lane % 16, i * 2 + lane / 16));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint32_t b[4];
      matrices(b, right + place(j * 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2));
      multiply(d[j * 2], a, b[0], b[1]);
      multiply(d[j * 2 + 1], a, b[2], b[3]);
    }
  }
}
/// d [16, kDim] += a [16, 16] times rows first_row to first_row + 15 of `right`.
template <int kDim>
__device__ void add_product(float (&d)[kDim / 8][4], const uint32_t* a, const uint8_t* right, int first_row) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int c = 0; c < kDim / 16; ++c) {
    uint32_t b[4];
    matrices_turned(b, right + place(first_row + lane % 16, c * 2 + lane / 16));
    multiply(d[c * 2], a, b[0], b[1]);
    multiply(d[c * 2 + 1], a, b[2], b[3]);
  }
}

/// delta = the sum over a row of dout * o; dq's sums become 0. One warp a row.
__global__ void prepare_rows(const bf16* o, const bf16* dout, float* delta, float* sums, int64_t rows,
                             int dim) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int x = threadIdx.x % 32; x < dim; x += 32) {
    sum += __bfloat162float(o[row * dim + x]) * __bfloat162float(dout[row * dim + x]);
    sums[row * dim + x] = 0;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) delta[row] = sum;
}

template <int kDim>
constexpr int shared_bytes() {
  return 4 * kTile * kDim * 2 + kTile * kTile * 2;
}

/// `heads`: of q, for each head of k. The queries of a head of k are `heads` times n consecutive rows.
template <int kDim>
__global__ void __launch_bounds__(kThreads)
    attention_backward(const bf16* q, const bf16* k, const bf16* v, const bf16* dout, const float* lse,
                       const float* delta, float* sums, bf16* dk, bf16* dv, int n, int heads, float factor,
                       float scale) {
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int kTileBytes = kTile * kDim * 2;
  uint8_t *const keys = shared, *const values = keys + kTileBytes, *const queries = values + kTileBytes,
                 *const douts = queries + kTileBytes, *const gradients = douts + kTileBytes;
  __shared__ float lse_of[kTile], delta_of[kTile];
  const int64_t head = static_cast<int64_t>(blockIdx.y) * n * kDim;  // of k and v
  const int first = blockIdx.x * kTile, tiles = (n + kTile - 1) / kTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp * 16 + lane / 4,
            column = lane % 4 * 2;
  fetch<kDim>(keys, k + head, first, n);
  fetch<kDim>(values, v + head, first, n);
  float my_dk[kDim / 8][4] = {}, my_dv[kDim / 8][4] = {};
  for (int i = 0; i < heads * tiles; ++i) {
    const int tile = (i + blockIdx.x) % (heads * tiles);  // blocks begin at different rows of dq
    const int query = tile % tiles * kTile;
    const int64_t head_row = static_cast<int64_t>(blockIdx.y * heads + tile / tiles) * n;
    fetch<kDim>(queries, q + head_row * kDim, query, n);
    fetch<kDim>(douts, dout + head_row * kDim, query, n);
    if (threadIdx.x < kTile) {  // queries that do not exist have weight 0
      const bool there = query + static_cast<int>(threadIdx.x) < n;
      const int64_t at = head_row + query + threadIdx.x;
      lse_of[threadIdx.x] = there ? lse[at] * static_cast<float>(M_LOG2E) : INFINITY;
      delta_of[threadIdx.x] = there ? delta[at] : 0;
    }
    all_arrived();
    __syncthreads();

    float s[8][4] = {}, dp[8][4] = {};  // 16 keys (row, row + 8) x 64 queries (8 j + column, and the next)
    rows_times_rows<kDim>(s, keys, warp * 16, queries);
    rows_times_rows<kDim>(dp, values, warp * 16, douts);
    uint32_t p[8][2], g[8][2];
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = j * 8 + column, key = row + half * 8;
        const float a = exp2f(fmaf(s[j][half * 2], factor, -lse_of[at]));
        const float b = exp2f(fmaf(s[j][half * 2 + 1], factor, -lse_of[at + 1]));
        p[j][half] = pair(a, b);
        g[j][half] = pair(a * (dp[j][half * 2] - delta_of[at]), b * (dp[j][half * 2 + 1] - delta_of[at + 1]));
        *reinterpret_cast<uint32_t*>(gradients + place(key, j) + column * 2) = g[j][half];
      }
#pragma unroll
    for (int j = 0; j < 4; ++j) {  // accumulators of 16 x 16 scores are a left operand as they are
      const uint32_t a[4] = {p[j * 2][0], p[j * 2][1], p[j * 2 + 1][0], p[j * 2 + 1][1]};
      const uint32_t b[4] = {g[j * 2][0], g[j * 2][1], g[j * 2 + 1][0], g[j * 2 + 1][1]};
      add_product<kDim>(my_dv, a, douts, j * 16);
      add_product<kDim>(my_dk, b, queries, j * 16);
    }
    __syncthreads();  // every warp's gradients are there

    float dq[kDim / 8][4] = {};  // of 16 queries
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint32_t a[4];
      matrices_turned(a, gradients + place(j * 16 + lane / 16 * 8 + lane % 8, warp * 2 + lane / 8 % 2));
      add_product<kDim>(dq, a, keys, j * 16);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = query + row + half * 8;
      if (at >= n) continue;
      float* const to = sums + (head_row + at) * kDim + column;
#pragma unroll
      for (int c = 0; c < kDim / 8; ++c) {
        atomicAdd(to + c * 8, dq[c][half * 2]);
        atomicAdd(to + c * 8 + 1, dq[c][half * 2 + 1]);
      }
    }
    __syncthreads();  // before the next tile is fetched
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int key = first + row + half * 8;
    if (key >= n) continue;
    const int64_t to = head + static_cast<int64_t>(key) * kDim + column;
#pragma unroll
    for (int c = 0; c < kDim / 8; ++c) {
      *reinterpret_cast<uint32_t*>(dv + to + c * 8) = pair(my_dv[c][half * 2], my_dv[c][half * 2 + 1]);
      *reinterpret_cast<uint32_t*>(dk + to + c * 8) =
          pair(my_dk[c][half * 2] * scale, my_dk[c][half * 2 + 1] * scale);
    }
  }
}

/// dq = scale * sums. Two elements a thread.
__global__ void finish_dq(const float* sums, bf16* dq, int64_t pairs, float scale) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const float2 sum = reinterpret_cast<const float2*>(sums)[i];
  reinterpret_cast<uint32_t*>(dq)[i] = pair(sum.x * scale, sum.y * scale);
}

template <int kDim>
void start(const bf16* q, const bf16* k, const bf16* v, const bf16* o, const bf16* dout, const float* lse,
           bf16* dq, bf16* dk, bf16* dv, int64_t h, int64_t n, int64_t hk, void* workspace,
           cudaStream_t stream) {
  const int64_t rows = h * n, pairs = rows * kDim / 2;
  float *const sums = static_cast<float*>(workspace), *const delta = sums + rows * kDim;
  const double scale = 1 / std::sqrt(static_cast<double>(kDim));
  prepare_rows<<<static_cast<unsigned>((rows + 7) / 8), 256, 0, stream>>>(o, dout, delta, sums, rows, kDim);
  cudaFuncSetAttribute(attention_backward<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       shared_bytes<kDim>());
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>(hk));
  attention_backward<kDim><<<grid, kThreads, shared_bytes<kDim>(), stream>>>(
      q, k, v, dout, lse, delta, sums, dk, dv, static_cast<int>(n), static_cast<int>(h / hk),
      static_cast<float>(M_LOG2E * scale), static_cast<float>(scale));
  finish_dq<<<static_cast<unsigned>((pairs + 255) / 256), 256, 0, stream>>>(sums, dq, pairs,
                                                                            static_cast<float>(scale));
}

extern "C" size_t workspace_bytes(int64_t h, int64_t n, int64_t d, int64_t /*hk*/) {
  return static_cast<size_t>(h * n * (d + 1)) * sizeof(float);
}

extern "C" void launch(const bf16* q /*[h,n,d]*/, const bf16* k /*[hk,n,d]*/, const bf16* v /*[hk,n,d]*/,
                       const bf16* o /*[h,n,d]*/, const bf16* dout /*[h,n,d]*/, const float* lse /*[h,n]*/,
                       bf16* dq /*[h,n,d]*/, bf16* dk /*[hk,n,d]*/, bf16* dv /*[hk,n,d]*/, int64_t h,
                       int64_t n, int64_t d, int64_t hk, void* workspace, cudaStream_t stream) {
  if (d == 64)
    start<64>(q, k, v, o, dout, lse, dq, dk, dv, h, n, hk, workspace, stream);
  else
    start<128>(q, k, v, o, dout, lse, dq, dk, dv, h, n, hk, workspace, stream);
}
