#include "harness/check/bulk.h"

#include <algorithm>
#include <cstring>

namespace capstone::bulk {
namespace {

constexpr int kLanes = 16;  // Philox blocks in flight: one 512-bit or two 256-bit vectors for each counter word

}  // namespace

CAPSTONE_CLONES
void random_words(std::uint64_t seed, std::uint32_t stream, random::Domain domain, std::uint64_t first_block,
                  std::span<std::uint32_t> out) {
  const std::uint32_t key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  const std::size_t blocks = out.size() / 4;
  std::uint32_t* to = out.data();
  std::size_t done = 0;
  for (; done + kLanes <= blocks; done += kLanes, to += 4 * kLanes) {
    alignas(64) std::uint32_t lanes[4][kLanes];
    for (int j = 0; j < kLanes; ++j) {
      const std::uint64_t index = first_block + done + static_cast<std::uint64_t>(j);
      const random::Words words = random::philox(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                                                 stream, domain, key0, key1);
      lanes[0][j] = words.w[0];
      lanes[1][j] = words.w[1];
      lanes[2][j] = words.w[2];
      lanes[3][j] = words.w[3];
    }
    for (int j = 0; j < kLanes; ++j)
      for (int word = 0; word < 4; ++word) to[4 * j + word] = lanes[word][j];
  }
  for (; done < blocks; ++done, to += 4) {
    const random::Words words = random::block_at(seed, stream, domain, first_block + done);
    std::memcpy(to, words.w, sizeof words.w);
  }
}

CAPSTONE_CLONES
void normals(std::span<const std::uint32_t> words, float mean, float std, float* out) {
  for (std::size_t i = 0; i < words.size(); ++i) out[i] = random::fused(std, random::normal_of(words[i]), mean);
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
  for (std::size_t i = 0; i < words.size(); ++i) out[i] = static_cast<std::uint16_t>(random::poison_of(type, words[i]));
}

CAPSTONE_CLONES
void poison8(DType type, std::span<const std::uint32_t> words, std::uint8_t* out) {
  for (std::size_t i = 0; i < words.size(); ++i) out[i] = static_cast<std::uint8_t>(random::poison_of(type, words[i]));
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
std::uint64_t fingerprint_words(const std::byte* bytes, std::size_t words, std::uint64_t position, std::uint64_t seed) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word;
    std::memcpy(&word, bytes + 8 * i, sizeof word);
    total += random::fingerprint_of(word, position + i, seed);
  }
  return total;
}

}  // namespace capstone::bulk
