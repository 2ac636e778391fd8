#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr float kLog2e = 1.4426950408889634f;

__device__ __forceinline__ float neg_inf() { return __int_as_float(0xff800000); }

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// exp(x - m), the difference taken before the scaling so that large inputs stay exact.
__device__ __forceinline__ float exp_diff(float x, float m) { return exp2f((x - m) * kLog2e); }

// ---------------------------------------------------------------------------------------------
// cols == THREADS * VECS * 4: one block a row, the row in registers, one barrier.
// ---------------------------------------------------------------------------------------------
template <int THREADS, int VECS, int MIN_BLOCKS>
__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
softmax_row_regs(const float* __restrict__ x, float* __restrict__ y) {
    constexpr int WARPS = THREADS / 32;
    constexpr int ROW_VECS = THREADS * VECS;
    __shared__ float2 part[WARPS];

    const int tid = threadIdx.x;
    const size_t base = static_cast<size_t>(blockIdx.x) * ROW_VECS + tid;
    const float4* __restrict__ src = reinterpret_cast<const float4*>(x) + base;
    float4* __restrict__ dst = reinterpret_cast<float4*>(y) + base;

    float4 v[VECS];
#pragma unroll
    for (int i = 0; i < VECS; ++i) v[i] = __ldcs(src + i * THREADS);

    float m = neg_inf();
#pragma unroll
    for (int i = 0; i < VECS; ++i)
        m = fmaxf(m, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    m = warp_max(m);
    const float m_use = (m == neg_inf()) ? 0.0f : m;

    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
    for (int i = 0; i < VECS; ++i) {
        v[i].x = exp_diff(v[i].x, m_use);
        v[i].y = exp_diff(v[i].y, m_use);
        v[i].z = exp_diff(v[i].z, m_use);
        v[i].w = exp_diff(v[i].w, m_use);
        s0 += v[i].x;
        s1 += v[i].y;
        s2 += v[i].z;
        s3 += v[i].w;
    }
    const float s = warp_sum((s0 + s1) + (s2 + s3));

    if ((tid & 31) == 0) part[tid >> 5] = make_float2(m, s);
    __syncthreads();

    float2 p[WARPS];
    float row_max = neg_inf();
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        p[w] = part[w];
        row_max = fmaxf(row_max, p[w].x);
    }
    float row_sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) row_sum += p[w].y * exp_diff(p[w].x, row_max);

    const float f = exp_diff(m, row_max) / row_sum;

#pragma unroll
    for (int i = 0; i < VECS; ++i) {
        float4 o;
        o.x = v[i].x * f;
        o.y = v[i].y * f;
        o.z = v[i].z * f;
        o.w = v[i].w * f;
        __stcs(dst + i * THREADS, o);
    }
}

// ---------------------------------------------------------------------------------------------
// cols <= 32 * PER: one warp a row, scalar accesses, the row in registers.
// ---------------------------------------------------------------------------------------------
template <int PER>
__global__ void __launch_bounds__(128)
softmax_warp(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int cols) {
    const int lane = threadIdx.x & 31;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * 4 + (threadIdx.x >> 5);
    if (row >= rows) return;  // the whole warp leaves together
    const float* __restrict__ src = x + row * cols;
    float* __restrict__ dst = y + row * cols;

    float v[PER];
    float m = neg_inf();
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int j = lane + i * 32;
        v[i] = (j < cols) ? src[j] : neg_inf();
        m = fmaxf(m, v[i]);
    }
    m = warp_max(m);

    float s = 0.0f;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int j = lane + i * 32;
        v[i] = (j < cols) ? exp_diff(v[i], m) : 0.0f;
        s += v[i];
    }
    s = warp_sum(s);
    const float f = 1.0f / s;

#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int j = lane + i * 32;
        if (j < cols) dst[j] = v[i] * f;
    }
}

// ---------------------------------------------------------------------------------------------
// Any number of columns: one block a row, the row read again from the caches.
// ---------------------------------------------------------------------------------------------
__global__ void __launch_bounds__(256)
softmax_any(const float* __restrict__ x, float* __restrict__ y, int64_t cols) {
    __shared__ float part_m[8];
    __shared__ float part_s[8];
    const int tid = threadIdx.x;
    const int64_t row = blockIdx.x;
    const float* __restrict__ src = x + row * cols;
    float* __restrict__ dst = y + row * cols;

    float m = neg_inf();
#pragma unroll 4
    for (int64_t j = tid; j < cols; j += 256) m = fmaxf(m, src[j]);
    m = warp_max(m);
    if ((tid & 31) == 0) part_m[tid >> 5] = m;
    __syncthreads();
    m = part_m[0];
#pragma unroll
    for (int w = 1; w < 8; ++w) m = fmaxf(m, part_m[w]);

    float s = 0.0f;
#pragma unroll 4
    for (int64_t j = tid; j < cols; j += 256) s += exp_diff(src[j], m);
    s = warp_sum(s);
    if ((tid & 31) == 0) part_s[tid >> 5] = s;
    __syncthreads();
    s = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) s += part_s[w];
    const float f = 1.0f / s;

#pragma unroll 4
    for (int64_t j = tid; j < cols; j += 256) dst[j] = exp_diff(src[j], m) * f;
}

}  // namespace

extern "C" void launch(
    const float* x /* [rows, cols] */,
    float* y /* [rows, cols] output */,
    int64_t rows,
    int64_t cols,
    void* workspace,
    cudaStream_t stream) {
    (void)workspace;
    if (rows <= 0 || cols <= 0) return;
    const unsigned grid = static_cast<unsigned>(rows);

    if (cols == 4096) {
        softmax_row_regs<128, 8, 8><<<grid, 128, 0, stream>>>(x, y);
    } else if (cols == 8192) {
        softmax_row_regs<256, 8, 4><<<grid, 256, 0, stream>>>(x, y);
    } else if (cols == 2048) {
        softmax_row_regs<128, 4, 8><<<grid, 128, 0, stream>>>(x, y);
    } else if (cols == 1024) {
        softmax_row_regs<128, 2, 8><<<grid, 128, 0, stream>>>(x, y);
    } else if (cols <= 1024) {
        const unsigned blocks = static_cast<unsigned>((rows + 3) / 4);
        const int c = static_cast<int>(cols);
        if (cols <= 32) {
            softmax_warp<1><<<blocks, 128, 0, stream>>>(x, y, rows, c);
        } else if (cols <= 128) {
            softmax_warp<4><<<blocks, 128, 0, stream>>>(x, y, rows, c);
        } else if (cols <= 512) {
            softmax_warp<16><<<blocks, 128, 0, stream>>>(x, y, rows, c);
        } else {
            softmax_warp<32><<<blocks, 128, 0, stream>>>(x, y, rows, c);
        }
    } else {
        softmax_any<<<grid, 256, 0, stream>>>(x, y, cols);
    }
}
