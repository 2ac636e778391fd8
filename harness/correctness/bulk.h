#pragma once
// The loops that process gigabytes, compiled for several instruction sets and chosen at load time. Their
// results are equal to those of random.h and narrow.h, bit for bit. Internal to harness/correctness.
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/correctness/random.h"

// One function for several instruction sets: the loader chooses (GNU ifunc). Elsewhere the plain function is
// used.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define CAPSTONE_CLONES __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define CAPSTONE_CLONES
#endif

namespace capstone::bulk {

/// Words 4*first_block … of a stream; out.size() is a multiple of 4.
void random_words(std::uint64_t seed, std::uint32_t stream, random::Domain domain, std::uint64_t first_block,
                  std::span<std::uint32_t> out);

/// out[i] = mean + std * normal_of(words[i]).
void normals(std::span<const std::uint32_t> words, float mean, float std, float* out);
/// out[i] = uniform_of(words[i], low, high).
void uniforms(std::span<const std::uint32_t> words, float low, float high, float* out);

/// Poison for a dtype, from one word per element.
void poison32(DType type, std::span<const std::uint32_t> words, std::uint32_t* out);
void poison16(DType type, std::span<const std::uint32_t> words, std::uint16_t* out);
void poison8(DType type, std::span<const std::uint32_t> words, std::uint8_t* out);

void round_f16(std::span<const float> in, std::uint16_t* out);
void round_bf16(std::span<const float> in, std::uint16_t* out);
void round_e4m3(std::span<const float> in, std::uint8_t* out);
void round_e5m2(std::span<const float> in, std::uint8_t* out);
void widen_f16(const std::uint16_t* in, std::span<float> out);
void widen_bf16(const std::uint16_t* in, std::span<float> out);

/// Sum of fingerprint_of over whole 64-bit words, the first at `position`.
std::uint64_t fingerprint_words(const std::byte* bytes, std::size_t words, std::uint64_t position,
                                std::uint64_t seed);

}  // namespace capstone::bulk
