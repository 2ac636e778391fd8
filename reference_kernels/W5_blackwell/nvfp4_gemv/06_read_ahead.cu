// Rung 6: the copy engine reads ahead.
//
// Changed     a thread block for each multiprocessor, and the rows in equal shares: 54 or 55 for each of
// them,
//             in tiles of 16. Eight warps do nothing but ask the copy engine for the next pieces of 4096
//             columns of 16 rows, codes and scales, up to four pieces ahead. Sixteen warps multiply, 256
//             columns of a piece each, as in rung 5. The vector is decoded once for each multiprocessor and
//             matrix.
// Why         in rung 5 a warp's loads wait while it multiplies, a row is read in parts of 128 bytes, and 448
//             thread blocks are 3.4 for each of 132 multiprocessors: some have 4, and the others wait for
//             those. Here 150 KB of a multiprocessor are always on their way, in parts of 2 KB.
// Prediction  as fast as a copy, and 3 us to start: 26 us.
// Came        not measured yet.
//
// Shapes      a [l, m, k] e2m1x2, sfa [l, m, k/16] e4m3, x [l, k] e2m1x2, sfx [l, k/16] e4m3, y [l, m] bf16.
// Launch      <<<multiprocessors, 768>>>, or one block for each row where rows are fewer.
// Resources   about 64 registers; 192 KB of shared memory.
// Cost        2 l m k FLOPs; 0.5625 l (m + 1) k + 2 l m bytes.
// Divides     k % 32 == 0 (the problem says so). The copy engine wants 16 bytes: scales of a row come by
//             plain loads where k % 256 != 0.
// Source      PTX ISA, mma.sync m16n8k32 for s8, prmt.b32, cp.async.bulk and mbarrier. Needs sm_90.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWarps = 16, kRows = 16, kBlock = 16;
constexpr int kTile = 128;                    // columns of an accumulator: eight blocks of 16
constexpr int kColumns = 2 * kWarps * kTile;  // of a stage
constexpr int kPiece = 16384;                 // columns of the vector in shared memory
constexpr int kReaders = 8;                   // warps that read ahead, two rows of a tile each
constexpr int kStages = 4, kThreads = 32 * (kWarps + kReaders);

/// A piece of 16 rows. Rows stand apart so that the eight rows of a load lie in other banks.
struct Stage {
  uint8_t codes[kRows][kColumns / 2 + 64];
  uint8_t scales[kRows][kColumns / kBlock + 16];
};

struct Shared {
  Stage stages[kStages];
  uint2 numbers[2][(kPiece / kBlock + 1) * 2];  // 16 signed bytes; with their sign turned; the last: zeros
  float2 of_vector[kPiece / kBlock / 2];        // its scales, a quarter: both operands are twice as large
  float of_warps[2][kWarps][kRows];
  uint64_t full[kStages], empty[kStages];  // mbarriers
};

__device__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

__device__ void init(uint64_t& barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals)
               : "memory");
}

__device__ void arrive(uint64_t& barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
               : "memory");
}

/// Arrives, and says how many bytes the copy engine will bring.
__device__ void arrive_expecting(uint64_t& barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
      "r"(bytes)
      : "memory");
}

__device__ void wait(uint64_t& barrier, unsigned phase) {
  asm volatile(
      "{\n"
      ".reg .pred there;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 there, [%0], %1;\n"
      "@!there bra again;\n"
      "}\n" ::"r"(shared_address(&barrier)),
      "r"(phase)
      : "memory");
}

/// Asks the copy engine for `bytes`, a multiple of 16, both sides on 16 bytes.
__device__ void copy(void* to, const void* from, unsigned bytes, uint64_t& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}

/// A place in the ring and the parity of its round.
struct Turn {
  int stage = 0;
  unsigned phase = 0;
  __device__ void next() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
};

/// Twice the numbers of the four codes in the lower half of `codes`, as bytes; those with a sign are 0.
__device__ unsigned positive(unsigned codes) {
  unsigned bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(0x03020100), "r"(0x0c080604), "r"(codes));
  return bytes;
}

/// Twice the numbers of the four codes in the lower half of `codes`, as signed bytes.
__device__ unsigned with_sign(unsigned codes) {
  const unsigned negative = 0x80808080u - positive(codes ^ 0x8888u);  // no byte borrows from the next
  return (negative ^ 0x80808080u) | positive(codes);
}

/// Two e4m3 numbers side by side, the first in the lower byte.
__device__ float2 two_scales(unsigned short bytes) {
  unsigned halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(bytes));
  return __half22float2(*reinterpret_cast<const __half2*>(&halves));
}

/// d += a * b: 16 x 8 results, 32 deep, by one warp.
__device__ void multiply(int (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// Products of one word of four rows' parts: above and below, of an even and an odd block; `plus` and `minus`
/// are the vector's numbers in both signs, in the lower and in the upper half of the depth.
__device__ void multiply_words(int (&d)[4], unsigned above, unsigned below, unsigned above_odd,
                               unsigned below_odd, unsigned plus, unsigned plus_odd, unsigned minus,
                               unsigned minus_odd) {
  multiply(d, positive(above), positive(below), positive(above_odd), positive(below_odd), plus, plus_odd);
  const unsigned turn = 0x88888888u;
  multiply(d, positive(above ^ turn), positive(below ^ turn), positive(above_odd ^ turn),
           positive(below_odd ^ turn), minus, minus_odd);
}

struct Arguments {
  const uint8_t *a, *sfa;
  const unsigned* x;
  const uint8_t* sfx;
  __nv_bfloat16* y;
  int64_t m, k;
};

/// Rows of the next tile: at most 16, of one matrix.
__device__ int rows_from(int64_t row, int64_t end, int64_t m) {
  const int64_t of_share = end - row, of_matrix = m - row % m;
  const int64_t rows = of_share < of_matrix ? of_share : of_matrix;
  return static_cast<int>(rows < kRows ? rows : kRows);
}

/// Eight warps: bring the rows from `row` to `end`, stage after stage; each of them two rows of a tile.
__device__ void read_ahead(Shared& shared, const Arguments& with, int64_t row, int64_t end) {
  constexpr int kRowsOfReader = kRows / kReaders;
  const int lane = threadIdx.x % 32, own = (threadIdx.x / 32 - kWarps) * kRowsOfReader;
  const int columns = static_cast<int>(with.k);
  const bool aligned = columns % (kBlock * 16) == 0;
  Turn turn;
  for (int rows; row < end; row += rows) {
    rows = rows_from(row, end, with.m);
    const int owned = rows <= own ? 0 : rows - own < kRowsOfReader ? rows - own : kRowsOfReader;
    for (int first = 0; first < columns; first += kColumns, turn.next()) {
      Stage& stage = shared.stages[turn.stage];
      uint64_t& full = shared.full[turn.stage];
      const int wide = columns - first < kColumns ? columns - first : kColumns;
      const int codes = wide / 2, scales = wide / kBlock;  // bytes of a row
      const int64_t at = (row + own) * with.k + first;
      wait(shared.empty[turn.stage], turn.phase ^ 1);
      if (!aligned) {
        for (int i = lane; i < owned * (scales / 2); i += 32) {
          const int r = i / (scales / 2), byte = i % (scales / 2) * 2;
          *reinterpret_cast<unsigned short*>(&stage.scales[own + r][byte]) =
              *reinterpret_cast<const unsigned short*>(with.sfa + (at + r * with.k) / kBlock + byte);
        }
        __syncwarp();
      }
      if (lane == 0) {
        arrive_expecting(full, static_cast<unsigned>(owned * (codes + (aligned ? scales : 0))));
        for (int r = 0; r < owned; ++r) {
          copy(stage.codes[own + r], with.a + (at + r * with.k) / 2, static_cast<unsigned>(codes), full);
          if (aligned) {
            copy(stage.scales[own + r], with.sfa + (at + r * with.k) / kBlock, static_cast<unsigned>(scales),
                 full);
          }
        }
      }
      __syncwarp();
    }
  }
}

/// Waits for the warps that multiply; the one that reads ahead is not among them.
__device__ void multipliers_meet() { asm volatile("bar.sync 1, %0;" ::"n"(kWarps * 32) : "memory"); }

/// Decodes columns `first` to `end` of a matrix's vector into shared memory.
__device__ void decode_vector(Shared& shared, const Arguments& with, int64_t matrix, int first, int end) {
  const unsigned* x = with.x + (matrix * with.k + first) / 8;
  const uint8_t* sfx = with.sfx + (matrix * with.k + first) / kBlock;
  for (int i = threadIdx.x; i < (end - first) / 8; i += kWarps * 32) {
    const unsigned codes = x[i], turned = codes ^ 0x88888888u;
    shared.numbers[0][i] = make_uint2(with_sign(codes), with_sign(codes >> 16));
    shared.numbers[1][i] = make_uint2(with_sign(turned), with_sign(turned >> 16));
  }
  for (int i = threadIdx.x; i < (end - first) / 32; i += kWarps * 32) {
    const float2 two = two_scales(*reinterpret_cast<const unsigned short*>(sfx + 2 * i));
    shared.of_vector[i] = make_float2(two.x / 4, two.y / 4);
  }
}

/// Adds to `sum` what 128 columns of a stage give for rows `far` and `far + 8`. `at` is the tile's first
/// column in the stage, `wide` the stage's columns, `place` the stage's first column in the decoded vector.
__device__ void multiply_tile(float2& sum, const Shared& shared, const Stage& stage, int at, int wide,
                              int place, int upper, int lower) {
  constexpr int kZeros = kPiece / kBlock * 2;
  const int near = threadIdx.x % 4, far = threadIdx.x % 32 / 4, column = at + near * 32;
  const bool inside = column < wide;
  const uint4 none = {};
  const uint4 up = inside ? *reinterpret_cast<const uint4*>(&stage.codes[upper][column / 2]) : none;
  const uint4 down = inside ? *reinterpret_cast<const uint4*>(&stage.codes[lower][column / 2]) : none;
  // Column `far` of the second operand holds block `far` of the tile: lane `near` of a row has the blocks 2
  // near and 2 near + 1 of the first operand, in the lower and in the upper half of the depth.
  const int block = at + far * kBlock < wide ? ((place + at) / kBlock + far) * 2 : kZeros;
  const int even = far == 2 * near ? block : kZeros, odd = far == 2 * near + 1 ? block : kZeros;
  int d[4] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint2 plus = shared.numbers[0][even + half], plus_odd = shared.numbers[0][odd + half];
    const uint2 minus = shared.numbers[1][even + half], minus_odd = shared.numbers[1][odd + half];
    const unsigned u = half ? up.y : up.x, u_odd = half ? up.w : up.z;
    const unsigned v = half ? down.y : down.x, v_odd = half ? down.w : down.z;
    multiply_words(d, u, v, u_odd, v_odd, plus.x, plus_odd.x, minus.x, minus_odd.x);
    multiply_words(d, u >> 16, v >> 16, u_odd >> 16, v_odd >> 16, plus.y, plus_odd.y, minus.y, minus_odd.y);
  }
  if (!inside) return;
  const float2 of_x = shared.of_vector[(place + column) / 32];
  const float2 u =
      two_scales(*reinterpret_cast<const unsigned short*>(&stage.scales[upper][column / kBlock]));
  const float2 v =
      two_scales(*reinterpret_cast<const unsigned short*>(&stage.scales[lower][column / kBlock]));
  sum.x += static_cast<float>(d[0]) * of_x.x * u.x + static_cast<float>(d[1]) * of_x.y * u.y;
  sum.y += static_cast<float>(d[2]) * of_x.x * v.x + static_cast<float>(d[3]) * of_x.y * v.y;
}

/// Sixteen warps: multiply the rows from `row` to `end`.
__device__ void multiply_rows(Shared& shared, const Arguments& with, int64_t row, int64_t end) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, near = lane % 4, far = lane / 4;
  const int columns = static_cast<int>(with.k), pieces = (columns + kPiece - 1) / kPiece;
  int64_t decoded = -1;
  Turn turn;
  int buffer = 0;
  for (int rows; row < end; row += rows, buffer ^= 1) {
    rows = rows_from(row, end, with.m);
    const int upper = far < rows ? far : rows - 1, lower = far + 8 < rows ? far + 8 : rows - 1;
    float2 sum = make_float2(0, 0);
    for (int first = 0; first < columns; first += kColumns, turn.next()) {
      const int64_t matrix = row / with.m, wanted = matrix * pieces + first / kPiece;
      if (wanted != decoded) {
        const int from = first / kPiece * kPiece, to = columns - from < kPiece ? columns : from + kPiece;
        if (decoded >= 0) multipliers_meet();  // the piece before is read
        decode_vector(shared, with, matrix, from, to);
        multipliers_meet();
        decoded = wanted;
      }
      const Stage& stage = shared.stages[turn.stage];
      const int wide = columns - first < kColumns ? columns - first : kColumns;
      wait(shared.full[turn.stage], turn.phase);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const int at = (t * kWarps + warp) * kTile;
        if (at < wide) multiply_tile(sum, shared, stage, at, wide, first % kPiece, upper, lower);
      }
      __syncwarp();
      if (lane == 0) arrive(shared.empty[turn.stage]);
    }
    for (int offset = 1; offset < 4; offset *= 2) {
      sum.x += __shfl_xor_sync(0xffffffffu, sum.x, offset);
      sum.y += __shfl_xor_sync(0xffffffffu, sum.y, offset);
    }
    auto& of_warps = shared.of_warps[buffer];  // the other one may still be read
    if (near == 0) of_warps[warp][far] = sum.x, of_warps[warp][far + 8] = sum.y;
    multipliers_meet();
    if (threadIdx.x < rows) {
      float total = 0;
      for (const auto& of_warp : of_warps) total += of_warp[threadIdx.x];
      with.y[row + threadIdx.x] = __float2bfloat16(total);
    }
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    gemv(const __grid_constant__ Arguments with, int64_t all_rows) {
  extern __shared__ __align__(128) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const int64_t row = all_rows * blockIdx.x / gridDim.x, end = all_rows * (blockIdx.x + 1) / gridDim.x;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage)
      init(shared.full[stage], kReaders), init(shared.empty[stage], kWarps);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (threadIdx.x < 4)
    shared.numbers[threadIdx.x / 2][kPiece / kBlock * 2 + threadIdx.x % 2] = make_uint2(0, 0);
  __syncthreads();
  if (threadIdx.x / 32 >= kWarps) {
    read_ahead(shared, with, row, end);
  } else {
    multiply_rows(shared, with, row, end);
  }
}

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[l,m,k]*/, const __nv_fp8_e4m3* sfa /*[l,m,k / 16]*/,
                       const __nv_fp4x2_e2m1* x /*[l,k]*/, const __nv_fp8_e4m3* sfx /*[l,k / 16]*/,
                       __nv_bfloat16* y /*[l,m]*/, int64_t l, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(gemv, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  const int64_t rows = l * m, blocks = rows < processors ? rows : processors;
  const Arguments with = {reinterpret_cast<const uint8_t*>(a),
                          reinterpret_cast<const uint8_t*>(sfa),
                          reinterpret_cast<const unsigned*>(x),
                          reinterpret_cast<const uint8_t*>(sfx),
                          y,
                          m,
                          k};
  gemv<<<static_cast<unsigned>(blocks), kThreads, sizeof(Shared), stream>>>(with, rows);
}
