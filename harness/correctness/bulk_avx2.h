#pragma once
// x86 fast paths of bulk.cpp. Each processes as many elements as it can and returns their number. Internal to
// harness/correctness.
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/correctness/random.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define CAPSTONE_AVX2 1

namespace capstone::bulk {

/// Whether this processor has AVX2 and fused multiply-add.
bool avx2_usable();

/// The leading blocks of random_words(). @return number of blocks done.
std::size_t random_words_avx2(std::uint64_t seed, std::uint32_t stream, random::Domain domain,
                              std::uint64_t first_block, std::uint32_t* out, std::size_t blocks);

/// The leading elements of normals(). @return number of elements done.
std::size_t normals_avx2(std::span<const std::uint32_t> words, float mean, float std, float* out);

}  // namespace capstone::bulk
#endif
