// Rung 2: eight kernels. What stands behind a product moves into the product.
//
// Changed     rotation and the split into q, k and v: a tile is a head, and a thread has columns c and c
//             + 64 of it. Residuals: added to the sums. SwiGLU: a tile has 64 gates and the 64 ups that
//             belong to them. The norms stay kernels: folded into the products (the gain multiplied in,
//             squares added up on the way) they cost 0.8 ms of the inner loop, and save 0.04.
// Why         rung 1's small kernels multiply nothing and move 0.79 GB. The operands of four of them were
//             in the registers of the kernel in front.
// Prediction  0.25 ms less than rung 1: 1.05x.
// Came        5.17 ms on an H100, 372.27 TFLOP/s, 1.06 times the rung before. 65 % of the native baseline.
//
// Shapes      x, y [t, hidden], hidden = 128 hq; weights [outputs, inputs]; k, v [t, hk, 128]; bf16.
// Launch      products: 128 threads for a tile of 128 x 128; attention: 128 threads for 64 queries of a
//             head.
// Resources   products: at most 255 registers, 96 KB of shared memory, two blocks a multiprocessor;
//             attention 80 KB; workspace: 2 t (4 hidden + f) bytes and 512 t.
// Cost        2 t hidden (2 hidden + 256 hk + 3 f) + 256 hq t (t + 1) FLOPs.
// Divides     f % 8 == 0, hq % hk == 0 (the problem says so); t anything.
// Source      two halves of a tile: see gemm_swiglu.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kDim = 128;  // of a head

// ---- numbers ----------------------------------------------------------------------------------------------
/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(uint32_t word) { return __uint_as_float(word << 16); }
__device__ float high(uint32_t word) { return __uint_as_float(word & 0xffff0000u); }
__device__ uint32_t pack(float x, float y) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
  return reinterpret_cast<const uint32_t&>(both);
}
__device__ uint32_t word_at(const bf16* from) { return *reinterpret_cast<const uint32_t*>(from); }
__device__ float silu(float x) { return x / (1 + __expf(-x)); }

/// Cosine and sine of each position and pair. The angle is a double: a float of 4096 radians has lost 11
/// bits.
__global__ void make_table(float2* table, float theta) {
  const double angle = blockIdx.x * exp2(threadIdx.x * (-2.0 / kDim) * log2(static_cast<double>(theta)));
  const double turns = angle / (2 * M_PI);
  float2 to;
  sincosf(static_cast<float>((turns - rint(turns)) * (2 * M_PI)), &to.y, &to.x);
  table[blockIdx.x * (kDim / 2) + threadIdx.x] = to;
}

// ---- RMSNorm --------------------------------------------------------------------------------------------
constexpr int kSmallThreads = 256;

/// RMSNorm: a block for a row; two elements a thread at a time.
__global__ void __launch_bounds__(kSmallThreads)
    normalise(const bf16* __restrict__ x, const bf16* __restrict__ gain, bf16* __restrict__ to, float eps,
              int hidden) {
  __shared__ float partial[kSmallThreads / 32];
  x += static_cast<int64_t>(blockIdx.x) * hidden, to += static_cast<int64_t>(blockIdx.x) * hidden;
  float sum = 0;
  for (int i = 2 * threadIdx.x; i < hidden; i += 2 * kSmallThreads) {
    const uint32_t pair = word_at(x + i);
    sum += low(pair) * low(pair) + high(pair) * high(pair);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kSmallThreads / 32; ++warp) sum += partial[warp];
  const float scale = rsqrtf(sum / static_cast<float>(hidden) + eps);
  for (int i = 2 * threadIdx.x; i < hidden; i += 2 * kSmallThreads) {
    const uint32_t pair = word_at(x + i), factor = word_at(gain + i);
    *reinterpret_cast<uint32_t*>(to + i) =
        pack(low(pair) * scale * low(factor), high(pair) * scale * high(factor));
  }
}

// ---- tensor cores -----------------------------------------------------------------------------------------
__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ void matrices_turned(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
/// d += a b: 16 x 8 results, 16 deep.
__device__ void multiply(float* d, const uint32_t* a, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// 16 bytes to shared memory; zeros, if they do not exist.
__device__ void copy(void* to, const bf16* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to)), "l"(from),
               "r"(exists ? 16 : 0)
               : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void arrived() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOnTheirWay) : "memory");
}

// ---- the product: epilogue(a w^T) -------------------------------------------------------------------------
constexpr int kWarps = 4, kThreads = 32 * kWarps, kRows = 32 * kWarps, kColumns = 128, kDepth = 64,
              kStages = 3;
constexpr int kTileBytes = kRows * kDepth * 2, kProductShared = kStages * 2 * kTileBytes;

/// Rows of 128 bytes; 16-byte piece p of row r lies at p ^ (r % 8).
__device__ int place(int row, int piece) { return row * 128 + (piece ^ row % 8) * 16; }
__device__ uint32_t& word_of(bf16* to) { return *reinterpret_cast<uint32_t*>(to); }

/// q, k and v from a tile, which is one head.
struct Heads {
  const float2* table;
  bf16 *q, *k, *v;
  int hq, hk;

  /// Where a half of the tile begins in w, and how many of its rows exist.
  __device__ int64_t row_of_w(int tile, int half) const { return tile * kColumns + half * (kColumns / 2); }
  __device__ int rows_of_half(int) const { return kColumns / 2; }
  /// Columns c, c + 1 of the tile's first half and of its second half.
  __device__ void store(int token, int head, int c, float a0, float a1, float b0, float b1) const {
    bf16* const to = c + (head < hq        ? q + (static_cast<int64_t>(token) * hq + head) * kDim
                          : head < hq + hk ? k + (static_cast<int64_t>(token) * hk + head - hq) * kDim
                                           : v + (static_cast<int64_t>(token) * hk + head - hq - hk) * kDim);
    if (head < hq + hk) {
      const float4 turn =
          *reinterpret_cast<const float4*>(table + static_cast<int64_t>(token) * (kDim / 2) + c);
      word_of(to) = pack(a0 * turn.x - b0 * turn.y, a1 * turn.z - b1 * turn.w);
      word_of(to + kDim / 2) = pack(b0 * turn.x + a0 * turn.y, b1 * turn.z + a1 * turn.w);
    } else {
      word_of(to) = pack(a0, a1);
      word_of(to + kDim / 2) = pack(b0, b1);
    }
  }
};
/// The product plus what was there before.
struct Residual {
  const bf16* x;
  bf16* to;
  int n;

  __device__ int64_t row_of_w(int tile, int half) const { return tile * kColumns + half * (kColumns / 2); }
  __device__ int rows_of_half(int) const { return kColumns / 2; }
  __device__ void store(int token, int tile, int c, float a0, float a1, float b0, float b1) const {
    const int64_t at = static_cast<int64_t>(token) * n + tile * kColumns + c;
    const uint32_t a = word_at(x + at), b = word_at(x + at + kColumns / 2);
    word_of(to + at) = pack(low(a) + a0, high(a) + a1);
    word_of(to + at + kColumns / 2) = pack(low(b) + b0, high(b) + b1);
  }
};
/// A tile has 64 gates and the 64 ups that belong to them.
struct Gated {
  bf16* to;
  int f;

  __device__ int64_t row_of_w(int tile, int half) const {
    return tile * (kColumns / 2) + static_cast<int64_t>(half) * f;
  }
  __device__ int rows_of_half(int tile) const { return f - tile * (kColumns / 2); }
  __device__ void store(int token, int tile, int c, float gate0, float gate1, float up0, float up1) const {
    const int column = tile * (kColumns / 2) + c;
    if (column < f)
      word_of(to + static_cast<int64_t>(token) * f + column) = pack(silu(gate0) * up0, silu(gate1) * up1);
  }
};

/// Four warps have 32 rows each and all 128 columns: a thread has columns c and c + 64 of its rows.
template <class Epilogue>
__global__ void __launch_bounds__(kThreads, 2)
    product(const bf16* __restrict__ a, const bf16* __restrict__ w, Epilogue epilogue, int m, int k) {
  extern __shared__ __align__(128) uint8_t shared[];
  const int row0 = blockIdx.x * kRows, tile = blockIdx.y, steps = (k + kDepth - 1) / kDepth;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // A thread copies a 16-byte piece of every 16th row.
  const int own_row = threadIdx.x / 8, piece = threadIdx.x % 8, exist = epilogue.rows_of_half(tile);
  const int64_t stride = int64_t{kThreads / 8} * k;
  const bf16* const own_a = a + static_cast<int64_t>(row0 + own_row) * k + piece * 8;
  const bf16* const own_w[2] = {w + (epilogue.row_of_w(tile, 0) + own_row) * k + piece * 8,
                                w + (epilogue.row_of_w(tile, 1) + own_row) * k + piece * 8};
  const auto fetch = [&](int step) {
    uint8_t* const to = shared + step % kStages * 2 * kTileBytes + place(own_row, piece);
    const bool in_k = step * kDepth + piece * 8 < k;
#pragma unroll
    for (int i = 0; i < kRows * 8 / kThreads; ++i) {
      const int row = own_row + i * kThreads / 8;
      const bool in_a = in_k && row0 + row < m, in_w = in_k && row % (kColumns / 2) < exist;
      copy(to + i * kThreads * 16, in_a ? own_a + i * stride + step * kDepth : a, in_a);
      copy(to + kTileBytes + i * kThreads * 16, in_w ? own_w[i / 4] + i % 4 * stride + step * kDepth : a,
           in_w);
    }
  };
  float d[2][16][4] = {};
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) fetch(step);
    commit();
  }
  for (int step = 0; step < steps; ++step) {
    arrived<kStages - 2>();
    __syncthreads();  // this step's tiles are there; those of the step before have been used
    if (step + kStages - 1 < steps) fetch(step + kStages - 1);
    commit();
    const uint8_t *const of_a = shared + step % kStages * 2 * kTileBytes, *const of_w = of_a + kTileBytes;
#pragma unroll
    for (int i = 0; i < kDepth / 16; ++i) {
      uint32_t rows[2][4];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        matrices(rows[half], of_a + place(warp * 32 + half * 16 + lane % 16, i * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        uint32_t b[4];
        matrices(b, of_w + place(j * 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          multiply(d[half][2 * j], rows[half], b[0], b[1]);
          multiply(d[half][2 * j + 1], rows[half], b[2], b[3]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // rows lane / 4, and 8, 16 and 24 below
    const int row = row0 + warp * 32 + i * 8 + lane / 4;
    if (row >= m) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float *const left = d[i / 2][j] + i % 2 * 2, *const right = d[i / 2][j + 8] + i % 2 * 2;
      epilogue.store(row, tile, j * 8 + lane % 4 * 2, left[0], left[1], right[0], right[1]);
    }
  }
}

/// `tiles`: of 128 rows of w.
template <class Epilogue>
void multiply(const bf16* a, const bf16* w, const Epilogue& epilogue, int64_t m, int64_t k, int64_t tiles,
              cudaStream_t stream) {
  cudaFuncSetAttribute(product<Epilogue>, cudaFuncAttributeMaxDynamicSharedMemorySize, kProductShared);
  const dim3 grid(static_cast<unsigned>((m + kRows - 1) / kRows), static_cast<unsigned>(tiles));
  product<Epilogue>
      <<<grid, kThreads, kProductShared, stream>>>(a, w, epilogue, static_cast<int>(m), static_cast<int>(k));
}

// ---- attention: 64 queries of a head against tiles of 64 keys ---------------------------------------------
constexpr int kQueries = 64, kKeys = 64, kAttentionThreads = 128;
constexpr int kKeyBytes = kKeys * kDim * 2, kAttentionShared = kQueries * kDim * 2 + 4 * kKeyBytes;

/// A tile in shared memory: two panels of 64 columns, each as place() says.
__device__ int place(int row, int piece, int rows) { return piece / 8 * rows * 128 + place(row, piece % 8); }

/// 64 rows of a head, `pitch` elements apart.
__device__ void fetch_head(uint8_t* to, const bf16* from, int64_t pitch, int first, int n) {
#pragma unroll 4
  for (int i = threadIdx.x; i < kKeys * kDim / 8; i += kAttentionThreads) {
    const int row = i / (kDim / 8), piece = i % (kDim / 8);
    const bool exists = first + row < n;
    copy(to + place(row, piece, kKeys), exists ? from + (first + row) * pitch + piece * 8 : from, exists);
  }
}

__global__ void __launch_bounds__(kAttentionThreads)
    attention(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v,
              bf16* __restrict__ o, int n, int hq, int hk, float factor) {
  extern __shared__ __align__(128) uint8_t shared[];
  uint8_t* const queries = shared;
  const auto k_tile = [&](int stage) { return shared + kQueries * kDim * 2 + stage * 2 * kKeyBytes; };
  const auto v_tile = [&](int stage) { return k_tile(stage) + kKeyBytes; };
  const int64_t pitch_q = hq * kDim, pitch_k = hk * kDim;
  const int head = blockIdx.x,
            first = (gridDim.y - 1 - blockIdx.y) * kQueries;  // those with the most keys first
  q += head * kDim, o += head * kDim;
  k += head / (hq / hk) * kDim, v += head / (hq / hk) * kDim;  // several heads of q share one of k
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int keys = first + kQueries < n ? first + kQueries : n, tiles = (keys + kKeys - 1) / kKeys;

  fetch_head(queries, q, pitch_q, first, n);
  fetch_head(k_tile(0), k, pitch_k, 0, n);
  commit();
  fetch_head(v_tile(0), v, pitch_k, 0, n);
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
    if (tile + 1 < tiles) fetch_head(k_tile(1 - stage), k, pitch_k, (tile + 1) * kKeys, n);
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
    if ((tile + 1) * kKeys > n || (tile + 1) * kKeys > first + warp * 16 + 1)
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = tile * kKeys + j * 8 + lane % 4 * 2 + i % 2;
          if (key >= n || key > query + i / 2 * 8) s[j][i] = -INFINITY;
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
    if (tile + 1 < tiles) fetch_head(v_tile(1 - stage), v, pitch_k, (tile + 1) * kKeys, n);
    commit();
#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      const uint32_t p[4] = {pack(s[j * 2][0], s[j * 2][1]), pack(s[j * 2][2], s[j * 2][3]),
                             pack(s[j * 2 + 1][0], s[j * 2 + 1][1]), pack(s[j * 2 + 1][2], s[j * 2 + 1][3])};
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
      *reinterpret_cast<uint32_t*>(o + query * pitch_q + c * 8 + lane % 4 * 2) =
          pack(result[c][half * 2] * scale, result[c][half * 2 + 1] * scale);
  }
}

void attend(const bf16* q, const bf16* k, const bf16* v, bf16* o, int64_t t, int64_t hq, int64_t hk,
            cudaStream_t stream) {
  cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, kAttentionShared);
  const dim3 grid(static_cast<unsigned>(hq), static_cast<unsigned>((t + kQueries - 1) / kQueries));
  attention<<<grid, kAttentionThreads, kAttentionShared, stream>>>(
      q, k, v, o, static_cast<int>(t), static_cast<int>(hq), static_cast<int>(hk),
      static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim))));
}

// ---- the layer --------------------------------------------------------------------------------------------
/// The workspace, cut into pieces that start on 256 bytes.
struct Pieces {
  uint8_t* at;
  size_t used = 0;

  template <class T>
  T* next(int64_t count) {
    T* const piece = reinterpret_cast<T*>(at + used);
    used += (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return piece;
  }
};
struct Workspace {
  size_t bytes;
  float2* table;
  bf16 *a, *q, *o, *r, *h;

  Workspace(void* workspace, int64_t rows, int64_t hidden, int64_t f) {
    Pieces pieces{static_cast<uint8_t*>(workspace)};
    table = pieces.next<float2>(rows * (kDim / 2));
    a = pieces.next<bf16>(rows * hidden);
    q = pieces.next<bf16>(rows * hidden), o = pieces.next<bf16>(rows * hidden),
    r = pieces.next<bf16>(rows * hidden);
    h = pieces.next<bf16>(rows * f);
    bytes = pieces.used;
  }
};

extern "C" size_t workspace_bytes(int64_t t, int64_t hq, int64_t /*hk*/, int64_t f) {
  return Workspace(nullptr, t, hq * kDim, f).bytes;
}

extern "C" void launch(const bf16* x /*[t,128 * hq]*/, const bf16* g_1 /*[128 * hq]*/,
                       const bf16* w_qkv /*[128 * (hq + 2 * hk),128 * hq]*/,
                       const bf16* w_o /*[128 * hq,128 * hq]*/, const bf16* g_2 /*[128 * hq]*/,
                       const bf16* w_gu /*[2 * f,128 * hq]*/, const bf16* w_down /*[128 * hq,f]*/,
                       bf16* y /*[t,128 * hq]*/, bf16* k /*[t,hk,128]*/, bf16* v /*[t,hk,128]*/, float eps,
                       float theta, int64_t t, int64_t hq, int64_t hk, int64_t f, void* workspace,
                       cudaStream_t stream) {
  const int64_t hidden = hq * kDim, heads = hq + 2 * hk;
  const Workspace w(workspace, t, hidden, f);
  make_table<<<static_cast<unsigned>(t), kDim / 2, 0, stream>>>(w.table, theta);
  normalise<<<static_cast<unsigned>(t), kSmallThreads, 0, stream>>>(x, g_1, w.a, eps,
                                                                    static_cast<int>(hidden));
  multiply(w.a, w_qkv, Heads{w.table, w.q, k, v, static_cast<int>(hq), static_cast<int>(hk)}, t, hidden,
           heads, stream);
  attend(w.q, k, v, w.o, t, hq, hk, stream);
  multiply(w.o, w_o, Residual{x, w.r, static_cast<int>(hidden)}, t, hidden, hq, stream);
  normalise<<<static_cast<unsigned>(t), kSmallThreads, 0, stream>>>(w.r, g_2, w.a, eps,
                                                                    static_cast<int>(hidden));
  multiply(w.a, w_gu, Gated{w.h, static_cast<int>(f)}, t, hidden, (2 * f + kColumns - 1) / kColumns, stream);
  multiply(w.h, w_down, Residual{w.r, y, static_cast<int>(hidden)}, t, f, hq, stream);
}
