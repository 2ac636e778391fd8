#pragma once
#pragma GCC system_header
// What the rewriter makes of inline PTX. Operands are bit patterns; each instruction says how it reads them.
#include <cmath>
#include <limits>

#include "atomics.h"
#include "intrinsics.h"
#include "narrow.h"
#include "synchronisation.h"

namespace capstone_emu::ptx {

/// The bits of an expression. Assembly may write to it: as on a GPU, the register changes and no variable.
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
  void set(std::uint64_t word) { std::memcpy(&value, &word, sizeof(T)); }
  T value;
};
template <class T>
Input(const T&) -> Input<std::decay_t<const T>>;  // an array of constants is a pointer to constants
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
  std::uint64_t word = 0, high = 0;  // `high`: of a register of 128 bits
  std::uint64_t bits() const { return word; }
  void set(std::uint64_t value) { word = value; }
};
/// A number in the text, or `_`.
struct Immediate {
  std::uint64_t word;
  std::uint64_t bits() const { return word; }
  void set(std::uint64_t) {}
};

/// A number with a decimal point, in the type of the instruction.
struct Real {
  double value;
  std::uint64_t bits() const { return reinterpret_bits<std::uint64_t>(value); }
};

template <class T, class Operand>
inline T get(const Operand& operand) {
  if constexpr (std::is_same_v<Operand, Real>) return static_cast<T>(operand.value);
  const std::uint64_t word = operand.bits();
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
template <class T, class Operand>
inline void put(Operand&& operand, T value) {
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
template <class Operand>
inline char* cluster_pointer(const Operand& address, std::int64_t offset) {
  return from_cluster_address(address.bits() + static_cast<std::uint64_t>(offset));
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

/// The same with an order: the hooks see that it is atomic. Rewritten code has been preprocessed, so that it
/// needs names for it.
inline constexpr int kRelaxed = __ATOMIC_RELAXED, kAcquire = __ATOMIC_ACQUIRE, kRelease = __ATOMIC_RELEASE;
template <class T, int kOrder, class Operand>
inline void load_atomic(Operand& to, const char* from) {
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
  put<T>(to, __builtin_bit_cast(T, __atomic_load_n(reinterpret_cast<const Word*>(from), kOrder)));
}
template <class T, int kOrder, class Operand>
inline void store_atomic(char* to, const Operand& from) {
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
  __atomic_store_n(reinterpret_cast<Word*>(to), __builtin_bit_cast(Word, get<T>(from)), kOrder);
}

/// movmatrix: a warp holds 8 x 8 elements of 16 bits, two of a row in each lane.
inline std::uint32_t transpose(std::uint32_t value, const char* file, int line) {
  const int row = static_cast<int>(thread_state.lane) / 4, column = static_cast<int>(thread_state.lane) % 4 * 2;
  const std::uint32_t low = shuffle(~0u, value, column * 4 + row / 2, file, line),
                      high = shuffle(~0u, value, (column + 1) * 4 + row / 2, file, line);
  const int half = row % 2 * 16;
  return (low >> half & 0xffff) | (high >> half & 0xffff) << 16;
}

inline void copy_async(char* to, const char* from, unsigned bytes, unsigned source_bytes, const char* file, int line) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    undefined_behaviour(file, line, "cp.async copies 4, 8 or 16 bytes, not %u", bytes);
  require_aligned(to, bytes, "cp.async", file, line);
  if (source_bytes) require_aligned(from, bytes, "cp.async", file, line);
  async_copy(to, from, bytes, source_bytes < bytes ? bytes - source_bytes : 0);
}

// ---- ldmatrix / stmatrix: lane 8m + r holds the address of row r of matrix m ------------------------------
struct MatrixMove {
  char* row;
  std::uint32_t values[4];
};
template <int kCount, bool kTranspose>
inline void exchange_matrices(char* row, std::uint32_t (&values)[4], bool is_load, const char* file, int line) {
  require_aligned(row, 16, is_load ? "ldmatrix" : "stmatrix", file, line);
  MatrixMove move{row, {values[0], values[1], values[2], values[3]}};
  WarpOp op{WarpKind::kMatrix, ~0u, file, line};
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

// ---- packed arithmetic ------------------------------------------------------------------------------------
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
/// Two 8-bit floats, of 3 (e4m3) or 2 (e5m2) bits of mantissa.
template <int kMantissa>
inline std::uint16_t pack_fp8(float high, float low) {
  return static_cast<std::uint16_t>(float_to_fp8(high, kMantissa) << 8 | float_to_fp8(low, kMantissa));
}
template <int kMantissa>
inline std::uint16_t half_to_fp8(std::uint32_t pair) {
  return pack_fp8<kMantissa>(half_to_float(static_cast<std::uint16_t>(pair >> 16)), half_to_float(static_cast<std::uint16_t>(pair)));
}
inline std::uint32_t e4m3_to_half(std::uint16_t pair) {
  return pack_half(e4m3_to_float(static_cast<std::uint8_t>(pair >> 8)), e4m3_to_float(static_cast<std::uint8_t>(pair)));
}
inline std::uint32_t e5m2_to_half(std::uint16_t pair) {
  return static_cast<std::uint32_t>(pair >> 8) << 24 | static_cast<std::uint32_t>(pair & 0xff) << 8;
}
/// cvt.rn.tf32.f32: round to nearest, ties to even, to 10 bits of mantissa.
inline std::uint32_t round_to_tf32_even(float value) {
  const std::uint32_t bits = reinterpret_bits<std::uint32_t>(value);
  return value - value == 0 ? (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu : bits;
}
/// cvt.rz to f16 and bf16: the bits of the nearest number, or of that before it. @param wide  what they stand for
inline std::uint16_t not_beyond(std::uint16_t nearest, float wide, float value) {
  return static_cast<std::uint16_t>(nearest - (std::fabs(wide) > std::fabs(value) ? 1 : 0));
}
inline std::uint16_t half_towards_zero(float value) {
  const std::uint16_t nearest = float_to_half(value);
  return not_beyond(nearest, half_to_float(nearest), value);
}
inline std::uint16_t bfloat_towards_zero(float value) {
  const std::uint16_t nearest = float_to_bfloat(value);
  return not_beyond(nearest, bfloat_to_float(nearest), value);
}
inline std::uint32_t tf32_towards_zero(float value) { return reinterpret_bits<std::uint32_t>(value) & (value - value == 0 ? ~0x1fffu : ~0u); }
inline std::uint32_t pack_towards_zero(std::uint16_t high, std::uint16_t low) { return static_cast<std::uint32_t>(high) << 16 | low; }
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
  if constexpr (sizeof(T) <= 4)
    return static_cast<T>((std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>(a) * b) >> (sizeof(T) * 8));
  else
    return static_cast<T>((std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>(a) * b) >> 64);
}
// ---- bits and integers ------------------------------------------------------------------------------------
/// bfi: the low `length` bits of `from`, at `position` in `into`.
template <class T>
inline T insert_bits(T from, T into, std::uint32_t position, std::uint32_t length) {
  constexpr std::uint32_t kBits = sizeof(T) * 8;
  position &= 0xff;
  length &= 0xff;
  if (position >= kBits || length == 0) return into;
  const T mask = static_cast<T>((length >= kBits ? ~T(0) : (T(1) << length) - 1) << position);
  return static_cast<T>((into & ~mask) | (from << position & mask));
}
/// bfe: above the field, and beyond the word, stands the field's sign, or 0.
template <class T>
inline T extract_bits(T from, std::uint32_t position, std::uint32_t length) {
  constexpr std::uint32_t kBits = sizeof(T) * 8;
  using Word = std::make_unsigned_t<T>;
  position &= 0xff;
  length &= 0xff;
  if (length == 0) return 0;
  const std::uint32_t last = position + length - 1 < kBits ? position + length - 1 : kBits - 1;
  const bool sign = std::is_signed_v<T> && (static_cast<Word>(from) >> last & 1);
  const Word field = position >= kBits ? (sign ? ~Word(0) : 0)
                                       : static_cast<Word>(static_cast<Word>(from) >> position | (sign && position ? ~Word(0) << (kBits - position) : 0));
  if (length >= kBits) return static_cast<T>(field);
  const Word mask = (Word(1) << length) - 1;
  return static_cast<T>(sign ? field | ~mask : field & mask);
}
/// bfind: the place of the leading bit, of a negative number that of its leading 0; with `shift`, how far it
/// is from the top.
template <class T>
inline std::uint32_t find_leading(T value, bool shift) {
  std::uint64_t word = static_cast<std::make_unsigned_t<T>>(std::is_signed_v<T> && value < 0 ? ~value : value);
  if (word == 0) return ~0u;
  const std::uint32_t place = 63 - static_cast<std::uint32_t>(__builtin_clzll(word));
  return shift ? sizeof(T) * 8 - 1 - place : place;
}
/// mul24, mad24: the low 24 bits of both; .hi is bits 16 to 47 of the product.
template <class T>
inline T product24(T a, T b, bool high) {
  auto low = [](T x) -> std::int64_t { return std::is_signed_v<T> ? static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << 8) >> 8 : static_cast<std::int64_t>(x & 0xffffff); };
  const std::uint64_t product = static_cast<std::uint64_t>(low(a) * low(b));
  return static_cast<T>(high ? product >> 16 : product);
}
template <class T>
inline T distance(T a, T b) {
  using Word = std::make_unsigned_t<T>;
  return static_cast<T>(a < b ? static_cast<Word>(b) - static_cast<Word>(a) : static_cast<Word>(a) - static_cast<Word>(b));
}
/// dp4a: four products of bytes; dp2a: the halves of a times two bytes of b.
template <class A, class B>
inline std::uint32_t dot4(std::uint32_t a, std::uint32_t b, std::uint32_t sum) {
  for (int i = 0; i < 32; i += 8) sum += static_cast<std::uint32_t>(static_cast<A>(a >> i) * static_cast<B>(b >> i));
  return sum;
}
template <class A, class B>
inline std::uint32_t dot2(std::uint32_t a, std::uint32_t b, std::uint32_t sum) {
  for (int i = 0; i < 2; ++i) sum += static_cast<std::uint32_t>(static_cast<A>(a >> (16 * i)) * static_cast<B>(b >> (8 * i)));
  return sum;
}
template <class T>
inline T saturated_sum(T a, T b) {
  T sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}
template <class T>
inline T saturated_difference(T a, T b) {
  T difference;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}
/// cvt.sat between integers; .satfinite of sums.
template <class To, class From>
inline To clamped_to(From value) {
  const __int128 wide = value, least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max();
  return static_cast<To>(wide < least ? least : wide > most ? most : wide);
}

/// CC.CF, for arithmetic of several words. It is valid from one instruction to the next; no other thread runs
/// in between.
inline thread_local std::uint32_t carry = 0;
template <class T>
CAPSTONE_UNOBSERVED inline T add_carrying(T a, T b, bool in, bool out) {
  const unsigned __int128 sum = static_cast<unsigned __int128>(a) + b + (in ? carry : 0);
  if (out) carry = static_cast<std::uint32_t>(sum >> (sizeof(T) * 8)) & 1;
  return static_cast<T>(sum);
}
template <class T>
CAPSTONE_UNOBSERVED inline T subtract_borrowing(T a, T b, bool in, bool out) {
  const unsigned __int128 difference = static_cast<unsigned __int128>(a) - b - (in ? carry : 0);
  if (out) carry = static_cast<std::uint32_t>(difference >> (sizeof(T) * 8)) & 1;
  return static_cast<T>(difference);
}

// ---- comparisons, minima ----------------------------------------------------------------------------------
template <class T>
inline bool unordered(T a, T b) { return a != a || b != b; }
/// min, max: the number of the two, or with .NaN what is not one.
/// -0 is less than +0.
template <bool kNan, class T>
inline T least(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (unordered(a, b)) return kNan ? std::numeric_limits<T>::quiet_NaN() : a == a ? a : b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return b < a ? b : a;
}
template <bool kNan, class T>
inline T greatest(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (unordered(a, b)) return kNan ? std::numeric_limits<T>::quiet_NaN() : a == a ? a : b;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}
/// .ftz: a number too small to be normal is a zero of its sign; in f16, what is less than 2^-14.
inline float flushed(float x, float least_normal = 0x1p-126f) { return std::fabs(x) < least_normal ? std::copysign(0.f, x) : x; }
inline float flushed_half(float x) { return flushed(x, 0x1p-14f); }
inline float unit_range(float x) { return x > 0 ? (x < 1 ? x : 1.f) : 0.f; }
inline double unit_range(double x) { return x > 0 ? (x < 1 ? x : 1.) : 0.; }

// ---- addresses --------------------------------------------------------------------------------------------
/// isspacep
inline bool in_global(const void* address) { return !is_shared(address) && !is_local(address); }

/// red, atom on 16-bit floats, each on its own
template <bool kBfloat, class Word>
inline Word add_narrow(Word* address, Word value) {
  return atomic_update(address, [value](Word old) {
    auto sum = [](float x, float y, float) { return x + y; };
    return static_cast<Word>(kBfloat ? each_bfloat(sum, old, value, 0) : each_half(sum, old, value, 0));
  });
}

/// bar.sync: barrier 0 of all threads is __syncthreads().
inline void barrier_sync(unsigned id, unsigned threads, const char* file, int line) {
  if (id >= kTileBarriers) undefined_behaviour(file, line, "a block has the barriers 0 to 15, not %u", id);
  if (id == 0 && (threads == 0 || threads == blockDim.x * blockDim.y * blockDim.z)) return block_barrier(file, line);
  named_barrier(id, threads, file, line);
}
inline void barrier_arrive(unsigned id, unsigned threads, const char* file, int line) {
  if (id >= kTileBarriers) undefined_behaviour(file, line, "a block has the barriers 0 to 15, not %u", id);
  named_barrier_arrive(id, threads, file, line);
}
/// shfl.sync: `bounds` is the clamp in bits 0-4 and the mask of the segment in bits 8-12. @return in *inside:
/// was the source lane within the segment?
inline std::uint32_t shuffle_lanes(char mode, std::uint32_t value, std::uint32_t by, std::uint32_t bounds,
                                   std::uint32_t members, bool* inside, const char* file, int line) {
  const int lane = static_cast<int>(thread_state.lane), step = static_cast<int>(by & 31);
  const int clamp = static_cast<int>(bounds & 31), segment = static_cast<int>(bounds >> 8 & 31);
  const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  int source = mode == 'u' ? lane - step : mode == 'd' ? lane + step : mode == 'b' ? lane ^ step : least | (step & ~segment);
  *inside = mode == 'u' ? source >= most : source <= most;
  if (!*inside) source = lane;
  return shuffle(members, value, source, file, line);
}
inline std::uint64_t lane_mask_below() { return (1u << thread_state.lane) - 1; }

}  // namespace capstone_emu::ptx
