// Rung 4: weights shuffled once, tensor cores, four tiles on their way.
//
// Changed     prepare() lays down the codes in the order in which a lane multiplies them: a tile of 64 rows
// and
//             128 columns is one piece of 4,224 bytes, its scales in front. A lane reads its codes for 64 x
//             16 weights with one 16-byte load and multiplies them with mma.sync, weights on the left, eight
//             rows of x on the right. The scale is applied once for 128 products. Each warp has a ring of
//             four tiles, filled by cp.async.
// Why         rung 3 multiplies in fp32, 36 us at best for 16 rows; tensor cores need 5 us. Their operands
// want
//             codes from 8 places of two rows in one register: from w as it lies that would be 1-byte loads.
// Prediction  2x cuBLAS with bf16 weights at 16 rows: 17 us.
// Came        24.9 us on an H100, 1408 GB/s, 12.10 times the rung before. 202 % of the native baseline.
//
// Shapes      x [m, k] bf16, w [n, k] int4x2, scales [n, k / 128] bf16, y [m, n] bf16.
// Launch      <<<(n / 64, m / 16), 256>>>: a block owns 64 rows of w, its eight warps share k.
// Resources   138 registers; 132 KB of shared memory; prepared: the size of w and the scales.
// Cost        2 m n k FLOPs; n k / 2 + n k / 64 bytes; x comes once for each block, from the L2 cache.
// Divides     k % 128 == 0 (the problem says so); m and n anything.
// Source      Frantar et al., "Marlin", 2024.
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kGroup = 128;         // codes of a row that share a scale
constexpr int kRows = 64;           // rows of w in a tile
constexpr int kTiles = kRows / 16;  // of an mma
constexpr int kScaleBytes = kRows * 2;
constexpr int kChunk = kScaleBytes + kRows * kGroup / 2;  // a tile: its scales, its codes
constexpr int kThreads = 256, kWarps = kThreads / 32, kStages = 4;
constexpr int kColumns = 16;      // rows of x by one block
constexpr int kM = kColumns / 8;  // of an mma
constexpr int kSharedBytes = kWarps * kStages * kChunk;
constexpr int kPitch = kRows + 4;  // floats of a row of sums in shared memory

// ---- prepare: the order in which a warp reads ------------------------------------------------------------
/// The k of the codes in one word: lane q of four multiplies eight neighbours of x in two steps.
__host__ __device__ inline int k_of(int step, int q, int pair) {
  return step / 2 * 32 + q * 8 + step % 2 * 4 + pair * 2;
}

__device__ unsigned code_at(const uint8_t* w, int64_t row, int64_t column, int64_t n, int64_t k) {
  if (row >= n) return 0;  // a row that does not exist: zeros
  const unsigned pair = w[(row * k + column) / 2];
  return column % 2 == 0 ? pair & 15 : pair >> 4;
}

/// A thread a word: eight codes, those of one lane for one step of one mma tile. The first threads of a chunk
/// also move two scales each.
__global__ void shuffle(const uint8_t* __restrict__ w, const bf16* __restrict__ scales, int64_t n, int64_t k,
                        uint8_t* __restrict__ chunks) {
  const int64_t groups = k / kGroup;
  const int64_t tile = blockIdx.x / groups, group = blockIdx.x % groups;
  uint8_t* const chunk = chunks + static_cast<int64_t>(blockIdx.x) * kChunk;
  if (threadIdx.x < kRows) {  // eight scales of a lane, side by side
    const int64_t row = tile * kRows + threadIdx.x % 8 * 8 + threadIdx.x / 8;
    reinterpret_cast<bf16*>(chunk)[threadIdx.x] =
        row < n ? scales[row * groups + group] : __float2bfloat16(0.0f);
  }
  for (int i = threadIdx.x; i < kRows * kGroup / 8; i += blockDim.x) {
    const int t = i % kTiles, lane = i / kTiles % 32, step = i / (kTiles * 32);
    unsigned word = 0;
    for (int a = 0; a < 4; ++a) {  // the four registers of an mma's left operand
      const int64_t row = tile * kRows + t * 16 + a % 2 * 8 + lane / 4;
      const int64_t column = group * kGroup + k_of(step, lane % 4, a / 2);
      word |= code_at(w, row, column, n, k) << (4 * a) | code_at(w, row, column + 1, n, k) << (4 * a + 16);
    }
    reinterpret_cast<unsigned*>(chunk + kScaleBytes)[i] = word;
  }
}

// ---- codes to bf16 ---------------------------------------------------------------------------------------
/// Two codes of each of four places: 0x4300 is 128 as bf16, its last mantissa bit is worth 1, and flipping
/// the top bit of a code adds 8.
__device__ void decode(unsigned (&a)[4], unsigned word) {
  const __nv_bfloat162 offset = __floats2bfloat162_rn(136.0f, 136.0f);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned pair;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;"
        : "=r"(pair)
        : "r"(word >> (4 * i)), "r"(0x000f000fu), "r"(0x43084308u));
    const __nv_bfloat162 value = __hsub2(*reinterpret_cast<const __nv_bfloat162*>(&pair), offset);
    a[i] = *reinterpret_cast<const unsigned*>(&value);
  }
}

/// c += a * b for 16 x 8 results, 16 deep.
__device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

/// One tile: temp = codes * x over a group, then sum += scale * temp. `x`: where a lane's rows begin.
__device__ void multiply_chunk(float (&sum)[kTiles][kM][4], const uint8_t* chunk,
                               const bf16* const (&x)[kM]) {
  const int lane = threadIdx.x % 32;
  float temp[kTiles][kM][4] = {};
  const uint4* const codes = reinterpret_cast<const uint4*>(chunk + kScaleBytes) + lane;
#pragma unroll
  for (int pair = 0; pair < kGroup / 32; ++pair) {
    uint4 right[kM];  // eight neighbours of x: two steps of four
#pragma unroll
    for (int j = 0; j < kM; ++j) right[j] = *reinterpret_cast<const uint4*>(x[j] + pair * 32);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 words = codes[(pair * 2 + half) * 32];
      const unsigned word[kTiles] = {words.x, words.y, words.z, words.w};
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        unsigned left[4];
        decode(left, word[t]);
#pragma unroll
        for (int j = 0; j < kM; ++j)
          multiply(temp[t][j], left, half == 0 ? right[j].x : right[j].z,
                   half == 0 ? right[j].y : right[j].w);
      }
    }
  }
  const uint4 packed = reinterpret_cast<const uint4*>(chunk)[lane / 4];
  const float scale[kTiles][2] = {{low(packed.x), high(packed.x)},
                                  {low(packed.y), high(packed.y)},
                                  {low(packed.z), high(packed.z)},
                                  {low(packed.w), high(packed.w)}};
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int j = 0; j < kM; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[t][j][e] = fmaf(scale[t][e / 2], temp[t][j][e], sum[t][j][e]);
}

__global__ void __launch_bounds__(kThreads, 1)
    w4a16(const uint8_t* __restrict__ chunks, const bf16* __restrict__ x, bf16* __restrict__ y, int64_t m,
          int64_t k, int64_t n) {
  extern __shared__ __align__(16) uint8_t shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int groups = static_cast<int>(k / kGroup);
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kColumns;
  const uint8_t* const tile = chunks + static_cast<int64_t>(blockIdx.x) * groups * kChunk;
  uint8_t* const ring = shared + warp * kStages * kChunk;
  const auto fetch = [&](int group, int stage) {  // a lane copies what all lanes of its warp will read
    if (group < groups)
      for (int i = lane; i < kChunk / 16; i += 32)
        __pipeline_memcpy_async(ring + stage * kChunk + i * 16,
                                tile + static_cast<int64_t>(group) * kChunk + i * 16, 16);
    __pipeline_commit();
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) fetch(warp + stage * kWarps, stage);

  const bf16* row[kM];  // a row behind the last one is read as the last one, and not stored
#pragma unroll
  for (int j = 0; j < kM; ++j) {
    const int64_t r = first_row + j * 8 + lane / 4;
    row[j] = x + (r < m ? r : m - 1) * k + lane % 4 * 8;
  }
  float sum[kTiles][kM][4] = {};
  int stage = 0;
#pragma unroll 1
  for (int group = warp; group < groups; group += kWarps, stage = (stage + 1) % kStages) {
    fetch(group + (kStages - 1) * kWarps, (stage + kStages - 1) % kStages);
    __pipeline_wait_prior(kStages - 1);
    __syncwarp();  // the copies of all lanes have arrived
    const bf16* const here[kM] = {row[0] + group * kGroup, row[1] + group * kGroup};
    multiply_chunk(sum, ring + stage * kChunk, here);
    __syncwarp();  // all lanes have read the tile
  }

  // The sums of the eight warps, in place of the ring: [warp][row of x][row of w].
  __pipeline_wait_prior(0);
  __syncthreads();
  float* const parts = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int j = 0; j < kM; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        parts[(warp * kColumns + j * 8 + lane % 4 * 2 + e % 2) * kPitch + t * 16 + e / 2 * 8 + lane / 4] =
            sum[t][j][e];
  __syncthreads();
  for (int i = threadIdx.x; i < kColumns * kRows; i += kThreads) {
    const int64_t r = first_row + i / kRows, column = static_cast<int64_t>(blockIdx.x) * kRows + i % kRows;
    if (r >= m || column >= n) continue;
    float total = 0;
#pragma unroll
    for (int p = 0; p < kWarps; ++p) total += parts[(p * kColumns + i / kRows) * kPitch + i % kRows];
    y[r * n + column] = __float2bfloat16(total);
  }
}

extern "C" size_t prepared_bytes(int64_t /*m*/, int64_t k, int64_t n) {
  return static_cast<size_t>((n + kRows - 1) / kRows * (k / kGroup) * kChunk);
}

extern "C" void prepare(const uint8_t* w /*[n,k]*/, const bf16* scales /*[n,k/128]*/, int64_t /*m*/,
                        int64_t k, int64_t n, void* prepared, cudaStream_t stream) {
  const int64_t blocks = (n + kRows - 1) / kRows * (k / kGroup);
  shuffle<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(w, scales, n, k,
                                                             static_cast<uint8_t*>(prepared));
}

extern "C" void launch(const bf16* x /*[m,k]*/, const uint8_t* /*w [n,k]*/, const bf16* /*scales [n,k/128]*/,
                       bf16* y /*[m,n]*/, int64_t m, int64_t k, int64_t n, const void* prepared,
                       void* /*workspace*/, cudaStream_t stream) {
  cudaFuncSetAttribute(w4a16, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  const dim3 grid(static_cast<unsigned>((n + kRows - 1) / kRows),
                  static_cast<unsigned>((m + kColumns - 1) / kColumns));
  w4a16<<<grid, kThreads, kSharedBytes, stream>>>(static_cast<const uint8_t*>(prepared), x, y, m, k, n);
}
