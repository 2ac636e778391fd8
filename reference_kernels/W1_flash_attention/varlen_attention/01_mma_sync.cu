// Rung 1: a block for every tile that might exist.
//
// Changed     the first rung: causal attention by mma.sync, a block for each tile of 64 queries, sequence and
//             head. The longest sequence that is possible has all tokens, so most blocks find no rows and
//             return.
// Why         the lengths are on the device, and the host has to choose a grid.
// Prediction  150 TFLOP/s: causal_attention's rung 4 has 148; a block that returns costs little.
// Came        1.2 ms on an H100, 152.66 TFLOP/s. 785 % of the native baseline.
//
// Shapes      q, o [total, hq, d], k, v [total, hk, d], bf16; cu_seqlens [segments + 1], i32.
// Launch      128 threads per 64 queries, for ceil(total / 64) x segments x hq blocks.
// Resources   128 registers at d 64, 168 at d 128; 41 or 82 KB of shared memory; no workspace.
// Cost        4 hq d FLOPs for each query and key that it sees; masked parts of diagonal tiles besides.
// Divides     d is 64 or 128 and hk divides hq (the problem says so); lengths anything, also 0.
// Source      FlashAttention-2, T. Dao (2023).
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr int kWarps = 4, kThreads = 32 * kWarps, kQueries = 16 * kWarps, kKeys = 64;

/// A tile in shared memory: panels of 64 columns; 16-byte piece p of row r lies at p ^ (r % 8).
__device__ int place(int row, int piece, int rows) {
  return (piece / 8 * rows + row) * 128 + (piece % 8 ^ row % 8) * 16;
}
__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

/// So many rows of a head, 16 bytes at a time; past the last one, zeros. Tokens are `stride` elements apart.
template <int kDim, int kRows>
__device__ void fetch(uint8_t* to, const __nv_bfloat16* from, int64_t stride, int first, int n) {
  constexpr int kPieces = kDim / 8;
#pragma unroll
  for (int i = threadIdx.x; i < kRows * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces, there = first + row < n ? 16 : 0;
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + place(row, piece, kRows))),
        "l"(from + static_cast<int64_t>(there ? first + row : 0) * stride + piece * 8), "r"(there)
        : "memory");
  }
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void arrived() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOnTheirWay) : "memory");
}

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
      "{%0, "
      "%1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ uint32_t pair(float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}

template <int kDim>
constexpr int shared_bytes() {
  return (kQueries + 4 * kKeys) * kDim * 2;
}

template <int kDim>
__global__ void __launch_bounds__(kThreads)
    attention(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, const int* offsets,
              __nv_bfloat16* o, int hq, int hk, float factor) {
  const int start = offsets[blockIdx.y], n = offsets[blockIdx.y + 1] - start;  // the sequence
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;   // most keys first
  if (first >= n) return;
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int kTileBytes = kKeys * kDim * 2;
  uint8_t* const queries = shared;
  const auto k_tile = [&](int stage) { return shared + kQueries * kDim * 2 + stage * 2 * kTileBytes; };
  const auto v_tile = [&](int stage) { return k_tile(stage) + kTileBytes; };
  const int64_t stride_q = hq * kDim, stride_k = hk * kDim;
  const int head = static_cast<int>(blockIdx.z);
  q += start * stride_q + head * kDim, o += start * stride_q + head * kDim;
  k += start * stride_k + head / (hq / hk) * kDim, v += start * stride_k + head / (hq / hk) * kDim;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int keys = first + kQueries < n ? first + kQueries : n, tiles = (keys + kKeys - 1) / kKeys;

  fetch<kDim, kQueries>(queries, q, stride_q, first, n);
  fetch<kDim, kKeys>(k_tile(0), k, stride_k, 0, n);
  commit();
  fetch<kDim, kKeys>(v_tile(0), v, stride_k, 0, n);
  commit();
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {}, result[kDim / 8][4] = {};
  uint32_t a[kDim / 16][4];
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % 2;
    arrived<1>();  // the keys
    __syncthreads();
    if (tile == 0)
#pragma unroll
      for (int i = 0; i < kDim / 16; ++i)
        matrices(a[i], queries + place(warp * 16 + lane % 16, i * 2 + lane / 16, kQueries));
    if (tile + 1 < tiles) fetch<kDim, kKeys>(k_tile(1 - stage), k, stride_k, (tile + 1) * kKeys, n);
    commit();
    float s[kKeys / 8][4] = {};
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i)
#pragma unroll
      for (int j = 0; j < kKeys / 16; ++j) {
        uint32_t b[4];
        matrices(b, k_tile(stage) + place(j * 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2, kKeys));
        multiply(s[j * 2], a[i], b[0], b[1]);
        multiply(s[j * 2 + 1], a[i], b[2], b[3]);
      }
    const int query = first + warp * 16 + lane / 4;
    if ((tile + 1) * kKeys > first + warp * 16 + 1)
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = tile * kKeys + j * 8 + lane % 4 * 2 + i % 2;
          if (key > query + i / 2 * 8) s[j][i] = -INFINITY;
        }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = maximum[half];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) top = fmaxf(top, fmaxf(s[j][half * 2], s[j][half * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
      const float shrink =
          exp2f((maximum[half] - top) * factor);  // key 0 is visible to every query: top is finite
      maximum[half] = top;
      float here = 0;
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int i = half * 2; i < half * 2 + 2; ++i)
          here += s[j][i] = exp2f(fmaf(s[j][i], factor, -top * factor));
      sum[half] = sum[half] * shrink + here;
#pragma unroll
      for (int c = 0; c < kDim / 8; ++c) result[c][half * 2] *= shrink, result[c][half * 2 + 1] *= shrink;
    }
    arrived<1>();  // the values; the next keys may be on their way
    __syncthreads();
    if (tile + 1 < tiles) fetch<kDim, kKeys>(v_tile(1 - stage), v, stride_k, (tile + 1) * kKeys, n);
    commit();
#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      const uint32_t p[4] = {pair(s[j * 2][0], s[j * 2][1]), pair(s[j * 2][2], s[j * 2][3]),
                             pair(s[j * 2 + 1][0], s[j * 2 + 1][1]), pair(s[j * 2 + 1][2], s[j * 2 + 1][3])};
#pragma unroll
      for (int c = 0; c < kDim / 16; ++c) {
        uint32_t b[4];
        matrices_turned(b, v_tile(stage) + place(j * 16 + lane % 16, c * 2 + lane / 16, kKeys));
        multiply(result[c * 2], p, b[0], b[1]);
        multiply(result[c * 2 + 1], p, b[2], b[3]);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
    sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
    const int query = first + warp * 16 + lane / 4 + half * 8;
    if (query >= n) continue;
    const float scale = 1 / sum[half];
#pragma unroll
    for (int c = 0; c < kDim / 8; ++c)
      *reinterpret_cast<uint32_t*>(o + query * stride_q + c * 8 + lane % 4 * 2) =
          pair(result[c][half * 2] * scale, result[c][half * 2 + 1] * scale);
  }
}

template <int kDim>
void start(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, const int32_t* offsets,
           __nv_bfloat16* o, int64_t total, int64_t hq, int64_t hk, int64_t segments, cudaStream_t stream) {
  cudaFuncSetAttribute(attention<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<kDim>());
  const dim3 grid(static_cast<unsigned>((total + kQueries - 1) / kQueries), static_cast<unsigned>(segments),
                  static_cast<unsigned>(hq));
  attention<kDim><<<grid, kThreads, shared_bytes<kDim>(), stream>>>(
      q, k, v, offsets, o, static_cast<int>(hq), static_cast<int>(hk),
      static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim))));
}

extern "C" void launch(const __nv_bfloat16* q /*[total,hq,d]*/, const __nv_bfloat16* k /*[total,hk,d]*/,
                       const __nv_bfloat16* v /*[total,hk,d]*/, const int32_t* cu_seqlens /*[segments + 1]*/,
                       __nv_bfloat16* o /*[total,hq,d]*/, int64_t total, int64_t hq, int64_t d, int64_t hk,
                       int64_t segments, void*, cudaStream_t stream) {
  const auto run = d == 64 ? start<64> : start<128>;
  run(q, k, v, cu_seqlens, o, total, hq, hk, segments, stream);
}
