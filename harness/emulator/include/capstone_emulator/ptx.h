#pragma once
#pragma GCC system_header
// What the rewriter makes of inline PTX. Operands are bit patterns; each instruction says how it reads them.
#include <cmath>

#include "intrinsics.h"
#include "narrow.h"
#include "synchronisation.h"

namespace capstone_emu::ptx {

/// A read-only operand: the bits of an expression.
template <class T>
struct Input {
  explicit Input(const T& value) : value(value) {}
  std::uint64_t bits() const {
    static_assert(sizeof(T) <= 8, "an operand of inline assembly has at most 8 bytes");
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(T));
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) word = static_cast<std::uint64_t>(std::int64_t{value});
    return word;
  }
  T value;
};
/// An operand that is written, and read when its constraint starts with '+'.
template <class T>
struct Output {
  explicit Output(T& place) : place(place) {}
  std::uint64_t bits() const {
    std::uint64_t word = 0;
    std::memcpy(&word, &place, sizeof(T));
    return word;
  }
  void set(std::uint64_t word) { std::memcpy(&place, &word, sizeof(T)); }
  T& place;
};
/// A register that the assembly declares itself.
struct Register {
  std::uint64_t word = 0;
  std::uint64_t bits() const { return word; }
  void set(std::uint64_t value) { word = value; }
};
/// A number in the text, or `_`.
struct Immediate {
  std::uint64_t word;
  std::uint64_t bits() const { return word; }
  void set(std::uint64_t) {}
};

template <class T, class Operand>
inline T get(const Operand& operand) {
  const std::uint64_t word = operand.bits();
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
template <class T, class Operand>
inline void put(Operand& operand, T value) {
  std::uint64_t word = 0;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    word = static_cast<std::uint64_t>(std::int64_t{value});
  else
    std::memcpy(&word, &value, sizeof value);
  operand.set(word);
}

template <class Operand>
inline char* generic_pointer(const Operand& address, std::int64_t offset) {
  return reinterpret_cast<char*>(address.bits()) + offset;
}
template <class Operand>
inline char* shared_pointer(const Operand& address, std::int64_t offset) {
  return from_shared_address(address.bits() + static_cast<std::uint64_t>(offset));
}
inline void require_aligned(const void* pointer, unsigned alignment, const char* instruction, const char* file,
                            int line) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment)
    undefined_behaviour(file, line, "%s: address %p is not a multiple of %u", instruction, pointer, alignment);
}

/// ld / st of one element.
template <class T, class Operand>
inline void load(Operand& to, const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  put<T>(to, value);
}
template <class T, class Operand>
inline void store(char* to, const Operand& from) {
  const T value = get<T>(from);
  std::memcpy(to, &value, sizeof value);
}

inline void copy_async(char* to, const char* from, unsigned bytes, unsigned source_bytes, const char* file, int line) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    undefined_behaviour(file, line, "cp.async copies 4, 8 or 16 bytes, not %u", bytes);
  require_aligned(to, bytes, "cp.async", file, line);
  if (source_bytes) require_aligned(from, bytes, "cp.async", file, line);
  async_copy(to, from, bytes, source_bytes < bytes ? bytes - source_bytes : 0);
}

// ---- ldmatrix / stmatrix: lane 8m + r holds the address of row r of matrix m ----------------------------------------
struct MatrixMove {
  char* row;
  std::uint32_t values[4];
};
template <int kCount, bool kTranspose>
inline void exchange_matrices(char* row, std::uint32_t (&values)[4], bool is_load, const char* file, int line) {
  require_aligned(row, 16, is_load ? "ldmatrix" : "stmatrix", file, line);
  MatrixMove move{row, {values[0], values[1], values[2], values[3]}};
  WarpOp op{WarpKind::kCollective, ~0u, file, line};
  op.in = &move;
  auto load_all = [](WarpOp* const* lanes, unsigned) {
    auto at = [&](int i) -> MatrixMove& { return *static_cast<MatrixMove*>(const_cast<void*>(lanes[i]->in)); };
    for (int m = 0; m < kCount; ++m) {
      std::uint16_t matrix[8][8];
      for (int r = 0; r < 8; ++r) std::memcpy(matrix[r], at(8 * m + r).row, 16);
      for (int lane = 0; lane < 32; ++lane) {
        const int r = lane / 4, c = lane % 4 * 2;
        const std::uint32_t low = kTranspose ? matrix[c][r] : matrix[r][c];
        const std::uint32_t high = kTranspose ? matrix[c + 1][r] : matrix[r][c + 1];
        at(lane).values[m] = low | high << 16;
      }
    }
  };
  auto store_all = [](WarpOp* const* lanes, unsigned) {
    auto at = [&](int i) -> MatrixMove& { return *static_cast<MatrixMove*>(const_cast<void*>(lanes[i]->in)); };
    for (int m = 0; m < kCount; ++m) {
      std::uint16_t matrix[8][8];
      for (int lane = 0; lane < 32; ++lane) {
        const int r = lane / 4, c = lane % 4 * 2;
        (kTranspose ? matrix[c][r] : matrix[r][c]) = static_cast<std::uint16_t>(at(lane).values[m]);
        (kTranspose ? matrix[c + 1][r] : matrix[r][c + 1]) = static_cast<std::uint16_t>(at(lane).values[m] >> 16);
      }
      for (int r = 0; r < 8; ++r) std::memcpy(at(8 * m + r).row, matrix[r], 16);
    }
  };
  op.compute = is_load ? +load_all : +store_all;
  const bool gives_address = thread_state.lane < 8 * kCount;
  if (gives_address && !is_load) note_write16(row);
  warp_collective(op);
  if (gives_address && is_load) note_read16(row);
  std::memcpy(values, move.values, sizeof values);
}

template <bool kTranspose, class... Operands>
inline void load_matrices(char* row, const char* file, int line, Operands&... to) {
  std::uint32_t values[4] = {};
  exchange_matrices<sizeof...(Operands), kTranspose>(row, values, true, file, line);
  int i = 0;
  (put<std::uint32_t>(to, values[i++]), ...);
}
template <bool kTranspose, class... Operands>
inline void store_matrices(char* row, const char* file, int line, const Operands&... from) {
  std::uint32_t values[4] = {};
  int i = 0;
  ((values[i++] = get<std::uint32_t>(from)), ...);
  exchange_matrices<sizeof...(Operands), kTranspose>(row, values, false, file, line);
}

// ---- mma.sync m16n8kK, row.col. Fragment layouts: PTX ISA, "Matrix fragments for mma.m16n8k8/16/32" ------------------
struct Half {
  static constexpr int kPerRegister = 2;
  static float element(std::uint32_t word, int i) { return half_to_float(static_cast<std::uint16_t>(word >> (16 * i))); }
};
struct Bfloat {
  static constexpr int kPerRegister = 2;
  static float element(std::uint32_t word, int i) { return reinterpret_bits<float>(word >> (16 * i) << 16); }
};
struct Tf32 {  // the tensor core reads 19 bits
  static constexpr int kPerRegister = 1;
  static float element(std::uint32_t word, int) { return reinterpret_bits<float>(word & 0xffffe000u); }
};
struct Int8 {
  static constexpr int kPerRegister = 4;
  static int element(std::uint32_t word, int i) { return static_cast<std::int8_t>(word >> (8 * i)); }
};
struct Uint8 {
  static constexpr int kPerRegister = 4;
  static int element(std::uint32_t word, int i) { return static_cast<std::uint8_t>(word >> (8 * i)); }
};

template <class Element, int kDepth>
struct Mma {
  using Number = decltype(Element::element(0, 0));  // float, or int
  static constexpr int kPack = Element::kPerRegister;
  static constexpr int kHalves = kDepth / (4 * kPack);  // register columns of A; registers of B
  struct Lane {
    std::uint32_t a[2 * kHalves], b[kHalves];
    Number c[4];
  };

  static void multiply(WarpOp* const* lanes, unsigned) {
    auto at = [&](int i) -> Lane& { return *static_cast<Lane*>(const_cast<void*>(lanes[i]->in)); };
    Number a[16][kDepth], b[kDepth][8], c[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const Lane& from = at(lane);
      const int group = lane / 4, first = lane % 4 * kPack;
      for (int h = 0; h < kHalves; ++h)
        for (int i = 0; i < kPack; ++i) {
          const int k = h * 4 * kPack + first + i;
          a[group][k] = Element::element(from.a[2 * h], i);
          a[group + 8][k] = Element::element(from.a[2 * h + 1], i);
          b[k][group] = Element::element(from.b[h], i);
        }
      for (int i = 0; i < 4; ++i) c[group + i / 2 * 8][lane % 4 * 2 + i % 2] = from.c[i];
    }
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < kDepth; ++k)
        for (int column = 0; column < 8; ++column) c[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) at(lane).c[i] = c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }

  static void run(Lane& lane, const char* file, int line) {
    WarpOp op{WarpKind::kCollective, ~0u, file, line};
    op.in = &lane;
    op.compute = multiply;
    note_flops(2 * 16 * 8 * kDepth / 32);
    warp_collective(op);
  }
};

/// Operands in PTX order: d0 d1 d2 d3, a…, b…, c0 c1 c2 c3 as arrays of bit patterns.
template <class Element, int kDepth, class D>
inline void mma_wide(D (&d)[4], const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                     const char* file, int line) {
  using Op = Mma<Element, kDepth>;
  typename Op::Lane lane;
  std::memcpy(lane.a, a, sizeof lane.a);
  std::memcpy(lane.b, b, sizeof lane.b);
  std::memcpy(lane.c, c, sizeof lane.c);
  Op::run(lane, file, line);
  std::memcpy(d, lane.c, sizeof lane.c);
}
/// f16 accumulators: two to a register.
template <class Element, int kDepth>
inline void mma_narrow(std::uint32_t (&d)[2], const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                       const char* file, int line) {
  using Op = Mma<Element, kDepth>;
  typename Op::Lane lane;
  std::memcpy(lane.a, a, sizeof lane.a);
  std::memcpy(lane.b, b, sizeof lane.b);
  for (int i = 0; i < 4; ++i) lane.c[i] = half_to_float(static_cast<std::uint16_t>(c[i / 2] >> (16 * (i % 2))));
  Op::run(lane, file, line);
  for (int i = 0; i < 2; ++i)
    d[i] = float_to_half(lane.c[2 * i]) | static_cast<std::uint32_t>(float_to_half(lane.c[2 * i + 1])) << 16;
}

// ---- packed arithmetic ----------------------------------------------------------------------------------------------
template <class Function>
inline std::uint32_t each_half(Function function, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  auto one = [&](int shift) -> std::uint32_t {
    auto at = [&](std::uint32_t word) { return half_to_float(static_cast<std::uint16_t>(word >> shift)); };
    return static_cast<std::uint32_t>(float_to_half(function(at(a), at(b), at(c)))) << shift;
  };
  return one(0) | one(16);
}
template <class Function>
inline std::uint32_t each_bfloat(Function function, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  auto one = [&](int shift) -> std::uint32_t {
    auto at = [&](std::uint32_t word) { return reinterpret_bits<float>(word >> shift << 16); };
    return static_cast<std::uint32_t>(float_to_bfloat(function(at(a), at(b), at(c)))) << shift;
  };
  return one(0) | one(16);
}
inline std::uint32_t pack_half(float high, float low) {
  return static_cast<std::uint32_t>(float_to_half(high)) << 16 | float_to_half(low);
}
inline std::uint32_t pack_bfloat(float high, float low) {
  return static_cast<std::uint32_t>(float_to_bfloat(high)) << 16 | float_to_bfloat(low);
}
/// cvt.rna.tf32.f32: round to nearest, ties away from zero, to 10 bits of mantissa.
inline std::uint32_t round_to_tf32(float value) {
  const std::uint32_t bits = reinterpret_bits<std::uint32_t>(value);
  return value - value == 0 ? (bits + 0x1000u) & ~0x1fffu : bits;
}
inline std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  std::uint32_t result = 0;
  for (int i = 0; i < 32; ++i)
    result |= (table >> ((a >> i & 1u) << 2 | (b >> i & 1u) << 1 | (c >> i & 1u)) & 1u) << i;
  return result;
}
template <class T>
inline T shift_left(T value, std::uint32_t by) { return by >= sizeof(T) * 8 ? T(0) : static_cast<T>(value << by); }
template <class T>
inline T shift_right(T value, std::uint32_t by) {
  constexpr std::uint32_t kBits = sizeof(T) * 8;
  if (by >= kBits) return std::is_signed_v<T> && value < 0 ? static_cast<T>(-1) : T(0);
  return static_cast<T>(value >> by);
}
template <class T>
inline T high_product(T a, T b) {
  if constexpr (sizeof(T) == 4)
    return static_cast<T>((std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>(a) * b) >> 32);
  else
    return static_cast<T>((std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>(a) * b) >> 64);
}
inline std::uint64_t lane_mask_below() { return (1u << thread_state.lane) - 1; }

}  // namespace capstone_emu::ptx
