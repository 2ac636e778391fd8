// 16-bit floats: all of them to integers, integers to them, shuffled pairs, and the functions that came
// later.
#include <cmath>
#include <climits>
#include <cstdint>
#include <initializer_list>
#include <cstdio>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ int failed;
#define EXPECT(...)                                                                                      \
  do {                                                                                                   \
    if (!(__VA_ARGS__) && atomicAdd(&failed, 1) < 10) printf("line %d: %s\n", __LINE__, #__VA_ARGS__);   \
  } while (0)

// To an integer: the rounded value, or the nearest that the type has; NaN becomes 0 or 2^63.
template <class Integer>
__device__ Integer expected(double rounded) {
  const Integer least = std::is_signed<Integer>::value ? Integer(1ull << (sizeof(Integer) * 8 - 1)) : Integer(0);
  const Integer most = Integer(~least);
  if (rounded != rounded) return sizeof(Integer) == 8 ? Integer(1ull << 63) : Integer(0);
  if (rounded <= double(least)) return least;
  if (rounded >= double(most)) return most;
  return Integer(rounded);
}
#define TO_INTEGER(function, Integer)                           \
  EXPECT(function##_rn(x) == expected<Integer>(rint(wide)));    \
  EXPECT(function##_rd(x) == expected<Integer>(floor(wide)));   \
  EXPECT(function##_ru(x) == expected<Integer>(ceil(wide)))

__global__ void to_integers() {
  const unsigned short bits = static_cast<unsigned short>(blockIdx.x * blockDim.x + threadIdx.x);
  {
    const __half x = __ushort_as_half(bits);
    const double wide = __half2float(x);
    TO_INTEGER(__half2int, int);
    TO_INTEGER(__half2uint, unsigned);
    TO_INTEGER(__half2short, short);
    TO_INTEGER(__half2ushort, unsigned short);
    TO_INTEGER(__half2ll, long long);
    TO_INTEGER(__half2ull, unsigned long long);
  }
  {
    const __nv_bfloat16 x = __ushort_as_bfloat16(bits);
    const double wide = __bfloat162float(x);
    TO_INTEGER(__bfloat162int, int);
    TO_INTEGER(__bfloat162uint, unsigned);
    TO_INTEGER(__bfloat162short, short);
    TO_INTEGER(__bfloat162ushort, unsigned short);
    TO_INTEGER(__bfloat162ll, long long);
    TO_INTEGER(__bfloat162ull, unsigned long long);
  }
}

// A narrow float of at least 1, or 0, is an integer where it comes from one.
__device__ __int128 whole(__nv_bfloat16 x) { return static_cast<__int128>(__bfloat162float(x)); }
__device__ __nv_bfloat16 next(__nv_bfloat16 x, int up) {
  const unsigned short bits = __bfloat16_as_ushort(x);
  const bool negative = bits & 0x8000;
  return __ushort_as_bfloat16(static_cast<unsigned short>(negative == (up > 0) ? bits - 1 : bits + 1));
}
template <class Integer>
__device__ void expect_rounded(Integer value, __nv_bfloat16 down, __nv_bfloat16 up, __nv_bfloat16 to_zero) {
  const __int128 exact = value;
  EXPECT(whole(down) <= exact && whole(up) >= exact);
  if (exact >= 256 || exact <= -256) {
    EXPECT(whole(next(down, 1)) > exact && whole(next(up, -1)) < exact);
  } else {
    EXPECT(whole(down) == exact && whole(up) == exact);
  }
  EXPECT(whole(to_zero) == whole(value < 0 ? up : down));
}
#define FROM_INTEGER(name, value) \
  expect_rounded(value, name##2bfloat16_rd(value), name##2bfloat16_ru(value), name##2bfloat16_rz(value))

__global__ void from_integers() {
  unsigned long long seed = 0x9e3779b97f4a7c15ull * (threadIdx.x + 1);
  for (int i = 0; i < 64; ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    const unsigned long long word = (seed ^ seed >> 29) >> i;
    const unsigned long long edge = (1ull << i) + threadIdx.x - 2;  // around powers of two
    for (const unsigned long long bits : {word, 0 - word, edge, 0 - edge}) {
      FROM_INTEGER(__int, static_cast<int>(bits));
      FROM_INTEGER(__uint, static_cast<unsigned>(bits));
      FROM_INTEGER(__short, static_cast<short>(bits));
      FROM_INTEGER(__ushort, static_cast<unsigned short>(bits));
      FROM_INTEGER(__ll, static_cast<long long>(bits));
      FROM_INTEGER(__ull, bits);
    }
  }
}

__global__ void wide_not_a_number(float none, double none_wide) {
  EXPECT(__float2int_rn(none) == 0 && __float2uint_rz(none) == 0u);
  EXPECT(__float2ll_rn(none) == LLONG_MIN && __float2ull_rd(none) == 1ull << 63);
  EXPECT(__double2int_rn(none_wide) == INT_MIN && __double2ll_ru(none_wide) == LLONG_MIN);
}

__global__ void pairs() {
  const unsigned full = 0xffffffffu;
  const int lane = static_cast<int>(threadIdx.x);
  __half2 h = __floats2half2_rn(static_cast<float>(lane), static_cast<float>(-lane));
  const __half2 other = __shfl_xor_sync(full, h, 1);
  EXPECT(__low2float(other) == static_cast<float>(lane ^ 1) && __high2float(other) == -static_cast<float>(lane ^ 1));
  __nv_bfloat162 b = __float2bfloat162_rn(1.f);
  for (int step = 16; step; step /= 2) b = __hadd2(b, __shfl_down_sync(full, b, step));
  EXPECT(lane > 0 || __high2float(b) == 32.f);
  EXPECT(__high2float(__shfl_up_sync(full, h, 3)) == static_cast<float>(lane < 3 ? -lane : 3 - lane));
  EXPECT(__low2float(__shfl_sync(full, __floats2bfloat162_rn(static_cast<float>(lane), 0.f), 7)) == 7.f);

  const __half2 a = __floats2half2_rn(2.f, -3.f), c = __floats2half2_rn(0.5f, 1.f), one = __float2half2_rn(1.f);
  const __half2 relu = __hfma2_relu(a, one, c), sat = __hfma2_sat(a, one, c), complex = __hcmadd(a, c, one);
  EXPECT(__low2float(relu) == 2.5f && __high2float(relu) == 0.f && __low2float(sat) == 1.f && __high2float(sat) == 0.f);
  EXPECT(__low2float(complex) == 2 * 0.5f + 3 + 1 && __high2float(complex) == 2 - 1.5f + 1);
  const __nv_bfloat162 d = __floats2bfloat162_rn(2.f, -3.f), e = __floats2bfloat162_rn(0.5f, 1.f);
  EXPECT(__high2float(__hfma2_relu(d, e, d)) == 0.f && __low2float(__hfma2_sat(d, e, d)) == 1.f);
  EXPECT(__low2float(__hcmadd(d, e, __float2bfloat162_rn(1.f))) == 5.f);
  EXPECT(__half2float(__hfma_sat(__float2half(NAN), __float2half(1.f), __float2half(1.f))) == 0.f);
  const __half2 sines = h2sin(__floats2half2_rn(0.5f, -1.f)), cosines = h2cos(__floats2half2_rn(0.5f, -1.f));
  EXPECT(fabsf(__low2float(sines) - 0.479426f) < 1e-3f && fabsf(__high2float(cosines) - 0.540302f) < 1e-3f);
  EXPECT(fabsf(__high2float(h2sin(__floats2bfloat162_rn(0.5f, -1.f))) + 0.841471f) < 4e-3f);
  EXPECT(fabsf(__bfloat162float(hcos(__float2bfloat16(2.f))) + 0.416147f) < 2e-3f);
}

int main() {
  to_integers<<<256, 256>>>();
  from_integers<<<1, 32>>>();
  wide_not_a_number<<<1, 1>>>(NAN, NAN);
  pairs<<<1, 32>>>();
  const cudaError_t error = cudaDeviceSynchronize();
  int bad = 1;
  cudaMemcpyFromSymbol(&bad, failed, sizeof bad);
  puts(bad || error ? "FAIL" : "PASS");
  return bad;
}
