// Rung 3: tensor cores, and each warp works alone.
//
// Changed     both products are mma.sync of 16 x 8 x 16. Four warps share 64 queries, 16 each; scores,
//             weights and results stay in a warp's registers: the accumulators of the first product are
//             the left operand of the second. Keys and values come by cp.async, a tile ahead.
// Why         rung 2 multiplies with fp32 units, and carries its weights through shared memory.
// Prediction  250 to 330 TFLOP/s, near FlashAttention-2.
// Came        204 TFLOP/s, less than predicted.
//
// Shapes      q, k, v, o [h, n, d], fp16, row-major.
// Launch      128 threads per 64 queries.
// Resources   128 registers at d 64, 169 at d 128; 41 or 82 KB of shared memory; no workspace.
// Cost        4 h n n d FLOPs; 8 h n d bytes.
// Divides     d is 64 or 128 (the problem says so); n anything.
// Source      FlashAttention-2, T. Dao (2023).
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr bool kCausal = false;  // causal_attention's rung 4 is this file with true
constexpr int kWarps = 4, kThreads = 32 * kWarps, kQueries = 16 * kWarps, kKeys = 64;

/// A tile in shared memory: panels of 64 columns; 16-byte piece p of row r lies at p ^ (r % 8).
__device__ int place(int row, int piece, int rows) {
  return (piece / 8 * rows + row) * 128 + (piece % 8 ^ row % 8) * 16;
}
__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

/// So many rows of a head, 16 bytes at a time; past the last one, zeros.
template <int kDim, int kRows>
__device__ void fetch(uint8_t* to, const __half* from, int first, int n) {
  constexpr int kPieces = kDim / 8;
#pragma unroll
  for (int i = threadIdx.x; i < kRows * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces, there = first + row < n ? 16 : 0;
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + place(row, piece, kRows))),
        "l"(from + static_cast<int64_t>(there ? first + row : 0) * kDim + piece * 8), "r"(there)
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
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ uint32_t halves(float a, float b) {
  const __half2 both = __floats2half2_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}

template <int kDim>
constexpr int shared_bytes() {
  return (kQueries + 4 * kKeys) * kDim * 2;
}

template <int kDim>
__global__ void __launch_bounds__(kThreads)
    attention(const __half* q, const __half* k, const __half* v, __half* o, int n, float factor) {
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int kTileBytes = kKeys * kDim * 2;
  uint8_t* const queries = shared;
  const auto k_tile = [&](int stage) { return shared + kQueries * kDim * 2 + stage * 2 * kTileBytes; };
  const auto v_tile = [&](int stage) { return k_tile(stage) + kTileBytes; };
  const int64_t head = static_cast<int64_t>(blockIdx.y) * n * kDim;
  const int first = (kCausal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) *
                    kQueries;  // causal: those with the most keys first
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int keys = kCausal && first + kQueries < n ? first + kQueries : n, tiles = (keys + kKeys - 1) / kKeys;

  fetch<kDim, kQueries>(queries, q + head, first, n);
  fetch<kDim, kKeys>(k_tile(0), k + head, 0, n);
  commit();
  fetch<kDim, kKeys>(v_tile(0), v + head, 0, n);
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
    if (tile + 1 < tiles) fetch<kDim, kKeys>(k_tile(1 - stage), k + head, (tile + 1) * kKeys, n);
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
    if ((tile + 1) * kKeys > n || (kCausal && (tile + 1) * kKeys > first + warp * 16 + 1))
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = tile * kKeys + j * 8 + lane % 4 * 2 + i % 2;
          if (key >= n || (kCausal && key > query + i / 2 * 8)) s[j][i] = -INFINITY;
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
    if (tile + 1 < tiles) fetch<kDim, kKeys>(v_tile(1 - stage), v + head, (tile + 1) * kKeys, n);
    commit();
#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      const uint32_t p[4] = {halves(s[j * 2][0], s[j * 2][1]), halves(s[j * 2][2], s[j * 2][3]),
                             halves(s[j * 2 + 1][0], s[j * 2 + 1][1]),
                             halves(s[j * 2 + 1][2], s[j * 2 + 1][3])};
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
      *reinterpret_cast<uint32_t*>(o + head + static_cast<int64_t>(query) * kDim + c * 8 + lane % 4 * 2) =
          halves(result[c][half * 2] * scale, result[c][half * 2 + 1] * scale);
  }
}

template <int kDim>
void start(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
           cudaStream_t stream) {
  cudaFuncSetAttribute(attention<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<kDim>());
  const dim3 grid(static_cast<unsigned>((n + kQueries - 1) / kQueries), static_cast<unsigned>(h));
  attention<kDim><<<grid, kThreads, shared_bytes<kDim>(), stream>>>(
      q, k, v, o, static_cast<int>(n), static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim))));
}

extern "C" void launch(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
                       int64_t d, void*, cudaStream_t stream) {
  if (d == 64)
    start<64>(q, k, v, o, h, n, stream);
  else
    start<128>(q, k, v, o, h, n, stream);
}
