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
  CAPSTONE_SIMD(__vavgu##N, U, (a + b + 1) / 2)                           \
  CAPSTONE_SIMD(__vhaddu##N, U, (a + b) / 2)                              \
  CAPSTONE_SIMD(__vcmpeq##N, U, a == b ? -1 : 0)                          \
  CAPSTONE_SIMD(__vcmpne##N, U, a != b ? -1 : 0)                          \
  CAPSTONE_SIMD(__vcmpgtu##N, U, a > b ? -1 : 0)                          \
  CAPSTONE_SIMD(__vcmpgts##N, S, a > b ? -1 : 0)                          \
  CAPSTONE_SIMD(__vcmpltu##N, U, a < b ? -1 : 0)                          \
  CAPSTONE_SIMD(__vcmplts##N, S, a < b ? -1 : 0)                          \
  CAPSTONE_SIMD(__vcmpgeu##N, U, a >= b ? -1 : 0)                         \
  CAPSTONE_SIMD(__vcmpleu##N, U, a <= b ? -1 : 0)                         \
  CAPSTONE_SIMD(__vseteq##N, U, a == b)                                   \
  CAPSTONE_SIMD(__vsetgtu##N, U, a > b)                                   \
  static inline unsigned __vneg##N(unsigned a) { return __vsub##N(0, a); } \
  static inline unsigned __vabs##N(unsigned a) {                          \
    return capstone_emu::each_piece<S>(a, 0, [](int x, int) { return x < 0 ? -x : x; }); \
  }
CAPSTONE_SIMD_WIDTH(2, std::int16_t, std::uint16_t)
CAPSTONE_SIMD_WIDTH(4, std::int8_t, std::uint8_t)
#undef CAPSTONE_SIMD_WIDTH
#undef CAPSTONE_SIMD
static inline unsigned __vsadu4(unsigned a, unsigned b) {
  const unsigned difference = __vabsdiffu4(a, b);
  return (difference & 0xff) + (difference >> 8 & 0xff) + (difference >> 16 & 0xff) + (difference >> 24);
}

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
