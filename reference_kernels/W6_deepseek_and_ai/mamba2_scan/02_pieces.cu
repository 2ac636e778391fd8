// Rung 2: chunks of matrix products, and time in pieces.
//
// Changed     64 steps are a chunk. Scores between its steps, weighted with decays, are a triangle of 64 x
//             64, and what it adds to the state is a product of x and into over its steps: mma.sync does
//             both. Time is cut into pieces of 256 steps: the first kernel finds where each ends from zero,
//             the second one passes states on, the third one runs the pieces again, now for y.
// Why         rung 1 does 25 000 FLOP a head and step on the FMA units, one step after the other. The dual
//             form has 57 000 FLOP, but on tensor cores, and 64 steps at once; pieces make it parallel in
//             time, too.
// Prediction  5x rung 1: 0.45 ms. x is read twice, and states of 134 MB are written, read, written and read.
// Came        782 us on an H100, 370 GB/s, 3.91 times the rung before. 391 % of the native baseline.
//
// Shapes      x, y [b, l, h, 64], into, out_of [b, l, g, 128], bf16; dt [b, l, h], a [h], state [b, h, 64,
//             128], fp32.
// Launch      one block of 128 threads a head and piece, two blocks a multiprocessor; the middle kernel: a
//             thread a state.
// Resources   64 states and about 130 other registers a thread; 105 KB of shared memory: two chunks and the
//             state in bf16; workspace: a state in fp32 for each head and piece.
// Cost        57 000 b l h FLOPs, 20 000 of them twice; 6 · 64 b l h bytes, and 128 b l h of states.
// Divides     no divisibility is required: steps behind the last one have dt = 0; h % g == 0 (the problem
//             says so).
// Source      T. Dao, A. Gu, "Transformers are SSMs", 2024, section 6. Needs sm_80.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kChannels = 64, kStates = 128, kChunk = 64, kThreads = 128;
constexpr int kPitchX = kChannels + 8, kPitch = kStates + 8;  // eight rows of 16 bytes meet all banks
constexpr float kLog2E = 1.44269504f;

/// What a chunk needs, and what the warps leave for each other.
struct Tiles {
  bf16 x[kChunk * kPitchX], into[kChunk * kPitch], out_of[kChunk * kPitch];
};
struct Shared {
  Tiles tiles[2];
  bf16 state[kChannels * kPitch];
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

/// d += a * b: 16 x 8 results, 16 deep, by one warp.
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// Four matrices of 8 x 8 whose rows lie at the addresses of lanes 0 to 7, 8 to 15, and so on.
__device__ void load(uint32_t (&d)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address(row))
               : "memory");
}
__device__ void load_transposed(uint32_t (&d)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address(row))
               : "memory");
}

/// Starts copies of `rows` rows of a tensor, a row `stride` apart; zeros in the others.
template <int kColumns>
__device__ void fetch(bf16* tile, const bf16* from, int64_t stride, int rows) {
  constexpr int kPieces = kColumns / 8;
#pragma unroll
  for (int i = threadIdx.x; i < kChunk * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces * 8;
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(tile + row * (kColumns + 8) + piece)),
        "l"(from + (row < rows ? row : 0) * stride + piece), "r"(row < rows ? 16 : 0)
        : "memory");
  }
}
template <bool kOutput>
__device__ void fetch_chunk(Tiles& tiles, const Problem& problem, int64_t batch, int64_t head, int64_t first,
                            int64_t end) {
  const int rows = end - first < kChunk ? static_cast<int>(end - first) : kChunk;
  const int64_t group = head / (problem.h / problem.g), step = batch * problem.l + first;
  fetch<kChannels>(tiles.x, problem.x + (step * problem.h + head) * kChannels, problem.h * kChannels, rows);
  fetch<kStates>(tiles.into, problem.into + (step * problem.g + group) * kStates, problem.g * kStates, rows);
  if (kOutput)
    fetch<kStates>(tiles.out_of, problem.out_of + (step * problem.g + group) * kStates, problem.g * kStates,
                   rows);
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// One warp's 16 steps of a chunk: 16 x 64 results, from the state before the chunk and from the chunk's own
/// steps.
__device__ void results(float (&sum)[kChannels / 8][4], const Tiles& tiles, const bf16* state,
                        const float2* times) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int far = lane / 4, near = lane % 4;  // of eight rows, of four pairs of columns
  const int low = lane % 16, high = lane / 16 * 8;
  uint32_t reads[kStates / 16][4];
#pragma unroll
  for (int k = 0; k < kStates / 16; ++k)
    load(reads[k], tiles.out_of + (warp * 16 + low) * kPitch + k * 16 + high);

#pragma unroll
  for (int j = 0; j < kChannels / 8; j += 2)  // 16 channels
#pragma unroll
    for (int k = 0; k < kStates / 16; ++k) {
      uint32_t b[4];
      load(b, state + (j * 8 + lane % 8 + high) * kPitch + k * 16 + (lane & 8));
      multiply(sum[j], reads[k], b[0], b[1]);
      multiply(sum[j + 1], reads[k], b[2], b[3]);
    }
  const int mine[2] = {warp * 16 + far, warp * 16 + far + 8};
  const float passed[2] = {times[mine[0]].x, times[mine[1]].x};
#pragma unroll
  for (int j = 0; j < kChannels / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[j][i] *= power(passed[i / 2]);

#pragma unroll
  for (int s = 0; s < kChunk / 16; ++s) {  // 16 earlier steps; later ones have no effect
    if (s > warp) break;
    float scores[2][4] = {};
#pragma unroll
    for (int k = 0; k < kStates / 16; ++k) {
      uint32_t b[4];
      load(b, tiles.into + (s * 16 + lane % 8 + high) * kPitch + k * 16 + (lane & 8));
      multiply(scores[0], reads[k], b[0], b[1]);
      multiply(scores[1], reads[k], b[2], b[3]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int from = s * 16 + half * 8 + near * 2 + i % 2;
        const float2 then = times[from];
        scores[half][i] *= from <= mine[i / 2] ? power(passed[i / 2] - then.x) * then.y : 0.0f;
      }
    const uint32_t weights[4] = {pack(scores[0][0], scores[0][1]), pack(scores[0][2], scores[0][3]),
                                 pack(scores[1][0], scores[1][1]), pack(scores[1][2], scores[1][3])};
#pragma unroll
    for (int j = 0; j < kChannels / 8; j += 2) {
      uint32_t b[4];
      load_transposed(b, tiles.x + (s * 16 + low) * kPitchX + j * 8 + high);
      multiply(sum[j], weights, b[0], b[1]);
      multiply(sum[j + 1], weights, b[2], b[3]);
    }
  }
}

/// One warp's 16 channels of the state, 16 x 128, at the end of a chunk.
__device__ void advance(float (&state)[kStates / 8][4], const Tiles& tiles, const float2* times) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int near = lane % 4, low = lane % 16, high = lane / 16 * 8;
  const float passed = times[kChunk - 1].x, decay = power(passed);
#pragma unroll
  for (int j = 0; j < kStates / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) state[j][i] *= decay;
#pragma unroll
  for (int s = 0; s < kChunk / 16; ++s) {
    uint32_t a[4];  // channels by steps: x lies the other way around
    load_transposed(a, tiles.x + (s * 16 + lane % 8 + high) * kPitchX + warp * 16 + (lane & 8));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float left[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float2 then = times[s * 16 + half * 8 + near * 2 + i];
        left[i] = power(passed - then.x) * then.y;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float2 pair = unpack(a[half * 2 + i]);
        a[half * 2 + i] = pack(pair.x * left[0], pair.y * left[1]);
      }
    }
#pragma unroll
    for (int j = 0; j < kStates / 8; j += 2) {
      uint32_t b[4];
      load_transposed(b, tiles.into + (s * 16 + low) * kPitch + j * 8 + high);
      multiply(state[j], a, b[0], b[1]);
      multiply(state[j + 1], a, b[2], b[3]);
    }
  }
}

/// Calls f(place in the state of the head, the two states there, which are places of `state`).
template <class F>
__device__ void for_each_pair(float (&state)[kStates / 8][4], F f) {
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
  for (int j = 0; j < kStates / 8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      f(row + half * 8, j * 8 + column, state[j][half * 2], state[j][half * 2 + 1]);
}

/// Takes a head from step `first` to `end`: y, if it is wanted, and the state. @return log2 of the decay in
/// between.
template <bool kOutput>
__device__ float walk(Shared& shared, const Problem& problem, bf16* y, float (&state)[kStates / 8][4],
                      int64_t batch, int64_t head, int64_t first, int64_t end) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float rate = problem.a[head] * kLog2E;
  const auto step_at = [&](int64_t t) {
    return t < end ? problem.dt[(batch * problem.l + t) * problem.h + head] : 0.0f;
  };
  float2* const times = shared.times[warp];
  float dt[2] = {step_at(first + lane * 2), step_at(first + lane * 2 + 1)}, all = 0;
  fetch_chunk<kOutput>(shared.tiles[0], problem, batch, head, first, end);
  for (int64_t chunk = first; chunk < end; chunk += kChunk) {
    Tiles& tiles = shared.tiles[(chunk - first) / kChunk % 2];
    float sum = dt[0] + dt[1];
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const float before = __shfl_up_sync(0xffffffffu, sum, offset);
      if (lane >= offset) sum += before;
    }
    times[lane * 2] = {(sum - dt[1]) * rate, dt[0]}, times[lane * 2 + 1] = {sum * rate, dt[1]};
    all += __shfl_sync(0xffffffffu, sum, 31) * rate;
    if (kOutput)
      for_each_pair(state, [&](int row, int column, float s0, float s1) {
        *reinterpret_cast<uint32_t*>(shared.state + row * kPitch + column) = pack(s0, s1);
      });
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();  // the chunk and the state are there
    if (chunk + kChunk < end) {
      fetch_chunk<kOutput>(shared.tiles[(chunk - first) / kChunk % 2 ^ 1], problem, batch, head,
                           chunk + kChunk, end);
      dt[0] = step_at(chunk + kChunk + lane * 2), dt[1] = step_at(chunk + kChunk + lane * 2 + 1);
    }

    if (kOutput) {
      float result[kChannels / 8][4] = {};
      results(result, tiles, shared.state, times);
      // This warp's rows of out_of have been read by itself alone: they make room for its results.
      bf16* const rows = tiles.out_of + warp * 16 * kPitch;
      __syncwarp();
#pragma unroll
      for (int j = 0; j < kChannels / 8; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<uint32_t*>(rows + (lane / 4 + half * 8) * kPitch + j * 8 + lane % 4 * 2) =
              pack(result[j][half * 2], result[j][half * 2 + 1]);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = i * 4 + lane / 8, piece = lane % 8 * 8;
        const int64_t t = chunk + warp * 16 + row;
        if (t < end)
          *reinterpret_cast<uint4*>(y + ((batch * problem.l + t) * problem.h + head) * kChannels + piece) =
              *reinterpret_cast<const uint4*>(rows + row * kPitch + piece);
      }
    }
    advance(state, tiles, times);
    __syncthreads();  // all have used the chunk and the state
  }
  return all;
}

constexpr int kPiece = 256;  // steps; a multiple of a chunk

int64_t pieces_of(int64_t l) { return (l + kPiece - 1) / kPiece; }

/// Where each piece ends when it starts from zero, and its decay. states: [b h][piece][64][128].
__global__ void __launch_bounds__(kThreads, 2)
    end_pieces(Problem problem, float* __restrict__ states, float* __restrict__ decays) {
  extern __shared__ __align__(16) uint8_t memory[];
  const int64_t head = blockIdx.x, piece = blockIdx.y, first = piece * kPiece;
  const int64_t end = first + kPiece < problem.l ? first + kPiece : problem.l;
  float state[kStates / 8][4] = {};
  const float passed = walk<false>(*reinterpret_cast<Shared*>(memory), problem, nullptr, state,
                                   head / problem.h, head % problem.h, first, end);
  float* const to = states + (head * gridDim.y + piece) * kChannels * kStates;
  for_each_pair(state, [&](int row, int column, float s0, float s1) {
    *reinterpret_cast<float2*>(to + row * kStates + column) = {s0, s1};
  });
  if (threadIdx.x == 0) decays[head * gridDim.y + piece] = power(passed);
}

/// Replaces each piece's end by the state at its beginning.
__global__ void pass_on(float* __restrict__ states, const float* __restrict__ decays,
                        float* __restrict__ last, int64_t pieces) {
  const int64_t head = blockIdx.x, at = blockIdx.y * blockDim.x + threadIdx.x;
  float state = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    float* const place = states + (head * pieces + piece) * kChannels * kStates + at;
    const float added = *place;
    *place = state;
    state = state * decays[head * pieces + piece] + added;
  }
  last[head * kChannels * kStates + at] = state;
}

__global__ void __launch_bounds__(kThreads, 2)
    write_pieces(Problem problem, const float* __restrict__ states, bf16* __restrict__ y) {
  extern __shared__ __align__(16) uint8_t memory[];
  const int64_t head = blockIdx.x, piece = blockIdx.y, first = piece * kPiece;
  const int64_t end = first + kPiece < problem.l ? first + kPiece : problem.l;
  float state[kStates / 8][4];
  const float* const from = states + (head * gridDim.y + piece) * kChannels * kStates;
  for_each_pair(state, [&](int row, int column, float& s0, float& s1) {
    const float2 pair = *reinterpret_cast<const float2*>(from + row * kStates + column);
    s0 = pair.x, s1 = pair.y;
  });
  walk<true>(*reinterpret_cast<Shared*>(memory), problem, y, state, head / problem.h, head % problem.h, first,
             end);
}

extern "C" size_t workspace_bytes(int64_t b, int64_t l, int64_t h, int64_t /*g*/) {
  return static_cast<size_t>(b * h * pieces_of(l) * (kChannels * kStates + 1)) * sizeof(float);
}

extern "C" void launch(const bf16* x /*[b,l,h,64]*/, const float* dt /*[b,l,h]*/, const float* a /*[h]*/,
                       const bf16* into /*[b,l,g,128]*/, const bf16* out_of /*[b,l,g,128]*/,
                       bf16* y /*[b,l,h,64]*/, float* state /*[b,h,64,128]*/, int64_t b, int64_t l, int64_t h,
                       int64_t g, void* workspace, cudaStream_t stream) {
  const Problem problem{x, into, out_of, dt, a, l, h, g};
  const int64_t pieces = pieces_of(l);
  float* const states = static_cast<float*>(workspace);
  float* const decays = states + b * h * pieces * kChannels * kStates;
  const dim3 grid(static_cast<unsigned>(b * h), static_cast<unsigned>(pieces));
  cudaFuncSetAttribute(end_pieces, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  cudaFuncSetAttribute(write_pieces, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  end_pieces<<<grid, kThreads, sizeof(Shared), stream>>>(problem, states, decays);
  pass_on<<<dim3(grid.x, kChannels * kStates / 256), 256, 0, stream>>>(states, decays, state, pieces);
  write_pieces<<<grid, kThreads, sizeof(Shared), stream>>>(problem, states, y);
}
