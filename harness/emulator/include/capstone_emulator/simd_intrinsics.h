#pragma once
#pragma GCC system_header
// Integer intrinsics on the two halves or four bytes of a word, and averages.
#include <cstdint>

namespace capstone_emu {

/// Applies `function` to each piece of type T of both words.
template <class T, class Function>
inline unsigned each_piece(unsigned a, unsigned b, Function function) {
  constexpr int kBits = sizeof(T) * 8;
  using Word = std::conditional_t<kBits == 8, std::uint8_t, std::uint16_t>;
  unsigned result = 0;
  for (int at = 0; at < 32; at += kBits)
    result |= static_cast<unsigned>(static_cast<Word>(function(static_cast<int>(static_cast<T>(a >> at)), static_cast<int>(static_cast<T>(b >> at))))) << at;
  return result;
}
/// The sum of the pieces of a word.
template <class T>
inline unsigned sum_of_pieces(unsigned word) {
  unsigned sum = 0;
  for (int at = 0; at < 32; at += static_cast<int>(sizeof(T) * 8)) sum += static_cast<T>(word >> at);
  return sum;
}
template <class T>
inline int clamped(int value) {
  constexpr int kLeast = std::is_signed_v<T> ? -(1 << (sizeof(T) * 8 - 1)) : 0;
  constexpr int kMost = std::is_signed_v<T> ? (1 << (sizeof(T) * 8 - 1)) - 1 : (1 << (sizeof(T) * 8)) - 1;
  return value < kLeast ? kLeast : value > kMost ? kMost : value;
}

}  // namespace capstone_emu

#define CAPSTONE_SIMD(name, T, expression)                                                    \
  static inline unsigned name(unsigned first, unsigned second) {                              \
    return capstone_emu::each_piece<T>(first, second, [](int a, int b) { return expression; }); \
  }
#define CAPSTONE_SIMD_COMPARE(name, T, condition)         \
  CAPSTONE_SIMD(__vcmp##name, T, (condition) ? -1 : 0)    \
  CAPSTONE_SIMD(__vset##name, T, condition)
#define CAPSTONE_SIMD_WIDTH(N, S, U)                                      \
  CAPSTONE_SIMD(__vadd##N, U, a + b)                                      \
  CAPSTONE_SIMD(__vsub##N, U, a - b)                                      \
  CAPSTONE_SIMD(__vaddss##N, S, capstone_emu::clamped<S>(a + b))          \
  CAPSTONE_SIMD(__vaddus##N, U, capstone_emu::clamped<U>(a + b))          \
  CAPSTONE_SIMD(__vsubss##N, S, capstone_emu::clamped<S>(a - b))          \
  CAPSTONE_SIMD(__vsubus##N, U, capstone_emu::clamped<U>(a - b))          \
  CAPSTONE_SIMD(__vmaxs##N, S, a < b ? b : a)                             \
  CAPSTONE_SIMD(__vmaxu##N, U, a < b ? b : a)                             \
  CAPSTONE_SIMD(__vmins##N, S, b < a ? b : a)                             \
  CAPSTONE_SIMD(__vminu##N, U, b < a ? b : a)                             \
  CAPSTONE_SIMD(__vabsdiffu##N, U, a < b ? b - a : a - b)                 \
  CAPSTONE_SIMD(__vabsdiffs##N, S, a < b ? b - a : a - b)                 \
  CAPSTONE_SIMD(__vavgu##N, U, (a + b + 1) >> 1)                          \
  CAPSTONE_SIMD(__vavgs##N, S, (a + b + (a + b >= 0 ? 1 : 0)) >> 1)       \
  CAPSTONE_SIMD(__vhaddu##N, U, (a + b) / 2)                              \
  CAPSTONE_SIMD_COMPARE(eq##N, U, a == b)                                 \
  CAPSTONE_SIMD_COMPARE(ne##N, U, a != b)                                 \
  CAPSTONE_SIMD_COMPARE(gtu##N, U, a > b)                                 \
  CAPSTONE_SIMD_COMPARE(gts##N, S, a > b)                                 \
  CAPSTONE_SIMD_COMPARE(geu##N, U, a >= b)                                \
  CAPSTONE_SIMD_COMPARE(ges##N, S, a >= b)                                \
  CAPSTONE_SIMD_COMPARE(ltu##N, U, a < b)                                 \
  CAPSTONE_SIMD_COMPARE(lts##N, S, a < b)                                 \
  CAPSTONE_SIMD_COMPARE(leu##N, U, a <= b)                                \
  CAPSTONE_SIMD_COMPARE(les##N, S, a <= b)                                \
  static inline unsigned __vneg##N(unsigned a) { return __vsub##N(0, a); } \
  static inline unsigned __vnegss##N(unsigned a) { return __vsubss##N(0, a); } \
  static inline unsigned __vabs##N(unsigned a) {                          \
    return capstone_emu::each_piece<S>(a, 0, [](int x, int) { return x < 0 ? -x : x; }); \
  }                                                                       \
  static inline unsigned __vabsss##N(unsigned a) { return __vmaxs##N(a, __vnegss##N(a)); } \
  static inline unsigned __vsadu##N(unsigned a, unsigned b) { return capstone_emu::sum_of_pieces<U>(__vabsdiffu##N(a, b)); } \
  static inline unsigned __vsads##N(unsigned a, unsigned b) { return capstone_emu::sum_of_pieces<U>(__vabsdiffs##N(a, b)); }
CAPSTONE_SIMD_WIDTH(2, std::int16_t, std::uint16_t)
CAPSTONE_SIMD_WIDTH(4, std::int8_t, std::uint8_t)
#undef CAPSTONE_SIMD_WIDTH
#undef CAPSTONE_SIMD_COMPARE
#undef CAPSTONE_SIMD

// ---- DPX: maxima and minima of sums and of three; "relu" takes the maximum with 0, too --------------------
namespace capstone_emu {
template <class T>
inline T larger(T a, T b) { return a < b ? b : a; }
template <class T>
inline T smaller(T a, T b) { return b < a ? b : a; }
template <class T>
inline T wrapped_sum(T a, T b) { return static_cast<T>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); }
}  // namespace capstone_emu
#define CAPSTONE_DPX(name, T, MAX, MIN, SUM)                                     \
  static inline T __vimax3_##name(T a, T b, T c) { return MAX(MAX(a, b), c); }   \
  static inline T __vimin3_##name(T a, T b, T c) { return MIN(MIN(a, b), c); }   \
  static inline T __viaddmax_##name(T a, T b, T c) { return MAX(SUM(a, b), c); } \
  static inline T __viaddmin_##name(T a, T b, T c) { return MIN(SUM(a, b), c); }
#define CAPSTONE_DPX_RELU(name, T, MAX, MIN, SUM)                                                \
  CAPSTONE_DPX(name, T, MAX, MIN, SUM)                                                           \
  static inline T __vimax_##name##_relu(T a, T b) { return MAX(MAX(a, b), T(0)); }               \
  static inline T __vimin_##name##_relu(T a, T b) { return MAX(MIN(a, b), T(0)); }               \
  static inline T __vimax3_##name##_relu(T a, T b, T c) { return MAX(__vimax3_##name(a, b, c), T(0)); }     \
  static inline T __vimin3_##name##_relu(T a, T b, T c) { return MAX(__vimin3_##name(a, b, c), T(0)); }     \
  static inline T __viaddmax_##name##_relu(T a, T b, T c) { return MAX(__viaddmax_##name(a, b, c), T(0)); } \
  static inline T __viaddmin_##name##_relu(T a, T b, T c) { return MAX(__viaddmin_##name(a, b, c), T(0)); }
CAPSTONE_DPX_RELU(s32, int, capstone_emu::larger, capstone_emu::smaller, capstone_emu::wrapped_sum)
CAPSTONE_DPX(u32, unsigned, capstone_emu::larger, capstone_emu::smaller, capstone_emu::wrapped_sum)
CAPSTONE_DPX_RELU(s16x2, unsigned, __vmaxs2, __vmins2, __vadd2)
CAPSTONE_DPX(u16x2, unsigned, __vmaxu2, __vminu2, __vadd2)
#undef CAPSTONE_DPX_RELU
#undef CAPSTONE_DPX
// These also tell whether the first operand was chosen; equal, it is.
#define CAPSTONE_DPX_CHOICE(T, name)                                             \
  static inline T __vibmax_##name(T a, T b, bool* first) { return (*first = a >= b) ? a : b; } \
  static inline T __vibmin_##name(T a, T b, bool* first) { return (*first = a <= b) ? a : b; }
CAPSTONE_DPX_CHOICE(int, s32)
CAPSTONE_DPX_CHOICE(unsigned, u32)
#undef CAPSTONE_DPX_CHOICE
#define CAPSTONE_DPX_CHOICES(name, letter)                                                                  \
  static inline unsigned __vibmax_##name(unsigned a, unsigned b, bool* high_first, bool* low_first) {       \
    const unsigned first = __vcmpge##letter##2(a, b);                                                       \
    *high_first = first >> 16;                                                                              \
    *low_first = first & 0xffff;                                                                            \
    return (a & first) | (b & ~first);                                                                      \
  }                                                                                                         \
  static inline unsigned __vibmin_##name(unsigned a, unsigned b, bool* high_first, bool* low_first) {       \
    const unsigned first = __vcmple##letter##2(a, b);                                                       \
    *high_first = first >> 16;                                                                              \
    *low_first = first & 0xffff;                                                                            \
    return (a & first) | (b & ~first);                                                                      \
  }
CAPSTONE_DPX_CHOICES(s16x2, s)
CAPSTONE_DPX_CHOICES(u16x2, u)
#undef CAPSTONE_DPX_CHOICES
static inline int __dp2a_lo(int a, int b, int c) {
  return c + static_cast<short>(a) * static_cast<signed char>(b) + (a >> 16) * static_cast<signed char>(b >> 8);
}
static inline int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
static inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff);
}
static inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
static inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
static inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
static inline unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<unsigned long long>(a) + b) >> 1); }
static inline unsigned __urhadd(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<unsigned long long>(a) + b + 1) >> 1); }
static inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return sum + (a < b ? b - a : a - b); }
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return shift >= 32 ? low : static_cast<unsigned>(both << shift >> 32);
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return shift >= 32 ? high : static_cast<unsigned>(both >> shift);
}
