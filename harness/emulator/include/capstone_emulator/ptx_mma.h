#pragma once
#pragma GCC system_header
// mma.sync and wgmma: tensor core instructions as warp collectives.
#include "ptx.h"
#include "shared_matrix.h"

namespace capstone_emu::ptx {

// ---- element types ----------------------------------------------------------------------------------------
struct Half {
  using Number = float;
  using Register = std::uint32_t;
  static constexpr int kBits = 16;
  static float element(Register word, int i) { return half_to_float(static_cast<std::uint16_t>(word >> (16 * i))); }
};
struct Bfloat {
  using Number = float;
  using Register = std::uint32_t;
  static constexpr int kBits = 16;
  static float element(Register word, int i) { return reinterpret_bits<float>(word >> (16 * i) << 16); }
};
struct Tf32 {  // the tensor core reads 19 bits
  using Number = float;
  using Register = std::uint32_t;
  static constexpr int kBits = 32;
  static float element(Register word, int) { return reinterpret_bits<float>(word & 0xffffe000u); }
};
struct Double {
  using Number = double;
  using Register = std::uint64_t;
  static constexpr int kBits = 64;
  static double element(Register word, int) { return reinterpret_bits<double>(word); }
};
struct E4m3 {
  using Number = float;
  using Register = std::uint32_t;
  static constexpr int kBits = 8;
  static float element(Register word, int i) { return e4m3_to_float(static_cast<std::uint8_t>(word >> (8 * i))); }
};
struct E5m2 {
  using Number = float;
  using Register = std::uint32_t;
  static constexpr int kBits = 8;
  static float element(Register word, int i) { return half_to_float(static_cast<std::uint16_t>((word >> (8 * i) & 0xff) << 8)); }
};
struct Int8 {
  using Number = int;
  using Register = std::uint32_t;
  static constexpr int kBits = 8;
  static int element(Register word, int i) { return static_cast<std::int8_t>(word >> (8 * i)); }
};
struct Uint8 {
  using Number = int;
  using Register = std::uint32_t;
  static constexpr int kBits = 8;
  static int element(Register word, int i) { return static_cast<std::uint8_t>(word >> (8 * i)); }
};
struct Int4 {
  using Number = int;
  using Register = std::uint32_t;
  static constexpr int kBits = 4;
  static int element(Register word, int i) { return static_cast<std::int32_t>(word << (28 - 4 * i)) >> 28; }
};
struct Uint4 {
  using Number = int;
  using Register = std::uint32_t;
  static constexpr int kBits = 4;
  static int element(Register word, int i) { return static_cast<int>(word >> (4 * i) & 15); }
};
struct Bit {
  using Number = int;
  using Register = std::uint32_t;
  static constexpr int kBits = 1;
  static int element(Register word, int i) { return static_cast<int>(word >> i & 1); }
};

// ---- mma.sync, row.col: A is kRows x kDepth, B kDepth x 8. Layouts: PTX ISA, "Matrix fragments for mma" ---
enum class Multiply { kProduct, kXor, kSaturate };
/// Of products; integers do not overflow before they saturate or wrap.
template <class Number>
using SumOf = std::conditional_t<std::is_integral_v<Number>, std::int64_t, Number>;

template <class A, class B, int kRows, int kDepth, Multiply kHow>
struct Mma {
  using Number = typename A::Number;
  using Register = typename A::Register;
  static constexpr int kPack = static_cast<int>(sizeof(Register)) * 8 / A::kBits;  // elements in a register
  static constexpr int kColumns = kDepth / (4 * kPack);                          // registers along K
  static constexpr int kGroups = kRows / 8;                                      // registers along M
  static constexpr int kA = kGroups * kColumns, kB = kColumns, kC = 2 * kGroups;
  struct Lane {
    Register a[kA], b[kB];
    Number c[kC];
  };

  static void multiply(WarpOp* const* lanes, unsigned) {
    auto at = [&](int i) -> Lane& { return *static_cast<Lane*>(const_cast<void*>(lanes[i]->in)); };
    Number a[kRows][kDepth], b[kDepth][8];
    SumOf<Number> c[kRows][8];
    for (int lane = 0; lane < 32; ++lane) {
      const Lane& from = at(lane);
      const int group = lane / 4, first = lane % 4 * kPack;
      for (int h = 0; h < kColumns; ++h)
        for (int i = 0; i < kPack; ++i) {
          const int k = h * 4 * kPack + first + i;
          for (int g = 0; g < kGroups; ++g) a[group + 8 * g][k] = A::element(from.a[kGroups * h + g], i);
          b[k][group] = B::element(from.b[h], i);
        }
      for (int i = 0; i < kC; ++i) c[group + i / 2 * 8][lane % 4 * 2 + i % 2] = from.c[i];
    }
    for (int row = 0; row < kRows; ++row)
      for (int k = 0; k < kDepth; ++k)
        for (int column = 0; column < 8; ++column) {
          if constexpr (kHow == Multiply::kXor) c[row][column] += a[row][k] ^ b[k][column];
          else c[row][column] += a[row][k] * b[k][column];
        }
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < kC; ++i) {
        const auto sum = c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
        if constexpr (kHow == Multiply::kSaturate) at(lane).c[i] = clamped_to<Number>(sum);
        else at(lane).c[i] = static_cast<Number>(sum);
      }
  }

  static void run(Lane& lane, const char* file, int line) {
    WarpOp op{WarpKind::kMatrix, ~0u, file, line};
    op.in = &lane;
    op.compute = multiply;
    note_flops(2 * kRows * 8 * kDepth / 32);
    warp_collective(op);
  }
};

/// Operands as arrays of bit patterns; `kNarrowC`, `kNarrowD`: f16 accumulators, two to a register.
template <class Op, bool kNarrowC, bool kNarrowD, class R, class D, class C>
inline void multiply_add(D* d, const R* a, const R* b, const C* c, const char* file, int line) {
  typename Op::Lane lane;
  std::memcpy(lane.a, a, sizeof lane.a);
  std::memcpy(lane.b, b, sizeof lane.b);
  for (int i = 0; i < Op::kC; ++i) {
    if constexpr (kNarrowC) lane.c[i] = half_to_float(static_cast<std::uint16_t>(c[i / 2] >> (16 * (i % 2))));
    else std::memcpy(&lane.c[i], &c[i], sizeof lane.c[i]);
  }
  Op::run(lane, file, line);
  for (int i = 0; i < Op::kC; ++i) {
    if constexpr (!kNarrowD) std::memcpy(&d[i], &lane.c[i], sizeof lane.c[i]);
    else if (i % 2) d[i / 2] |= static_cast<std::uint32_t>(float_to_half(lane.c[i])) << 16;
    else d[i / 2] = float_to_half(lane.c[i]);
  }
}

// ---- wgmma.mma_async: 64 x kColumns, each warp of the four computes its 16 rows ---------------------------
/// A matrix in shared memory, as its 64-bit descriptor says.
inline SharedMatrix described(std::uint64_t descriptor, bool transposed, unsigned element_bytes) {
  static constexpr unsigned kSpans[] = {0, 128, 64, 32};
  return {from_shared_address(matrix_offset((descriptor & 0x3fff) << 4)), (descriptor >> 16 & 0x3fff) << 4, (descriptor >> 32 & 0x3fff) << 4,
          kSpans[descriptor >> 62], transposed, element_bytes};
}
/// The calling lane's part of the warp's reads of `rows` x `depth` elements: 16 bytes at a time. Part of
/// the caller's code, like what calls it, so that a finding names the candidate's line.
/// @param shared  the four warps read the same elements, and the hardware reads them once: each warp counts
///   every fourth request. (128 x 256 tiles run at 83 % of an H100's peak. If each warp read all of B, shared
///   memory would end at 47 %.)
inline __attribute__((always_inline)) void note_reads(const SharedMatrix& matrix, unsigned first_row, unsigned rows,
                                                      unsigned depth, bool shared) {
  const unsigned side = 16 / matrix.element_bytes();  // elements side by side
  const unsigned along = (matrix.transposed() ? rows : depth) / side;
  for (unsigned i = thread_state.lane; i < rows * depth / side; i += 32) {
    const unsigned near = i % along * side, far = i / along;
    if constexpr (observed_by_hooks)
      wgmma_reads(matrix.transposed() ? matrix.at(first_row + near, far) : matrix.at(first_row + far, near),
                  !shared || i / 32 % 4 == thread_state.linear / 32 % 4);
  }
}

template <class T>
const void* place_of(const Output<T>& operand) { return &operand.place; }
inline const void* place_of(const Register&) { return nullptr; }  // not visible elsewhere
inline const void* place_of(const Immediate&) { return nullptr; }
/// The results are on their way.
template <class... Operands>
inline __attribute__((always_inline)) void issued(const Operands&... results) {
  if constexpr (observed_by_hooks) {
    const void* const places[] = {place_of(results)...};
    wgmma_issued(places, sizeof...(results));
  }
}

struct GroupMultiply {
  void* d;                      ///< accumulators of this lane
  const std::uint32_t* a;       ///< A's fragment, or null when A lies in shared memory
  std::uint64_t a_descriptor, b_descriptor;
  bool accumulate, negate_a, negate_b, a_transposed, b_transposed;
};

template <class A, class B, int kColumns, bool kNarrow, bool kSaturates>
struct Wgmma {
  using Number = typename A::Number;
  using Sum = SumOf<Number>;
  static constexpr int kBytes = A::kBits / 8, kDepth = 32 / kBytes, kPack = 4 / kBytes;

  template <class E>
  static Number element(const char* from) {
    std::uint32_t word = 0;
    std::memcpy(&word, from, kBytes);
    return E::element(word, 0);
  }

  static void multiply(WarpOp* const* lanes, unsigned) {
    auto at = [&](int i) -> const GroupMultiply& { return *static_cast<const GroupMultiply*>(lanes[i]->in); };
    const GroupMultiply& any = at(0);
    Number a[16][kDepth];
    static thread_local Number b[kDepth][kColumns];
    static thread_local Sum c[16][kColumns];
    const unsigned first_row = thread_state.linear / 32 % 4 * 16;
    if (any.a) {
      for (int lane = 0; lane < 32; ++lane)
        for (int r = 0; r < 4; ++r)
          for (int i = 0; i < kPack; ++i)
            a[lane / 4 + r % 2 * 8][r / 2 * 4 * kPack + lane % 4 * kPack + i] = A::element(at(lane).a[r], i);
    } else {
      const SharedMatrix matrix = described(any.a_descriptor, any.a_transposed, kBytes);
      for (unsigned row = 0; row < 16; ++row)
        for (unsigned k = 0; k < kDepth; ++k) a[row][k] = element<A>(matrix.at(first_row + row, k));
    }
    const SharedMatrix matrix = described(any.b_descriptor, any.b_transposed, kBytes);
    for (unsigned column = 0; column < kColumns; ++column)
      for (unsigned k = 0; k < kDepth; ++k) b[k][column] = element<B>(matrix.at(column, k));
    const bool negative = any.negate_a != any.negate_b;
    if (negative)
      for (auto& row : a)
        for (Number& value : row) value = -value;
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < kColumns / 2; ++i)
        c[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2] = any.accumulate ? Sum(accumulator(at(lane), i)) : Sum(0);
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < kDepth; ++k)
        for (int column = 0; column < kColumns; ++column) c[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < kColumns / 2; ++i) {
        const Sum sum = c[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2];
        if constexpr (kSaturates) set_accumulator(at(lane), i, clamped_to<Number>(sum));
        else set_accumulator(at(lane), i, static_cast<Number>(sum));
      }
    wgmma_done();
  }

  static Number accumulator(const GroupMultiply& lane, int i) {
    if constexpr (kNarrow) return half_to_float(static_cast<const std::uint16_t*>(lane.d)[i]);
    else return static_cast<const Number*>(lane.d)[i];
  }
  static void set_accumulator(const GroupMultiply& lane, int i, Number value) {
    if constexpr (kNarrow) static_cast<std::uint16_t*>(lane.d)[i] = float_to_half(value);
    else static_cast<Number*>(lane.d)[i] = value;
  }

  static __attribute__((always_inline)) void run(const GroupMultiply& lane, const char* file, int line) {
    WarpOp op{WarpKind::kMatrix, ~0u, file, line};
    op.in = &lane;
    op.compute = multiply;
    note_flops(2 * 16 * kColumns * kDepth / 32);
    if (!lane.a)
      note_reads(described(lane.a_descriptor, lane.a_transposed, kBytes), thread_state.linear / 32 % 4 * 16, 16, kDepth,
                 false);
    note_reads(described(lane.b_descriptor, lane.b_transposed, kBytes), 0, kColumns, kDepth, true);
    warp_collective(op);
  }
};

}  // namespace capstone_emu::ptx
