// Inline PTX, instruction by instruction: bit fields, long integers, products, comparisons, conversions,
// predicates, atomics. Random operands against plain definitions, bit by bit where that is how the manual
// puts it.
#include <cmath>
#include <cstdint>
#include <cstdio>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ int failed;
#define EXPECT(...)                                                                                      \
  do {                                                                                                   \
    if (!(__VA_ARGS__) && atomicAdd(&failed, 1) < 20) printf("line %d: %s\n", __LINE__, #__VA_ARGS__);   \
  } while (0)

// One result of 32 or 64 bits from operands of the same size.
#define UNARY(text, constraint, T, a) [&] { T r; asm(text " %0, %1;" : "=" constraint(r) : constraint(a)); return r; }()
#define BINARY(text, T, a, b) [&] { T r; asm(text " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }()
#define TERNARY(text, T, a, b, c) [&] { T r; asm(text " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }()

template <class T>
__device__ T inserted(T from, T into, unsigned position, unsigned length) {
  T result = into;
  for (unsigned i = 0; i < length && position + i < 8 * sizeof(T); ++i)
    result = (result & ~(T(1) << (position + i))) | (from >> i & 1) << (position + i);
  return result;
}
template <class T>
__device__ T extracted(T from, unsigned position, unsigned length, bool is_signed) {
  const unsigned last = 8 * sizeof(T) - 1;
  const bool sign = is_signed && length && (from >> (position + length - 1 < last ? position + length - 1 : last) & 1);
  T result = 0;
  for (unsigned i = 0; i <= last; ++i)
    result |= T(i < length && position + i <= last ? from >> (position + i) & 1 : sign) << i;
  return result;
}
__device__ int leading(unsigned long long word) {
  int place = -1;
  for (; word; word >>= 1) ++place;
  return place;
}
__device__ int low24(int x) { return x << 8 >> 8; }

__device__ void fields(unsigned a, unsigned b, unsigned long long l, unsigned long long m, unsigned position, unsigned length) {
  unsigned u;
  unsigned long long q;
  int i;
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(u) : "r"(a), "r"(b), "r"(position), "r"(length));
  EXPECT(u == inserted(a, b, position, length));
  asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(q) : "l"(l), "l"(m), "r"(position), "r"(length));
  EXPECT(q == inserted(l, m, position, length));
  EXPECT(TERNARY("bfe.u32", unsigned, a, position, length) == extracted(a, position, length, false));
  EXPECT(TERNARY("bfe.s32", unsigned, a, position, length) == extracted(a, position, length, true));
  asm("bfe.u64 %0, %1, %2, %3;" : "=l"(q) : "l"(l), "r"(position), "r"(length));
  EXPECT(q == extracted(l, position, length, false));
  asm("bfe.s64 %0, %1, %2, %3;" : "=l"(q) : "l"(l), "r"(position), "r"(length));
  EXPECT(q == extracted(l, position, length, true));
  const unsigned shifted = a >> (position & 31);
  const unsigned long long far = l >> (position & 63);
  EXPECT(UNARY("bfind.u32", "r", int, shifted) == leading(shifted));
  EXPECT(UNARY("bfind.s32", "r", int, a) == leading(a & 0x80000000u ? ~a : a));
  EXPECT(UNARY("bfind.shiftamt.u32", "r", int, shifted) == (shifted ? 31 - leading(shifted) : -1));
  asm("bfind.u64 %0, %1;" : "=r"(i) : "l"(far));
  EXPECT(i == leading(far));
  asm("clz.b64 %0, %1;" : "=r"(i) : "l"(far));
  EXPECT(i == 63 - leading(far));
  EXPECT(UNARY("brev.b64", "l", unsigned long long, l) == __brevll(l));
  EXPECT(UNARY("cnot.b32", "r", unsigned, a & 1) == !(a & 1));
  EXPECT(TERNARY("prmt.b32", unsigned, 0x81u, 0x7fu, 0x40c8u) == 0x7f8100ffu);  // 8 and more: the sign, eight times
  EXPECT(TERNARY("shf.l.clamp.b32", unsigned, a, b, position) == __funnelshift_lc(a, b, position));
  EXPECT(TERNARY("shf.r.clamp.b32", unsigned, a, b, position) == __funnelshift_rc(a, b, position));
  EXPECT(TERNARY("shf.r.wrap.b32", unsigned, a, b, position) == __funnelshift_r(a, b, position));
}

__device__ void integers(unsigned a, unsigned b, unsigned c, unsigned long long l, unsigned long long m) {
  const int i = static_cast<int>(a), j = static_cast<int>(b), k = static_cast<int>(c);
  unsigned u, v;
  unsigned long long q, r;
  long long s;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(q) : "r"(a), "r"(b), "l"(l));
  EXPECT(q == 1ull * a * b + l);
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(s) : "r"(i), "r"(j), "l"(l));
  EXPECT(static_cast<unsigned long long>(s) == static_cast<unsigned long long>(1ll * i * j) + l);
  EXPECT(TERNARY("mad.hi.u32", unsigned, a, b, c) == __umulhi(a, b) + c && TERNARY("mad.hi.s32", unsigned, i, j, k) == static_cast<unsigned>(__mulhi(i, j)) + c);
  EXPECT(BINARY("mul24.lo.s32", unsigned, i, j) == static_cast<unsigned>(static_cast<long long>(low24(i)) * low24(j)));
  EXPECT(BINARY("mul24.hi.s32", unsigned, i, j) == static_cast<unsigned>(static_cast<long long>(low24(i)) * low24(j) >> 16));
  EXPECT(BINARY("mul24.lo.u32", unsigned, a, b) == (a & 0xffffffu) * (b & 0xffffffu));
  EXPECT(BINARY("mul24.hi.u32", unsigned, a, b) == static_cast<unsigned>(1ull * (a & 0xffffffu) * (b & 0xffffffu) >> 16));
  EXPECT(TERNARY("mad24.lo.u32", unsigned, a, b, c) == (a & 0xffffffu) * (b & 0xffffffu) + c);
  EXPECT(TERNARY("sad.u32", unsigned, a, b, c) == c + (a < b ? b - a : a - b));
  EXPECT(TERNARY("sad.s32", unsigned, i, j, k) == c + (i < j ? b - a : a - b));
  int sum = k, mixed = k, half = k;
  unsigned total = c;
  for (int n = 0; n < 4; ++n) {
    sum += static_cast<int8_t>(a >> 8 * n) * static_cast<int8_t>(b >> 8 * n);
    mixed += static_cast<uint8_t>(a >> 8 * n) * static_cast<int8_t>(b >> 8 * n);
    total += static_cast<uint8_t>(a >> 8 * n) * static_cast<uint8_t>(b >> 8 * n);
  }
  EXPECT(TERNARY("dp4a.s32.s32", int, i, j, k) == sum && TERNARY("dp4a.u32.s32", int, a, j, k) == mixed && TERNARY("dp4a.u32.u32", unsigned, a, b, c) == total);
  for (int n = 0; n < 2; ++n) half += static_cast<int16_t>(a >> 16 * n) * static_cast<int8_t>(b >> (8 * n + 16));
  EXPECT(TERNARY("dp2a.hi.s32.s32", int, i, j, k) == half);
  EXPECT(TERNARY("dp2a.lo.u32.u32", unsigned, a, b, c) == c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff));
  EXPECT(TERNARY("slct.s32.s32", int, i, j, k) == (k >= 0 ? i : j));
  const long long exact = 1ll * i + j, difference = 1ll * i - j;
  EXPECT(BINARY("add.sat.s32", int, i, j) == (exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : exact));
  EXPECT(BINARY("sub.sat.s32", int, i, j) == (difference > INT32_MAX ? INT32_MAX : difference < INT32_MIN ? INT32_MIN : difference));

  // Long integers: 128 bits in four words, and products of two words.
  const unsigned __int128 x = static_cast<unsigned __int128>(l) << 64 | m, y = static_cast<unsigned __int128>(m) << 64 | l;
  asm("add.cc.u64 %0, %2, %3;\n\taddc.u64 %1, %3, %2;" : "=&l"(q), "=l"(r) : "l"(m), "l"(l));
  EXPECT((static_cast<unsigned __int128>(r) << 64 | q) == x + y);
  asm("sub.cc.u64 %0, %2, %3; subc.u64 %1, %3, %2;" : "=&l"(q), "=l"(r) : "l"(m), "l"(l));
  EXPECT((static_cast<unsigned __int128>(r) << 64 | q) == x - y);
  asm("{add.cc.u32 %0, %2, %3; addc.cc.u32 %1, 0, 0xffffffff; addc.u32 %0, 0, 0;}" : "=&r"(u), "=&r"(v) : "r"(a), "r"(b));
  EXPECT(u == (a + b < a) && v == (a + b < a ? 0u : 0xffffffffu));
  asm("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, 0;" : "=&r"(u), "=r"(v) : "r"(a), "r"(b), "r"(c));
  EXPECT((static_cast<unsigned long long>(v) << 32 | u) == 1ull * a * b + c);
}

__device__ void comparisons(int i, int j, float f, float g, float none) {
  unsigned u, v;
  float h;
  asm("set.lt.u32.s32 %0, %1, %2;" : "=r"(u) : "r"(i), "r"(j));
  asm("set.ge.f32.s32 %0, %1, %2;" : "=f"(h) : "r"(i), "r"(j));
  EXPECT(u == (i < j ? ~0u : 0u) && h == (i >= j ? 1.f : 0.f));
  asm("{.reg .pred p, q, r; setp.gt.s32 r, %2, 0; setp.lo.and.u32 p|q, %2, %3, r; selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q;}" : "=r"(u), "=r"(v) : "r"(i), "r"(j));
  const bool lower = static_cast<unsigned>(i) < static_cast<unsigned>(j);
  EXPECT(u == (lower && i > 0) && v == (!lower && i > 0));
#define TEST(operation, x, y) [&] { unsigned r; asm("{.reg .pred p; setp." operation ".f32 p, %1, %2; selp.u32 %0, 1, 0, p;}" : "=r"(r) : "f"(x), "f"(y)); return r != 0; }()
  EXPECT(TEST("lt", f, g) == (f < g) && TEST("ne", f, g) == (f != g) && TEST("geu", f, g) == (f >= g) && TEST("num", f, g) && !TEST("nan", f, g));
  EXPECT(!TEST("ne", f, none) && TEST("neu", f, none) && TEST("ltu", none, g) && !TEST("ge", f, none) && TEST("nan", f, none) && !TEST("num", none, none));
#define FLOATS(text, x, y) [&] { float r; asm(text " %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); return r; }()
  EXPECT(FLOATS("min.f32", f, none) == f && FLOATS("max.f32", none, g) == g && FLOATS("max.f32", f, g) == fmaxf(f, g) && isnan(FLOATS("min.NaN.f32", f, none)));
  EXPECT(FLOATS("copysign.f32", f, g) == copysignf(g, f) && FLOATS("add.sat.f32", f, g) == __saturatef(f + g) && FLOATS("mul.sat.f32", none, g) == 0);
  EXPECT(FLOATS("mul.f32", f, 2.5f) == FLOATS("mul.rn.f32", 2.5f, f));
  asm("mul.f32 %0, %1, 2.5;" : "=f"(h) : "f"(f));
  EXPECT(h == f * 2.5f);
  asm("{.reg .pred p; testp.finite.f32 p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(u) : "f"(none));
  asm("{.reg .pred p; testp.notanumber.f32 p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(v) : "f"(none));
  EXPECT(u == 0 && v == 1);
  EXPECT(BINARY("min.s32.relu", int, i, j) == (min(i, j) > 0 ? min(i, j) : 0));
  const unsigned x = static_cast<unsigned>(i), y = static_cast<unsigned>(j);
  EXPECT(BINARY("add.s16x2", unsigned, x, y) == __vadd2(x, y) && BINARY("max.u16x2", unsigned, x, y) == __vmaxu2(x, y) && BINARY("min.s16x2.relu", unsigned, x, y) == __vmaxs2(__vmins2(x, y), 0));
}

__device__ void conversions(float f, int i, unsigned short half, float none) {
  float r;
  int d;
  asm("cvt.rmi.f32.f32 %0, %1;" : "=f"(r) : "f"(f));
  EXPECT(r == floorf(f));
  asm("cvt.rni.f32.f32 %0, %1;" : "=f"(r) : "f"(f));
  EXPECT(r == rintf(f));
  asm("cvt.sat.f32.f32 %0, %1;" : "=f"(r) : "f"(f));
  EXPECT(r == __saturatef(f));
  asm("cvt.rni.s32.f16 %0, %1;" : "=r"(d) : "h"(half));
  EXPECT(d == __half2int_rn(__ushort_as_half(half)));
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(d) : "f"(none));
  EXPECT(d == 0);
  asm("{.reg .u8 t; cvt.sat.u8.s32 t, %1; cvt.u32.u8 %0, t;}" : "=r"(d) : "r"(i));
  EXPECT(d == (i < 0 ? 0 : i > 255 ? 255 : i));
  asm("cvt.sat.s16.s32 %0, %1;" : "=h"(half) : "r"(i));
  EXPECT(static_cast<short>(half) == (i < -32768 ? -32768 : i > 32767 ? 32767 : i));
}

__global__ void random_operands(float none) {
  unsigned long long seed = 0x9e3779b97f4a7c15ull * (threadIdx.x + 1);
  auto next = [&] {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return seed ^ seed >> 31;
  };
  for (int round = 0; round < 60; ++round) {
    const unsigned long long l = next(), m = next(), n = next();
    const unsigned a = static_cast<unsigned>(l >> 20), b = static_cast<unsigned>(m >> 20), c = static_cast<unsigned>(n >> 20);
    fields(a, b, l, m, round % 4 ? n % 33 : n % 70, round % 4 ? m % 33 : m % 70);
    integers(a, b, c, l, m);
    const float f = static_cast<float>(static_cast<int>(a) >> 16) * 0.25f, g = static_cast<float>(static_cast<int>(b) >> 24) * 0.25f;
    comparisons(static_cast<int>(a), round % 8 ? static_cast<int>(b) : static_cast<int>(a), f * 0.001f, g, none);
    conversions(f, static_cast<int>(a) >> (c % 32), static_cast<unsigned short>(c), none);
  }
}

__global__ void warps_and_memory(unsigned* words, float* floats) {
  const unsigned lane = threadIdx.x;
  unsigned u, v;
  asm("mov.u32 %0, %laneid;" : "=r"(u));
  asm("mov.u32 %0, %tid.x;" : "=r"(v));
  EXPECT(u == lane && v == lane);
  asm("mov.u32 %0, %%ntid.x; add.u32 %0, %0, WARP_SZ;" : "=r"(u));
  EXPECT(u == 64);
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(u));
  EXPECT(u == 48);
  __prof_trigger(0);
  asm volatile("{.reg .pred p; match.all.sync.b32 %0|p, %2, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(u), "=r"(v) : "r"(7));
  EXPECT(u == ~0u && v == 1);
  asm volatile("{.reg .pred p; match.all.sync.b32 %0|p, %2, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(u), "=r"(v) : "r"(lane / 5));
  EXPECT(u == 0 && v == 0);
#define VOTE(mode, n) [&] { unsigned r; asm volatile("{.reg .pred p, q; setp.lt.u32 p, %1, %2; vote.sync." mode ".pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q;}" : "=r"(r) : "r"(lane), "r"(n)); return r; }()
  EXPECT(VOTE("all", 32) == 1 && VOTE("all", 31) == 0 && VOTE("any", 1) == 1 && VOTE("any", 0) == 0 && VOTE("uni", 0) == 1 && VOTE("uni", 32) == 1 && VOTE("uni", 5) == 0);
  asm volatile("{.reg .pred p, q; setp.lt.u32 p, %1, 4; vote.sync.any.pred q, !p, 0xffffffff; selp.u32 %0, 1, 0, q;}" : "=r"(u) : "r"(lane));
  EXPECT(u == 1);

  __shared__ unsigned shared;
  unsigned local = lane, *pointer = &local;
#define IN(space, address) [&] { unsigned r; asm("{.reg .pred p; isspacep." space " p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(r) : "l"(address)); return r; }()
  EXPECT(IN("shared", &shared) == 1 && IN("shared", words) == 0 && IN("global", words) == 1 && IN("global", pointer) == 0 && IN("local", pointer) == 1);

  unsigned long long policy;
  float old;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(old) : "l"(floats + lane), "l"(policy));
  EXPECT(old == lane);
  asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(floats + lane), "f"(old + 1), "l"(policy));
  EXPECT(floats[lane] == lane + 1);
  asm volatile("atom.global.inc.u32 %0, [%1], 20;" : "=r"(u) : "l"(words));
  asm volatile("atom.global.dec.u32 %0, [%1], 20;" : "=r"(v) : "l"(words + 1));
  EXPECT(u <= 20 && v <= 20);
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(words + 2), "r"(0x40003c00u));  // 1 and 2
  asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %2};" :: "l"(floats + 64), "f"(1.f), "f"(0.5f));
  asm volatile("pmevent 1;");
}

int main() {
  unsigned *words, counts[3] = {};
  float *floats, sums[68] = {};
  cudaMalloc(&words, sizeof counts);
  cudaMalloc(&floats, sizeof sums);
  for (int i = 0; i < 32; ++i) sums[i] = static_cast<float>(i);
  cudaMemcpy(words, counts, sizeof counts, cudaMemcpyHostToDevice);
  cudaMemcpy(floats, sums, sizeof sums, cudaMemcpyHostToDevice);
  random_operands<<<1, 32>>>(NAN);
  warps_and_memory<<<1, 32, 48>>>(words, floats);
  const cudaError_t error = cudaDeviceSynchronize();
  cudaMemcpy(counts, words, sizeof counts, cudaMemcpyDeviceToHost);
  cudaMemcpy(sums, floats, sizeof sums, cudaMemcpyDeviceToHost);
  int bad = 1;
  cudaMemcpyFromSymbol(&bad, failed, sizeof bad);
  // 32 steps on a ring of 21, up from 0 and down from 0; 32 times (1, 2) as halves.
  const bool sound = counts[0] == 32 % 21 && counts[1] == (21 * 2 - 32) % 21 && counts[2] == 0x54005000u && sums[64] == 32 && sums[67] == 16;
  if (!sound) std::printf("%u %u %x %g %g\n", counts[0], counts[1], counts[2], sums[64], sums[67]);
  std::puts(bad || error || !sound ? "FAIL" : "PASS");
  return bad;
}
