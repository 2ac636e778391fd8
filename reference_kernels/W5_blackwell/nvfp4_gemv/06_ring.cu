// Rung 6: the bytes come through a ring in shared memory, and the vector stays in registers.
//
// Changed     one block a multiprocessor with an equal share of all rows. One warp only loads: it keeps
//             stages of whole rows on their way by bulk copies, two a stage. A lane has the same 32 columns
//             of every row, so it decodes its part of the vector once and keeps it in registers, in both
//             signs. Products are rung 3's: `prmt` and `dp4a`, which starts from the bits of 1.5 * 2^23, so
//             that the sum of a block is a float without a conversion. The loading warp also adds up the
//             warps' sums.
// Why         in rung 5 a warp waits for its loads, then computes, then loads again, and each block begins
//             with the vector. Here bytes are on their way from the first moment to the last, whatever
//             the other warps do.
// Prediction  1.7 instructions a weight are 7 us of issuing; the bytes take 22 us, the launch and the first
//             bytes 3 us: 25 us, 90 % of a copy.
// Came        29.6 us on an H100, 2234 GB/s, 76 % of a copy, 1.21 times the rung before; 87 % of a copy at
//             (4096, 7168, 8). Less than predicted: the ring alone, without the arithmetic, takes 27 us, and
//             starting and ending weigh more than 3 us. Two things helped: to ask for the vector before the
//             ring asks for anything (2 us), and three stages in place of five (1 us), since the first stage
//             arrives only after all that was asked for with it.
//
// Shapes      a [l, m, k] e2m1x2, sfa [l, m, k/16] e4m3, x [l, k] e2m1x2, sfx [l, k/16] e4m3, y [l, m] bf16.
// Launch      <<<multiprocessors, 544>>>: up to 16 warps that compute, one that loads.
// Resources   about 64 registers; 149 KB of shared memory.
// Cost        2 l m k FLOPs; 0.5625 l (m + 1) k + 2 l m bytes.
// Divides     k % 256 == 0 for the ring: bulk copies have 16 bytes at least, and a scale is one byte for 16
//             columns. Other k (k % 32 == 0, the problem says so): a warp a row, without the ring.
// Source      the ring as in gemm_bf16; PTX ISA, cp.async.bulk and mbarrier. Needs sm_90.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

constexpr int kMostWarps = 16;               // that compute
constexpr int kOfLane = 32;                  // columns
constexpr int kSlice = 32 * kOfLane;         // of a warp
constexpr int kPiece = kMostWarps * kSlice;  // columns of a row in a stage
constexpr int kTogether = 4;                 // rows of a warp in a stage
constexpr int kLanesOfRow = 32 / kTogether;  // that have a part of its sum at the end
constexpr int kBlock = 16;                   // columns of a scale
constexpr int kStages = 3;
constexpr int kMagic = 0x4b400000;  // 1.5 * 2^23: adding an integer to its bits adds it to the float
constexpr float kMagicValue = 12582912.0f;

/// A stage has room for kTogether rows of each warp, one slice each.
struct alignas(128) Stage {
  uint8_t codes[kTogether * kPiece / 2];
  uint8_t scales[kTogether * kPiece / kBlock];
};

/// Twice the numbers of the four codes in the lower half of `codes`, as bytes; those with a sign are 0.
__device__ unsigned positive(unsigned codes) {
  unsigned bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(0x03020100), "r"(0x0c080604), "r"(codes));
  return bytes;
}

/// Twice the numbers of the four codes in the lower half of `codes`, as signed bytes.
__device__ int with_sign(unsigned codes) {
  const unsigned negative = 0x80808080u - positive(codes ^ 0x8888u);  // no byte borrows from the next
  return static_cast<int>((negative ^ 0x80808080u) | positive(codes));
}

/// Two e4m3 numbers side by side, the first in the lower byte.
__device__ float2 two_scales(unsigned short bytes) {
  unsigned halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(bytes));
  return __half22float2(*reinterpret_cast<const __half2*>(&halves));
}

/// 32 columns of the vector, decoded.
struct Numbers {
  int plus[8] = {}, minus[8] = {};
  float2 scale = {0, 0};  // a quarter: both operands are twice as large

  Numbers() = default;
  __device__ Numbers(uint4 codes, unsigned short scales) {
    const unsigned word[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const unsigned turned = word[w] ^ 0x88888888u;
      plus[2 * w] = with_sign(word[w]), plus[2 * w + 1] = with_sign(word[w] >> 16);
      minus[2 * w] = with_sign(turned), minus[2 * w + 1] = with_sign(turned >> 16);
    }
    const float2 s = two_scales(scales);
    scale = make_float2(s.x / 4, s.y / 4);
  }

  /// The products of 16 codes with the block's half `second`.
  __device__ float block(unsigned low, unsigned high, int second) const {
    const unsigned word[2] = {low, high};
    int sum = kMagic;
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const int at = 4 * second + 2 * w;
      const unsigned turned = word[w] ^ 0x88888888u;
      sum = __dp4a(static_cast<int>(positive(word[w])), plus[at], sum);
      sum = __dp4a(static_cast<int>(positive(word[w] >> 16)), plus[at + 1], sum);
      sum = __dp4a(static_cast<int>(positive(turned)), minus[at], sum);
      sum = __dp4a(static_cast<int>(positive(turned >> 16)), minus[at + 1], sum);
    }
    return __int_as_float(sum) - kMagicValue;
  }

  /// The sum over 32 columns of a row.
  __device__ float times(uint4 codes, unsigned short scales) const {
    const float2 s = two_scales(scales);
    return fmaf(block(codes.x, codes.y, 0), scale.x * s.x, block(codes.z, codes.w, 1) * (scale.y * s.y));
  }
};

// ---- barriers and bulk copies -----------------------------------------------------------------------------
__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
using Barrier = unsigned long long;  // an mbarrier
__device__ void init(Barrier* at, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(at)), "r"(arrivals) : "memory");
}
__device__ void expect_bytes(Barrier* at, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)),
               "r"(bytes)
               : "memory");
}
__device__ void arrive(Barrier* at) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(at)) : "memory");
}
__device__ void load_bulk(void* to, const void* from, unsigned bytes, Barrier* at) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(at))
      : "memory");
}
/// Waits until a phase is over; phases are counted modulo 2.
__device__ void wait_for(Barrier* at, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred there;\n"
      "WAITING:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
      "@there bra.uni THERE;\n"
      "bra.uni WAITING;\n"
      "THERE:\n"
      "}\n" ::"r"(shared_address(at)),
      "r"(parity)
      : "memory");
}

/// How a row is cut, for all blocks.
struct Plan {
  int64_t m, k, rows;          // rows: of all matrices
  int pieces, slices, groups;  // warps along a piece; sets of warps with rows of their own

  Plan(int64_t l, int64_t m_, int64_t k_)
      : m(m_),
        k(k_),
        rows(l * m_),
        pieces(static_cast<int>((k_ + kPiece - 1) / kPiece)),
        slices(static_cast<int>((std::min<int64_t>(k_, kPiece) + kSlice - 1) / kSlice)),
        groups(kMostWarps / slices) {}
  __host__ __device__ int warps() const { return slices * groups; }
  __device__ int columns(int piece) const {
    return piece + 1 < pieces ? kPiece : static_cast<int>(k - int64_t{piece} * kPiece);
  }
};

/// Walks a block's rows, a stage after the other: some rows of one matrix, one piece of their columns.
struct Walk {
  int64_t first, matrix;
  int row = 0, end, of_matrix, m;  // row, end: from `first`; of_matrix: rows until the matrix ends
  int piece = 0, pieces, most;

  __device__ explicit Walk(const Plan& plan)
      : first(plan.rows * blockIdx.x / gridDim.x),
        matrix(first / plan.m),
        end(static_cast<int>(plan.rows * (blockIdx.x + 1) / gridDim.x - first)),
        of_matrix(static_cast<int>((matrix + 1) * plan.m - first)),
        m(static_cast<int>(plan.m)),
        pieces(plan.pieces),
        most(plan.groups * kTogether) {}
  __device__ bool goes_on() const { return row < end; }
  __device__ int rows() const { return min(most, min(end - row, of_matrix)); }
  __device__ bool last_piece() const { return piece + 1 == pieces; }
  __device__ void advance(int taken) {
    if (++piece < pieces) return;
    piece = 0, row += taken, of_matrix -= taken;
    if (of_matrix == 0) ++matrix, of_matrix = m;
  }
};

struct Shared {
  Stage stages[kStages];
  float parts[kStages][kMostWarps * kTogether];  // a sum for each row and slice
  Barrier full[kStages], empty[kStages];
};

/// Starts the copies of a stage and moves on. By a whole warp.
__device__ void fetch(Shared& s, int stage, const Plan& plan, Walk& ahead, const uint8_t* a,
                      const uint8_t* sfa) {
  const int lane = threadIdx.x % 32, rows = ahead.rows(), columns = plan.columns(ahead.piece);
  const int copies = plan.pieces == 1 ? 1 : rows;  // whole rows lie one behind the other
  const unsigned codes = columns / 2 * (rows / copies), scales = columns / kBlock * (rows / copies);
  if (lane == 0) expect_bytes(&s.full[stage], copies * (codes + scales));
  __syncwarp();
  for (int r = lane; r < copies; r += 32) {
    const int64_t at = (ahead.first + ahead.row + r) * plan.k + int64_t{ahead.piece} * kPiece;
    load_bulk(s.stages[stage].codes + r * codes, a + at / 2, codes, &s.full[stage]);
    load_bulk(s.stages[stage].scales + r * scales, sfa + at / kBlock, scales, &s.full[stage]);
  }
  ahead.advance(rows);
}

/// Adds up the parts of stages that are done, and fetches the next ones in their place.
__device__ void load(Shared& s, const Plan& plan, Walk done, Walk ahead, const uint8_t* a, const uint8_t* sfa,
                     __nv_bfloat16* y) {
  const int lane = threadIdx.x % 32;
  for (int stage = 0, parity = 0; done.goes_on();) {
    const int rows = done.rows();
    wait_for(&s.empty[stage], parity);
    if (done.last_piece()) {
      for (int r = lane; r < rows; r += 32) {
        float sum = 0;
        for (int i = 0; i < plan.slices; ++i) sum += s.parts[stage][r * plan.slices + i];
        y[done.first + done.row + r] = __float2bfloat16(sum);
      }
      __syncwarp();  // before the stage is given away
    }
    done.advance(rows);
    if (ahead.goes_on()) fetch(s, stage, plan, ahead, a, sfa);
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
}

/// The lane's part of the vector, for the rows that the walk has reached.
__device__ Numbers decode(const Plan& plan, const Walk& here, int column, const uint8_t* x,
                          const uint8_t* sfx) {
  if (column >= plan.columns(here.piece)) return {};
  const int64_t at = here.matrix * plan.k + int64_t{here.piece} * kPiece + column;
  return {*reinterpret_cast<const uint4*>(x + at / 2),
          *reinterpret_cast<const unsigned short*>(sfx + at / kBlock)};
}

__device__ void compute(Shared& s, const Plan& plan, Walk here, int slice, Numbers numbers, const uint8_t* x,
                        const uint8_t* sfx) {
  const int lane = threadIdx.x % 32, group = threadIdx.x / 32 / plan.slices;
  const int column = slice * kSlice + lane * kOfLane;
  float sum[kTogether] = {};
  for (int stage = 0, parity = 0; here.goes_on();) {
    const int rows = here.rows(), columns = plan.columns(here.piece);
    wait_for(&s.full[stage], parity);
    if (column < columns) {
      const uint8_t* of_row = s.stages[stage].codes + (group * kTogether * columns + column) / 2;
      const uint8_t* its_scales = s.stages[stage].scales + (group * kTogether * columns + column) / kBlock;
      const int last = rows - 1 - group * kTogether;  // rows behind it are read as this one, and not stored
      uint4 codes[kTogether];
      unsigned short scales[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int to_row = min(j, last) * columns;
        codes[j] = *reinterpret_cast<const uint4*>(of_row + to_row / 2);
        scales[j] = *reinterpret_cast<const unsigned short*>(its_scales + to_row / kBlock);
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) sum[j] += numbers.times(codes[j], scales[j]);
    }
    if (here.last_piece()) {
      // The sums of some rows over 32 lanes: a step halves what a lane still has, until it has one row.
#pragma unroll
      for (int n = kTogether / 2, offset = 16; n > 0; n /= 2, offset /= 2) {
        const bool upper = lane & offset;
        for (int j = 0; j < n; ++j) {
          const float given = upper ? sum[j] : sum[j + n];
          sum[j] = (upper ? sum[j + n] : sum[j]) + __shfl_xor_sync(0xffffffffu, given, offset);
        }
      }
#pragma unroll
      for (int offset = kLanesOfRow / 2; offset > 0; offset /= 2)
        sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], offset);
      const int r = group * kTogether + lane / kLanesOfRow;
      if (lane % kLanesOfRow == 0) s.parts[stage][r * plan.slices + slice] = sum[0];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) sum[j] = 0;
    }
    __syncwarp();
    if (lane == 0) arrive(&s.empty[stage]);
    const int64_t matrix = here.matrix;
    here.advance(rows);
    if (here.goes_on() && (plan.pieces > 1 || here.matrix != matrix))
      numbers = decode(plan, here, column, x, sfx);
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
}

__global__ void __launch_bounds__((kMostWarps + 1) * 32, 1)
    gemv(const uint8_t* __restrict__ a, const uint8_t* __restrict__ sfa, const uint8_t* __restrict__ x,
         const uint8_t* __restrict__ sfx, __nv_bfloat16* __restrict__ y, const Plan plan) {
  extern __shared__ __align__(128) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const int warp = threadIdx.x / 32, slice = warp % plan.slices;
  const bool loads = warp == plan.warps();
  const Walk walk(plan);
  Walk ahead(walk);
  Numbers numbers;
  if (loads) {
    if (threadIdx.x % 32 == 0) {
      for (int i = 0; i < kStages; ++i) init(&s.full[i], 1), init(&s.empty[i], plan.warps());
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    for (int stage = 0; stage < kStages && ahead.goes_on(); ++stage) fetch(s, stage, plan, ahead, a, sfa);
  } else {  // first of all: later these loads would wait behind all that the ring asks for
    numbers = decode(plan, walk, slice * kSlice + threadIdx.x % 32 * kOfLane, x, sfx);
  }
  __syncthreads();  // the barriers are ready
  if (loads)
    load(s, plan, walk, ahead, a, sfa, y);
  else
    compute(s, plan, walk, slice, numbers, x, sfx);
}

/// Any k: a warp a row.
__global__ void __launch_bounds__(256)
    gemv_small(const uint8_t* __restrict__ a, const uint8_t* __restrict__ sfa, const uint8_t* __restrict__ x,
               const uint8_t* __restrict__ sfx, __nv_bfloat16* __restrict__ y, int64_t rows, int64_t m,
               int64_t k) {
  const int lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int64_t column = lane * kOfLane; column < k; column += kSlice) {
    const int64_t of_row = row * k + column, of_vector = row / m * k + column;
    const Numbers numbers(*reinterpret_cast<const uint4*>(x + of_vector / 2),
                          *reinterpret_cast<const unsigned short*>(sfx + of_vector / kBlock));
    sum += numbers.times(*reinterpret_cast<const uint4*>(a + of_row / 2),
                         *reinterpret_cast<const unsigned short*>(sfa + of_row / kBlock));
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0) y[row] = __float2bfloat16(sum);
}

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[l,m,k]*/, const __nv_fp8_e4m3* sfa /*[l,m,k / 16]*/,
                       const __nv_fp4x2_e2m1* x /*[l,k]*/, const __nv_fp8_e4m3* sfx /*[l,k / 16]*/,
                       __nv_bfloat16* y /*[l,m]*/, int64_t l, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  const auto* codes = reinterpret_cast<const uint8_t*>(a);
  const auto* scales = reinterpret_cast<const uint8_t*>(sfa);
  const auto* vector = reinterpret_cast<const uint8_t*>(x);
  const auto* of_vector = reinterpret_cast<const uint8_t*>(sfx);
  const Plan plan(l, m, k);
  if (k % 256 != 0) {
    const auto blocks = static_cast<unsigned>((plan.rows + 7) / 8);
    gemv_small<<<blocks, 256, 0, stream>>>(codes, scales, vector, of_vector, y, plan.rows, m, k);
    return;
  }
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(gemv, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(processors, plan.rows));
  gemv<<<blocks, (plan.warps() + 1) * 32, sizeof(Shared), stream>>>(codes, scales, vector, of_vector, y,
                                                                    plan);
}
