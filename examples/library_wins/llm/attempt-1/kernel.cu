// c = a @ b in fp32-grade precision by splitting each fp32 input into two TF32 numbers (3xTF32) on Hopper tensor cores:
// a*b ~= a_hi*b_hi + a_hi*b_lo + a_lo*b_hi, accumulated in fp32, flushed to c by rounded fp32 adds every 1024 steps of k.
// Needs sm_90a (wgmma, setmaxnreg).
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int BM = 256;                    // rows of c in a tile
constexpr int BN = 128;                    // columns of c in a tile
constexpr int BK = 32;                     // depth of a stage: 32 floats = one 128-byte swizzled row
constexpr int STAGES = 3;
constexpr int A_BYTES = BM * BK * 4;       // 32768, raw fp32, fragment order
constexpr int B_HALF = BN * BK * 4;        // 16384, one of hi, lo
constexpr int B_BYTES = 2 * B_HALF;        // 32768
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int FLUSH = 32;                  // stages between flushes of the accumulators (1024 of k)
constexpr int SMEM_BYTES = STAGES * STAGE_BYTES + 1024 + 128;
constexpr int THREADS = 384;               // 2 consumer warpgroups + 1 producer warpgroup

// ---------------------------------------------------------------- splitting

__device__ __forceinline__ void split_tf32(float x, uint32_t& hi, uint32_t& lo) {
    hi = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;            // round to nearest, 11 significant bits
    const float r = x - __uint_as_float(hi);                      // exact
    lo = (__float_as_uint(r) + 0x1000u) & 0xffffe000u;
}

// ---------------------------------------------------------------- packing

// A image of tile (mt, kt): [m64 block 4][k8 step 4][warp 4][lane 32][4 floats], the wgmma A fragment of each thread.
// B image of tile (nt, kt): hi then lo, each 128 rows (n) of 128 bytes (32 k), 16-byte chunks xor-swizzled by n & 7.
__global__ void __launch_bounds__(256) pack_kernel(const float* __restrict__ a, const float* __restrict__ b,
                                                   char* __restrict__ wa, char* __restrict__ wb,
                                                   int m, int k, int n, int KT, int NT, int blocks_a) {
    __shared__ float s[32 * 129];
    const int tid = threadIdx.x;
    const int lane = tid & 31;
    const int wid = tid >> 5;

    if (static_cast<int>(blockIdx.x) < blocks_a) {
        const int blk = blockIdx.x;
        const int kt = blk % KT;
        const int mb = blk / KT;                                  // block of 64 rows
        const int col = kt * BK + lane;
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int row = mb * 64 + i * 8 + wid;
            v[i] = (row < m && col < k) ? a[static_cast<size_t>(row) * k + col] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) s[(i * 8 + wid) * 36 + lane] = v[i];
        __syncthreads();
        const int mt = mb >> 2;
        float4* out = reinterpret_cast<float4*>(wa + (static_cast<size_t>(mt) * KT + kt) * A_BYTES + (mb & 3) * 8192);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int idx = i * 256 + tid;                        // [ks 4][warp 4][lane 32]
            const int w = (idx >> 5) & 3;
            const int ks = idx >> 7;
            const int r = w * 16 + (lane >> 2);
            const int c = ks * 8 + (lane & 3);
            float4 o;
            o.x = s[r * 36 + c];
            o.y = s[(r + 8) * 36 + c];
            o.z = s[r * 36 + c + 4];
            o.w = s[(r + 8) * 36 + c + 4];
            out[idx] = o;
        }
    } else {
        const int blk = static_cast<int>(blockIdx.x) - blocks_a;
        const int nt = blk % NT;
        const int kt = blk / NT;
        const int nl = tid & 127;
        const int k0 = tid >> 7;                                  // 0 or 1
        const int col = nt * BN + nl;
        float v[16];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const int row = kt * BK + i * 2 + k0;
            v[i] = (row < k && col < n) ? b[static_cast<size_t>(row) * n + col] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < 16; ++i) s[(i * 2 + k0) * 129 + nl] = v[i];
        __syncthreads();
        uint4* out = reinterpret_cast<uint4*>(wb + (static_cast<size_t>(nt) * KT + kt) * B_BYTES);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int idx = i * 256 + tid;
            const int nn = idx >> 3;
            const int chunk = (idx & 7) ^ (nn & 7);
            uint4 h, l;
            split_tf32(s[(chunk * 4 + 0) * 129 + nn], h.x, l.x);
            split_tf32(s[(chunk * 4 + 1) * 129 + nn], h.y, l.y);
            split_tf32(s[(chunk * 4 + 2) * 129 + nn], h.z, l.z);
            split_tf32(s[(chunk * 4 + 3) * 129 + nn], h.w, l.w);
            out[idx] = h;
            out[idx + B_HALF / 16] = l;
        }
    }
}

// ---------------------------------------------------------------- PTX

__device__ __forceinline__ void mbar_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_expect_tx(uint32_t bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbar_arrive(uint32_t bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void mbar_wait(uint32_t bar, uint32_t parity) {
    uint32_t ok;
    do {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(ok)
            : "r"(bar), "r"(parity)
            : "memory");
    } while (!ok);
}

__device__ __forceinline__ void bulk_load(uint32_t dst, const void* src, uint32_t bytes, uint32_t bar) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
        "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(bar)
        : "memory");
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void wgmma_64x128x8(float (&d)[64], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                               uint64_t desc, int scale_d) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, "
        "%68, p, 1, 1;\n"
        "}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(desc), "r"(scale_d));
}

// K-major operand, 128-byte swizzle: stride 1024 bytes between groups of 8 rows.
__device__ __forceinline__ uint64_t make_desc(uint32_t addr) {
    return static_cast<uint64_t>((addr & 0x3FFFFu) >> 4) | (static_cast<uint64_t>(1) << 16) |
           (static_cast<uint64_t>(1024 >> 4) << 32) | (static_cast<uint64_t>(1) << 62);
}

// ---------------------------------------------------------------- main kernel

// 64 rows of a, one stage of 32 k: load, split, issue 12 wgmma as one group.
__device__ __forceinline__ void half_step(float (&acc)[64], uint32_t a_addr, uint64_t desc_hi, int scale_d) {
    uint32_t hi[16], lo[16];
#pragma unroll
    for (int ks = 0; ks < 4; ++ks) {
        float x, y, z, w;
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                     : "r"(a_addr + ks * 2048)
                     : "memory");
        split_tf32(x, hi[ks * 4 + 0], lo[ks * 4 + 0]);
        split_tf32(y, hi[ks * 4 + 1], lo[ks * 4 + 1]);
        split_tf32(z, hi[ks * 4 + 2], lo[ks * 4 + 2]);
        split_tf32(w, hi[ks * 4 + 3], lo[ks * 4 + 3]);
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        asm volatile("" : "+r"(hi[i])::"memory");
        asm volatile("" : "+r"(lo[i])::"memory");
    }
    const uint64_t desc_lo = desc_hi + (B_HALF >> 4);
    wgmma_fence();
#pragma unroll
    for (int ks = 0; ks < 4; ++ks) {
        wgmma_64x128x8(acc, lo[ks * 4], lo[ks * 4 + 1], lo[ks * 4 + 2], lo[ks * 4 + 3], desc_hi + 2 * ks,
                       ks == 0 ? scale_d : 1);
        wgmma_64x128x8(acc, hi[ks * 4], hi[ks * 4 + 1], hi[ks * 4 + 2], hi[ks * 4 + 3], desc_lo + 2 * ks, 1);
        wgmma_64x128x8(acc, hi[ks * 4], hi[ks * 4 + 1], hi[ks * 4 + 2], hi[ks * 4 + 3], desc_hi + 2 * ks, 1);
    }
    wgmma_commit();
}

// Store (first) or add into c what a thread has accumulated of a 64 x 128 block.
__device__ __forceinline__ void flush_block(const float (&acc)[64], float* c, int row, int col, int m, int n,
                                            bool first, bool inner) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int r = row + h * 8;
        float* p = c + static_cast<size_t>(r) * n + col;
        if (inner) {
            if (first) {
#pragma unroll
                for (int nb = 0; nb < 16; ++nb)
                    *reinterpret_cast<float2*>(p + nb * 8) = make_float2(acc[nb * 4 + h * 2], acc[nb * 4 + h * 2 + 1]);
            } else {
                float2 t[16];
#pragma unroll
                for (int nb = 0; nb < 16; ++nb) t[nb] = *reinterpret_cast<const float2*>(p + nb * 8);
#pragma unroll
                for (int nb = 0; nb < 16; ++nb) {
                    t[nb].x += acc[nb * 4 + h * 2];
                    t[nb].y += acc[nb * 4 + h * 2 + 1];
                    *reinterpret_cast<float2*>(p + nb * 8) = t[nb];
                }
            }
        } else if (r < m) {
#pragma unroll
            for (int nb = 0; nb < 16; ++nb) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    if (col + nb * 8 + e < n) {
                        float v = acc[nb * 4 + h * 2 + e];
                        if (!first) v += p[nb * 8 + e];
                        p[nb * 8 + e] = v;
                    }
                }
            }
        }
    }
}

__global__ void __launch_bounds__(THREADS, 1)
    gemm_kernel(const char* __restrict__ wa, const char* __restrict__ wb, float* c, int m, int n, int KT, int MT,
                int tiles) {
    extern __shared__ uint8_t smem_raw[];
    const uint32_t base = (static_cast<uint32_t>(__cvta_generic_to_shared(smem_raw)) + 1023u) & ~1023u;
    const uint32_t full = base + STAGES * STAGE_BYTES;
    const uint32_t empty = full + STAGES * 8;
    const int tid = threadIdx.x;
    const int wg = tid >> 7;

    if (tid == 0) {
        for (int i = 0; i < STAGES; ++i) {
            mbar_init(full + i * 8, 1);
            mbar_init(empty + i * 8, 8);                          // one arrival a consumer warp
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();

    if (wg == 2) {
        // ------------------------------------------------ producer
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (tid == 256) {
            int s = 0;
            uint32_t ph = 0;
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                const int mt = tile % MT;
                const int nt = tile / MT;
                const char* pa = wa + static_cast<size_t>(mt) * KT * A_BYTES;
                const char* pb = wb + static_cast<size_t>(nt) * KT * B_BYTES;
                for (int kt = 0; kt < KT; ++kt) {
                    mbar_wait(empty + s * 8, ph ^ 1u);
                    const uint32_t st = base + s * STAGE_BYTES;
                    mbar_expect_tx(full + s * 8, STAGE_BYTES);
                    bulk_load(st, pa, A_BYTES, full + s * 8);
                    bulk_load(st + A_BYTES, pb, B_BYTES, full + s * 8);
                    pa += A_BYTES;
                    pb += B_BYTES;
                    if (++s == STAGES) {
                        s = 0;
                        ph ^= 1u;
                    }
                }
            }
        }
    } else {
        // ------------------------------------------------ consumers: warpgroup wg computes rows wg*128 .. +127
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int lane = tid & 31;
        const int w = (tid >> 5) & 3;
        const uint32_t a_off = static_cast<uint32_t>(wg * 2 * 8192 + (w * 32 + lane) * 16);

        float acc0[64], acc1[64];
#pragma unroll
        for (int i = 0; i < 64; ++i) {
            acc0[i] = 0.0f;
            acc1[i] = 0.0f;
        }

        int s = 0;
        uint32_t ph = 0;
#pragma unroll 1
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int mt = tile % MT;
            const int nt = tile / MT;
            const bool inner = (mt + 1) * BM <= m && (nt + 1) * BN <= n && (n & 1) == 0;
            const int row = mt * BM + wg * 128 + w * 16 + (lane >> 2);
            const int col = nt * BN + (lane & 3) * 2;

#pragma unroll 1
            for (int kc = 0; kc < KT; kc += FLUSH) {
                const int cnt = (KT - kc < FLUSH) ? KT - kc : FLUSH;
                int prev = 0;
#pragma unroll 1
                for (int i = 0; i < cnt; ++i) {
                    mbar_wait(full + s * 8, ph);
                    __syncwarp();
                    const uint32_t st = base + s * STAGE_BYTES;
                    const uint64_t desc = make_desc(st + A_BYTES);
                    const int scale_d = i > 0 ? 1 : 0;

                    half_step(acc0, st + a_off, desc, scale_d);
                    wgmma_wait<1>();                              // the previous stage is done with
                    if (i > 0 && lane == 0) mbar_arrive(empty + prev * 8);
                    __syncwarp();

                    half_step(acc1, st + a_off + 8192, desc, scale_d);
                    wgmma_wait<1>();                              // acc0's group is done: its fragments are free

                    prev = s;
                    if (++s == STAGES) {
                        s = 0;
                        ph ^= 1u;
                    }
                }
                wgmma_wait<0>();
#pragma unroll
                for (int i = 0; i < 64; ++i) {
                    asm volatile("" : "+f"(acc0[i])::"memory");
                    asm volatile("" : "+f"(acc1[i])::"memory");
                }
                if (lane == 0) mbar_arrive(empty + prev * 8);
                __syncwarp();
                flush_block(acc0, c, row, col, m, n, kc == 0, inner);
                flush_block(acc1, c, row + 64, col, m, n, kc == 0, inner);
                __syncwarp();
            }
        }
    }
}

inline int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }

}  // namespace

extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t n) {
    const int64_t MT = ceil_div(m, BM), KT = ceil_div(k, BK), NT = ceil_div(n, BN);
    return static_cast<size_t>(MT * KT) * A_BYTES + static_cast<size_t>(NT * KT) * B_BYTES;
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
    const int MT = static_cast<int>(ceil_div(m, BM));
    const int KT = static_cast<int>(ceil_div(k, BK));
    const int NT = static_cast<int>(ceil_div(n, BN));
    char* wa = static_cast<char*>(workspace);
    char* wb = wa + static_cast<size_t>(MT) * KT * A_BYTES;

    int dev = 0, sms = 132;
    cudaGetDevice(&dev);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev);
    cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);

    const int blocks_a = MT * 4 * KT;
    const int blocks_b = NT * KT;
    pack_kernel<<<blocks_a + blocks_b, 256, 0, stream>>>(a, b, wa, wb, static_cast<int>(m), static_cast<int>(k),
                                                         static_cast<int>(n), KT, NT, blocks_a);

    const int tiles = MT * NT;
    const int grid = tiles < sms ? tiles : sms;
    gemm_kernel<<<grid, THREADS, SMEM_BYTES, stream>>>(wa, wb, c, static_cast<int>(m), static_cast<int>(n), KT, MT,
                                                       tiles);
}
