// The small headers of CUDA's C++ library: bits, quotients, constants, function objects, streams by
// reference.
#include <cstdint>
#include <cstdio>

#include <cuda/bit>
#include <cuda/cmath>
#include <cuda/functional>
#include <cuda/std/bit>
#include <cuda/std/bitset>
#include <cuda/std/cassert>
#include <cuda/std/cfloat>
#include <cuda/std/numbers>
#include <cuda/std/version>
#include <cuda/stream_ref>
#include <cuda/version>
#include <cuda_runtime.h>

#if CCCL_MAJOR_VERSION < 2
#error "an old library"
#endif

__device__ int failed;
#define EXPECT(...)                                                                                      \
  do {                                                                                                   \
    if (!(__VA_ARGS__) && atomicAdd(&failed, 1) < 20) printf("line %d: %s\n", __LINE__, #__VA_ARGS__);   \
  } while (0)

template <class T>
__device__ void bits(T x, int by) {
  const int size = 8 * sizeof(T);
  int ones = 0, leading = 0, trailing = 0;
  for (int i = 0; i < size; ++i) ones += x >> i & 1;
  while (leading < size && !(x >> (size - 1 - leading) & 1)) ++leading;
  while (trailing < size && !(x >> trailing & 1)) ++trailing;
  EXPECT(cuda::std::popcount(x) == ones && cuda::std::countl_zero(x) == leading && cuda::std::countr_zero(x) == trailing);
  EXPECT(cuda::std::countl_one(static_cast<T>(~x)) == leading && cuda::std::countr_one(static_cast<T>(~x)) == trailing);
  EXPECT(cuda::std::bit_width(x) == size - leading && cuda::std::has_single_bit(x) == (ones == 1));
  T turned = x, reversed = 0;
  for (int i = 0; i < by; ++i) turned = static_cast<T>(turned << 1 | turned >> (size - 1));
  for (int i = 0; i < size; ++i) reversed |= static_cast<T>(static_cast<T>(x >> i & 1) << (size - 1 - i));
  EXPECT(cuda::std::rotl(x, by) == turned && cuda::std::rotr(turned, by) == x && cuda::std::rotr(x, -by) == turned);
  EXPECT(cuda::bit_reverse(x) == reversed);
  if (x != 0 && leading > 0) {
    EXPECT(cuda::std::bit_floor(x) == T(1) << (size - 1 - leading));
    EXPECT(cuda::std::bit_ceil(x) == (ones == 1 ? x : static_cast<T>(T(1) << (size - leading))));
  }
  const int start = by % size, width = 1 + by % (size - start);
  EXPECT(cuda::bitfield_extract(x, start, width) == static_cast<T>(x >> start & cuda::bitmask<T>(0, width)));
  EXPECT(cuda::bitfield_extract(cuda::bitfield_insert(x, T(5), start, width), start, width) == (T(5) & cuda::bitmask<T>(0, width)));
}

__global__ void check() {
  unsigned long long seed = 0x9e3779b97f4a7c15ull * (threadIdx.x + 1);
  for (int round = 0; round < 70; ++round) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    const unsigned long long word = round < 65 ? (seed ^ seed >> 31) >> round % 65 % 64 : 0;
    bits<uint32_t>(static_cast<uint32_t>(word), round);
    bits<uint64_t>(word, round);
    bits<uint16_t>(static_cast<uint16_t>(word), round);
    bits<uint8_t>(static_cast<uint8_t>(word), round % 9);
    const uint32_t a = static_cast<uint32_t>(word) >> 2, b = 1 + round * 37;
    EXPECT(cuda::ceil_div(a, b) == (a + b - 1) / b && cuda::round_up(a, b) == (a + b - 1) / b * b && cuda::round_down(a, b) == a / b * b);
    if (a > 0) EXPECT((1ull << cuda::ilog2(a)) <= a && (2ull << cuda::ilog2(a)) > a);
  }
  EXPECT(cuda::ceil_div(10, 4) == 3 && cuda::ceil_div(int64_t{1} << 40, 3) == 366503875926 && cuda::ceil_div(0xffffffffu, 2u) == 0x80000000u);
  EXPECT(cuda::ilog10(1) == 0 && cuda::ilog10(999) == 2 && cuda::ilog10(1000u) == 3);
  EXPECT(cuda::std::bit_cast<uint32_t>(1.f) == 0x3f800000u && cuda::std::endian::native == cuda::std::endian::little);
  EXPECT(cuda::maximum<>{}(2, 3.5) == 3.5 && cuda::minimum<int>{}(2, 3) == 2 && cuda::maximum<float>{}(1.f, -1.f) == 1.f);
  EXPECT(cuda::std::numbers::pi == 3.14159265358979323846 && cuda::std::numbers::sqrt2_v<float> == 1.41421356f && cuda::std::numbers::e > 2.718);
  const auto twice = cuda::proclaim_return_type<int>([](int x) { return 2 * x; });
  EXPECT(twice(21) == 42);
  cuda::std::bitset<40> set;
  set.set(33);
  EXPECT(set.count() == 1 && set[33] && FLT_MAX > 1e38f);
  assert(threadIdx.x < 32);
}

int main() {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  const cuda::stream_ref reference(stream);
  check<<<1, 32, 0, reference.get()>>>();
  reference.wait();
  const bool same = reference.ready() && reference == cuda::stream_ref(stream) && reference != cuda::stream_ref();
  int bad = 1;
  cudaMemcpyFromSymbol(&bad, failed, sizeof bad);
  std::puts(bad || !same ? "FAIL" : "PASS");
  return bad;
}
