// The rest of CUDA's device library: mathematics against the host's in a wider type, and by identities;
// packed integers and DPX functions against plain definitions.
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(...)                                                                              \
  do {                                                                                          \
    if (!(__VA_ARGS__) && ++failed < 20) std::printf("line %d: %s\n", __LINE__, #__VA_ARGS__);  \
  } while (0)
static int failed = 0;

// ---- mathematics ------------------------------------------------------------------------------------------
struct Wide {
  double erfinv, erfcinv, normcdfinv, erfcx, rcbrt, sinpi, cospi, i0, i1, rhypot, norm3d, rnorm3d, norm4d, rnorm4d, norm, rnorm;
};
struct Narrow {
  float erfinv, erfcinv, normcdfinv, erfcx, rcbrt, sinpi, cospi, i0, i1, rhypot, norm3d, rnorm3d, norm4d, rnorm4d, norm, rnorm;
};
// p is a probability, x any number, big may be large.
__global__ void evaluate(const double* p, const double* x, const double* big, Wide* wide, Narrow* narrow, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const double b = big[i], four[4] = {b, x[i], p[i], 1};
  Wide& w = wide[i];
  w = {erfinv(2 * p[i] - 1), erfcinv(2 * p[i]), normcdfinv(p[i]), erfcx(x[i]), rcbrt(b), 0, 0, cyl_bessel_i0(x[i]), cyl_bessel_i1(x[i]),
       rhypot(b, x[i]), norm3d(b, x[i], p[i]), rnorm3d(b, x[i], p[i]), norm4d(b, x[i], p[i], 1.), rnorm4d(b, x[i], p[i], 1.),
       norm(4, four), rnorm(4, four)};
  sincospi(x[i], &w.sinpi, &w.cospi);
  const float fp = static_cast<float>(p[i]), fx = static_cast<float>(x[i]), fb = static_cast<float>(b), few[4] = {fb, fx, fp, 1};
  Narrow& f = narrow[i];
  f = {erfinvf(2 * fp - 1), erfcinvf(2 * fp), normcdfinvf(fp), erfcxf(fx), rcbrtf(fb), 0, 0, cyl_bessel_i0f(fx), cyl_bessel_i1f(fx),
       rhypotf(fb, fx), norm3df(fb, fx, fp), rnorm3df(fb, fx, fp), norm4df(fb, fx, fp, 1.f), rnorm4df(fb, fx, fp, 1.f),
       normf(4, few), rnormf(4, few)};
  sincospif(fx, &f.sinpi, &f.cospi);
}

bool near(double value, long double expected, double relative) {
  return std::fabs(static_cast<long double>(value) - expected) <= relative * std::fabs(expected);
}
void mathematics() {
  const int n = 2000;
  double *p, *x, *big;
  Wide* wide;
  Narrow* narrow;
  cudaMallocManaged(&p, n * sizeof *p);
  cudaMallocManaged(&x, n * sizeof *x);
  cudaMallocManaged(&big, n * sizeof *big);
  cudaMallocManaged(&wide, n * sizeof *wide);
  cudaMallocManaged(&narrow, n * sizeof *narrow);
  for (int i = 0; i < n; ++i) {
    p[i] = static_cast<float>(i < 100 ? std::pow(10., -0.3 * (i + 1)) : (i - 99.5) / (n - 99));
    x[i] = static_cast<float>(i == 0 ? 0. : (i - 700) * 0.0083);
    big[i] = static_cast<float>(std::pow(10., (i % 74) - 36) * (i % 3 ? 1 : -1));
  }
  evaluate<<<(n + 127) / 128, 128>>>(p, x, big, wide, narrow, n);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  const long double pi = std::acos(-1.0L), sqrt_pi = std::sqrt(pi);
  for (int i = 0; i < n; ++i) {
    const Wide& w = wide[i];
    const Narrow& f = narrow[i];
    // An inverse is right when the function leads back; an error of the argument grows by x f'(x) / f(x).
    const long double y = w.erfinv, slope = 2 / sqrt_pi * std::exp(-y * y);
    CHECK(std::isinf(y) ? 2 * p[i] - 1 == -1 : std::fabs(std::erf(y) - (2 * p[i] - 1)) <= 12e-16L * std::fabs(y) * slope + 1e-19L);
    const long double z = w.erfcinv, back = 2 / sqrt_pi * std::exp(-z * z);
    CHECK(std::fabs(std::erfc(z) - 2 * p[i]) <= 12e-16L * std::fabs(z) * back + 1e-19L * p[i]);
    CHECK(near(w.normcdfinv, -std::sqrt(2.0L) * z, 2e-15) || std::fabs(w.normcdfinv) < 1e-3);
    const long double fy = f.erfinv, q = 2 * static_cast<float>(p[i]) - 1.f;
    CHECK(std::isinf(fy) ? q == -1 : std::fabs(std::erf(fy) - q) <= 4e-7L * std::fabs(fy) * 2 / sqrt_pi * std::exp(-fy * fy) + 1e-12L);
    CHECK(near(f.erfcinv, z, 4e-7) || std::fabs(z) < 1e-3);
    CHECK(near(f.normcdfinv, w.normcdfinv, 6e-7) || std::fabs(z) < 1e-3);
    CHECK(near(w.erfcx, std::exp(static_cast<long double>(x[i]) * x[i]) * std::erfc(static_cast<long double>(x[i])), 2e-15));
    CHECK(near(f.erfcx, w.erfcx, 8e-7));
    CHECK(near(w.rcbrt, 1 / std::cbrt(static_cast<long double>(big[i])), 4e-16) && near(f.rcbrt, w.rcbrt, 3e-7));
    const long double turns = std::fmod(static_cast<long double>(x[i]), 2.0L);
    CHECK(std::fabs(w.sinpi - std::sin(pi * turns)) < 4e-16L && std::fabs(w.cospi - std::cos(pi * turns)) < 4e-16L);
    CHECK(std::fabs(f.sinpi - w.sinpi) < 3e-7 && std::fabs(f.cospi - w.cospi) < 3e-7);
    // I0(x) = 1/pi times the integral of exp(x cos t) over half a turn: sums of equal steps converge at once.
    if (i % 10 == 0) {
      long double i0 = 0, i1 = 0;
      for (int k = 0; k < 64; ++k) {
        const long double c = std::cos(pi * (k + 0.5L) / 64);
        i0 += std::exp(x[i] * c) / 64;
        i1 += std::exp(x[i] * c) * c / 64;
      }
      CHECK(near(w.i0, i0, 4e-15) && (near(w.i1, i1, 4e-15) || std::fabs(x[i]) < 1e-2));
    }
    CHECK(near(f.i0, w.i0, 2e-6) && near(f.i1, w.i1, 2e-6));
    const long double a = big[i], b = x[i], c = p[i], two = a * a + b * b, three = two + c * c;
    CHECK(near(w.rhypot, 1 / std::sqrt(two), 6e-16) && near(f.rhypot, w.rhypot, 3e-7));
    CHECK(near(w.norm3d, std::sqrt(three), 6e-16) && near(f.norm3d, w.norm3d, 4e-7));
    CHECK(near(w.rnorm3d, 1 / std::sqrt(three), 6e-16) && near(f.rnorm3d, w.rnorm3d, 4e-7));
    CHECK(near(w.norm4d, std::sqrt(three + 1), 6e-16) && near(f.norm4d, w.norm4d, 4e-7));
    CHECK(near(w.rnorm4d, 1 / std::sqrt(three + 1), 6e-16) && near(f.rnorm4d, w.rnorm4d, 4e-7));
    CHECK(near(w.norm, std::sqrt(three + 1), 1e-15) && near(w.rnorm, 1 / std::sqrt(three + 1), 1e-15));
    CHECK(near(f.norm, w.norm, 6e-7) && near(f.rnorm, w.rnorm, 6e-7));
  }
}

// ---- edges ------------------------------------------------------------------------------------------------
__device__ int wrong;
#define EXPECT(...)                                                                                      \
  do {                                                                                                   \
    if (!(__VA_ARGS__) && atomicAdd(&wrong, 1) < 10) printf("line %d: %s\n", __LINE__, #__VA_ARGS__);    \
  } while (0)

__global__ void edges(double zero, float one, unsigned* words) {
  const double infinite = 1 / zero;
  EXPECT(erfinv(zero) == 0 && erfinv(1 + zero) == infinite && erfinv(zero - 1) == -infinite && isnan(erfinv(2 + zero)));
  EXPECT(erfcinv(zero) == infinite && erfcinv(2 + zero) == -infinite && isnan(erfcinvf(-one)));
  EXPECT(normcdfinv(zero) == -infinite && normcdfinvf(one) == static_cast<float>(infinite) && normcdfinv(0.5 + zero) == 0);
  EXPECT(erfcx(100 + zero) > 0.00564 && erfcx(100 + zero) < 0.0056418 && erfcx(infinite) == 0 && erfcx(zero - 30) == infinite);
  EXPECT(norm3d(infinite, zero / zero, zero) == infinite && rnorm4df(one, 0.f, static_cast<float>(-infinite), 2.f) == 0);
  EXPECT(sinpi(1 + zero) == 0 && cospi(0.5 + zero) == 0 && cospif(7 * one) == -1 && sinpif(2.5f * one) == 1);
  EXPECT(cyl_bessel_i0(zero) == 1 && cyl_bessel_i1f(0.f * one) == 0 && cyl_bessel_i1(zero - 1) < -0.5651 && cyl_bessel_i0(1000 + zero) == infinite);
  EXPECT(rsqrt(4 * one) == 0.5f && rcbrt(8 * one) == 0.5f && erfinv(0.f * one) == 0.f);
  EXPECT(umin(1u, 0xffffffffu) == 1 && umax(1u, 0xffffffffu) == 0xffffffffu && llmin(-1ll, 1ll) == -1 && llmax(-1ll, 1ll) == 1);
  EXPECT(ullmin(1ull, ~0ull) == 1 && ullmax(1ull, ~0ull) == ~0ull);

  EXPECT(__nv_bswap16(0x1234) == 0x3412 && __nv_bswap32(0x12345678u) == 0x78563412u);
  EXPECT(__nv_bswap64(0x0123456789abcdefull) == 0xefcdab8967452301ull);
  EXPECT(__fns(0b10110u, 0, 1) == 1 && __fns(0b10110u, 1, 2) == 2 && __fns(0b10110u, 0, 3) == 4 && __fns(0b10110u, 0, 4) == ~0u);
  EXPECT(__fns(0b10110u, 4, -2) == 2 && __fns(0b10110u, 4, 0) == 4 && __fns(0b10110u, 3, 0) == ~0u);
  EXPECT(__fmaf_ieee_rn(2.f, 3.f * one, 4.f) == 10.f);
  __shared__ int shared;
  int local = static_cast<int>(threadIdx.x);
  void* address = &local;
  EXPECT(__isLocal(address) && !__isShared(address) && !__isGlobal(address));
  EXPECT(!__isLocal(&shared) && __isShared(&shared) && !__isLocal(words) && __isGlobal(words) && !__isShared(words));
  EXPECT(__cvta_local_to_generic(__cvta_generic_to_local(address)) == address);
  EXPECT(__clusterSizeInBlocks() == 1 && __clusterDim().x == 1 && __clusterRelativeBlockRank() == 0);
}

// ---- packed integers and DPX ------------------------------------------------------------------------------
template <class T>
__device__ int piece(unsigned word, int i) {
  return static_cast<T>(word >> (i * 8 * static_cast<int>(sizeof(T))));
}
template <class T, class Function>
__device__ bool each(unsigned result, unsigned a, unsigned b, unsigned c, Function function) {
  for (int i = 0; i < 4 / static_cast<int>(sizeof(T)); ++i)
    if (static_cast<T>(function(piece<T>(a, i), piece<T>(b, i), piece<T>(c, i))) != static_cast<T>(piece<T>(result, i))) return false;
  return true;
}
template <class T, class Function>
__device__ unsigned total(unsigned a, unsigned b, Function function) {
  unsigned sum = 0;
  for (int i = 0; i < 4 / static_cast<int>(sizeof(T)); ++i) sum += static_cast<unsigned>(function(piece<T>(a, i), piece<T>(b, i)));
  return sum;
}
#define EACH(T, result, ...) EXPECT(each<T>(result, a, b, c, [](int x, int y, int z) { (void)x, (void)y, (void)z; return __VA_ARGS__; }))
#define COMPARISON(N, S, U, name, symbol)                                                                        \
  EACH(U, __vcmp##name##u##N(a, b), x symbol y ? -1 : 0); EACH(U, __vset##name##u##N(a, b), x symbol y ? 1 : 0); \
  EACH(S, __vcmp##name##s##N(a, b), x symbol y ? -1 : 0); EACH(S, __vset##name##s##N(a, b), x symbol y ? 1 : 0)
#define PACKED(N, S, U)                                                                     \
  COMPARISON(N, S, U, ge, >=); COMPARISON(N, S, U, gt, >);                                  \
  COMPARISON(N, S, U, le, <=); COMPARISON(N, S, U, lt, <);                                  \
  EACH(U, __vcmpeq##N(a, b), x == y ? -1 : 0); EACH(U, __vseteq##N(a, b), x == y ? 1 : 0);  \
  EACH(U, __vcmpne##N(a, b), x != y ? -1 : 0); EACH(U, __vsetne##N(a, b), x != y ? 1 : 0);  \
  EACH(S, __vneg##N(a), -x); EACH(S, __vabs##N(a), x < 0 ? -x : x);                         \
  EACH(S, __vnegss##N(a), x == least_of<S>() ? -1 - x : -x);                                \
  EACH(S, __vabsss##N(a), x == least_of<S>() ? -1 - x : x < 0 ? -x : x);                    \
  EACH(S, __vavgs##N(a, b), (x + y + (x + y >= 0)) >> 1); EACH(U, __vavgu##N(a, b), (x + y + 1) >> 1); \
  EXPECT(__vsadu##N(a, b) == total<U>(a, b, [](int x, int y) { return x < y ? y - x : x - y; }));      \
  EXPECT(__vsads##N(a, b) == total<S>(a, b, [](int x, int y) { return x < y ? y - x : x - y; }))
template <class S>
__device__ constexpr int least_of() {
  return -(1 << (8 * sizeof(S) - 1));
}

__device__ int greatest(int x, int y) { return x < y ? y : x; }
__device__ int least(int x, int y) { return x < y ? x : y; }
__device__ void dpx(unsigned a, unsigned b, unsigned c) {
  EACH(int16_t, __vimax3_s16x2(a, b, c), greatest(greatest(x, y), z));
  EACH(int16_t, __vimin3_s16x2(a, b, c), least(least(x, y), z));
  EACH(uint16_t, __vimax3_u16x2(a, b, c), greatest(greatest(x, y), z));
  EACH(uint16_t, __vimin3_u16x2(a, b, c), least(least(x, y), z));
  EACH(int16_t, __vimax3_s16x2_relu(a, b, c), greatest(greatest(greatest(x, y), z), 0));
  EACH(int16_t, __vimin3_s16x2_relu(a, b, c), greatest(least(least(x, y), z), 0));
  EACH(int16_t, __vimax_s16x2_relu(a, b), greatest(greatest(x, y), 0));
  EACH(int16_t, __vimin_s16x2_relu(a, b), greatest(least(x, y), 0));
  EACH(int16_t, __viaddmax_s16x2(a, b, c), greatest(static_cast<int16_t>(x + y), z));
  EACH(int16_t, __viaddmin_s16x2(a, b, c), least(static_cast<int16_t>(x + y), z));
  EACH(uint16_t, __viaddmax_u16x2(a, b, c), greatest(static_cast<uint16_t>(x + y), z));
  EACH(uint16_t, __viaddmin_u16x2(a, b, c), least(static_cast<uint16_t>(x + y), z));
  EACH(int16_t, __viaddmax_s16x2_relu(a, b, c), greatest(greatest(static_cast<int16_t>(x + y), z), 0));
  EACH(int16_t, __viaddmin_s16x2_relu(a, b, c), greatest(least(static_cast<int16_t>(x + y), z), 0));
  const int i = static_cast<int>(a), j = static_cast<int>(b), k = static_cast<int>(c), sum = static_cast<int>(a + b);
  EXPECT(__vimax3_s32(i, j, k) == greatest(greatest(i, j), k) && __vimin3_s32(i, j, k) == least(least(i, j), k));
  EXPECT(__vimax3_s32_relu(i, j, k) == greatest(greatest(greatest(i, j), k), 0) && __vimin3_s32_relu(i, j, k) == greatest(least(least(i, j), k), 0));
  EXPECT(__vimax_s32_relu(i, j) == greatest(greatest(i, j), 0) && __vimin_s32_relu(i, j) == greatest(least(i, j), 0));
  EXPECT(__viaddmax_s32(i, j, k) == greatest(sum, k) && __viaddmin_s32(i, j, k) == least(sum, k));
  EXPECT(__viaddmax_s32_relu(i, j, k) == greatest(greatest(sum, k), 0) && __viaddmin_s32_relu(i, j, k) == greatest(least(sum, k), 0));
  EXPECT(__vimax3_u32(a, b, c) == umax(umax(a, b), c) && __vimin3_u32(a, b, c) == umin(umin(a, b), c));
  EXPECT(__viaddmax_u32(a, b, c) == umax(a + b, c) && __viaddmin_u32(a, b, c) == umin(a + b, c));
  bool first, high, low;
  EXPECT(__vibmax_s32(i, j, &first) == greatest(i, j) && first == (i >= j));
  EXPECT(__vibmin_s32(i, j, &first) == least(i, j) && first == (i <= j));
  EXPECT(__vibmax_u32(a, b, &first) == umax(a, b) && first == (a >= b));
  EXPECT(__vibmin_u32(a, b, &first) == umin(a, b) && first == (a <= b));
  EACH(int16_t, __vibmax_s16x2(a, b, &high, &low), greatest(x, y));
  EXPECT(low == (piece<int16_t>(a, 0) >= piece<int16_t>(b, 0)) && high == (piece<int16_t>(a, 1) >= piece<int16_t>(b, 1)));
  EACH(int16_t, __vibmin_s16x2(a, b, &high, &low), least(x, y));
  EXPECT(low == (piece<int16_t>(a, 0) <= piece<int16_t>(b, 0)) && high == (piece<int16_t>(a, 1) <= piece<int16_t>(b, 1)));
  EACH(uint16_t, __vibmax_u16x2(a, b, &high, &low), greatest(x, y));
  EXPECT(low == (piece<uint16_t>(a, 0) >= piece<uint16_t>(b, 0)) && high == (piece<uint16_t>(a, 1) >= piece<uint16_t>(b, 1)));
  EACH(uint16_t, __vibmin_u16x2(a, b, &high, &low), least(x, y));
  EXPECT(low == (piece<uint16_t>(a, 0) <= piece<uint16_t>(b, 0)) && high == (piece<uint16_t>(a, 1) <= piece<uint16_t>(b, 1)));
}

// Random words, of which now and then a piece is the other's or at an end of its range.
__global__ void integers(int rounds) {
  unsigned long long seed = 0x9e3779b97f4a7c15ull * (threadIdx.x + 1);
  auto next = [&] {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<unsigned>(seed >> 33) * 2u + static_cast<unsigned>(seed >> 63);
  };
  for (int round = 0; round < rounds; ++round) {
    unsigned a = next(), b = next(), c = next();
    const unsigned mask = 0xffu << (8 * (round & 3));
    if (round % 3 == 0) b = (b & ~mask) | (a & mask);
    if (round % 5 == 0) a = (a & ~0xffffu) | 0x8000u, b = (b & ~0xff00u) | 0x8000u;
    if (round % 7 == 0) a = 0x80808080u, c = 0x7fff8000u;
    PACKED(2, int16_t, uint16_t);
    PACKED(4, int8_t, uint8_t);
    dpx(a, b, c);
  }
}

int main() {
  mathematics();
  unsigned* words;
  cudaMalloc(&words, 64);
  edges<<<1, 1>>>(0, 1, words);
  integers<<<1, 32>>>(100);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  int bad = 1;
  cudaMemcpyFromSymbol(&bad, wrong, sizeof bad);
  std::puts(bad || failed ? "FAIL" : "PASS");
  return bad || failed;
}
