#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

// ----------------------------------------------------------------------------------------------
// Fast path: k = n = 4096, m a multiple of 2048.
// ----------------------------------------------------------------------------------------------
constexpr int BM = 128;
constexpr int BN = 128;
constexpr int BK = 8;
constexpr int STAGES = 4;
constexpr int NT = 128;

constexpr int KF = 4096;
constexpr int NF = 4096;
constexpr int ITERS = KF / BK;       // steps of BK in one whole tile
constexpr int TILES_N = NF / BN;     // 32
constexpr int GROUP_M = 16;          // tile rows walked together, for L2 locality

constexpr int LDAS = BM + 4;             // pitch of the transposed tile of a
constexpr int A_STAGE = BK * LDAS;       // floats
constexpr int B_STAGE = BK * BN;         // floats
constexpr int STAGE_F = A_STAGE + B_STAGE;

__device__ __forceinline__ void cp_async4(uint32_t s, const float* g) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(s), "l"(g) : "memory");
}
__device__ __forceinline__ void cp_async16(uint32_t s, const float* g) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(s), "l"(g) : "memory");
}
__device__ __forceinline__ void cp_commit() {
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}
template <int N>
__device__ __forceinline__ void cp_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

__device__ __forceinline__ void tile_coords(int tile, int& tm, int& tn) {
    const int group = tile / (GROUP_M * TILES_N);
    const int in = tile - group * (GROUP_M * TILES_N);
    tm = group * GROUP_M + (in % GROUP_M);
    tn = in / GROUP_M;
}

// First of the leftover iterations that block q computes.
__device__ __forceinline__ int seg_start(int total, int q, int grid) {
    return static_cast<int>(static_cast<long long>(total) * q / grid);
}

__device__ __forceinline__ void load_frag(const float* pa, const float* pb, float (&fa)[16], float (&fb)[8]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float4 v = *reinterpret_cast<const float4*>(pa + i * 16);
        fa[4 * i + 0] = v.x;
        fa[4 * i + 1] = v.y;
        fa[4 * i + 2] = v.z;
        fa[4 * i + 3] = v.w;
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const float4 v = *reinterpret_cast<const float4*>(pb + j * 32);
        fb[4 * j + 0] = v.x;
        fb[4 * j + 1] = v.y;
        fb[4 * j + 2] = v.z;
        fb[4 * j + 3] = v.w;
    }
}

__global__ void __launch_bounds__(NT, 2)
sgemm_fast(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
           float* __restrict__ part, int tiles) {
    __shared__ __align__(128) float smem[STAGES * STAGE_F];

    const int tid = threadIdx.x;
    const int lane = tid & 31;
    const int warp = tid >> 5;
    const int grid = gridDim.x;
    const int cta = blockIdx.x;

    // Work of this block: `full` whole tiles, then its share of the leftover iterations.
    const int full = tiles / grid;
    const int rem = tiles - full * grid;
    const int total = rem * ITERS;
    const int seg_beg = seg_start(total, cta, grid);
    const int seg_end = seg_start(total, cta + 1, grid);
    const int n_tail = (seg_beg < seg_end) ? ((seg_end - 1) / ITERS - seg_beg / ITERS + 1) : 0;
    const int items = full + n_tail;

    // Copies: 8 x 4 bytes of a and 2 x 16 bytes of b for each thread and stage.
    const uint32_t s_base = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
    const int ak = lane & 7;
    const int ar = (warp << 2) | (lane >> 3);
    const uint32_t w_a = s_base + static_cast<uint32_t>((ak * LDAS + ar) * 4);
    const uint32_t w_b = s_base + static_cast<uint32_t>((A_STAGE + warp * BN + lane * 4) * 4);

    // Fragments: warp tile 64 x 64, thread tile 16 x 8.
    const int wm = (warp >> 1) * 64;
    const int wn = (warp & 1) * 64;
    const int ty = ((lane >> 4) << 1) | (lane & 1);   // 0..3
    const int tx = (lane >> 1) & 7;                   // 0..7
    const int r_a = wm + ty * 4;
    const int r_b = A_STAGE + wn + tx * 4;

#pragma unroll 1
    for (int item = 0; item < items; ++item) {
        int tile, it0, n_it;
        if (item < full) {
            tile = item * grid + cta;
            it0 = 0;
            n_it = ITERS;
        } else {
            const int t = seg_beg / ITERS + (item - full);
            const int lo = max(seg_beg, t * ITERS);
            const int hi = min(seg_end, (t + 1) * ITERS);
            tile = full * grid + t;
            it0 = lo - t * ITERS;
            n_it = hi - lo;
        }
        int tm, tn;
        tile_coords(tile, tm, tn);

        const float* g_a = a + static_cast<size_t>(tm * BM + ar) * KF + it0 * BK + ak;
        const float* g_b = b + static_cast<size_t>(it0 * BK + warp) * NF + tn * BN + lane * 4;

        float acc[16][8];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
#pragma unroll
            for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;
        }

        // Fill all stages but one. Past the end, the last step is copied again and never used:
        // this keeps predicates out of the loop.
#pragma unroll
        for (int s = 0; s < STAGES - 1; ++s) {
            const uint32_t off = static_cast<uint32_t>(s * STAGE_F * 4);
#pragma unroll
            for (int i = 0; i < 8; ++i) cp_async4(w_a + off + i * 16 * 4, g_a + i * 16 * KF);
#pragma unroll
            for (int q = 0; q < 2; ++q) cp_async16(w_b + off + q * 4 * BN * 4, g_b + q * 4 * NF);
            cp_commit();
            if (s + 1 < n_it) {
                g_a += BK;
                g_b += BK * NF;
            }
        }
        cp_wait<STAGES - 2>();
        __syncthreads();

        int rd = 0;                                                            // floats
        uint32_t wr = static_cast<uint32_t>((STAGES - 1) * STAGE_F * 4);       // bytes

        float fa[2][16];
        float fb[2][8];
        load_frag(smem + r_a, smem + r_b, fa[0], fb[0]);

#pragma unroll 1
        for (int it = 0; it < n_it; ++it) {
#pragma unroll
            for (int kk = 0; kk < BK; ++kk) {
                if (kk == BK - 1) {
                    cp_wait<STAGES - 2>();
                    __syncthreads();
                    rd = (rd == (STAGES - 1) * STAGE_F) ? 0 : rd + STAGE_F;
                }
                const int nk = (kk + 1) % BK;
                load_frag(smem + rd + r_a + nk * LDAS, smem + rd + r_b + nk * BN,
                          fa[(kk + 1) & 1], fb[(kk + 1) & 1]);

                if (kk < 4) {
                    cp_async4(w_a + wr + (2 * kk) * 16 * 4, g_a + (2 * kk) * 16 * KF);
                    cp_async4(w_a + wr + (2 * kk + 1) * 16 * 4, g_a + (2 * kk + 1) * 16 * KF);
                    if (kk < 2) cp_async16(w_b + wr + kk * 4 * BN * 4, g_b + kk * 4 * NF);
                }
                if (kk == 4) {
                    cp_commit();
                    wr = (wr == static_cast<uint32_t>((STAGES - 1) * STAGE_F * 4))
                             ? 0u
                             : wr + static_cast<uint32_t>(STAGE_F * 4);
                    if (it + STAGES < n_it) {
                        g_a += BK;
                        g_b += BK * NF;
                    }
                }

#pragma unroll
                for (int i = 0; i < 16; ++i) {
#pragma unroll
                    for (int j = 0; j < 8; ++j) {
                        const int jj = (i & 1) ? 7 - j : j;
                        acc[i][jj] = fmaf(fa[kk & 1][i], fb[kk & 1][jj], acc[i][jj]);
                    }
                }
            }
        }

        cp_wait<0>();
        __syncthreads();   // shared memory is free for the next item

        float* dst;
        int ld;
        if (item < full) {
            dst = c + static_cast<size_t>(tm) * BM * NF + tn * BN;
            ld = NF;
        } else {
            dst = part + static_cast<size_t>(2 * cta + (item - full)) * (BM * BN);
            ld = BN;
        }
        dst += static_cast<size_t>(wm + ty * 4) * ld + wn + tx * 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                float* row = dst + static_cast<size_t>(i * 16 + r) * ld;
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    *reinterpret_cast<float4*>(row + j * 32) =
                        make_float4(acc[4 * i + r][4 * j + 0], acc[4 * i + r][4 * j + 1],
                                    acc[4 * i + r][4 * j + 2], acc[4 * i + r][4 * j + 3]);
                }
            }
        }
    }
}

// Adds the partial sums of the leftover tiles, always in the order of k.
constexpr int RED_SPLIT = 8;   // blocks for each tile
constexpr int RED_NT = 256;

__global__ void __launch_bounds__(RED_NT)
reduce_tail(const float* __restrict__ part, float* __restrict__ c, int tiles, int grid) {
    const int full = tiles / grid;
    const int rem = tiles - full * grid;
    const int total = rem * ITERS;
    const int t = blockIdx.y;
    const int x0 = t * ITERS;
    const int x1 = x0 + ITERS;

    int q0 = static_cast<int>(static_cast<long long>(x0) * grid / total);
    while (q0 > 0 && seg_start(total, q0, grid) > x0) --q0;
    while (q0 + 1 < grid && seg_start(total, q0 + 1, grid) <= x0) ++q0;

    constexpr int PER_THREAD = BM * BN / 4 / RED_SPLIT / RED_NT;   // float4s: 2
    float4 sum[PER_THREAD];
#pragma unroll
    for (int e = 0; e < PER_THREAD; ++e) sum[e] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    const int first = blockIdx.x * (RED_NT * PER_THREAD) + threadIdx.x;

    for (int q = q0; q < grid; ++q) {
        const int beg = seg_start(total, q, grid);
        const int end = seg_start(total, q + 1, grid);
        if (beg >= x1) break;
        if (beg == end) continue;
        const int slot = 2 * q + ((t > beg / ITERS) ? 1 : 0);
        const float4* p = reinterpret_cast<const float4*>(part + static_cast<size_t>(slot) * (BM * BN));
#pragma unroll
        for (int e = 0; e < PER_THREAD; ++e) {
            const float4 v = p[first + e * RED_NT];
            sum[e].x += v.x;
            sum[e].y += v.y;
            sum[e].z += v.z;
            sum[e].w += v.w;
        }
    }

    int tm, tn;
    tile_coords(full * grid + t, tm, tn);
    float* dst = c + static_cast<size_t>(tm) * BM * NF + tn * BN;
#pragma unroll
    for (int e = 0; e < PER_THREAD; ++e) {
        const int idx = first + e * RED_NT;
        const int row = idx / (BN / 4);
        const int col = (idx % (BN / 4)) * 4;
        *reinterpret_cast<float4*>(dst + static_cast<size_t>(row) * NF + col) = sum[e];
    }
}

// ----------------------------------------------------------------------------------------------
// Any other size: 64 x 64 tile, 4 x 4 a thread, everything guarded.
// ----------------------------------------------------------------------------------------------
constexpr int GT = 64;
constexpr int GK = 16;

__global__ void __launch_bounds__(256)
sgemm_any(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
          int64_t m, int64_t k, int64_t n) {
    __shared__ __align__(16) float as[GK][GT + 4];
    __shared__ __align__(16) float bs[GK][GT];

    const int tid = threadIdx.x;
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * GT;
    const int64_t col0 = static_cast<int64_t>(blockIdx.x) * GT;
    const int ty = tid >> 4;
    const int tx = tid & 15;

    float acc[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] = 0.0f;
    }

    for (int64_t p0 = 0; p0 < k; p0 += GK) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int kk = tid & 15;
            const int r = (tid >> 4) + 16 * i;
            float v = 0.0f;
            if (row0 + r < m && p0 + kk < k) v = a[(row0 + r) * k + p0 + kk];
            as[kk][r] = v;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int cc = tid & 63;
            const int kk = (tid >> 6) + 4 * i;
            float v = 0.0f;
            if (p0 + kk < k && col0 + cc < n) v = b[(p0 + kk) * n + col0 + cc];
            bs[kk][cc] = v;
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < GK; ++kk) {
            const float4 va = *reinterpret_cast<const float4*>(&as[kk][ty * 4]);
            const float4 vb = *reinterpret_cast<const float4*>(&bs[kk][tx * 4]);
            const float ra[4] = {va.x, va.y, va.z, va.w};
            const float rb[4] = {vb.x, vb.y, vb.z, vb.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(ra[i], rb[j], acc[i][j]);
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int64_t r = row0 + ty * 4 + i;
        if (r < m) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int64_t cc = col0 + tx * 4 + j;
                if (cc < n) c[r * n + cc] = acc[i][j];
            }
        }
    }
}

bool is_fast(int64_t m, int64_t k, int64_t n) {
    return k == KF && n == NF && m > 0 && m % (GROUP_M * BM) == 0 && m <= (1 << 16);
}

int fast_grid() {
    int dev = 0;
    int sms = 0;
    if (cudaGetDevice(&dev) != cudaSuccess) return 0;
    if (cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev) != cudaSuccess) return 0;
    return 2 * sms;
}

}  // namespace

extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t n) {
    if (!is_fast(m, k, n)) return 0;
    // Each block leaves at most two partial tiles.
    return static_cast<size_t>(fast_grid()) * 2 * BM * BN * sizeof(float);
}

extern "C" void launch(
    const float* a /* [m, k] */,
    const float* b /* [k, n] */,
    float* c /* [m, n] output */,
    int64_t m,
    int64_t k,
    int64_t n,
    void* workspace,
    cudaStream_t stream) {
    if (m <= 0 || n <= 0) return;

    if (is_fast(m, k, n) && workspace != nullptr) {
        const int grid = fast_grid();
        if (grid > 0) {
            const int tiles = static_cast<int>(m / BM) * TILES_N;
            float* part = static_cast<float*>(workspace);
            // A hint only: enough shared memory for two blocks on a multiprocessor.
            cudaFuncSetAttribute(sgemm_fast, cudaFuncAttributePreferredSharedMemoryCarveout, 50);
            sgemm_fast<<<grid, NT, 0, stream>>>(a, b, c, part, tiles);
            const int rem = tiles % grid;
            if (rem > 0) {
                reduce_tail<<<dim3(RED_SPLIT, rem), RED_NT, 0, stream>>>(part, c, tiles, grid);
            }
            return;
        }
    }

    const dim3 blocks(static_cast<unsigned>((n + GT - 1) / GT), static_cast<unsigned>((m + GT - 1) / GT));
    sgemm_any<<<blocks, 256, 0, stream>>>(a, b, c, m, k, n);
}
