#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kCols = 4096;
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;            // 16
constexpr int kGroups = kCols / (4 * kThreads);  // 2 float4 per thread

__device__ __forceinline__ float gelu(float v) {
    const float h = 0.5f * v;
    return fmaf(h, erff(v * 0.70710678118654752f), h);
}

// Merge two sets of n elements each; half_n = n / 2.
__device__ __forceinline__ void merge_equal(float& mean, float& m2, int mask, float half_n) {
    const float om = __shfl_xor_sync(0xffffffffu, mean, mask);
    const float o2 = __shfl_xor_sync(0xffffffffu, m2, mask);
    const float d = om - mean;
    mean = 0.5f * (mean + om);
    m2 = fmaf(d * d, half_n, m2 + o2);
}

__global__ void __launch_bounds__(kThreads, 2)
fused_4096(const float* __restrict__ x, const float* __restrict__ residual,
           const float* __restrict__ bias, const float* __restrict__ gamma,
           const float* __restrict__ beta, float* __restrict__ y, float eps, int64_t rows) {
    __shared__ float2 part[2][kWarps];

    const int tid = threadIdx.x;
    const int lane = tid & 31;
    const int warp = tid >> 5;
    const int64_t step = gridDim.x;

    const float4* x4 = reinterpret_cast<const float4*>(x);
    const float4* r4 = reinterpret_cast<const float4*>(residual);
    const float4* bias4 = reinterpret_cast<const float4*>(bias);
    const float4* gamma4 = reinterpret_cast<const float4*>(gamma);
    const float4* beta4 = reinterpret_cast<const float4*>(beta);
    float4* y4 = reinterpret_cast<float4*>(y);

    int64_t row = blockIdx.x;
    if (row >= rows) return;

    float4 xv[kGroups], rv[kGroups];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
        const int64_t i = row * (kCols / 4) + g * kThreads + tid;
        xv[g] = __ldcs(x4 + i);
        rv[g] = __ldcs(r4 + i);
    }

    int parity = 0;
    for (; row < rows; row += step) {
        const int64_t next = row + step;
        const bool more = next < rows;

        float t[4 * kGroups];
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            const float4 b = __ldg(bias4 + g * kThreads + tid);
            t[4 * g + 0] = rv[g].x + gelu(xv[g].x + b.x);
            t[4 * g + 1] = rv[g].y + gelu(xv[g].y + b.y);
            t[4 * g + 2] = rv[g].z + gelu(xv[g].z + b.z);
            t[4 * g + 3] = rv[g].w + gelu(xv[g].w + b.w);
            if (more) {
                const int64_t i = next * (kCols / 4) + g * kThreads + tid;
                xv[g] = __ldcs(x4 + i);
                rv[g] = __ldcs(r4 + i);
            }
        }

        // Mean and sum of squared deviations of this thread's 8 elements.
        float mean = (((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]))) * 0.125f;
        float m2 = 0.0f;
#pragma unroll
        for (int k = 0; k < 4 * kGroups; ++k) {
            const float d = t[k] - mean;
            m2 = fmaf(d, d, m2);
        }

        // Across the warp: 8 -> 256 elements.
        merge_equal(mean, m2, 1, 4.0f);
        merge_equal(mean, m2, 2, 8.0f);
        merge_equal(mean, m2, 4, 16.0f);
        merge_equal(mean, m2, 8, 32.0f);
        merge_equal(mean, m2, 16, 64.0f);

        // Across the block: 256 -> 4096. Two buffers make one barrier per row enough.
        if (lane == 0) part[parity][warp] = make_float2(mean, m2);
        __syncthreads();
        const float2 p = part[parity][lane & (kWarps - 1)];
        mean = p.x;
        m2 = p.y;
        merge_equal(mean, m2, 1, 128.0f);
        merge_equal(mean, m2, 2, 256.0f);
        merge_equal(mean, m2, 4, 512.0f);
        merge_equal(mean, m2, 8, 1024.0f);
        parity ^= 1;

        const float rstd = 1.0f / sqrtf(m2 * (1.0f / kCols) + eps);

#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            const float4 ga = __ldg(gamma4 + g * kThreads + tid);
            const float4 be = __ldg(beta4 + g * kThreads + tid);
            float4 o;
            o.x = fmaf((t[4 * g + 0] - mean) * rstd, ga.x, be.x);
            o.y = fmaf((t[4 * g + 1] - mean) * rstd, ga.y, be.y);
            o.z = fmaf((t[4 * g + 2] - mean) * rstd, ga.z, be.z);
            o.w = fmaf((t[4 * g + 3] - mean) * rstd, ga.w, be.w);
            __stcs(y4 + row * (kCols / 4) + g * kThreads + tid, o);
        }
    }
}

constexpr int kGenThreads = 256;

// Sum of two values over the block; every thread gets the result.
__device__ __forceinline__ float2 block_sum(float a, float b, float2* buf) {
#pragma unroll
    for (int m = 16; m > 0; m >>= 1) {
        a += __shfl_xor_sync(0xffffffffu, a, m);
        b += __shfl_xor_sync(0xffffffffu, b, m);
    }
    __syncthreads();  // earlier readers of buf are done
    if ((threadIdx.x & 31) == 0) buf[threadIdx.x >> 5] = make_float2(a, b);
    __syncthreads();
    float2 s = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int w = 0; w < kGenThreads / 32; ++w) {
        s.x += buf[w].x;
        s.y += buf[w].y;
    }
    return s;
}

// Any size. y holds t in between; a thread rereads only elements that it wrote itself.
__global__ void __launch_bounds__(kGenThreads)
fused_any(const float* __restrict__ x, const float* __restrict__ residual,
          const float* __restrict__ bias, const float* __restrict__ gamma,
          const float* __restrict__ beta, float* y, float eps, int64_t rows, int64_t cols) {
    __shared__ float2 buf[kGenThreads / 32];
    const float n = static_cast<float>(cols);

    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float* xr = x + row * cols;
        const float* rr = residual + row * cols;
        float* yr = y + row * cols;

        float sum = 0.0f;
        for (int64_t j = threadIdx.x; j < cols; j += kGenThreads) {
            const float t = rr[j] + gelu(xr[j] + bias[j]);
            yr[j] = t;
            sum += t;
        }
        float mean = block_sum(sum, 0.0f, buf).x / n;

        float d1 = 0.0f, d2 = 0.0f;
        for (int64_t j = threadIdx.x; j < cols; j += kGenThreads) {
            const float d = yr[j] - mean;
            d1 += d;
            d2 = fmaf(d, d, d2);
        }
        const float2 s = block_sum(d1, d2, buf);
        const float shift = s.x / n;  // what rounding left in the first mean
        const float var = fmaxf(s.y / n - shift * shift, 0.0f);
        const float rstd = 1.0f / sqrtf(var + eps);

        for (int64_t j = threadIdx.x; j < cols; j += kGenThreads) {
            const float d = (yr[j] - mean) - shift;
            yr[j] = fmaf(d * rstd, gamma[j], beta[j]);
        }
    }
}

}  // namespace

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols,
                       void* workspace, cudaStream_t stream) {
    (void)workspace;
    if (rows <= 0 || cols <= 0) return;

    if (cols == kCols) {
        int device = 0, sms = 0;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
        if (sms <= 0) sms = 132;
        const int64_t resident = 2 * static_cast<int64_t>(sms);
        const unsigned grid = static_cast<unsigned>(rows < resident ? rows : resident);
        fused_4096<<<grid, kThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, rows);
    } else {
        const int64_t most = 1 << 20;
        const unsigned grid = static_cast<unsigned>(rows < most ? rows : most);
        fused_any<<<grid, kGenThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, rows, cols);
    }
}
