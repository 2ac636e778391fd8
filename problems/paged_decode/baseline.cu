// Native baseline: attention over pages as an eager framework would run it: scores, softmax, values, each a
// kernel.
//
// A block has a piece of a sequence and a head of k; the heads of q that share it share its loads, 16 bytes
// each. The scores of all tokens go to the workspace, in fp32, and come back twice. The values of a piece are
// added up in the workspace, too.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256, kPiece = 512;  // tokens of a block

struct Problem {
  const __nv_bfloat16 *q, *k, *v;
  const int *table, *lengths;
  __nv_bfloat16* o;
  float *scores, *parts;  // [b, hq, capacity]; [b, pieces, hq, d]
  int64_t hq, d, max_pages, page, hk, capacity, pieces;

  __device__ int64_t place(int64_t s, int64_t token, int64_t head) const {
    return ((table[s * max_pages + token / page] * page + token % page) * hk + head) * d;
  }
  __device__ int64_t end(int64_t s, int64_t piece) const {
    const int64_t length = lengths[s], last = (piece + 1) * kPiece;
    return length < last ? length : last;
  }
};

/// 16 bytes are eight bf16; a bf16 is the upper half of a float.
__device__ void widen(const __nv_bfloat16* from, float (&x)[8]) {
  const uint4 w = *reinterpret_cast<const uint4*>(from);
  const unsigned word[4] = {w.x, w.y, w.z, w.w};
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = __uint_as_float(word[i] << 16);
    x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
  }
}

/// A thread for a token.
__global__ void scores_of(const Problem p) {
  const int64_t piece = blockIdx.x, head = blockIdx.y, s = blockIdx.z, group = p.hq / p.hk;
  const float factor = rsqrtf(static_cast<float>(p.d));
  for (int64_t token = piece * kPiece + threadIdx.x; token < p.end(s, piece); token += kThreads) {
    float sum[8] = {};
    const __nv_bfloat16 *key = p.k + p.place(s, token, head), *query = p.q + (s * p.hq + head * group) * p.d;
    for (int64_t x = 0; x < p.d; x += 8) {
      float a[8], b[8];
      widen(key + x, a);
#pragma unroll
      for (int g = 0; g < 8; ++g) {
        if (g >= group) break;
        widen(query + g * p.d + x, b);
        for (int i = 0; i < 8; ++i) sum[g] += a[i] * b[i];
      }
    }
#pragma unroll
    for (int g = 0; g < 8; ++g)
      if (g < group) p.scores[(s * p.hq + head * group + g) * p.capacity + token] = sum[g] * factor;
  }
}

/// Combines the values of all threads; every thread gets the result.
template <class Combine>
__device__ float block_reduce(float v, Combine combine) {
  __shared__ float partial[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
  __syncthreads();  // the last result has been read
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) v = combine(v, partial[warp]);
  return v;
}

/// In place; a block for a head of q.
__global__ void softmax(const Problem p) {
  const int64_t s = blockIdx.y, length = p.lengths[s];
  float* const row = p.scores + (s * p.hq + blockIdx.x) * p.capacity;
  float top = -INFINITY, sum = 0;
  for (int64_t j = threadIdx.x; j < length; j += kThreads) top = fmaxf(top, row[j]);
  top = block_reduce(top, [](float a, float b) { return fmaxf(a, b); });
  for (int64_t j = threadIdx.x; j < length; j += kThreads) sum += expf(row[j] - top);
  sum = block_reduce(sum, [](float a, float b) { return a + b; });
  for (int64_t j = threadIdx.x; j < length; j += kThreads) row[j] = expf(row[j] - top) / sum;
}

/// A thread for a column of a head of q; the next threads for the next head.
__global__ void values_of(const Problem p) {
  const int64_t piece = blockIdx.x, head = blockIdx.y, s = blockIdx.z, group = p.hq / p.hk,
                end = p.end(s, piece);
  for (int64_t i = threadIdx.x; i < group * p.d; i += kThreads) {
    const int64_t h = head * group + i / p.d, x = i % p.d;
    const float* weights = p.scores + (s * p.hq + h) * p.capacity;
    float sum = 0;
#pragma unroll 4
    for (int64_t token = piece * kPiece; token < end; ++token)
      sum += weights[token] * __bfloat162float(p.v[p.place(s, token, head) + x]);
    if (piece * kPiece < end) p.parts[((s * p.pieces + piece) * p.hq + h) * p.d + x] = sum;
  }
}

/// Adds up the pieces; a thread for an element of o.
__global__ void add_up(const Problem p) {
  const int64_t h = blockIdx.x, s = blockIdx.y;
  float sum = 0;
  for (int64_t piece = 0; piece * kPiece < p.lengths[s]; ++piece)
    sum += p.parts[((s * p.pieces + piece) * p.hq + h) * p.d + threadIdx.x];
  p.o[(s * p.hq + h) * p.d + threadIdx.x] = __float2bfloat16(sum);
}

int64_t pieces_of(int64_t capacity) { return (capacity + kPiece - 1) / kPiece; }

}  // namespace

extern "C" const char* baseline_label() {
  return "native: 4 kernels over pages (scores, softmax, values, sum), bf16";
}

extern "C" size_t workspace_bytes(int64_t b, int64_t hq, int64_t d, int64_t max_pages, int64_t page,
                                  int64_t /*hk*/) {
  const int64_t capacity = max_pages * page;
  return static_cast<size_t>(b * hq * (capacity + pieces_of(capacity) * d)) * sizeof(float);
}

extern "C" void launch(const __nv_bfloat16* q /*[b,hq,d]*/,
                       const __nv_bfloat16* k_cache /*[b * max_pages,page,hk,d]*/,
                       const __nv_bfloat16* v_cache /*[b * max_pages,page,hk,d]*/,
                       const int32_t* page_table /*[b,max_pages]*/, const int32_t* lengths /*[b]*/,
                       __nv_bfloat16* o /*[b,hq,d]*/, int64_t b, int64_t hq, int64_t d, int64_t max_pages,
                       int64_t page, int64_t hk, void* workspace, cudaStream_t stream) {
  const int64_t capacity = max_pages * page, pieces = pieces_of(capacity);
  float* const scores = static_cast<float*>(workspace);
  const Problem p{q,  k_cache, v_cache,   page_table, lengths, o,        scores, scores + b * hq * capacity,
                  hq, d,       max_pages, page,       hk,      capacity, pieces};
  const dim3 split(static_cast<unsigned>(pieces), static_cast<unsigned>(hk), static_cast<unsigned>(b));
  const dim3 heads(static_cast<unsigned>(hq), static_cast<unsigned>(b));
  scores_of<<<split, kThreads, 0, stream>>>(p);
  softmax<<<heads, kThreads, 0, stream>>>(p);
  values_of<<<split, kThreads, 0, stream>>>(p);
  add_up<<<heads, static_cast<unsigned>(d), 0, stream>>>(p);
}
