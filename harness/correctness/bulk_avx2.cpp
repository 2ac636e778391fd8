// Philox and normals, eight at a time. Compilers do not find the 32 x 32 → 64-bit multiply or the table
// look-up by themselves, and every input needs these two. All other loops are left to the vectoriser
// (bulk.cpp).
#include "harness/correctness/bulk_avx2.h"

#if defined(CAPSTONE_AVX2)
#include <immintrin.h>

namespace capstone::bulk {
namespace {

#define CAPSTONE_AVX2_FUNCTION __attribute__((target("avx2,fma")))

/// One counter word of eight blocks.
using Eight = __m256i;

struct Counters {
  Eight c0, c1, c2, c3;
};

CAPSTONE_AVX2_FUNCTION inline void multiply(Eight a, Eight factor, Eight& low, Eight& high) {
  const Eight even = _mm256_mul_epu32(a, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}

CAPSTONE_AVX2_FUNCTION inline Counters philox8(Counters c, std::uint32_t key0, std::uint32_t key1) {
  const Eight m0 = _mm256_set1_epi32(static_cast<int>(0xD2511F53u)),
              m1 = _mm256_set1_epi32(static_cast<int>(0xCD9E8D57u));
  for (int round = 0; round < 10; ++round) {
    Eight low0, high0, low1, high1;
    multiply(c.c0, m0, low0, high0);
    multiply(c.c2, m1, low1, high1);
    c.c0 = _mm256_xor_si256(_mm256_xor_si256(high1, c.c1), _mm256_set1_epi32(static_cast<int>(key0)));
    c.c2 = _mm256_xor_si256(_mm256_xor_si256(high0, c.c3), _mm256_set1_epi32(static_cast<int>(key1)));
    c.c1 = low1;
    c.c3 = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/// Eight blocks of four words, block after block.
CAPSTONE_AVX2_FUNCTION inline void store_blocks(const Counters& c, std::uint32_t* to) {
  const Eight a = _mm256_unpacklo_epi32(c.c0, c.c1), b = _mm256_unpackhi_epi32(c.c0, c.c1);
  const Eight d = _mm256_unpacklo_epi32(c.c2, c.c3), e = _mm256_unpackhi_epi32(c.c2, c.c3);
  const Eight blocks04 = _mm256_unpacklo_epi64(a, d), blocks15 = _mm256_unpackhi_epi64(a, d);
  const Eight blocks26 = _mm256_unpacklo_epi64(b, e), blocks37 = _mm256_unpackhi_epi64(b, e);
  auto* out = reinterpret_cast<Eight*>(to);
  _mm256_storeu_si256(out + 0, _mm256_permute2x128_si256(blocks04, blocks15, 0x20));
  _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(blocks26, blocks37, 0x20));
  _mm256_storeu_si256(out + 2, _mm256_permute2x128_si256(blocks04, blocks15, 0x31));
  _mm256_storeu_si256(out + 3, _mm256_permute2x128_si256(blocks26, blocks37, 0x31));
}

/// Two table rows, the second in the upper half.
CAPSTONE_AVX2_FUNCTION inline __m256 two_rows(std::uint32_t low, std::uint32_t high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(random::kHostNormal[low].c)),
                              _mm_load_ps(random::kHostNormal[high].c), 1);
}

/// random::normal_of for eight words; every step corresponds to a step there.
CAPSTONE_AVX2_FUNCTION inline __m256 normal8(Eight words) {
  const __m256 tail = _mm256_add_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(words, 1)), _mm256_set1_ps(0.5f));
  const Eight bits = _mm256_castps_si256(tail);
  alignas(32) std::uint32_t segment[8];
  _mm256_store_si256(reinterpret_cast<Eight*>(segment),
                     _mm256_srli_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(126 << 23)), 20));
  const Eight fraction = _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0xfffff)), 3);
  const __m256 t = _mm256_add_ps(
      _mm256_castsi256_ps(_mm256_or_si256(fraction, _mm256_set1_epi32(0x3f800000))), _mm256_set1_ps(-1.0f));
  // Eight rows of four coefficients, transposed to four vectors of eight.
  const __m256 r0 = two_rows(segment[0], segment[4]), r1 = two_rows(segment[1], segment[5]);
  const __m256 r2 = two_rows(segment[2], segment[6]), r3 = two_rows(segment[3], segment[7]);
  const __m256 a = _mm256_unpacklo_ps(r0, r1), b = _mm256_unpackhi_ps(r0, r1);
  const __m256 d = _mm256_unpacklo_ps(r2, r3), e = _mm256_unpackhi_ps(r2, r3);
  const __m256 c0 = _mm256_shuffle_ps(a, d, 0x44), c1 = _mm256_shuffle_ps(a, d, 0xEE);
  const __m256 c2 = _mm256_shuffle_ps(b, e, 0x44), c3 = _mm256_shuffle_ps(b, e, 0xEE);
  const __m256 z = _mm256_fmadd_ps(_mm256_fmadd_ps(_mm256_fmadd_ps(c3, t, c2), t, c1), t, c0);
  return _mm256_xor_ps(z, _mm256_castsi256_ps(_mm256_slli_epi32(words, 31)));
}

}  // namespace

bool avx2_usable() {
  static const bool usable = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return usable;
}

CAPSTONE_AVX2_FUNCTION
std::size_t random_words_avx2(std::uint64_t seed, std::uint32_t stream, random::Domain domain,
                              std::uint64_t first_block, std::uint32_t* out, std::size_t blocks) {
  const auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  const Eight steps = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  std::size_t done = 0;
  for (; done + 8 <= blocks; done += 8) {
    const std::uint64_t index = first_block + done;
    if (static_cast<std::uint32_t>(index) > 0xffffffffu - 7)
      break;  // a carry between the eight: rare, so the caller handles it
    const Counters counters{
        _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(index))), steps),
        _mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(index >> 32))),
        _mm256_set1_epi32(static_cast<int>(stream)), _mm256_set1_epi32(static_cast<int>(domain))};
    store_blocks(philox8(counters, key0, key1), out + 4 * done);
  }
  return done;
}

CAPSTONE_AVX2_FUNCTION
std::size_t normals_avx2(std::span<const std::uint32_t> words, float mean, float std, float* out) {
  const __m256 means = _mm256_set1_ps(mean), stds = _mm256_set1_ps(std);
  std::size_t i = 0;
  for (; i + 8 <= words.size(); i += 8) {
    const __m256 z = normal8(_mm256_loadu_si256(reinterpret_cast<const Eight*>(words.data() + i)));
    _mm256_storeu_ps(out + i, _mm256_fmadd_ps(stds, z, means));
  }
  return i;
}

}  // namespace capstone::bulk
#endif
