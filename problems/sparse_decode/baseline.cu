// Native baseline: one block for 16 heads of a list, tensor cores by mma.sync, online softmax.
//
// A block has 16 heads of a new token and goes through its whole list, 64 tokens at a time, converted to bf16
// in shared memory. A warp computes the scores of eight tokens; then each warp multiplies the weights with 64
// of 512 columns of the same tile. Nothing is split, and every block converts the tokens again.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256, kWarps = 8, kRows = 16, kTokens = 64, kKey = 576, kValue = 512;
constexpr int kBytes = 656, kScales = 512, kPosition = 528;  // [B] of a token; where its parts begin
constexpr int kPitch = kKey + 8, kPitchP = kTokens + 8;      // [elements]: rows shift by four banks

struct Shared {
  __nv_bfloat16 q[kRows * kPitch], tile[kTokens * kPitch], p[kRows * kPitchP];
  float tops[kWarps][kRows], sums[kWarps][kRows];
  int there[kTokens];
};

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void load_matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ void load_transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ uint32_t pair(float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}
/// Eight numbers of a token from column x on, a multiple of 8, in bf16.
__device__ uint4 eight_of(const uint8_t* token, int x) {
  if (x >= kValue) return *reinterpret_cast<const uint4*>(token + kPosition + (x - kValue) * 2);
  const uint2 codes = *reinterpret_cast<const uint2*>(token + x);
  const float scale = reinterpret_cast<const float*>(token + kScales)[x / 128];
  uint32_t out[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t two = (i < 2 ? codes.x : codes.y) >> i % 2 * 16;
    __nv_fp8_e4m3 low, high;
    low.__x = static_cast<uint8_t>(two), high.__x = static_cast<uint8_t>(two >> 8);
    out[i] = pair(static_cast<float>(low) * scale, static_cast<float>(high) * scale);
  }
  return {out[0], out[1], out[2], out[3]};
}

__global__ void __launch_bounds__(kThreads)
    decode(const __nv_bfloat16* q, const uint8_t* cache, const int* indices, __nv_bfloat16* o, int h,
           int topk, float factor) {
  extern __shared__ __align__(16) uint8_t bytes[];
  Shared& at = *reinterpret_cast<Shared*>(bytes);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = blockIdx.x * kRows;
  const int64_t list = blockIdx.y, base = list * h + first_row;
  for (int i = threadIdx.x; i < kRows * kKey / 8; i += kThreads) {
    const int r = i / (kKey / 8), x = i % (kKey / 8) * 8;
    *reinterpret_cast<uint4*>(at.q + r * kPitch + x) =
        first_row + r < h ? *reinterpret_cast<const uint4*>(q + (base + r) * kKey + x) : uint4{};
  }
  float result[8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int first = 0; first < topk; first += kTokens) {
    __syncthreads();  // the last tile has been used
    for (int i = threadIdx.x; i < kTokens * kKey / 8; i += kThreads) {
      const int t = i / (kKey / 8), x = i % (kKey / 8) * 8;
      const int index = first + t < topk ? indices[list * topk + first + t] : -1;
      if (x == 0) at.there[t] = index >= 0;
      *reinterpret_cast<uint4*>(at.tile + t * kPitch + x) =
          index >= 0 ? eight_of(cache + int64_t{index} * kBytes, x) : uint4{};
    }
    __syncthreads();
    // Scores of 16 rows and this warp's eight tokens.
    float score[4] = {};
    for (int k = 0; k < kKey; k += 32) {
      uint32_t b[4], a[4];
      load_matrices(b, at.tile + (warp * 8 + lane % 8) * kPitch + k + lane / 8 * 8);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        load_matrices(a, at.q + lane % 16 * kPitch + k + half * 16 + lane / 16 * 8);
        multiply(score, a, b[half * 2], b[half * 2 + 1]);
      }
    }
    float high[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = score[half * 2 + i];
        x = at.there[warp * 8 + lane % 4 * 2 + i] ? x * factor : -INFINITY;
      }
      high[half] = fmaxf(score[half * 2], score[half * 2 + 1]);
      high[half] = fmaxf(high[half], __shfl_xor_sync(0xffffffffu, high[half], 1));
      high[half] = fmaxf(high[half], __shfl_xor_sync(0xffffffffu, high[half], 2));
      if (lane % 4 == 0) at.tops[warp][lane / 4 + half * 8] = high[half];
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = lane / 4 + half * 8;
      float next = top[half];
      for (int w = 0; w < kWarps; ++w) next = fmaxf(next, at.tops[w][r]);
      const float zero = next == -INFINITY ? 0.0f : next, shrink = exp2f(top[half] - zero);
      top[half] = next;
      const float a = exp2f(score[half * 2] - zero), b = exp2f(score[half * 2 + 1] - zero);
      sum[half] = sum[half] * shrink + a + b;
      *reinterpret_cast<uint32_t*>(at.p + r * kPitchP + warp * 8 + lane % 4 * 2) = pair(a, b);
#pragma unroll
      for (auto& part : result) part[half * 2] *= shrink, part[half * 2 + 1] *= shrink;
    }
    __syncthreads();
    // Weights times this warp's 64 columns.
#pragma unroll
    for (int k = 0; k < kTokens; k += 16) {
      uint32_t a[4], b[4];
      load_matrices(a, at.p + lane % 16 * kPitchP + k + lane / 16 * 8);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        load_transposed(b, at.tile + (k + lane % 16) * kPitch + warp * 64 + n * 16 + lane / 16 * 8);
        multiply(result[n * 2], a, b[0], b[1]);
        multiply(result[n * 2 + 1], a, b[2], b[3]);
      }
    }
  }
  __syncthreads();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
    sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
    if (lane % 4 == 0) at.sums[warp][lane / 4 + half * 8] = sum[half];
  }
  __syncthreads();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = lane / 4 + half * 8;
    if (first_row + r >= h) continue;
    float total = 0;
    for (int w = 0; w < kWarps; ++w) total += at.sums[w][r];
    const float scale = total > 0 ? 1 / total : 0.0f;
#pragma unroll
    for (int n = 0; n < 8; ++n)
      *reinterpret_cast<uint32_t*>(o + (base + r) * kValue + warp * 64 + n * 8 + lane % 4 * 2) =
          pair(result[n][half * 2] * scale, result[n][half * 2 + 1] * scale);
  }
}

}  // namespace

extern "C" const char* baseline_label() {
  return "native: mma.sync, 16 heads of a list a block, not split, bf16";
}

extern "C" void launch(const __nv_bfloat16* q /*[b,s_q,h,576]*/, const uint8_t* cache /*[tokens,656]*/,
                       const int32_t* indices /*[b,s_q,topk]*/, __nv_bfloat16* o /*[b,s_q,h,512]*/, int64_t b,
                       int64_t s_q, int64_t h, int64_t /*tokens*/, int64_t topk, void* /*workspace*/,
                       cudaStream_t stream) {
  const int bytes = static_cast<int>(sizeof(Shared));
  cudaFuncSetAttribute(decode, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(static_cast<unsigned>((h + kRows - 1) / kRows), static_cast<unsigned>(b * s_q));
  decode<<<grid, kThreads, bytes, stream>>>(q, cache, indices, o, static_cast<int>(h), static_cast<int>(topk),
                                            static_cast<float>(M_LOG2E / std::sqrt(double{kKey})));
}
