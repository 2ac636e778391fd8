// tcgen05 against the text of the PTX ISA 9.0, 9.7.16: fragments of ld and st (9.7.16.2.3.1), canonical layouts in
// shared memory (9.7.16.3.3), instruction descriptors (tables 42 to 44), layouts of D (9.7.16.10.5), scale factors
// (9.7.16.10.7) and cp. The host writes the operands as the text says, and multiplies them plainly. Every case is a
// line of a table; small whole numbers and powers of two are exact.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
__device__ void wait_loads() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
__device__ void wait_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
__device__ void allocate(uint32_t* place, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(place)), "r"(columns) : "memory");
}
__device__ void release(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
__device__ void begin_barrier(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void await(uint64_t* barrier, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}
__device__ void commit(uint64_t* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void store8(uint32_t at, const uint32_t* r) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]));
}
__device__ void load8(uint32_t at, uint32_t* r) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(at));
}

// ---- ld and st ------------------------------------------------------------------------------------------------

#define IN1 "{%0}, [%1]"
#define IN4 "{%0, %1, %2, %3}, [%4]"
#define IN8 "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8]"
#define R1 "=r"(r[0])
#define R4 R1, "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
#define R8 R4, "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
#define V1 "r"(r[0])
#define V4 V1, "r"(r[1]), "r"(r[2]), "r"(r[3])
#define V8 V4, "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7])
#define OUT1 "{%1}"
#define OUT4 "{%1, %2, %3, %4}"
#define OUT8 "{%1, %2, %3, %4, %5, %6, %7, %8}"
#define MOVE(number, how, n, split, pack, unpack)                                                              \
  case number:                                                                                                 \
    if (stores)                                                                                                \
      asm volatile("tcgen05.st.sync.aligned." how unpack ".b32 [%0]" split ", " OUT##n ";" ::"r"(at), V##n);   \
    else                                                                                                       \
      asm volatile("tcgen05.ld.sync.aligned." how pack ".b32 " IN##n split ";" : R##n : "r"(at));              \
    break;

struct Move {
  const char* name;
  int shape, registers, split, halves;
};
const Move kMoves[] = {{"32x32b.x1", 0, 1, 0, 0},   {"32x32b.x4", 0, 4, 0, 0},   {"32x32b.x8", 0, 8, 0, 0},
                       {"16x64b.x1", 1, 1, 0, 0},   {"16x64b.x4", 1, 4, 0, 0},   {"16x64b.x8", 1, 8, 0, 0},
                       {"16x128b.x2", 2, 4, 0, 0},  {"16x128b.x4", 2, 8, 0, 0},  {"16x256b.x1", 3, 4, 0, 0},
                       {"16x256b.x2", 3, 8, 0, 0},  {"16x32bx2.x1", 4, 1, 5, 0}, {"16x32bx2.x4", 4, 4, 16, 0},
                       {"32x32b.x4 16b", 0, 4, 0, 1}, {"16x64b.x4 16b", 1, 4, 0, 1}, {"16x128b.x2 16b", 2, 4, 0, 1},
                       {"16x256b.x1 16b", 3, 4, 0, 1}, {"16x32bx2.x4 16b", 4, 4, 16, 1}};
constexpr int kMoveCount = sizeof kMoves / sizeof kMoves[0], kMoveColumns = 32;

__device__ void move(int number, bool stores, uint32_t at, uint32_t* r) {
  switch (number) {
    MOVE(0, "32x32b.x1", 1, "", "", "")
    MOVE(1, "32x32b.x4", 4, "", "", "")
    MOVE(2, "32x32b.x8", 8, "", "", "")
    MOVE(3, "16x64b.x1", 1, "", "", "")
    MOVE(4, "16x64b.x4", 4, "", "", "")
    MOVE(5, "16x64b.x8", 8, "", "", "")
    MOVE(6, "16x128b.x2", 4, "", "", "")
    MOVE(7, "16x128b.x4", 8, "", "", "")
    MOVE(8, "16x256b.x1", 4, "", "", "")
    MOVE(9, "16x256b.x2", 8, "", "", "")
    MOVE(10, "16x32bx2.x1", 1, ", 5", "", "")
    MOVE(11, "16x32bx2.x4", 4, ", 16", "", "")
    MOVE(12, "32x32b.x4", 4, "", ".pack::16b", ".unpack::16b")
    MOVE(13, "16x64b.x4", 4, "", ".pack::16b", ".unpack::16b")
    MOVE(14, "16x128b.x2", 4, "", ".pack::16b", ".unpack::16b")
    MOVE(15, "16x256b.x1", 4, "", ".pack::16b", ".unpack::16b")
    MOVE(16, "16x32bx2.x4", 4, ", 16", ".pack::16b", ".unpack::16b")
  }
}

// loaded[case][128][8]: registers; stored[case][128][32]: what a store leaves in lanes that held zeros.
__global__ void move_all(uint32_t* loaded, uint32_t* stored) {
  __shared__ uint32_t address;
  const uint32_t thread = threadIdx.x, warp = thread / 32;
  if (warp == 0) allocate(&address, kMoveColumns);
  __syncthreads();
  fence_after();
  const uint32_t at = address + (warp * 32 << 16);
  for (int number = 0; number < kMoveCount; ++number) {
    uint32_t r[8];
    for (int c = 0; c < kMoveColumns; c += 8) {
      for (int i = 0; i < 8; ++i) r[i] = thread << 8 | (c + i);
      store8(at + c, r);
    }
    wait_stores();
    for (int i = 0; i < 8; ++i) r[i] = 0;
    move(number, false, at, r);
    wait_loads();
    for (int i = 0; i < 8; ++i) loaded[(number * 128 + thread) * 8 + i] = r[i];
    for (int i = 0; i < 8; ++i) r[i] = 0;
    for (int c = 0; c < kMoveColumns; c += 8) store8(at + c, r);
    wait_stores();
    for (int i = 0; i < 8; ++i) r[i] = 0x10001u * (i + 1) + (thread << 24);
    move(number, true, at, r);
    wait_stores();
    for (int c = 0; c < kMoveColumns; c += 8) {
      load8(at + c, r);
      wait_loads();
      for (int i = 0; i < 8; ++i) stored[(number * 128 + thread) * kMoveColumns + c + i] = r[i];
    }
  }
  fence_before();
  __syncthreads();
  if (warp == 0) release(address, kMoveColumns);
}

// Which rows and columns the bits of the thread's and of the register's number stand for: figures 183 to 187.
struct Fragment {
  int thread_row[5], thread_column[5], register_row[3], register_column[3];
};
const Fragment kFragments[] = {{{1, 2, 4, 8, 16}, {0, 0, 0, 0, 0}, {0, 0, 0}, {1, 2, 4}},
                               {{8, 0, 1, 2, 4}, {0, 1, 0, 0, 0}, {0, 0, 0}, {2, 4, 8}},
                               {{0, 0, 1, 2, 4}, {1, 2, 0, 0, 0}, {8, 0, 0}, {0, 4, 8}},
                               {{0, 0, 1, 2, 4}, {2, 4, 0, 0, 0}, {0, 8, 0}, {1, 0, 8}},
                               {{1, 2, 4, 8, 0}, {0, 0, 0, 0, 0}, {0, 0, 0}, {1, 2, 4}}};

int failures = 0, cases = 0;
void report(const char* kind, const char* name, int wrong) {
  ++cases;
  if (wrong) {
    std::printf("%s %s: %d wrong\n", kind, name, wrong);
    ++failures;
  }
}

void give_up(const char* name) {
  std::printf("%s: the kernel failed\n", name);
  std::exit(1);
}

void check_moves() {
  uint32_t *loaded, *stored;
  cudaMallocManaged(&loaded, sizeof(uint32_t) * kMoveCount * 128 * 8);
  cudaMallocManaged(&stored, sizeof(uint32_t) * kMoveCount * 128 * kMoveColumns);
  move_all<<<1, 128>>>(loaded, stored);
  if (cudaDeviceSynchronize() != cudaSuccess) return give_up("ld, st");
  for (int number = 0; number < kMoveCount; ++number) {
    const Move& m = kMoves[number];
    const Fragment& f = kFragments[m.shape];
    std::vector<uint32_t> expected(128 * kMoveColumns, 0);
    int wrong_loads = 0, wrong_stores = 0;
    for (int thread = 0; thread < 128; ++thread)
      for (int r = 0; r < m.registers; ++r) {
        int row = thread / 32 * 32, column = 0;
        for (int b = 0; b < 5; ++b)
          if (thread >> b & 1) row += f.thread_row[b], column += f.thread_column[b];
        for (int b = 0; b < 3; ++b)
          if (r >> b & 1) row += f.register_row[b], column += f.register_column[b];
        const int base = thread % 32 / 16 * m.split;
        const uint32_t mine = 0x10001u * (r + 1) + (static_cast<uint32_t>(thread) << 24);
        const uint32_t got = loaded[(number * 128 + thread) * 8 + r];
        auto held = [&](int c) { return static_cast<uint32_t>(row << 8 | (base + c)); };
        if (m.halves) {
          wrong_loads += got != ((held(2 * column) & 0xffff) | (held(2 * column + 1) & 0xffff) << 16);
          expected[row * kMoveColumns + base + 2 * column] = mine & 0xffff;
          expected[row * kMoveColumns + base + 2 * column + 1] = mine >> 16;
        } else {
          wrong_loads += got != held(column);
          expected[row * kMoveColumns + base + column] = mine;
        }
      }
    for (int i = 0; i < 128 * kMoveColumns; ++i) wrong_stores += stored[number * 128 * kMoveColumns + i] != expected[i];
    report("ld", m.name, wrong_loads);
    report("st", m.name, wrong_stores);
  }
}

// ---- mma ------------------------------------------------------------------------------------------------------

enum Form {
  kF16, kF16Ts, kF16Masked, kTf32, kTf32Ts, kF8, kF8Ts, kI8, kI8Ts, kSp, kSpTs, kSpF8, kSpI8,
  kWs, kWsTs, kWsTf32, kWsF8, kWsI8, kWsZero, kWsZeroI8, kWsSp,
  kMx8, kSpMx8, kMx4, kNv4x2, kNv4x4, kSpMx4, kSpNv4
};
struct Operands {
  uint64_t a, b;  // descriptors without the address
  uint32_t instruction;
  int form, n, accumulate;
  uint64_t zero_columns;
};
constexpr int kImageA = 16384, kImageB = 16384, kColumnA = 256, kColumnScaleA = 264, kColumnScaleB = 272, kColumnMeta = 280;
constexpr int kWords = 32;  // columns from kColumnA on

#define ISSUE(form_name, text, ...)                                                                            \
  case form_name:                                                                                              \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n" text "\n}" ::"r"(d), "l"(a), "l"(b),              \
                 "r"(in.instruction), "r"(in.accumulate), "r"(d + kColumnA), ##__VA_ARGS__);                   \
    break;
#define SCALES "r"(d + kColumnScaleA), "r"(d + kColumnScaleB)
#define META "r"(d + kColumnMeta)

__global__ void multiply(Operands in, const uint4* images, const uint32_t* words, const uint32_t* before, uint32_t* result) {
  __shared__ __align__(1024) uint8_t image[kImageA + kImageB];
  __shared__ uint32_t address;
  __shared__ uint64_t barrier;
  const uint32_t thread = threadIdx.x, warp = thread / 32;
  for (int i = thread; i < (kImageA + kImageB) / 16; i += 128) reinterpret_cast<uint4*>(image)[i] = images[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (warp == 0) allocate(&address, 512);
  if (thread == 0) begin_barrier(&barrier);
  __syncthreads();
  const uint32_t d = address, mine = d + (warp * 32 << 16);
  uint32_t r[8];
  for (int c = 0; c < in.n; c += 8) {  // D, then A, the scale factors and the metadata
    for (int i = 0; i < 8; ++i) r[i] = before[thread * 256 + c + i];
    store8(mine + c, r);
  }
  for (int c = 0; c < kWords; c += 8) {
    for (int i = 0; i < 8; ++i) r[i] = words[thread * kWords + c + i];
    store8(mine + kColumnA + c, r);
  }
  wait_stores();
  fence_before();
  __syncthreads();
  if (thread == 0) {
    fence_after();
    const uint64_t a = in.a | (shared_address(image) & 0x3ffff) >> 4, b = in.b | (shared_address(image + kImageA) & 0x3ffff) >> 4;
    switch (in.form) {
      ISSUE(kF16, "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;")
      ISSUE(kF16Ts, "tcgen05.mma.cta_group::1.kind::f16 [%0], [%5], %2, %3, p;")
      ISSUE(kF16Masked, "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%6, %7, %6, %6}, p, 3;", "r"(0), "r"(0xff00ffu))
      ISSUE(kTf32, "tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, p;")
      ISSUE(kTf32Ts, "tcgen05.mma.cta_group::1.kind::tf32 [%0], [%5], %2, %3, p;")
      ISSUE(kF8, "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;")
      ISSUE(kF8Ts, "tcgen05.mma.cta_group::1.kind::f8f6f4.collector::a::fill [%0], [%5], %2, %3, p;")
      ISSUE(kI8, "tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, p;")
      ISSUE(kI8Ts, "tcgen05.mma.cta_group::1.kind::i8 [%0], [%5], %2, %3, p;")
      ISSUE(kSp, "tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%6], %3, p;", META)
      ISSUE(kSpTs, "tcgen05.mma.sp.cta_group::1.kind::f16.collector::a::lastuse [%0], [%5], %2, [%6], %3, p, 1;", META)
      ISSUE(kSpF8, "tcgen05.mma.sp.cta_group::1.kind::f8f6f4 [%0], %1, %2, [%6], %3, p;", META)
      ISSUE(kSpI8, "tcgen05.mma.sp.cta_group::1.kind::i8 [%0], %1, %2, [%6], %3, p;", META)
      ISSUE(kWsZero, "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b0::fill [%0], %1, %2, %3, p, %6;", "l"(in.zero_columns))
      ISSUE(kWsZeroI8, "tcgen05.mma.ws.cta_group::1.kind::i8.collector::b3::use [%0], %1, %2, %3, p, %6;", "l"(in.zero_columns))
      ISSUE(kWsSp, "tcgen05.mma.ws.sp.cta_group::1.kind::f16.collector::b1::fill [%0], %1, %2, [%6], %3, p, %7;", META, "l"(in.zero_columns))
      ISSUE(kSpMx8, "tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, [%8], %3, [%6], [%7], p;", SCALES, META)
      ISSUE(kSpMx4, "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale [%0], %1, %2, [%8], %3, [%6], [%7], p;", SCALES, META)
      ISSUE(kSpNv4, "tcgen05.mma.sp.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, [%8], %3, [%6], [%7], p;", SCALES, META)
      ISSUE(kWs, "tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, p;")
      ISSUE(kWsTs, "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill [%0], [%5], %2, %3, p, 0;")
      ISSUE(kWsTf32, "tcgen05.mma.ws.cta_group::1.kind::tf32.collector::b2::discard [%0], %1, %2, %3, p;")
      ISSUE(kWsF8, "tcgen05.mma.ws.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p, %6;", "l"(uint64_t{0}))
      ISSUE(kWsI8, "tcgen05.mma.ws.cta_group::1.kind::i8.collector::b3::lastuse [%0], %1, %2, %3, p;")
      ISSUE(kMx8, "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%6], [%7], p;", SCALES)
      ISSUE(kMx4, "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%0], %1, %2, %3, [%6], [%7], p;", SCALES)
      ISSUE(kNv4x2, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::2X [%0], %1, %2, %3, [%6], [%7], p;", SCALES)
      ISSUE(kNv4x4, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%6], [%7], p;", SCALES)
    }
    commit(&barrier);
  }
  await(&barrier, 0);
  fence_after();
  for (int c = 0; c < in.n; c += 8) {
    load8(mine + c, r);
    wait_loads();
    for (int i = 0; i < 8; ++i) result[thread * 256 + c + i] = r[i];
  }
  fence_before();
  __syncthreads();
  fence_after();
  if (warp == 0) release(address, 512);
}

// ---- the host's side: elements, layouts, plain products ---------------------------------------------------------

enum Type { F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, U8, S8 };
const int kBits[] = {16, 16, 32, 8, 8, 6, 6, 4, 8, 8};

double number(Type type, uint32_t code) {
  if (type == U8) return code & 0xff;
  if (type == S8) return static_cast<int8_t>(code);
  static const int kExponent[] = {5, 8, 8, 4, 5, 2, 3, 2}, kMantissa[] = {10, 7, 23, 3, 2, 3, 2, 1};
  const int e = kExponent[type], m = kMantissa[type], bias = (1 << (e - 1)) - 1;
  const int exponent = code >> m & ((1 << e) - 1), mantissa = code & ((1u << m) - 1);
  const double size = exponent ? std::ldexp(1 + std::ldexp(mantissa, -m), exponent - bias) : std::ldexp(mantissa, 1 - bias - m);
  return code >> (e + m) & 1 ? -size : size;
}
/// The code of a small number that the type has.
uint32_t code_of(Type type, double wanted) {
  if (type == TF32 || type == BF16) {
    const float f = static_cast<float>(wanted);
    uint32_t word;
    std::memcpy(&word, &f, 4);
    return type == TF32 ? word : word >> 16;
  }
  if (type == F16) {
    int exponent;
    const double fraction = std::frexp(std::fabs(wanted), &exponent);  // in [0.5, 1)
    const uint32_t size = wanted == 0 ? 0 : static_cast<uint32_t>(exponent + 14) << 10 | (static_cast<uint32_t>(fraction * 2048) & 1023);
    return size | (std::signbit(wanted) ? 0x8000u : 0);
  }
  for (uint32_t code = 0; code < (1u << kBits[type]); ++code)
    if (number(type, code) == wanted) return code;
  std::printf("no code for %g\n", wanted);
  return 0;
}

enum Swizzle { kNone, kSw32, kSw64, kSw128, kSw128Coarse };
const int kSpan[] = {0, 32, 64, 128, 128}, kMode[] = {0, 6, 4, 2, 1};

/// A matrix in shared memory: its bytes, and the descriptor's offsets and mode.
struct Layout {
  Swizzle swizzle;
  bool transposed;
  int rows, bytes;  // of an element; 1 for the narrow ones
  int pieces = 2;   // of 16 bytes along K; a sparse A's B has four
  int span() const { return kSpan[swizzle]; }
  int atom() const { return transposed ? (swizzle == kSw128Coarse ? 4 : 8) * (span() ? span() : 16) : 8 * (span() ? span() : 32); }
  int lbo() const {
    if (!transposed) return span() ? 16 : 128;
    return span() ? atom() : atom() * (rows * bytes / 16);
  }
  int sbo() const {
    if (!transposed) return span() ? 8 * span() : 128 * pieces;
    return span() ? atom() * (rows * bytes / span()) : atom();
  }
  uint64_t descriptor() const {
    return static_cast<uint64_t>(lbo() >> 4) << 16 | static_cast<uint64_t>(sbo() >> 4) << 32 | uint64_t{1} << 46 |
           static_cast<uint64_t>(kMode[swizzle]) << 61;
  }
  /// @param along  bytes along K where K-major; else elements along K
  int offset(int row, int along) const {
    int at;
    if (!transposed) {
      at = span() ? row % 8 * span() + row / 8 * sbo() + along : row % 8 * 16 + row / 8 * sbo() + along % 16 + along / 16 * lbo();
    } else {
      const int depth = swizzle == kSw128Coarse ? 4 : 8, wide = (span() ? span() : 16) / bytes;
      at = row % wide * bytes + along % depth * (span() ? span() : 16) +
           (span() ? row / wide * lbo() + along / depth * sbo() : row / wide * sbo() + along / depth * lbo());
    }
    if (swizzle == kSw128Coarse) return at ^ (at >> 7 & 3) << 5;
    return at ^ (at >> 7 & (span() / 16 - (span() ? 1 : 0))) << 4;
  }
};

struct Case {
  const char* name;
  Form form;
  Type a, b;
  int m, n;
  Swizzle swizzle_a, swizzle_b;
  bool transposed_a, transposed_b;
  int d_type;  // 0 f16, 1 f32, 2 s32
  bool accumulate, negate_a, negate_b, saturate;
  int id_a, id_b;
  bool powers;  // scale factors UE8M0
  /// 9.7.16.4.3: start counts and first spans of mask0 to mask3, non-zero mask, skip and use span, shift; and what
  /// the examples say of the generated masks: a cycle of `used` 0-bits and `zeros` 1-bits, from its bit `from` on.
  struct Zeros {
    uint32_t start, first, generate, skip, use, shift;
    int used, zeros, from[4];
  } zero = {0, 0, 0, 0, 0, 0, 1, 0, {0, 0, 0, 0}};
};
#define PLAIN false, false, false, false
const Case kCases[] = {
    // canonical layouts
    {"f16 K none", kF16, F16, F16, 128, 64, kNone, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"bf16 K 32", kF16, BF16, BF16, 128, 64, kSw32, kSw32, false, false, 1, PLAIN, 0, 0, false},
    {"bf16 K 64", kF16, BF16, BF16, 128, 64, kSw64, kSw64, false, false, 1, PLAIN, 0, 0, false},
    {"bf16 K 128", kF16, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"bf16 MN none", kF16, BF16, BF16, 128, 64, kNone, kNone, true, true, 1, PLAIN, 0, 0, false},
    {"bf16 MN 32", kF16, BF16, BF16, 128, 64, kSw32, kSw32, true, true, 1, PLAIN, 0, 0, false},
    {"bf16 MN 64", kF16, BF16, BF16, 128, 64, kSw64, kSw64, true, true, 1, PLAIN, 0, 0, false},
    {"bf16 MN 128", kF16, BF16, BF16, 128, 64, kSw128, kSw128, true, true, 1, PLAIN, 0, 0, false},
    {"bf16 K 128, MN 64", kF16, BF16, BF16, 128, 64, kSw128, kSw64, false, true, 1, PLAIN, 0, 0, false},
    {"f16 MN 32, K none", kF16, F16, F16, 128, 64, kSw32, kNone, true, false, 1, PLAIN, 0, 0, false},
    // shapes
    {"128x8", kF16, BF16, BF16, 128, 8, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"128x24", kF16, BF16, BF16, 128, 24, kSw64, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"128x256", kF16, BF16, BF16, 128, 256, kNone, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"64x8", kF16, BF16, BF16, 64, 8, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"64x64", kF16, BF16, BF16, 64, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false},
    // types of D, fields
    {"f16 into f16", kF16, F16, F16, 128, 32, kNone, kNone, false, false, 0, PLAIN, 0, 0, false},
    {"f16 into f16, continued", kF16, F16, F16, 128, 32, kNone, kNone, false, false, 0, true, false, false, false, 0, 0, false},
    {"f16 by bf16", kF16, F16, BF16, 128, 32, kNone, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"continued", kF16, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, true, false, false, false, 0, 0, false},
    {"negated A", kF16, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, true, true, false, false, 0, 0, false},
    {"negated B", kF16, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, true, false, true, false, 0, 0, false},
    {"negated A and B", kF16, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, true, true, true, false, 0, 0, false},
    {"lanes disabled, D scaled", kF16Masked, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, true, false, false, false, 0, 0, false},
    // A in tensor memory
    {"f16 TS", kF16Ts, F16, F16, 128, 64, kNone, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"bf16 TS 64", kF16Ts, BF16, BF16, 64, 64, kNone, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"tf32 TS", kTf32Ts, TF32, TF32, 128, 64, kNone, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"e4m3 TS", kF8Ts, E4M3, E4M3, 128, 64, kNone, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"e2m1 TS", kF8Ts, E2M1, E4M3, 128, 64, kNone, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"e3m2 TS", kF8Ts, E3M2, E4M3, 128, 64, kNone, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"s8 TS", kI8Ts, S8, S8, 128, 64, kNone, kSw128, false, false, 2, PLAIN, 0, 0, false},
    // other kinds
    {"tf32 K none", kTf32, TF32, TF32, 128, 64, kNone, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"tf32 K 128", kTf32, TF32, TF32, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"tf32 MN 128 by 32", kTf32, TF32, TF32, 128, 64, kSw128Coarse, kSw128Coarse, true, true, 1, PLAIN, 0, 0, false},
    {"e4m3 K 128", kF8, E4M3, E4M3, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"e5m2 by e4m3 into f16", kF8, E5M2, E4M3, 128, 64, kSw64, kSw32, false, false, 0, PLAIN, 0, 0, false},
    {"e2m3 by e3m2", kF8, E2M3, E3M2, 128, 64, kNone, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"e2m1 by e2m1", kF8, E2M1, E2M1, 128, 64, kSw128, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"e2m1 by e5m2", kF8, E2M1, E5M2, 64, 64, kSw32, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"e4m3 MN 128", kF8, E4M3, E4M3, 128, 128, kSw128, kSw128, true, true, 1, PLAIN, 0, 0, false},
    {"e4m3 negated", kF8, E4M3, E4M3, 128, 64, kNone, kNone, false, false, 1, true, true, false, false, 0, 0, false},
    {"s8", kI8, S8, S8, 128, 32, kSw128, kSw128, false, false, 2, true, false, false, false, 0, 0, false},
    {"u8 by s8", kI8, U8, S8, 64, 48, kSw64, kSw64, false, false, 2, PLAIN, 0, 0, false},
    {"s8 MN saturated", kI8, S8, S8, 128, 64, kSw64, kSw64, true, true, 2, true, false, false, true, 0, 0, false},
    // weight-stationary: layouts D, E and G
    {"ws 128x64", kWs, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"ws 64x128", kWs, BF16, BF16, 64, 128, kSw128, kSw128, false, false, 1, true, false, false, false, 0, 0, false},
    {"ws 64x64 into f16", kWs, F16, F16, 64, 64, kNone, kSw64, false, false, 0, PLAIN, 0, 0, false},
    {"ws 32x256", kWs, F16, F16, 32, 256, kSw128, kNone, false, false, 1, true, false, true, false, 0, 0, false},
    {"ws TS 128x128", kWsTs, BF16, BF16, 128, 128, kNone, kSw128, false, false, 1, PLAIN, 0, 0, false},
    {"ws tf32 32x64", kWsTf32, TF32, TF32, 32, 64, kSw128, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"ws e4m3 64x256", kWsF8, E4M3, E2M1, 64, 256, kSw128, kSw32, false, false, 1, PLAIN, 0, 0, false},
    {"ws s8 32x128", kWsI8, S8, S8, 32, 128, kSw128, kSw128, false, false, 2, true, false, false, false, 0, 0, false},
    // zero-column masks: the four examples of 9.7.16.4.3, then a shift alone and long spans
    {"ws zero, example 1", kWsZero, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false, {0, 0, 0, 4, 3, 0, 1, 0, {0}}},
    {"ws zero, example 2", kWsZero, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, false, {0, 0, 1, 2, 3, 0, 4, 3, {0}}},
    {"ws zero, example 3", kWsZero, BF16, F16, 64, 128, kSw64, kNone, false, false, 1, true, false, false, false, 0, 0, false, {0, 1, 1, 2, 3, 0, 4, 3, {4, 0}}},
    {"ws zero, example 4", kWsZero, BF16, BF16, 32, 128, kSw128, kSw64, false, false, 1, true, false, true, false, 0, 0, false, {0x01020100, 3, 1, 2, 3, 2, 4, 3, {4, 5, 2, 1}}},
    {"ws shift 32", kWsZero, F16, F16, 128, 128, kSw128, kNone, false, false, 0, PLAIN, 0, 0, false, {0, 0, 0, 0, 0, 32, 1, 0, {0}}},
    {"ws shift 8, N-major", kWsZero, F16, F16, 64, 64, kSw128, kNone, false, true, 1, PLAIN, 0, 0, false, {0, 0, 0, 0, 0, 8, 1, 0, {0}}},
    {"ws zero s8, long spans", kWsZeroI8, S8, S8, 64, 256, kSw128, kSw32, false, false, 2, true, false, false, false, 0, 0, false, {0x0000110f, 2, 1, 99, 19, 0, 20, 100, {15, 37}}},
    // sparse A: metadata as in figures 263 and 267; bits 0 and 1 of the descriptor select its column (id_a)
    {"sp f16", kSp, F16, F16, 128, 64, kNone, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"sp bf16, selector 1", kSp, BF16, BF16, 128, 64, kSw128, kSw128, false, false, 1, true, false, false, false, 1, 0, false},
    {"sp bf16 MN", kSp, BF16, BF16, 128, 64, kSw64, kSw128, true, true, 1, PLAIN, 0, 0, false},
    {"sp f16 into f16, negated", kSp, F16, F16, 128, 24, kSw32, kSw64, false, false, 0, true, true, false, false, 0, 0, false},
    {"sp bf16 TS", kSpTs, BF16, BF16, 128, 64, kNone, kSw128, false, false, 1, PLAIN, 1, 0, false},
    {"sp e4m3", kSpF8, E4M3, E4M3, 128, 64, kSw128, kSw128, false, false, 1, true, false, false, false, 0, 0, false},
    {"sp e2m3 by e2m1", kSpF8, E2M3, E2M1, 128, 256, kSw32, kNone, false, false, 1, PLAIN, 0, 0, false},
    {"sp e5m2 MN by e4m3 MN", kSpF8, E5M2, E4M3, 128, 64, kSw64, kSw64, true, true, 0, PLAIN, 0, 0, false},
    {"sp u8 by s8", kSpI8, U8, S8, 128, 48, kSw64, kSw64, false, false, 2, true, false, false, false, 0, 0, false},
    {"sp ws 128x64 with zeros", kWsSp, BF16, BF16, 128, 64, kSw128, kSw64, false, false, 1, true, false, false, false, 0, 0, false, {2, 1, 1, 3, 0, 0, 1, 4, {3}}},
    {"sp mxf8 id 1, 2", kSpMx8, E4M3, E5M2, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 1, 2, true},
    {"sp mxf4 id 0, 2", kSpMx4, E2M1, E2M1, 128, 64, kSw128, kSw64, false, false, 1, PLAIN, 0, 2, true},
    {"sp nvf4 4X e4m3", kSpNv4, E2M1, E2M1, 128, 128, kNone, kNone, false, false, 1, true, false, false, false, 0, 0, false},
    // block scaling
    {"mxf8 id 0", kMx8, E4M3, E4M3, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, true},
    {"mxf8 id 1, 2", kMx8, E5M2, E2M1, 128, 64, kSw128, kSw128, false, false, 1, true, false, false, false, 1, 2, true},
    {"mxf8 id 3, 0", kMx8, E2M3, E4M3, 128, 128, kNone, kNone, false, false, 1, PLAIN, 3, 0, true},
    {"mxf4 id 0", kMx4, E2M1, E2M1, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, true},
    {"mxf4 id 2, 0", kMx4, E2M1, E2M1, 128, 256, kNone, kNone, false, false, 1, true, true, false, false, 2, 0, true},
    {"nvf4 2X id 0, 2", kNv4x2, E2M1, E2M1, 128, 40, kSw64, kSw32, false, false, 1, PLAIN, 0, 2, true},
    {"nvf4 4X powers", kNv4x4, E2M1, E2M1, 128, 64, kSw128, kSw128, false, false, 1, PLAIN, 0, 0, true},
    {"nvf4 4X e4m3", kNv4x4, E2M1, E2M1, 128, 128, kSw128, kSw128, false, false, 1, true, false, false, false, 0, 0, false}};

bool block_scaled(Form form) { return form >= kMx8; }
bool four_bits(Form form) { return form >= kMx4; }
bool from_tensor_memory(Form form) { return form == kF16Ts || form == kTf32Ts || form == kF8Ts || form == kI8Ts || form == kSpTs || form == kWsTs; }
bool stationary(Form form) { return kWs <= form && form <= kWsSp; }
bool sparse(Form form) { return (kSp <= form && form <= kSpI8) || form == kWsSp || form == kSpMx8 || form >= kSpMx4; }

uint32_t type_code(Form form, Type type) {
  if (four_bits(form)) return 1;
  switch (type) {
    case F16: return 0;
    case BF16: return 1;
    case TF32: return 2;
    case E4M3: return 0;
    case E5M2: return 1;
    case E2M3: return 3;
    case E3M2: return 4;
    case E2M1: return 5;
    case U8: return 0;
    case S8: return 1;
  }
  return 7;
}
uint32_t instruction_of(const Case& c) {
  uint32_t word = uint32_t{sparse(c.form)} << 2 | type_code(c.form, c.a) << 7 | type_code(c.form, c.b) << 10 | uint32_t{c.negate_a} << 13 |
                  uint32_t{c.negate_b} << 14 | uint32_t{c.transposed_a} << 15 | uint32_t{c.transposed_b} << 16 |
                  static_cast<uint32_t>(c.n >> 3) << 17;
  if (block_scaled(c.form))
    return word | static_cast<uint32_t>(c.id_b) << 4 | uint32_t{c.powers} << 23 | static_cast<uint32_t>(c.m >> 7) << 27 | static_cast<uint32_t>(c.id_a) << 29;
  const uint32_t shift = c.zero.shift;
  word |= (shift == 0 ? 0u : shift <= 8 ? 1u : shift <= 16 ? 2u : 3u) << 30;
  if (sparse(c.form)) word |= static_cast<uint32_t>(c.id_a);
  return word | uint32_t{c.saturate} << 3 | static_cast<uint32_t>(c.d_type) << 4 | static_cast<uint32_t>(c.m >> 4) << 24;
}

uint32_t state = 1;
uint32_t draw(uint32_t below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 16) % below;
}

/// Writes the codes of a matrix into the bytes of shared memory.
void write_image(const std::vector<uint32_t>& codes, int rows, int depth, Type type, bool packed, const Layout& layout, uint8_t* image) {
  const int bits = kBits[type];
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < depth; ++k) {
      const uint32_t code = codes[row * depth + k];
      if (layout.transposed || bits >= 16) {
        std::memcpy(image + layout.offset(row, layout.transposed ? k : k * layout.bytes), &code, layout.bytes);
        continue;
      }
      // sixteen elements in 16 bytes, the narrow ones packed at their beginning; mxf4: 32
      for (int b = 0; b < bits; ++b) {
        const int bit = packed ? k * 4 + b : k % 16 * bits + b;
        image[layout.offset(row, (packed ? 0 : k / 16 * 16) + bit / 8)] |= static_cast<uint8_t>((code >> b & 1) << bit % 8);
      }
    }
}

void check_product(const Case& c) {
  const int stored = four_bits(c.form) ? 64 : c.a == TF32 ? 8 : kBits[c.a] == 16 ? 16 : 32;
  const int depth = sparse(c.form) ? 2 * stored : stored, rows_of_b = c.n + static_cast<int>(c.zero.shift);
  std::vector<uint32_t> a(c.m * stored), b(rows_of_b * depth);
  auto some = [](Type type) {
    if (type == E2M1 || type == E2M3 || type == E3M2 || type == S8 || type == U8) return draw(1u << kBits[type]);
    return code_of(type, static_cast<int>(draw(9)) - 4);
  };
  for (uint32_t& code : a) code = some(c.a);
  for (uint32_t& code : b) code = some(c.b);
  static std::vector<uint8_t> image;
  image.assign(kImageA + kImageB, 0);
  const Layout layout_a{c.swizzle_a, c.transposed_a, c.m, kBits[c.a] < 8 ? 1 : kBits[c.a] / 8},
      layout_b{c.swizzle_b, c.transposed_b, rows_of_b, kBits[c.b] < 8 ? 1 : kBits[c.b] / 8, sparse(c.form) ? 4 : 2};
  if (!from_tensor_memory(c.form)) write_image(a, c.m, stored, c.a, four_bits(c.form), layout_a, image.data());
  write_image(b, rows_of_b, depth, c.b, four_bits(c.form), layout_b, image.data() + kImageA);

  auto lane_of = [&](int row) { return c.m == 64 && !stationary(c.form) ? row / 16 * 32 + row % 16 : row; };  // layouts F and D
  // layouts E and G: the columns in two or four parts, one beneath the other
  const int part = stationary(c.form) ? c.n * c.m / 128 : c.n;
  auto place_of = [&](int row, int column) { return (lane_of(row) + column / part * c.m) * 256 + column % part; };
  std::vector<uint32_t> words(128 * kWords, 0), before(128 * 256);
  if (from_tensor_memory(c.form))
    for (int row = 0; row < c.m; ++row)
      for (int k = 0; k < stored; ++k) {
        const int bits = kBits[c.a] < 8 ? 8 : kBits[c.a], each = 32 / bits;
        words[lane_of(row) * kWords + k / each] |= (c.a == E2M1 ? a[row * stored + k] << 2 : a[row * stored + k]) << (k % each * bits);
      }
  std::vector<uint32_t> whole = a;  // with its zeros
  if (sparse(c.form)) {
    whole.assign(c.m * depth, 0);
    static const uint32_t kPlaces[][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 1}, {2, 3}};  // 9.7.16.10.8.2
    const int unit = four_bits(c.form) ? 2 : 1, group = 4 * unit;  // 9.7.16.10.8.3: pairs
    for (int row = 0; row < c.m; ++row)
      for (int g = 0; g < depth / group; ++g) {
        const uint32_t* places = kPlaces[draw(7)];
        for (int i = 0; i < 2 * unit; ++i)
          whole[row * depth + g * group + static_cast<int>(places[i / unit]) * unit + i % unit] = a[row * stored + g * 2 * unit + i];
        const uint32_t indices = places[0] | places[1] << 2;
        // 16-bit types: elements 0 to 15 of rows r and r + 8 in lane r, elements 16 to 31 in lane r + 8
        int lane = row, column = g / 8, bit = g % 8 * 4;
        if (kBits[c.a] == 16) lane = row / 16 * 16 + row % 8 + g / 4 * 8, column = c.id_a, bit = row / 8 % 2 * 16 + g % 4 * 4;
        words[lane * kWords + 24 + column] |= indices << bit;
      }
  }
  const int scales = c.form == kMx8 || c.form == kSpMx8 ? 1 : c.form == kNv4x4 || c.form == kSpNv4 ? 4 : 2;
  auto scale_code = [&](int row, int s, int side) -> uint32_t {  // E4M3 has 1, 1.5, 2, 3
    return c.powers ? 125 + (row * 3 + s * 5 + side) % 5 : 0x38 + (row + s + side) % 4 * 4;
  };
  auto scale = [&](int row, int s, int side) {
    const uint32_t code = scale_code(row, s, side);
    return c.powers ? std::ldexp(1.0, static_cast<int>(code) - 127) : number(E4M3, code);
  };
  if (block_scaled(c.form))
    for (int lane = 0; lane < 128; ++lane) {
      for (int row = lane % 32; row < c.m; row += 32)
        for (int s = 0; s < scales; ++s) words[lane * kWords + 8 + row / 32] |= scale_code(row, s, 0) << 8 * (c.id_a + s);
      for (int row = lane % 32; row < c.n; row += 32)
        for (int s = 0; s < scales; ++s) words[lane * kWords + 16 + row / 32] |= scale_code(row, s, 1) << 8 * (c.id_b + s);
    }
  for (uint32_t& word : before) {
    const float f = static_cast<float>(static_cast<int>(draw(9)) * 8 - 32);
    word = c.d_type == 2 ? (c.saturate ? 0x7ffffff0u : draw(1000)) : 0;
    if (c.d_type == 1) std::memcpy(&word, &f, 4);
    if (c.d_type == 0) word = code_of(F16, f);
  }

  uint4* image_on_device;
  uint32_t *words_on_device, *before_on_device, *result;
  cudaMallocManaged(&image_on_device, image.size());
  cudaMallocManaged(&words_on_device, words.size() * 4);
  cudaMallocManaged(&before_on_device, before.size() * 4);
  cudaMallocManaged(&result, before.size() * 4);
  std::memcpy(image_on_device, image.data(), image.size());
  std::memcpy(words_on_device, words.data(), words.size() * 4);
  std::memcpy(before_on_device, before.data(), before.size() * 4);
  const Case::Zeros& zero = c.zero;
  const uint64_t zero_columns = zero.start | static_cast<uint64_t>(zero.first) << 32 | static_cast<uint64_t>(zero.generate) << 39 |
                                static_cast<uint64_t>(zero.skip) << 40 | static_cast<uint64_t>(zero.use) << 48 | static_cast<uint64_t>(zero.shift) << 56;
  const Operands in{layout_a.descriptor(), layout_b.descriptor(), instruction_of(c), c.form, c.n, c.accumulate, zero_columns};
  multiply<<<1, 128>>>(in, image_on_device, words_on_device, before_on_device, result);
  if (cudaDeviceSynchronize() != cudaSuccess) return give_up(c.name);

  int wrong = 0;
  std::vector<uint32_t> expected = before;
  std::vector<float> left(whole.size()), right(b.size());  // scaled: exact, as the codes have few bits
  auto numbers = [&](std::vector<float>& to, const std::vector<uint32_t>& codes, Type type, int side) {
    for (int i = 0; i < static_cast<int>(codes.size()); ++i)
      to[i] = static_cast<float>(number(type, codes[i]) *
                                 (block_scaled(c.form) ? scale(i / depth, i % depth / (depth / scales), side) : 1));
  };
  numbers(left, whole, c.a, 0);
  numbers(right, b, c.b, 1);
  for (int row = 0; row < c.m; ++row)
    for (int column = 0; column < c.n; ++column) {
      const float *x = &left[row * depth], *y = &right[(column + static_cast<int>(zero.shift)) * depth];
      double sum = 0;
      // Sub-masks cover the columns in parts, as D's layout does.
      const bool is_zero = (zero.from[column / part] + column % part) % (zero.used + zero.zeros) >= zero.used;
      for (int k = 0; k < depth && !is_zero; ++k) sum += static_cast<double>(x[k]) * y[k];
      if (c.negate_a != c.negate_b) sum = -sum;
      uint32_t& word = expected[place_of(row, column)];
      if (c.form == kF16Masked && 32 <= row && row < 64 && 0xff00ffu >> (row - 32) & 1) continue;
      if (c.d_type == 2) {
        const double all = sum + (c.accumulate ? static_cast<int32_t>(word) : 0);
        word = static_cast<uint32_t>(static_cast<int32_t>(c.saturate && all > 2147483647.0 ? 2147483647.0 : all));
      } else if (c.d_type == 1) {
        float old;
        std::memcpy(&old, &word, 4);
        const float all = static_cast<float>(sum + (c.accumulate ? old * (c.form == kF16Masked ? 0.125 : 1) : 0));
        std::memcpy(&word, &all, 4);
      } else {
        word = code_of(F16, sum + (c.accumulate ? number(F16, word) : 0));
      }
    }
  for (int lane = 0; lane < 128; ++lane)
    for (int column = 0; column < c.n; ++column) wrong += result[lane * 256 + column] != expected[lane * 256 + column];
  report("mma", c.name, wrong);
  for (void* memory : {static_cast<void*>(image_on_device), static_cast<void*>(words_on_device), static_cast<void*>(before_on_device), static_cast<void*>(result)})
    cudaFree(memory);
}

// ---- cp and shift ---------------------------------------------------------------------------------------------

const char* const kCopies[] = {"128x256b", "128x128b", "4x256b", "64x128b 02_13", "64x128b 01_23", "32x128b warpx4", "128x128b 4 bits", "32x128b 6 bits", "shift"};
constexpr int kCopyCount = 9;
#define COPY(number, how)                                                                           \
  case number:                                                                                      \
    asm volatile("tcgen05.cp.cta_group::1." how " [%0], %1;" ::"r"(at), "l"(from) : "memory");      \
    break;

// result[copy][128][8]
__global__ void copy_all(const uint4* image, uint32_t* result) {
  __shared__ __align__(1024) uint4 rows[256];
  __shared__ uint32_t address;
  __shared__ uint64_t barrier;
  const uint32_t thread = threadIdx.x, warp = thread / 32;
  for (int i = thread; i < 256; i += 128) rows[i] = image[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (warp == 0) allocate(&address, 32);
  if (thread == 0) begin_barrier(&barrier);
  __syncthreads();
  const uint32_t mine = address + (warp * 32 << 16);
  for (int number = 0; number < kCopyCount; ++number) {
    uint32_t r[8];
    for (int i = 0; i < 8; ++i) r[i] = thread << 8 | i;
    store8(mine, r);
    wait_stores();
    fence_before();
    __syncthreads();
    if (thread == 0) {
      fence_after();
      // eight rows of 16 bytes, the other 16 bytes of each behind them: no swizzle
      const uint64_t from = (shared_address(rows) & 0x3ffff) >> 4 | uint64_t{128 >> 4} << 16 | uint64_t{256 >> 4} << 32 | uint64_t{1} << 46;
      const uint32_t at = number == 2 ? address + (31 << 16) : address;
      switch (number) {
        COPY(0, "128x256b")
        COPY(1, "128x128b")
        COPY(2, "4x256b")
        COPY(3, "64x128b.warpx2::02_13")
        COPY(4, "64x128b.warpx2::01_23")
        COPY(5, "32x128b.warpx4")
        COPY(6, "128x128b.b8x16.b4x16_p64")
        COPY(7, "32x128b.warpx4.b8x16.b6x16_p32")
        case 8: asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(address + (32 << 16)) : "memory"); break;
      }
      commit(&barrier);
    }
    await(&barrier, number & 1);
    fence_after();
    load8(mine, r);
    wait_loads();
    for (int i = 0; i < 8; ++i) result[(number * 128 + thread) * 8 + i] = r[i];
  }
  fence_before();
  __syncthreads();
  fence_after();
  if (warp == 0) release(address, 32);
}

void check_copies() {
  uint8_t* image;
  uint32_t* result;
  cudaMallocManaged(&image, 4096);
  cudaMallocManaged(&result, 4 * kCopyCount * 128 * 8);
  for (int i = 0; i < 4096; ++i) image[i] = static_cast<uint8_t>(draw(256));
  copy_all<<<1, 128>>>(reinterpret_cast<const uint4*>(image), result);
  if (cudaDeviceSynchronize() != cudaSuccess) return give_up("cp");
  auto word = [&](int row, int column, int bits) {
    const uint8_t* piece = image + row / 8 * 256 + row % 8 * 16 + column / 4 * 128;
    uint32_t value = 0;
    if (bits == 8) std::memcpy(&value, piece + column % 4 * 4, 4);
    for (int i = 0; bits != 8 && i < 4; ++i) {
      const int first = (column % 4 * 4 + i) * bits;
      const uint32_t code = (piece[first / 8] | piece[first / 8 + 1] << 8) >> first % 8 & ((1 << bits) - 1);
      value |= (bits == 4 ? code << 2 : code) << 8 * i;
    }
    return value;
  };
  for (int number = 0; number < kCopyCount; ++number) {
    int wrong = 0;
    for (int lane = 0; lane < 128; ++lane)
      for (int column = 0; column < 8; ++column) {
        uint32_t expected = static_cast<uint32_t>(lane << 8 | column);
        const bool narrow = column < 4;
        if (number == 0) expected = word(lane, column, 8);
        if (number == 1 && narrow) expected = word(lane, column, 8);
        if (number == 2 && lane % 32 == 31) expected = word(lane / 32, column, 8);
        if (number == 3 && narrow) expected = word(lane % 64, column, 8);
        if (number == 4 && narrow) expected = word(lane / 64 * 32 + lane % 32, column, 8);
        if (number == 5 && narrow) expected = word(lane % 32, column, 8);
        if (number == 6 && narrow) expected = word(lane, column, 4);
        if (number == 7 && narrow) expected = word(lane % 32, column, 6);
        if (number == 8 && 32 <= lane && lane < 63) expected = static_cast<uint32_t>((lane + 1) << 8 | column);
        wrong += result[(number * 128 + lane) * 8 + column] != expected;
      }
    report("cp", kCopies[number], wrong);
  }
}

int main() {
  check_moves();
  for (const Case& c : kCases) check_product(c);
  check_copies();
  std::printf("%d cases\n%s\n", cases, failures ? "FAIL" : "PASS");
  return failures != 0;
}
