// Rung 4: the four products by WGMMA.
//
// Changed     the four warps multiply together. Tiles are swizzled; scores and the product with the state
//             take both operands from shared memory, weights and weighted x come from registers, x and into
//             are turned by the descriptor.
// Why         in rung 3 every warp loads the right operand of every product for itself, 212 KB a chunk, and
//             shared memory delivers 128 bytes a clock. wgmma reads it once for four warps.
// Prediction  1.5x rung 3: 150 KB a chunk go through shared memory, 1200 clocks, and 900 are products.
// Came        256 us on an H100, 1129 GB/s, 1.14 times the rung before. 1194 % of the native baseline.
//
// Shapes      x, y [b, l, h, 64], into, out_of [b, l, g, 128], bf16; dt [b, l, h], a [h], state [b, h, 64,
//             128], fp32.
// Launch      one block of 128 threads a batch and head, two blocks a multiprocessor.
// Resources   64 states and about 150 other registers a thread; 99 KB of shared memory: two chunks and the
//             state in bf16. No workspace.
// Cost        57 000 b l h FLOPs; 4 · 64 b l h bytes; into and out_of come from the L2 cache, once a head.
// Divides     no divisibility is required: steps behind the last one have dt = 0; h % g == 0 (the problem
//             says so).
// Source      weights as a left operand in registers: J. Shah et al., "FlashAttention-3", 2024. Needs sm_90a.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kChannels = 64, kStates = 128, kChunk = 64, kThreads = 128;
constexpr int kBox = 64 * 64;  // elements: 64 rows of 128 bytes
constexpr float kLog2E = 1.44269504f;

/// What a chunk needs, and what the warps leave for each other. Boxes have 64 columns; piece p of 16 bytes of
/// row r lies at p ^ (r % 8).
struct Tiles {
  bf16 x[kBox], into[2 * kBox], out_of[2 * kBox];
};
struct Shared {
  Tiles tiles[2];
  bf16 state[2 * kBox];
  float2 times[kThreads / 32][kChunk];  // each warp's: log2 of the decay since the chunk began, and dt
};

struct Problem {
  const bf16 *x, *into, *out_of;
  const float *dt, *a;
  int64_t l, h, g;
};

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ float power(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ uint32_t pack(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return reinterpret_cast<const uint32_t&>(pair);
}
__device__ float2 unpack(uint32_t word) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}

/// Where a matrix lies, for wgmma: rows of 128 bytes, swizzled, eight after eight, and boxes of 64 columns.
__device__ uint64_t matrix(const bf16* start) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) |
         static_cast<uint64_t>(kBox * sizeof(bf16) / 16) << 16 | static_cast<uint64_t>(1024 / 16) << 32 |
         uint64_t{1} << 62;
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
/// d = a * b, or d += a * b: 64 x 64 results, 16 deep, by four warps. Starts it, does not wait.
__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, 0, 0;\n"
      "}"
      : D16(0), D16(16)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
/// The same with the left operand in registers, as mma.sync has it, and b along its columns.
__device__ void multiply_weights(float (&d)[32], const uint32_t (&a)[4], uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, p, 1, 1, 1;\n"
      "}"
      : D16(0), D16(16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
}
/// The same with 64 x 128 results.
__device__ void multiply_channels(float (&d)[64], const uint32_t (&a)[4], uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
      "}"
      : D16(0), D16(16), D16(32), D16(48)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
}
#undef D16
#undef D4
__device__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOnTheirWay) : "memory");
}
__device__ void load_transposed(uint32_t (&d)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address(row))
               : "memory");
}

/// The place of an element: rows of `columns` in boxes.
__device__ int place(int row, int column) {
  return column / 64 * kBox + row * 64 + ((column % 64 / 8 ^ row % 8) * 8) + column % 8;
}

/// Starts copies of `rows` rows of a tensor, a row `stride` apart; zeros in the others.
template <int kColumns>
__device__ void fetch(bf16* tile, const bf16* from, int64_t stride, int rows) {
  constexpr int kPieces = kColumns / 8;
#pragma unroll
  for (int i = threadIdx.x; i < kChunk * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(tile + place(row, piece))),
                 "l"(from + (row < rows ? row : 0) * stride + piece), "r"(row < rows ? 16 : 0)
                 : "memory");
  }
}
__device__ void fetch_chunk(Tiles& tiles, const Problem& problem, int64_t batch, int64_t head,
                            int64_t first) {
  const int rows = problem.l - first < kChunk ? static_cast<int>(problem.l - first) : kChunk;
  const int64_t group = head / (problem.h / problem.g), step = batch * problem.l + first;
  fetch<kChannels>(tiles.x, problem.x + (step * problem.h + head) * kChannels, problem.h * kChannels, rows);
  fetch<kStates>(tiles.into, problem.into + (step * problem.g + group) * kStates, problem.g * kStates, rows);
  fetch<kStates>(tiles.out_of, problem.out_of + (step * problem.g + group) * kStates, problem.g * kStates,
                 rows);
  asm volatile("cp.async.commit_group;" ::: "memory");
}

__global__ void __launch_bounds__(kThreads, 2)
    scan(Problem problem, bf16* __restrict__ y, float* __restrict__ last) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const int64_t batch = blockIdx.x / problem.h, head = blockIdx.x % problem.h, l = problem.l;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, far = lane / 4, near = lane % 4;
  const int mine[2] = {warp * 16 + far,
                       warp * 16 + far + 8};  // steps of the results, and channels of the state
  const float rate = problem.a[head] * kLog2E;
  const auto step_at = [&](int64_t t) {
    return t < l ? problem.dt[(batch * l + t) * problem.h + head] : 0.0f;
  };
  float2* const times = shared.times[warp];

  float state[kStates / 2] = {};
  float dt[2] = {step_at(lane * 2), step_at(lane * 2 + 1)};
  fetch_chunk(shared.tiles[0], problem, batch, head, 0);
  for (int64_t chunk = 0; chunk < l; chunk += kChunk) {
    Tiles& tiles = shared.tiles[chunk / kChunk % 2];
    float sum = dt[0] + dt[1];
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const float before = __shfl_up_sync(0xffffffffu, sum, offset);
      if (lane >= offset) sum += before;
    }
    times[lane * 2] = {(sum - dt[1]) * rate, dt[0]}, times[lane * 2 + 1] = {sum * rate, dt[1]};
#pragma unroll
    for (int j = 0; j < kStates / 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<uint32_t*>(shared.state + place(mine[half], j * 8 + near * 2)) =
            pack(state[j * 4 + half * 2], state[j * 4 + half * 2 + 1]);
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::
                     : "memory");  // wgmma reads what these threads have written
    __syncthreads();               // the chunk and the state are there
    if (chunk + kChunk < l) {
      fetch_chunk(shared.tiles[chunk / kChunk % 2 ^ 1], problem, batch, head, chunk + kChunk);
      dt[0] = step_at(chunk + kChunk + lane * 2), dt[1] = step_at(chunk + kChunk + lane * 2 + 1);
    }

    float scores[kChunk / 2], result[kChannels / 2];
    begin_multiplying();
#pragma unroll
    for (int k = 0; k < kStates / 16; ++k)  // 16 of 64 columns, and the second box
      multiply(scores, matrix(tiles.out_of + k / 4 * kBox + k % 4 * 16),
               matrix(tiles.into + k / 4 * kBox + k % 4 * 16), k > 0);
    commit();
#pragma unroll
    for (int k = 0; k < kStates / 16; ++k)
      multiply(result, matrix(tiles.out_of + k / 4 * kBox + k % 4 * 16),
               matrix(shared.state + k / 4 * kBox + k % 4 * 16), k > 0);
    commit();

    // Meanwhile: x by channels and steps, weighted with dt and the decay until the end of the chunk.
    const float whole = times[kChunk - 1].x, decay = power(whole);
    uint32_t weighted[kChunk / 16][4];
#pragma unroll
    for (int s = 0; s < kChunk / 16; ++s) {
      load_transposed(weighted[s],
                      tiles.x + place(s * 16 + lane % 8 + lane / 16 * 8, warp * 16 + (lane & 8)));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float left[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 then = times[s * 16 + half * 8 + near * 2 + i];
          left[i] = power(whole - then.x) * then.y;
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 pair = unpack(weighted[s][half * 2 + i]);
          weighted[s][half * 2 + i] = pack(pair.x * left[0], pair.y * left[1]);
        }
      }
    }
#pragma unroll
    for (float& s : state) s *= decay;

    const float passed[2] = {times[mine[0]].x, times[mine[1]].x};
    wait_for_products<1>();  // the scores
    uint32_t weights[kChunk / 16][4];
#pragma unroll
    for (int j = 0; j < kChunk / 8; ++j)  // eight earlier steps; later ones have no effect
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float weight[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int from = j * 8 + near * 2 + i;
          const float2 then = times[from];
          weight[i] = from <= mine[half]
                          ? scores[j * 4 + half * 2 + i] * power(passed[half] - then.x) * then.y
                          : 0.0f;
        }
        weights[j / 2][j % 2 * 2 + half] = pack(weight[0], weight[1]);
      }
    wait_for_products<0>();  // what the state before the chunk gives
    const float since[2] = {power(passed[0]), power(passed[1])};
#pragma unroll
    for (int i = 0; i < kChannels / 2; ++i) result[i] *= since[i / 2 % 2];
    begin_multiplying();
#pragma unroll
    for (int s = 0; s < kChunk / 16; ++s)  // 16 steps are 16 rows
      multiply_weights(result, weights[s], matrix(tiles.x + s * 16 * 64), true);
    commit();
#pragma unroll
    for (int s = 0; s < kChunk / 16; ++s)
      multiply_channels(state, weighted[s], matrix(tiles.into + s * 16 * 64), true);
    commit();
    wait_for_products<1>();

    // This warp's rows of out_of make room for its results: their products are over.
    bf16* const rows = tiles.out_of;
#pragma unroll
    for (int j = 0; j < kChannels / 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<uint32_t*>(rows + place(mine[half], j * 8 + near * 2)) =
            pack(result[j * 4 + half * 2], result[j * 4 + half * 2 + 1]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = warp * 16 + i * 4 + lane / 8, piece = lane % 8 * 8;
      if (chunk + row < l)
        *reinterpret_cast<uint4*>(y + ((batch * l + chunk + row) * problem.h + head) * kChannels + piece) =
            *reinterpret_cast<const uint4*>(rows + place(row, piece));
    }
    wait_for_products<0>();
    __syncthreads();  // all have used the chunk and the state
  }
#pragma unroll
  for (int j = 0; j < kStates / 8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(last +
                                 (static_cast<int64_t>(blockIdx.x) * kChannels + mine[half]) * kStates +
                                 j * 8 + near * 2) = {state[j * 4 + half * 2], state[j * 4 + half * 2 + 1]};
}

extern "C" void launch(const bf16* x /*[b,l,h,64]*/, const float* dt /*[b,l,h]*/, const float* a /*[h]*/,
                       const bf16* into /*[b,l,g,128]*/, const bf16* out_of /*[b,l,g,128]*/,
                       bf16* y /*[b,l,h,64]*/, float* state /*[b,h,64,128]*/, int64_t b, int64_t l, int64_t h,
                       int64_t g, void* /*workspace*/, cudaStream_t stream) {
  const Problem problem{x, into, out_of, dt, a, l, h, g};
  cudaFuncSetAttribute(scan, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  scan<<<static_cast<unsigned>(b * h), kThreads, sizeof(Shared), stream>>>(problem, y, state);
}
