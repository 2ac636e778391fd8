#include "harness/correctness/bulk.h"

#include <cstring>

#include "harness/correctness/bulk_avx2.h"

namespace capstone::bulk {

void random_words(std::uint64_t seed, std::uint32_t stream, random::Domain domain, std::uint64_t first_block,
                  std::span<std::uint32_t> out) {
  const std::size_t blocks = out.size() / 4;
  std::size_t done = 0;
#if defined(CAPSTONE_AVX2)
  if (avx2_usable()) done = random_words_avx2(seed, stream, domain, first_block, out.data(), blocks);
#endif
  for (; done < blocks; ++done) {
    const random::Words words = random::block_at(seed, stream, domain, first_block + done);
    std::memcpy(out.data() + 4 * done, words.w, sizeof words.w);
  }
}

void normals(std::span<const std::uint32_t> words, float mean, float std, float* out) {
  std::size_t done = 0;
#if defined(CAPSTONE_AVX2)
  if (avx2_usable()) done = normals_avx2(words, mean, std, out);
#endif
  for (; done < words.size(); ++done) out[done] = random::fused(std, random::normal_of(words[done]), mean);
}

CAPSTONE_CLONES
void uniforms(std::span<const std::uint32_t> words, float low, float high, float* out) {
  for (std::size_t i = 0; i < words.size(); ++i) out[i] = random::uniform_of(words[i], low, high);
}

CAPSTONE_CLONES
void poison32(DType type, std::span<const std::uint32_t> words, std::uint32_t* out) {
  for (std::size_t i = 0; i < words.size(); ++i) out[i] = random::poison_of(type, words[i]);
}

CAPSTONE_CLONES
void poison16(DType type, std::span<const std::uint32_t> words, std::uint16_t* out) {
  for (std::size_t i = 0; i < words.size(); ++i)
    out[i] = static_cast<std::uint16_t>(random::poison_of(type, words[i]));
}

CAPSTONE_CLONES
void poison8(DType type, std::span<const std::uint32_t> words, std::uint8_t* out) {
  for (std::size_t i = 0; i < words.size(); ++i)
    out[i] = static_cast<std::uint8_t>(random::poison_of(type, words[i]));
}

CAPSTONE_CLONES
void round_f16(std::span<const float> in, std::uint16_t* out) {
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = narrow::to_f16(in[i]);
}

CAPSTONE_CLONES
void round_bf16(std::span<const float> in, std::uint16_t* out) {
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = narrow::to_bf16(in[i]);
}

CAPSTONE_CLONES
void round_e4m3(std::span<const float> in, std::uint8_t* out) {
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = narrow::to_e4m3(in[i]);
}

CAPSTONE_CLONES
void round_e5m2(std::span<const float> in, std::uint8_t* out) {
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = narrow::to_e5m2(in[i]);
}

CAPSTONE_CLONES
void widen_f16(const std::uint16_t* in, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = narrow::from_f16(in[i]);
}

CAPSTONE_CLONES
void widen_bf16(const std::uint16_t* in, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = narrow::from_bf16(in[i]);
}

CAPSTONE_CLONES
std::uint64_t fingerprint_words(const std::byte* bytes, std::size_t words, std::uint64_t position,
                                std::uint64_t seed) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word;
    std::memcpy(&word, bytes + 8 * i, sizeof word);
    total += random::fingerprint_of(word, position + i, seed);
  }
  return total;
}

}  // namespace capstone::bulk
