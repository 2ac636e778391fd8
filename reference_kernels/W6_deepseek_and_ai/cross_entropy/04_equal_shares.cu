// Rung 4: every warp reads an equal share of the matrix, by bulk copies that never stop.
//
// Changed     the matrix is cut into as many equal shares as warps fit on the GPU, without regard to rows.
//             One lane of a warp keeps six chunks of 2 KB on their way to shared memory (cp.async.bulk), also
//             across the end of a row. A warp stores the pair (maximum, sum) of each piece of a row that it
//             has seen. A second kernel, one warp a row, merges the pieces; it starts early (a programmatic
//             launch) and picks the logits of the targets while the first one reads.
// Why         in rung 3 a block has nothing in flight while it reduces a row, and while the next block
//             starts. And 4096 rows do not divide by the blocks that run at the same time: at the end of
//             the kernel a part of the GPU rests.
// Prediction  192 KB in flight for each multiprocessor until the very end: 98 % of a copy, 62 us, and 2 us
//             for the second kernel.
// Came        80.4 us, 0.81x rung 3 at a vocabulary of 32000.
//
// Shapes      logits [rows, vocab], bf16; target [rows]; loss, lse [rows], fp32; any rows, any vocab.
// Launch      one block of 16 warps for each multiprocessor; then <<<rows / 8, 256>>>. Small matrices use as
//             many warps as there are chunks.
// Resources   at most 64 registers; 192 KB of shared memory; workspace 8 bytes for each row and each warp.
// Cost        7 * rows * vocab FLOPs; 2 * rows * vocab bytes; the pieces stay in the L2 cache.
// Divides     no divisibility is required. Copies take the aligned vectors that touch a piece; what belongs
//             to a neighbouring row is replaced by -infinity. Only the last vector of the matrix, if it is
//             not whole, is loaded element by element.
// Source      equal shares: "stream-K" (M. Osama et al., 2023). Bulk copies and mbarriers need a GPU of
//             compute capability 9.0.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

constexpr int kWarps = 16, kThreads = kWarps * 32;
constexpr int kStages = 6;                       // chunks of a warp on their way
constexpr int kLoads = 4;                        // vectors a lane has of a chunk
constexpr int kChunk = kLoads * 32;              // vectors of 8 logits
constexpr int kSharedBytes = kWarps * kStages * kChunk * 16;
constexpr int64_t kMostProcessors = 512;
constexpr int kRowsPerBlock = 8;                 // of the second kernel
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.69314718055994531f;
constexpr float kNothing = -1e38f;               // the maximum of nothing; times log2(e) still finite
constexpr unsigned kNoPair = 0xff80ff80u;  // twice -infinity

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// sum = Σ exp(x - maximum) over the elements seen.
struct Running {
  float maximum, sum;

  /// Makes room for elements up to `x`. Returns what is subtracted from the exponents of two.
  __device__ float grow_to(float x) {
    const float larger = fmaxf(maximum, x);
    sum *= power_of_two((maximum - larger) * kLog2E);
    maximum = larger;
    return larger * kLog2E;
  }
};

/// Merges the pairs of all lanes; every lane gets the result.
__device__ Running warp_merge(Running mine) {
  float maximum = mine.maximum;
  for (int offset = 16; offset > 0; offset /= 2)
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, offset));
  mine.grow_to(maximum);
  for (int offset = 16; offset > 0; offset /= 2) mine.sum += __shfl_xor_sync(0xffffffffu, mine.sum, offset);
  return mine;
}

/// The larger of two pairs of bf16, in one instruction.
__device__ unsigned larger_pair(unsigned a, unsigned b) {
  unsigned larger;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}

// ---- bulk copies ------------------------------------------------------------------------------------------
__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
using Arrival = unsigned long long;  // an mbarrier
__device__ void expect_one_copy(Arrival* at) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(at)) : "memory");
}
/// Starts a copy of `bytes`, a multiple of 16 or 0; `at` says when it has arrived.
__device__ void copy_bulk(void* to, const void* from, unsigned bytes, Arrival* at) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)),
               "r"(bytes)
               : "memory");
  if (bytes > 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(at))
        : "memory");
}
/// Waits until the copies of a phase are there; phases are counted modulo 2.
__device__ void wait_for(Arrival* at, int parity) {
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

// ---- programmatic launches: what a kernel may do before the one in front of it has ended ------------------
__device__ void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_kernel_in_front() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// The matrix as `vectors` aligned vectors, of which warp w has those from first_of(w) to first_of(w + 1).
struct Shares {
  int64_t vocab, elements, vectors, warps;

  Shares(int64_t rows, int64_t columns, int64_t most_warps)
      : vocab(columns), elements(rows * columns), vectors((elements + 7) / 8),
        warps(std::min(most_warps, (vectors + kChunk - 1) / kChunk)) {}
  __device__ int64_t first_of(int64_t warp) const { return vectors * warp / warps; }
  __device__ int64_t owner_of(int64_t vector) const { return ((vector + 1) * warps - 1) / vectors; }
};

/// The pieces of all rows in the order of the matrix: a next piece has a next row, a next warp, or both.
__device__ int64_t piece_of(int64_t row, int64_t warp) { return row + warp; }

/// Walks a warp's share in chunks. A chunk has one row, and touches at most kChunk vectors.
struct Walk {
  int64_t at, end;       // elements of the matrix
  int64_t row, row_end;
  int64_t vocab;

  __device__ Walk(const Shares& shares, int64_t warp)
      : at(shares.first_of(warp) * 8), end(min(shares.first_of(warp + 1) * 8, shares.elements)),
        row(at / shares.vocab), row_end((row + 1) * shares.vocab), vocab(shares.vocab) {}
  __device__ bool goes_on() const { return at < end; }
  __device__ int64_t vector() const { return at / 8; }
  __device__ int64_t chunk_end() const { return min(min(end, row_end), (vector() + kChunk) * 8); }
  __device__ void advance() {
    at = chunk_end();
    if (at == row_end) ++row, row_end += vocab;
  }
};

/// Element `i` of a vector becomes -infinity unless begin <= i < end.
__device__ void mask(unsigned (&word)[4], int begin, int end) {
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if (2 * w < begin || 2 * w >= end) word[w] = (word[w] & 0xffff0000u) | 0xff80u;
    if (2 * w + 1 < begin || 2 * w + 1 >= end) word[w] = (word[w] & 0xffffu) | 0xff800000u;
  }
}

/// The elements from `at` to the end of the matrix, fewer than a vector has; -infinity behind them.
__device__ void load_last(unsigned (&word)[4], const __nv_bfloat16* logits, int64_t at, int64_t elements) {
  const auto bits = [&](int64_t i) { return i < elements ? __bfloat16_as_ushort(logits[i]) : 0xff80u; };
#pragma unroll
  for (int w = 0; w < 4; ++w) word[w] = bits(at + 2 * w) | bits(at + 2 * w + 1) << 16;
}

__global__ void __launch_bounds__(kThreads, 1)
    read_shares(const __nv_bfloat16* __restrict__ logits, Running* pieces, const Shares shares) {
  extern __shared__ uint4 ring[];
  __shared__ Arrival arrivals[kWarps][kStages];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t self = int64_t{blockIdx.x} * kWarps + warp;
  let_next_kernel_begin();
  if (self >= shares.warps) return;

  uint4* const chunks = ring + warp * kStages * kChunk;
  const int64_t whole_vectors = shares.elements / 8;
  Walk ahead(shares, self), here(ahead);
  const auto fetch = [&](int stage) {  // the next chunk that is not on its way yet
    if (!ahead.goes_on()) return;
    const int64_t first = ahead.vector(), last = min((ahead.chunk_end() + 7) / 8, whole_vectors);
    if (lane == 0)
      copy_bulk(chunks + stage * kChunk, logits + first * 8, static_cast<unsigned>(last - first) * 16,
                &arrivals[warp][stage]);
    ahead.advance();
  };

  if (lane == 0) {
    for (int stage = 0; stage < kStages; ++stage) expect_one_copy(&arrivals[warp][stage]);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();  // the barriers are ready
  for (int stage = 0; stage < kStages; ++stage) fetch(stage);

  Running running = {kNothing, 0};
  int stage = 0, parity = 0;
  while (here.goes_on()) {
    const int64_t chunk_end = here.chunk_end(), first = here.vector();
    const int begin = static_cast<int>(here.at - first * 8), end = static_cast<int>(chunk_end - first * 8);
    wait_for(&arrivals[warp][stage], parity);
    unsigned word[kLoads][4];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int i = k * 32 + lane;
      uint4 v = make_uint4(kNoPair, kNoPair, kNoPair, kNoPair);
      if (i * 8 < end && first + i < whole_vectors) v = chunks[stage * kChunk + i];
      word[k][0] = v.x, word[k][1] = v.y, word[k][2] = v.z, word[k][3] = v.w;
    }
    __syncwarp();  // all lanes have taken what lay there
    fetch(stage);
    if (chunk_end > whole_vectors * 8) {
#pragma unroll
      for (int k = 0; k < kLoads; ++k)
        if (first + k * 32 + lane == whole_vectors)
          load_last(word[k], logits, whole_vectors * 8, shares.elements);
    }
    if (begin > 0 || end < kChunk * 8) {
#pragma unroll
      for (int k = 0; k < kLoads; ++k) mask(word[k], begin - (k * 32 + lane) * 8, end - (k * 32 + lane) * 8);
    }

    unsigned largest = word[0][0];
#pragma unroll
    for (int w = 1; w < kLoads * 4; ++w) largest = larger_pair(largest, word[w / 4][w % 4]);
    const float offset = running.grow_to(fmaxf(low(largest), high(largest)));
    float sum[2] = {0, 0};
#pragma unroll
    for (int w = 0; w < kLoads * 4; ++w) {
      sum[0] += power_of_two(fmaf(low(word[w / 4][w % 4]), kLog2E, -offset));
      sum[1] += power_of_two(fmaf(high(word[w / 4][w % 4]), kLog2E, -offset));
    }
    running.sum += sum[0] + sum[1];

    if (chunk_end == here.row_end || chunk_end == here.end) {  // the end of a piece
      running = warp_merge(running);
      if (lane == 0) pieces[piece_of(here.row, self)] = running;
      running = {kNothing, 0};
    }
    here.advance();
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
}

/// One warp a row.
__global__ void __launch_bounds__(kRowsPerBlock * 32)
    finish_rows(const __nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
                const Running* pieces, float* __restrict__ loss, float* __restrict__ lse,
                const Shares shares) {
  const int lane = threadIdx.x % 32;
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / 32, begin = row * shares.vocab;
  if (begin >= shares.elements) return;
  const int chosen = target[row];
  const bool counts = chosen >= 0 && chosen < shares.vocab;
  const float picked = counts ? __bfloat162float(logits[begin + chosen]) : 0.0f;
  const int64_t first = piece_of(row, shares.owner_of(begin / 8));
  const int64_t last = piece_of(row, shares.owner_of((begin + shares.vocab - 1) / 8));
  wait_for_kernel_in_front();  // the pieces are there

  Running whole = {kNothing, 0};
  for (int64_t i = first + lane; i <= last; i += 32) {
    Running piece = pieces[i];
    whole.grow_to(piece.maximum);
    piece.grow_to(whole.maximum);
    whole.sum += piece.sum;
  }
  whole = warp_merge(whole);
  if (lane != 0) return;
  const float total = whole.maximum + kLn2 * log2f(whole.sum);
  lse[row] = total;
  loss[row] = counts ? total - picked : 0.0f;
}

extern "C" size_t workspace_bytes(int64_t rows, int64_t /*vocab*/) {
  return static_cast<size_t>(rows + kMostProcessors * kWarps) * sizeof(Running);
}

extern "C" void launch(const __nv_bfloat16* logits /*[rows,vocab]*/, const int32_t* target /*[rows]*/,
                       float* loss /*[rows]*/, float* lse /*[rows]*/, int64_t rows, int64_t vocab,
                       void* workspace, cudaStream_t stream) {
  Running* const pieces = static_cast<Running*>(workspace);
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const Shares shares(rows, vocab, std::min<int64_t>(processors, kMostProcessors) * kWarps);
  const unsigned blocks = static_cast<unsigned>((shares.warps + kWarps - 1) / kWarps);
  cudaFuncSetAttribute(read_shares, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  read_shares<<<blocks, kThreads, kSharedBytes, stream>>>(logits, pieces, shares);

  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>((rows + kRowsPerBlock - 1) / kRowsPerBlock));
  config.blockDim = dim3(kRowsPerBlock * 32);
  config.stream = stream;
  config.attrs = early;
  config.numAttrs = 1;
  const Running* const read = pieces;
  cudaLaunchKernelEx(&config, finish_rows, logits, target, read, loss, lse, shares);
}
