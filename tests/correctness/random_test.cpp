#include "harness/correctness/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "harness/correctness/bulk.h"

namespace capstone {
namespace {

// Known answers of philox4x32-10 from the authors' Random123 distribution (kat_vectors).
TEST(Philox, MatchesThePublishedVectors) {
  const auto zeros = random::philox(0, 0, 0, 0, 0, 0);
  EXPECT_EQ(zeros.w[0], 0x6627e8d5u);
  EXPECT_EQ(zeros.w[1], 0xe169c58du);
  EXPECT_EQ(zeros.w[2], 0xbc57ac4cu);
  EXPECT_EQ(zeros.w[3], 0x9b00dbd8u);
  const auto ones = random::philox(~0u, ~0u, ~0u, ~0u, ~0u, ~0u);
  EXPECT_EQ(ones.w[0], 0x408f276du);
  EXPECT_EQ(ones.w[3], 0x6d5451fdu);
  const auto pi =
      random::philox(0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u, 0x299f31d0u);
  EXPECT_EQ(pi.w[0], 0xd16cfe09u);
  EXPECT_EQ(pi.w[1], 0x94fdcceBu);
  EXPECT_EQ(pi.w[2], 0x5001e420u);
  EXPECT_EQ(pi.w[3], 0x24126ea1u);
}

TEST(Philox, BulkWordsAreTheSingleWords) {
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{1} << 32) - 3}) {
    std::vector<std::uint32_t> words(4 * 37);
    bulk::random_words(0x123456789abcdefull, 7, random::kValues, first, words);
    for (std::size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(words[i], random::word_at(0x123456789abcdefull, 7, random::kValues, 4 * first + i)) << i;
  }
}

TEST(Normal, IsTheInverseOfTheNormalDistribution) {
  // Φ(-|z|) must give back the tail probability that the word encodes, from the median to the far tail.
  for (std::uint64_t k = 0; k < 200000; ++k) {
    const auto word = static_cast<std::uint32_t>((k * k * 0x9E3779B1u >> (k % 31)) & ~1u);
    const double tail = (static_cast<double>(word >> 1) + 0.5) / 4294967296.0;
    const double z = static_cast<double>(random::normal_of(word));
    const double back = 0.5 * std::erfc(z / std::sqrt(2.0));
    ASSERT_NEAR(back / tail, 1.0, 2e-5) << word;
  }
}

TEST(Normal, TheLowBitIsTheSign) {
  for (const std::uint32_t word : {0u, 2u, 1000u, 0x7ffffffeu, 0xfffffffeu})
    EXPECT_EQ(random::normal_of(word), -random::normal_of(word | 1u));
}

TEST(Normal, SegmentsJoinWithoutAJump) {
  // Neighbouring tail numbers on both sides of each power of two.
  for (int power = 3; power < 31; ++power) {
    const std::uint32_t at = 1u << power;
    const double below = static_cast<double>(random::normal_of((at - 1) << 1)),
                 above = static_cast<double>(random::normal_of(at << 1));
    EXPECT_NEAR(below, above, 2e-6 + 1.0 / at) << power;
  }
}

TEST(Normal, MomentsAreRight) {
  constexpr int kDraws = 1 << 20;
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, last = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double z = static_cast<double>(random::normal_at(99, 3, static_cast<std::uint64_t>(i), 0, 1));
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    neighbours += z * last;
    last = z;
  }
  const double n = kDraws;
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 4 * std::sqrt(96 / n));
  EXPECT_NEAR(neighbours / n, 0, 4 / std::sqrt(n));
}

TEST(Normal, BulkIsTheSingleDraw) {
  std::vector<std::uint32_t> words(1003 / 4 * 4 + 4);
  std::vector<float> values(words.size());
  bulk::random_words(42, 1, random::kValues, 0, words);
  bulk::normals(words, 0.25f, 3.0f, values.data());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(narrow::bits_of(values[i]), narrow::bits_of(random::normal_at(42, 1, i, 0.25f, 3.0f))) << i;
}

TEST(Uniform, StaysInItsHalfOpenRange) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const float value = random::uniform_at(5, 0, i, -2.0f, 6.0f);
    ASSERT_GE(value, -2.0f);
    ASSERT_LT(value, 6.0f);
    sum += static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 100000, 2.0, 0.03);
  EXPECT_LT(random::uniform_of(~0u, 1.0f, 1.0f + 0x1p-23f),
            1.0f + 0x1p-23f);  // rounding would reach the excluded end
}

TEST(Integer, ReachesBothEndsAndNothingElse) {
  std::set<std::int64_t> seen;
  for (std::uint64_t i = 0; i < 2000; ++i) seen.insert(random::integer_at(1, 0, i, -3, 4));
  EXPECT_EQ(*seen.begin(), -3);
  EXPECT_EQ(*seen.rbegin(), 4);
  EXPECT_EQ(seen.size(), 8u);
}

TEST(Integer, TheWholeRangeOfI64Works) {
  bool negative = false, positive = false;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const auto value = random::integer_at(1, 0, i, INT64_MIN, INT64_MAX);
    (value < 0 ? negative : positive) = true;
  }
  EXPECT_TRUE(negative && positive);
}

TEST(Random, SeedStreamAndDomainAllMatter) {
  const auto base = random::word_at(1, 1, random::kValues, 0);
  EXPECT_NE(base, random::word_at(2, 1, random::kValues, 0));
  EXPECT_NE(base, random::word_at(std::uint64_t{1} << 32 | 1, 1, random::kValues, 0));
  EXPECT_NE(base, random::word_at(1, 2, random::kValues, 0));
  EXPECT_NE(base, random::word_at(1, 1, random::kPoison, 0));
}

}  // namespace
}  // namespace capstone
