#pragma once
#pragma GCC system_header
// Arithmetic that cuda_fp16.h and cuda_bf16.h offer to device compilers only. A product of two narrow values
// is exact in double; the sum is rounded to odd on its way to float, so that only the last step, to the
// narrow type, rounds.
#include "intrinsics.h"
#include "synchronisation.h"

#define CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, name, pair_name, expression) \
  static inline T name(T a) {                                                                   \
    const float x = WIDEN(a);                                                                   \
    return NARROW(expression);                                                                  \
  }                                                                                             \
  static inline T2 pair_name(T2 a) { return PAIR(name(LOW(a)), name(HIGH(a))); }

#define CAPSTONE_HALF_FUNCTIONS(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH)                                              \
  static inline T __hfma(T a, T b, T c) {                                                                           \
    return NARROW(capstone_emu::fused_to_odd(WIDEN(a), WIDEN(b), WIDEN(c)));                                        \
  }                                                                                                                 \
  static inline T __hfma_relu(T a, T b, T c) {                                                                      \
    const T r = __hfma(a, b, c);                                                                                    \
    return WIDEN(r) < 0 ? NARROW(0.f) : r;                                                                          \
  }                                                                                                                 \
  static inline T __hfma_sat(T a, T b, T c) {                                                                       \
    const float r = WIDEN(__hfma(a, b, c));                                                                         \
    return NARROW(r > 0 ? (r < 1 ? r : 1.f) : 0.f);                                                                 \
  }                                                                                                                 \
  static inline T2 __hfma2(T2 a, T2 b, T2 c) {                                                                      \
    return PAIR(__hfma(LOW(a), LOW(b), LOW(c)), __hfma(HIGH(a), HIGH(b), HIGH(c)));                                 \
  }                                                                                                                 \
  static inline T2 __hfma2_relu(T2 a, T2 b, T2 c) {                                                                 \
    return PAIR(__hfma_relu(LOW(a), LOW(b), LOW(c)), __hfma_relu(HIGH(a), HIGH(b), HIGH(c)));                       \
  }                                                                                                                 \
  static inline T2 __hfma2_sat(T2 a, T2 b, T2 c) {                                                                  \
    return PAIR(__hfma_sat(LOW(a), LOW(b), LOW(c)), __hfma_sat(HIGH(a), HIGH(b), HIGH(c)));                         \
  }                                                                                                                 \
  static inline T2 __hcmadd(T2 a, T2 b, T2 c) { /* complex a * b + c, in the order that CUDA gives */               \
    return PAIR(__hfma(__hneg(HIGH(a)), HIGH(b), __hfma(LOW(a), LOW(b), LOW(c))),                                   \
                __hfma(HIGH(a), LOW(b), __hfma(LOW(a), HIGH(b), HIGH(c))));                                         \
  }                                                                                                                 \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hexp, h2exp, expf(x))                                  \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hexp2, h2exp2, exp2f(x))                               \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hexp10, h2exp10, powf(10.f, x))                        \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hlog, h2log, logf(x))                                  \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hlog2, h2log2, log2f(x))                               \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hlog10, h2log10, log10f(x))                            \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hsqrt, h2sqrt, sqrtf(x))                               \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hrsqrt, h2rsqrt, 1.f / sqrtf(x))                       \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hrcp, h2rcp, 1.f / x)                                  \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, htanh, h2tanh, tanhf(x))                               \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, htanh_approx, h2tanh_approx, tanhf(x))                 \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hfloor, h2floor, floorf(x))                            \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hceil, h2ceil, ceilf(x))                               \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, htrunc, h2trunc, truncf(x))                            \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hrint, h2rint, rintf(x))                                \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hsin, h2sin, sinf(x))                                  \
  CAPSTONE_HALF_UNARY(T, T2, WIDEN, NARROW, PAIR, LOW, HIGH, hcos, h2cos, cosf(x))

// CUDA's header shows those that round towards zero to host compilers.
#define CAPSTONE_HALF_TO_INTEGER(T, WIDEN, name, Integer)                                                     \
  static inline Integer name##_rn(T x) { return capstone_emu::saturate_to<Integer>(rintf(WIDEN(x))); }        \
  static inline Integer name##_rd(T x) { return capstone_emu::saturate_to<Integer>(floorf(WIDEN(x))); }       \
  static inline Integer name##_ru(T x) { return capstone_emu::saturate_to<Integer>(ceilf(WIDEN(x))); }
#define CAPSTONE_HALF_TO_INTEGERS(T, WIDEN, prefix)                            \
  CAPSTONE_HALF_TO_INTEGER(T, WIDEN, prefix##2int, int)                        \
  CAPSTONE_HALF_TO_INTEGER(T, WIDEN, prefix##2uint, unsigned)                  \
  CAPSTONE_HALF_TO_INTEGER(T, WIDEN, prefix##2short, short)                    \
  CAPSTONE_HALF_TO_INTEGER(T, WIDEN, prefix##2ushort, unsigned short)          \
  CAPSTONE_HALF_TO_INTEGER(T, WIDEN, prefix##2ll, long long)                   \
  CAPSTONE_HALF_TO_INTEGER(T, WIDEN, prefix##2ull, unsigned long long)
