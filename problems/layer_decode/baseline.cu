// Native baseline: a transformer layer for one new token of each sequence, as an eager framework would run
// it: cuBLAS for the four products, and a kernel for each small operator and for attention.
//
// On the emulated backend there is no cuBLAS; a plain tiled kernel stands in, and its label says so.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kDim = 128;  // of a head

namespace {

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

/// Cosine and sine of each sequence's new position and each pair. The angle is a double: a float of 8192
/// radians has lost 12 bits.
__global__ void make_table(float2* table, const int* lengths, float theta) {
  const double angle =
      lengths[blockIdx.x] * exp2(threadIdx.x * (-2.0 / kDim) * log2(static_cast<double>(theta)));
  const double turns = angle / (2 * M_PI);
  float2 to;
  sincosf(static_cast<float>((turns - rint(turns)) * (2 * M_PI)), &to.y, &to.x);
  table[blockIdx.x * (kDim / 2) + threadIdx.x] = to;
}

// ---- the small operators, a kernel each -------------------------------------------------------------------
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

/// Takes the heads of a token apart, and rotates those of q and k: a block for a token, 64 threads a head.
__global__ void __launch_bounds__(kSmallThreads)
    rotate(const bf16* __restrict__ qkv, const float2* __restrict__ table, bf16* __restrict__ q,
           bf16* __restrict__ k, bf16* __restrict__ v, int hq, int hk) {
  const int64_t token = blockIdx.x;
  const int pair = threadIdx.x % (kDim / 2);
  const float2 turn = table[token * (kDim / 2) + pair];
  for (int head = threadIdx.x / (kDim / 2); head < hq + 2 * hk; head += kSmallThreads / (kDim / 2)) {
    const bf16* const from = qkv + (token * (hq + 2 * hk) + head) * kDim + pair;
    bf16* const to = (head < hq        ? q + (token * hq + head) * kDim
                      : head < hq + hk ? k + (token * hk + head - hq) * kDim
                                       : v + (token * hk + head - hq - hk) * kDim) +
                     pair;
    const float a = __bfloat162float(from[0]), b = __bfloat162float(from[kDim / 2]);
    const bool turned = head < hq + hk;
    to[0] = __float2bfloat16(turned ? a * turn.x - b * turn.y : a);
    to[kDim / 2] = __float2bfloat16(turned ? b * turn.x + a * turn.y : b);
  }
}

__global__ void __launch_bounds__(kSmallThreads)
    add(const bf16* __restrict__ x, const bf16* __restrict__ p, bf16* __restrict__ to, int64_t words) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSmallThreads + threadIdx.x;
  if (i >= words) return;
  const uint32_t a = word_at(x + 2 * i), b = word_at(p + 2 * i);
  reinterpret_cast<uint32_t*>(to)[i] = pack(low(a) + low(b), high(a) + high(b));
}

/// gu [rows, 2 f]: the gates of a row, then its ups.
__global__ void __launch_bounds__(kSmallThreads)
    swiglu(const bf16* __restrict__ gu, bf16* __restrict__ h, int64_t words, int64_t f) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSmallThreads + threadIdx.x;
  if (i >= words) return;
  const int64_t row = 2 * i / f, column = 2 * i % f;
  const uint32_t gate = word_at(gu + row * 2 * f + column), up = word_at(gu + row * 2 * f + f + column);
  reinterpret_cast<uint32_t*>(h)[i] = pack(silu(low(gate)) * low(up), silu(high(gate)) * high(up));
}

// ---- attention: a block for a piece of a sequence and a head of k -----------------------------------------
constexpr int kPiece = 512;  // tokens of a block
constexpr int kAttentionWarps = 8, kAttentionThreads = 32 * kAttentionWarps, kLanes = kDim / 8,
              kTokens = kAttentionThreads / kLanes;
constexpr int kSteps = 4, kMostGroup = 8;  // tokens that 16 lanes ask for at once; heads of q for a head of k

struct Eight {
  float x[8];
  __device__ explicit Eight(uint4 w)
      : x{low(w.x), high(w.x), low(w.y), high(w.y), low(w.z), high(w.z), low(w.w), high(w.w)} {}
};
__device__ uint4 sixteen_bytes(const bf16* at) { return __ldg(reinterpret_cast<const uint4*>(at)); }

/// kGroup: heads of q for a head of k, or the next power of two. A sequence has its cache and the new token
/// behind it.
template <int kGroup>
__global__ void __launch_bounds__(kAttentionThreads)
    attention(const bf16* __restrict__ q, const bf16* __restrict__ k_cache, const bf16* __restrict__ v_cache,
              const int* __restrict__ lengths, const bf16* k, const bf16* v, float* __restrict__ pieces,
              float* __restrict__ weights, int64_t n, int hq, int hk, float factor) {
  __shared__ float tops[kAttentionWarps][kGroup], sums[kAttentionWarps][kGroup],
      parts[kAttentionWarps][kGroup][kDim];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % kLanes * 8, group = hq / hk;
  const int64_t head = blockIdx.y, s = blockIdx.z, first = s * hq + head * group;
  const int length = lengths[s], begin = blockIdx.x * kPiece, end = min(length + 1, begin + kPiece);
  if (begin >= end) return;
  const auto place_of = [&](int token) { return ((s * n + token) * hk + head) * kDim + column; };
  const int64_t place_of_new = (s * hk + head) * kDim + column;
  float query[kGroup][8], mine[kGroup][8] = {}, top[kGroup], sum[kGroup] = {};
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    top[g] = -INFINITY;
    const Eight eight(g < group ? sixteen_bytes(q + (first + g) * kDim + column) : make_uint4(0, 0, 0, 0));
#pragma unroll
    for (int i = 0; i < 8; ++i) query[g][i] = eight.x[i] * factor;
  }
  // All lanes of a warp go on as long as one has a token: they exchange scores.
  for (int token = begin + threadIdx.x / kLanes; token - lane / kLanes < end; token += kSteps * kTokens) {
    uint4 key[kSteps], value[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const int at = token + i * kTokens;
      key[i] = at < length ? sixteen_bytes(k_cache + place_of(at)) : sixteen_bytes(k + place_of_new);
      value[i] = at < length ? sixteen_bytes(v_cache + place_of(at)) : sixteen_bytes(v + place_of_new);
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const Eight keys(key[i]), values(value[i]);
      const bool exists = token + i * kTokens < end;
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
        float score = 0;
#pragma unroll
        for (int x = 0; x < 8; ++x) score += query[g][x] * keys.x[x];
#pragma unroll
        for (int offset = kLanes / 2; offset > 0; offset /= 2)
          score += __shfl_xor_sync(0xffffffffu, score, offset);
        if (!exists) continue;
        if (score > top[g]) {
          const float shrink = exp2f(top[g] - score);
          top[g] = score;
          sum[g] *= shrink;
#pragma unroll
          for (int x = 0; x < 8; ++x) mine[g][x] *= shrink;
        }
        const float weight = exp2f(score - top[g]);
        sum[g] += weight;
#pragma unroll
        for (int x = 0; x < 8; ++x) mine[g][x] += weight * values.x[x];
      }
    }
  }
  // The two halves of a warp, then the warps.
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    const float highest = fmaxf(top[g], __shfl_xor_sync(0xffffffffu, top[g], kLanes));
    const float shrink = top[g] == -INFINITY ? 0 : exp2f(top[g] - highest);
    sum[g] *= shrink;
    sum[g] += __shfl_xor_sync(0xffffffffu, sum[g], kLanes);
#pragma unroll
    for (int x = 0; x < 8; ++x) {
      mine[g][x] *= shrink;
      mine[g][x] += __shfl_xor_sync(0xffffffffu, mine[g][x], kLanes);
    }
    if (lane == 0) tops[warp][g] = highest, sums[warp][g] = sum[g];
    if (lane < kLanes) {
#pragma unroll
      for (int x = 0; x < 8; ++x) parts[warp][g][column + x] = mine[g][x];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < group * kDim; i += kAttentionThreads) {
    const int g = i / kDim, x = i % kDim;
    float highest = -INFINITY, total = 0, result = 0;
    for (int w = 0; w < kAttentionWarps; ++w) highest = fmaxf(highest, tops[w][g]);
    for (int w = 0; w < kAttentionWarps; ++w) {
      if (sums[w][g] == 0) continue;  // a warp without tokens
      const float shrink = exp2f(tops[w][g] - highest);
      total += sums[w][g] * shrink;
      result += parts[w][g][x] * shrink;
    }
    const int64_t place = (s * gridDim.x + blockIdx.x) * hq + head * group + g;
    pieces[place * kDim + x] = result / total;
    if (x == 0) weights[place] = highest + log2f(total);
  }
}

/// The mean of a sequence's pieces, by the sums of their exponentials; a thread for an element of o.
__global__ void __launch_bounds__(kDim)
    merge(const float* __restrict__ pieces, const float* __restrict__ weights,
          const int* __restrict__ lengths, bf16* __restrict__ o, int most) {
  const int64_t h = blockIdx.x, hq = gridDim.x, s = blockIdx.y;
  const int count = lengths[s] / kPiece + 1;  // with the new token
  const auto place_of = [&](int i) { return (s * most + i) * hq + h; };
  float top = -INFINITY, total = 0, value = 0;
  for (int i = 0; i < count; ++i) top = fmaxf(top, weights[place_of(i)]);
#pragma unroll 4
  for (int i = 0; i < count; ++i) {
    const float weight = exp2f(weights[place_of(i)] - top);
    total += weight;
    value += weight * pieces[place_of(i) * kDim + threadIdx.x];
  }
  o[(s * hq + h) * kDim + threadIdx.x] = __float2bfloat16(value / total);
}

int64_t most_pieces(int64_t n) { return n / kPiece + 1; }

void attend(const bf16* q, const bf16* k_cache, const bf16* v_cache, const int* lengths, const bf16* k,
            const bf16* v, float* pieces, float* weights, bf16* o, int64_t b, int64_t n, int64_t hq,
            int64_t hk, cudaStream_t stream) {
  const int64_t group = hq / hk;
  const auto kernel = group <= 1   ? attention<1>
                      : group <= 2 ? attention<2>
                      : group <= 4 ? attention<4>
                                   : attention<kMostGroup>;
  const float factor =
      static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim)));  // exponentials to the base 2
  const auto most = static_cast<unsigned>(most_pieces(n));
  kernel<<<dim3(most, static_cast<unsigned>(hk), static_cast<unsigned>(b)), kAttentionThreads, 0, stream>>>(
      q, k_cache, v_cache, lengths, k, v, pieces, weights, n, static_cast<int>(hq), static_cast<int>(hk),
      factor);
  merge<<<dim3(static_cast<unsigned>(hq), static_cast<unsigned>(b)), kDim, 0, stream>>>(
      pieces, weights, lengths, o, static_cast<int>(most));
}

}  // namespace

#ifndef CAPSTONE_EMULATED

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace {

// What NVIDIA recommends for Hopper (cublasSetWorkspace); ample for older chips.
constexpr int64_t kCublasWorkspace = int64_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
}

/// One handle for the life of the process: creating it costs far more than any product.
cublasHandle_t handle() {
  static const cublasHandle_t created = [] {
    cublasHandle_t h = nullptr;
    check(cublasCreate(&h), "cublasCreate");
    // Sums of pieces of k are not to be rounded to bf16 in between.
    check(cublasSetMathMode(h, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION), "cublasSetMathMode");
    return h;
  }();
  return created;
}

std::string version() {
  int major = 0, minor = 0;
  check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
  return std::to_string(major) + "." + std::to_string(minor);
}

/// c = a w^T. cuBLAS is column-major, and a row-major matrix read that way is its transpose: C^T = W A^T.
void multiply(const bf16* a, const bf16* w, bf16* c, int64_t m, int64_t k, int64_t n, void* workspace,
              cudaStream_t stream) {
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), stream),
        "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), workspace, static_cast<size_t>(kCublasWorkspace)), "cublasSetWorkspace");
  check(cublasGemmEx_64(handle(), CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, w, CUDA_R_16BF, k, a, CUDA_R_16BF,
                        k, &zero, c, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "native: cuBLAS " + version() + " GEMMs, bf16, eight small kernels";
  return label.c_str();
}

#else

namespace {

constexpr int kTile = 16;
constexpr int64_t kCublasWorkspace = 1;

__global__ void tiled(const bf16* __restrict__ a, const bf16* __restrict__ w, bf16* __restrict__ c, int64_t m,
                      int64_t k, int64_t n) {
  __shared__ float a_tile[kTile][kTile + 1], w_tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y,
                first = static_cast<int64_t>(blockIdx.x) * kTile;
  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kTile) {
    const bool in_k = k0 + threadIdx.x < k;
    a_tile[threadIdx.y][threadIdx.x] =
        in_k && row < m ? __bfloat162float(a[row * k + k0 + threadIdx.x]) : 0.0f;
    w_tile[threadIdx.y][threadIdx.x] = in_k && first + threadIdx.y < n
                                           ? __bfloat162float(w[(first + threadIdx.y) * k + k0 + threadIdx.x])
                                           : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
    __syncthreads();
  }
  if (row < m && first + threadIdx.x < n) c[row * n + first + threadIdx.x] = __float2bfloat16(sum);
}
void multiply(const bf16* a, const bf16* w, bf16* c, int64_t m, int64_t k, int64_t n, void* /*workspace*/,
              cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile),
                  static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, dim3(kTile, kTile), 0, stream>>>(a, w, c, m, k, n);
}

}  // namespace

extern "C" const char* baseline_label() {
  return "native: tiled GEMMs, bf16, eight small kernels (emulated: stands in for cuBLAS)";
}

#endif

namespace {

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
  bf16 *a, *qkv, *q, *o, *p, *r, *gu, *h;
  float *parts, *weights;
  void* cublas;

  Workspace(void* workspace, int64_t rows, int64_t hq, int64_t hk, int64_t f, int64_t pieces_of_each) {
    Pieces pieces{static_cast<uint8_t*>(workspace)};
    const int64_t hidden = hq * kDim;
    table = pieces.next<float2>(rows * (kDim / 2));
    a = pieces.next<bf16>(rows * hidden), qkv = pieces.next<bf16>(rows * (hq + 2 * hk) * kDim),
    q = pieces.next<bf16>(rows * hidden);
    o = pieces.next<bf16>(rows * hidden), p = pieces.next<bf16>(rows * hidden),
    r = pieces.next<bf16>(rows * hidden);
    gu = pieces.next<bf16>(rows * 2 * f), h = pieces.next<bf16>(rows * f);
    parts = pieces.next<float>(rows * pieces_of_each * hidden),
    weights = pieces.next<float>(rows * pieces_of_each * hq);
    cublas = pieces.next<uint8_t>(kCublasWorkspace);
    bytes = pieces.used;
  }
};
unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kSmallThreads - 1) / kSmallThreads);
}

}  // namespace

extern "C" size_t workspace_bytes(int64_t b, int64_t hq, int64_t hk, int64_t f, int64_t n) {
  return Workspace(nullptr, b, hq, hk, f, most_pieces(n)).bytes;
}

extern "C" void launch(const bf16* x /*[b,128 * hq]*/, const bf16* g_1 /*[128 * hq]*/,
                       const bf16* w_qkv /*[128 * (hq + 2 * hk),128 * hq]*/,
                       const bf16* w_o /*[128 * hq,128 * hq]*/, const bf16* g_2 /*[128 * hq]*/,
                       const bf16* w_gu /*[2 * f,128 * hq]*/, const bf16* w_down /*[128 * hq,f]*/,
                       const bf16* k_cache /*[b,n,hk,128]*/, const bf16* v_cache /*[b,n,hk,128]*/,
                       const int32_t* lengths /*[b]*/, bf16* y /*[b,128 * hq]*/, bf16* k /*[b,hk,128]*/,
                       bf16* v /*[b,hk,128]*/, float eps, float theta, int64_t b, int64_t hq, int64_t hk,
                       int64_t f, int64_t n, void* workspace, cudaStream_t stream) {
  const Workspace w(workspace, b, hq, hk, f, most_pieces(n));
  const int64_t hidden = hq * kDim;
  const auto rows = static_cast<unsigned>(b);
  make_table<<<rows, kDim / 2, 0, stream>>>(w.table, lengths, theta);
  normalise<<<rows, kSmallThreads, 0, stream>>>(x, g_1, w.a, eps, static_cast<int>(hidden));
  multiply(w.a, w_qkv, w.qkv, b, hidden, (hq + 2 * hk) * kDim, w.cublas, stream);
  rotate<<<rows, kSmallThreads, 0, stream>>>(w.qkv, w.table, w.q, k, v, static_cast<int>(hq),
                                             static_cast<int>(hk));
  attend(w.q, k_cache, v_cache, lengths, k, v, w.parts, w.weights, w.o, b, n, hq, hk, stream);
  multiply(w.o, w_o, w.p, b, hidden, hidden, w.cublas, stream);
  add<<<blocks_for(b * hidden / 2), kSmallThreads, 0, stream>>>(x, w.p, w.r, b * hidden / 2);
  normalise<<<rows, kSmallThreads, 0, stream>>>(w.r, g_2, w.a, eps, static_cast<int>(hidden));
  multiply(w.a, w_gu, w.gu, b, hidden, 2 * f, w.cublas, stream);
  swiglu<<<blocks_for(b * f / 2), kSmallThreads, 0, stream>>>(w.gu, w.h, b * f / 2, f);
  multiply(w.h, w_down, w.p, b, f, hidden, w.cublas, stream);
  add<<<blocks_for(b * hidden / 2), kSmallThreads, 0, stream>>>(w.r, w.p, y, b * hidden / 2);
}
