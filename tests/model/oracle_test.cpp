// The oracles against values computed by hand, and against properties that must hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>
#include <random>

#include "tests/model/oracle_case.h"

namespace capstone {
namespace {

using testing::OracleCase;

TEST(SoftmaxOracle, RowsSumToOne) {
  OracleCase c("softmax", {{"rows", 5}, {"cols", 37}}, 1);
  for (int row = 0; row < 5; ++row)
    EXPECT_NEAR(std::accumulate(&c.expected[row * 37], &c.expected[row * 37] + 37, 0.0), 1.0, 1e-14);
}

TEST(SoftmaxOracle, KnownByHand) {
  OracleCase c("softmax", {{"rows", 2}, {"cols", 2}}, 1);
  c.tensor("x") = {0.0f, 0.0f, 1000.0f, 1000.0f + 1.0f};  // the second row overflows without the maximum
  c.judge();
  EXPECT_DOUBLE_EQ(c.expected[0], 0.5);
  EXPECT_NEAR(c.expected[2], 1 / (1 + std::exp(1.0)), 1e-15);
  EXPECT_NEAR(c.expected[3], std::exp(1.0) / (1 + std::exp(1.0)), 1e-15);
}

TEST(SgemmOracle, TwoByTwoByHand) {
  OracleCase c("sgemm", {{"m", 2}, {"k", 2}, {"n", 2}}, 1);
  c.tensor("a") = {1, 2, 3, 4};
  c.tensor("b") = {5, 6, 7, 8};
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{19, 22, 43, 50}));
  EXPECT_DOUBLE_EQ(c.scale[0], std::sqrt(5.0 * 5 + 14 * 14));
}

TEST(SgemmOracle, ShapesAreNotConfused) {
  OracleCase c("sgemm", {{"m", 2}, {"k", 1}, {"n", 3}}, 1);
  c.tensor("a") = {1, 10};
  c.tensor("b") = {1, 2, 3};
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{1, 2, 3, 10, 20, 30}));
}

TEST(VectorAddOracle, IsExactWhereAFloatIsNot) {
  OracleCase c("vector_add", {{"n", 2}}, 1);
  c.tensor("x") = {16777216.0f, 0.5f};
  c.tensor("y") = {1.0f, -0.25f};
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{16777217.0, 0.25}));
}

TEST(RgbToGrayOracle, WeightsRoundingAndOrderOfTheChannels) {
  OracleCase c("rgb_to_gray", {{"h", 2}, {"w", 3}}, 1);
  c.tensor("rgb") = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 1, 1, 0};
  c.judge();  // 77 * 255 / 256 = 76.7, 150: 149.4, 29: 28.9; 227 / 256 rounds to 1
  EXPECT_EQ(c.expected, (std::vector<double>{77, 149, 29, 255, 0, 1}));
}

TEST(TransposeOracle, RowsBecomeColumns) {
  OracleCase c("transpose", {{"rows", 2}, {"cols", 3}}, 1);
  c.tensor("x") = {1, 2, 3, 4, 5, 6};
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(SumOracle, CancelsWhatAFloatWouldLose) {
  OracleCase c("sum", {{"n", 4}}, 1);
  c.tensor("x") = {1e8f, 1.0f, -1e8f, 0.5f};
  c.judge();
  EXPECT_EQ(c.expected, std::vector<double>{1.5});
  EXPECT_DOUBLE_EQ(c.scale[0], std::sqrt(2e16 + 1.25));
}

TEST(ScanOracle, EachElementIsIncludedInItsOwnSum) {
  OracleCase c("scan", {{"n", 4}}, 1);
  c.tensor("x") = {3, -4, 0.5f, 1};
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{3, -1, -0.5, 0.5}));
  EXPECT_DOUBLE_EQ(c.scale[1], 5);
}

TEST(HistogramOracle, CountsEveryByteOnce) {
  OracleCase c("histogram", {{"n", 5}}, 1);
  c.tensor("data") = {0, 255, 7, 255, 255};
  c.judge();
  EXPECT_EQ(c.expected[0], 1);
  EXPECT_EQ(c.expected[7], 1);
  EXPECT_EQ(c.expected[255], 3);
  EXPECT_EQ(std::accumulate(c.expected.begin(), c.expected.end(), 0.0), 5.0);
}

TEST(GemmBf16Oracle, ReadsBf16AndDoesNotRoundTheResult) {
  OracleCase c("gemm_bf16", {{"m", 1}, {"k", 8}, {"n", 8}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("a") = {256, 1, 0, 0, 0, 0, 0, 0};
  c.tensor("b")[0] = 1, c.tensor("b")[3] = -0.5f, c.tensor("b")[8] = 1;  // rows of b: eight columns
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{257, 0, 0, -128, 0, 0, 0, 0}));  // 257 needs nine bits
  EXPECT_DOUBLE_EQ(c.scale[0], std::sqrt(256.0 * 256 + 1));
}

TEST(GemmFp8Oracle, MultipliesByBothScalesAndDoesNotRoundTheResult) {
  OracleCase c("gemm_fp8", {{"m", 2}, {"k", 16}, {"n", 8}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("sa")[0] = 3, c.tensor("sb")[0] = 0.5f;
  auto &a = c.tensor("a"), &b = c.tensor("b");
  a[16] = 448, a[17] = -1.5f;                 // row 1
  b[5 * 16] = 0x1p-9f, b[5 * 16 + 1] = 0.5f;  // column 5
  c.judge();
  EXPECT_EQ(c.expected[5], 0);
  EXPECT_EQ(c.expected[8 + 5], (448.0 * 0x1p-9 - 1.5 * 0.5) * 1.5);
  EXPECT_DOUBLE_EQ(c.scale[8 + 5], std::hypot(448.0 * 0x1p-9, 1.5 * 0.5) * 1.5);
}

TEST(GemmBiasGeluOracle, AddsTheBiasOfTheColumnAndTakesTheTanhForm) {
  OracleCase c("gemm_bias_gelu", {{"m", 2}, {"k", 8}, {"n", 8}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("a")[0] = 1, c.tensor("a")[1] = 2, c.tensor("a")[8] = -32;
  c.tensor("b")[0] = 1, c.tensor("b")[3] = -1, c.tensor("b")[8] = 1;  // rows of b: eight columns
  std::fill(c.tensor("bias").begin(), c.tensor("bias").end(), 0.0f);
  c.tensor("bias")[0] = -0.5f, c.tensor("bias")[5] = 1;
  c.judge();
  const auto gelu = [](double v) {
    return 0.5 * v * (1 + std::tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
  };
  EXPECT_NEAR(c.expected[0], gelu(2.5), 1e-15);
  EXPECT_NEAR(c.expected[3], gelu(-1), 1e-15);
  EXPECT_NEAR(c.expected[5], gelu(1), 1e-15);
  EXPECT_EQ(c.expected[8], 0);    // gelu(-32.5)
  EXPECT_EQ(c.expected[11], 32);  // not unlike the identity
  EXPECT_DOUBLE_EQ(c.scale[0], std::sqrt(5.0) + 0.5);
}

TEST(GemmSwigluOracle, TheFirstMatrixIsTheGate) {
  OracleCase c("gemm_swiglu", {{"m", 1}, {"k", 8}, {"n", 8}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("x")[0] = 1, c.tensor("x")[1] = 2;
  c.tensor("wg")[0] = 1, c.tensor("wg")[8] = 1, c.tensor("wu")[0] = -1, c.tensor("wu")[8] = 4;
  c.tensor("wg")[2] = -1000, c.tensor("wu")[2] = 5;
  c.tensor("wg")[4] = 1000, c.tensor("wu")[4] = 5;
  c.judge();
  const double sigmoid = 1 / (1 + std::exp(-3.0));
  EXPECT_NEAR(c.expected[0], 3 * sigmoid * 7, 1e-14);
  EXPECT_EQ(c.expected[1], 0);
  EXPECT_EQ(c.expected[2], 0);
  EXPECT_EQ(c.expected[4], 5000);
  EXPECT_NEAR(c.scale[0],
              sigmoid * (1 + 3 * (1 - sigmoid)) * 7 * std::sqrt(5.0) + 3 * sigmoid * std::sqrt(65.0) + 2.1,
              1e-13);
}

TEST(GemmFp8BlockOracle, AScaleHoldsForItsBlockAndRestsHaveTheirOwn) {
  OracleCase c("gemm_fp8_block", {{"m", 2}, {"k", 144}, {"n", 136}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("sfa") = {2, 3, 5, 7};      // two rows of two
  c.tensor("sfb") = {11, 13, 17, 19};  // columns 0 to 127, and the rest
  auto &a = c.tensor("a"), &b = c.tensor("b");
  a[144 + 127] = 1.5f, a[144 + 128] = -448;  // row 1, on both sides of the border
  b[127] = 0.5f, b[128] = 1;                 // column 0
  b[130 * 144 + 127] = 1, b[130 * 144 + 128] = 0x1p-9f;
  c.judge();
  EXPECT_EQ(c.expected[0], 0);
  EXPECT_EQ(c.expected[136], 1.5 * 5 * 0.5 * 11 - 448.0 * 7 * 13);
  EXPECT_EQ(c.expected[136 + 130], 1.5 * 5 * 17 - 448.0 * 0x1p-9 * 7 * 19);
  EXPECT_DOUBLE_EQ(c.scale[136], std::hypot(1.5 * 5 * 0.5 * 11, 448.0 * 7 * 13));
}

TEST(MoeGemmContiguousOracle, ATileOfRowsHasItsExpertAndEmptyOnesAreSkipped) {
  OracleCase c("moe_gemm_contiguous", {{"m", 256}, {"k", 144}, {"experts", 3}, {"n", 136}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("tile_offsets") = {0, 1, 1, 2};  // the second expert has no rows
  auto &a = c.tensor("a"), &b = c.tensor("b"), &sfa = c.tensor("sfa"), &sfb = c.tensor("sfb");
  a[127 * 144 + 127] = 1.5f,
                a[128 * 144 + 128] = 2;  // the last row of the first expert, the first of the third
  sfa[127 * 2] = 3, sfa[128 * 2 + 1] = 5;
  for (int expert = 0; expert < 3; ++expert) {
    b[(expert * 136 + 130) * 144 + 127] = b[(expert * 136 + 130) * 144 + 128] =
        static_cast<float>(1 << expert);
    for (int i = 0; i < 4; ++i) sfb[expert * 4 + i] = static_cast<float>(7 + expert * 4 + i);
  }
  c.judge();
  EXPECT_EQ(c.expected[127 * 136 + 130],
            1.5 * 3 * 1 * 9);  // expert 0, columns from 128 on, the first block of k
  EXPECT_EQ(c.expected[128 * 136 + 130], 2.0 * 5 * 4 * (7 + 8 + 3));  // expert 2, the second block of k
  EXPECT_EQ(c.expected[126 * 136 + 130], 0);
}

TEST(IndexerLogitsOracle, HeadsAreCutOffWeightedAndScaledAndInfiniteOutsideOfTheWindow) {
  OracleCase c("indexer_logits", {{"s", 3}, {"n", 5}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  auto &q = c.tensor("q"), &k = c.tensor("k"), &w = c.tensor("w");
  q[(64 + 2) * 128 + 127] = 3, q[(64 + 63) * 128 + 127] = -3;  // two heads of query 1, of either sign
  k[1 * 128 + 127] = 0.5f, k[2 * 128 + 127] = -0.5f;
  w[64 + 2] = 7, w[64 + 63] = 11;
  c.tensor("sk") = {1, 2, 3, 4, 5};
  c.tensor("starts") = {0, 1, 3};
  c.tensor("ends") = {0, 4, 3};  // queries 0 and 2 see nothing
  c.judge();
  for (const std::size_t outside : {0, 4, 5, 9, 10, 13}) {
    EXPECT_EQ(c.expected[outside], -INFINITY) << outside;
    EXPECT_EQ(c.scale[outside], 0) << outside;
  }
  EXPECT_EQ(c.expected[5 + 1], 2 * 7 * 1.5);
  EXPECT_EQ(c.expected[5 + 2], 3 * 11 * 1.5);
  EXPECT_EQ(c.expected[5 + 3], 0);
  EXPECT_DOUBLE_EQ(c.scale[5 + 1], 2 * std::hypot(7 * 1.5, 11 * 1.5));  // the head that is cut off counts
}

TEST(MoeGemmMaskedOracle, AGroupHasItsOwnWeightsAndRowsBeyondItsNumberAreZero) {
  OracleCase c("moe_gemm_masked", {{"groups", 2}, {"max_m", 3}, {"k", 144}, {"n", 136}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("masked_m") = {0, 2};
  auto &a = c.tensor("a"), &b = c.tensor("b"), &sfa = c.tensor("sfa"), &sfb = c.tensor("sfb");
  a[4 * 144 + 128] = a[5 * 144 + 128] = 1.5f;  // the second row of the second group, and one that is not used
  sfa[4 * 2 + 1] = sfa[5 * 2 + 1] = 3;
  b[(136 + 130) * 144 + 128] = 2;
  for (int i = 0; i < 8; ++i) sfb[i] = static_cast<float>(7 + i);
  c.judge();
  EXPECT_EQ(c.expected[4 * 136 + 130], 1.5 * 3 * 2 * (7 + 7));  // columns from 128 on, the second block of k
  EXPECT_EQ(c.expected[3 * 136 + 130], 0);
  EXPECT_EQ(c.expected[5 * 136 + 130], 0);
}

TEST(MoePermuteOracle, SortsStablyDropsSlotsAndFillsUp) {
  OracleCase c("moe_permute", {{"t", 3}, {"h", 8}, {"k", 2}, {"experts", 4}}, 1);
  c.tensor("expert") = {2, 0, 2, -1, 0, 2};
  c.tensor("weight") = {1, 2, 3, 4, 5, 6};
  auto& x = c.tensor("x");
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  c.judge("place");
  EXPECT_EQ(c.expected, (std::vector<double>{128, 0, 129, -1, 1, 130}));
  c.judge("counts");
  EXPECT_EQ(c.expected, (std::vector<double>{2, 0, 3, 0}));
  c.judge("tile_offsets");
  EXPECT_EQ(c.expected, (std::vector<double>{0, 1, 1, 2, 2}));
  c.judge("row_weight");
  EXPECT_EQ(c.expected[1], 5);
  EXPECT_EQ(c.expected[130], 6);
  EXPECT_EQ(c.expected[2], 0);
  c.judge("a");
  EXPECT_EQ(c.expected[8 + 3], 16 + 3);       // row 1: token 2
  EXPECT_EQ(c.expected[129 * 8 + 7], 8 + 7);  // row 129: token 1
  EXPECT_EQ(c.expected[2 * 8 + 1], 0);
}

TEST(W4a16Oracle, SignedCodesAndAScaleForEachGroup) {
  OracleCase c("w4a16_gemm", {{"m", 1}, {"k", 256}, {"n", 2}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  auto& w = c.tensor("w");
  w[0] = -8, w[1] = 7;
  w[128] = 1;         // the second group of the first row
  w[256 + 255] = -6;  // the last of the second row
  c.tensor("scales") = {0.5f, 2, 0.25f, 4};
  auto& x = c.tensor("x");
  x[0] = 1, x[1] = 10, x[128] = 100, x[255] = 1000;
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{(-8 + 70) * 0.5 + 200, -6 * 1000 * 4.0}));
  EXPECT_DOUBLE_EQ(c.scale[0], std::sqrt(4.0 * 4 + 35 * 35 + 200 * 200));
}

TEST(TopkRowsOracle, TiesGoToTheLowerIndexAndShortRowsArePadded) {
  OracleCase c("topk_rows", {{"rows", 3}, {"n", 5}, {"k", 3}}, 1);
  c.tensor("x") = {1, 2, 1, 2, 1, 5, -1, 7, 9, 9, -0.0f, 0.0f, -3, -2, 0.0f};
  c.tensor("length") = {100, 2, 5};
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{0, 1, 3, 0, 1, -1, 0, 1, 4}));  // -0 equals 0
}

TEST(TopPSampleOracle, KeepsAPrefixAndDrawsInTheOrderOfTheTokens) {
  OracleCase c("top_p_sample", {{"b", 6}, {"v", 4}}, 1);
  c.tensor("probs").clear();
  for (int row = 0; row < 6; ++row)
    for (const float p : {0.125f, 0.5f, 0.25f, 0.125f}) c.tensor("probs").push_back(p);
  c.tensor("top_p") = {0.5f, 0.75f, 0.875f, 1, 1, 0};
  c.tensor("top_k") = {9, 9, 9, 9, 1, 9};
  c.tensor("u") = {0.99f, 0.7f, 0.1f, 0.99f, 0.99f, 0.5f};
  c.judge();
  // {1}; {1, 2}: 0.7 of 0.75 is behind 0.5; {1, 2, 0}: 0.0875 is in token 0; all; top_k 1; at least one
  EXPECT_EQ(c.expected, (std::vector<double>{1, 2, 0, 3, 1, 1}));
}

TEST(SpecAcceptOracle, AcceptsAPrefixThenDrawsFromTheResidual) {
  OracleCase c("spec_accept", {{"b", 3}, {"gamma", 2}, {"v", 6}}, 1);
  const std::vector<float> even = {0.5f, 0.5f, 0, 0, 0, 0}, first = {1, 0, 0, 0, 0, 0};
  const auto rows = [](std::initializer_list<std::vector<float>> list) {
    std::vector<float> all;
    for (const auto& row : list) all.insert(all.end(), row.begin(), row.end());
    return all;
  };
  c.tensor("draft") = {0, 1, 0, 0, 1, 0};
  c.tensor("q") = rows({first, even, first, first, even, even});
  c.tensor("p") = rows({even, first, even, first, first, even, even, even, even});
  c.tensor("u") = {0.25f, 0, 0, 0.5f, 0, 0.75f, 0.9f, 0.9f, 0.75f};
  c.judge();
  EXPECT_EQ(
      c.expected,
      (std::vector<double>{0, 0, -1,  // 0.25 < 0.5; then p of token 1 is 0, and the residual is token 0 alone
                           0, 0, 1,   // all accepted: 0.75 of the last row
                           1, 0, 1}))  // 0.9 * 0.5 < 0.5, twice
      << "the second sequence accepts 0.5 * 1 < 1";
}

/// The theorem behind speculative decoding: whatever q is, the token that comes out is distributed as p says.
/// A million draws, by the oracle's own arithmetic; the bound is the 99.99 % point of chi-square with 7
/// degrees.
TEST(SpecAcceptOracle, FirstTokenIsDistributedAsPSays) {
  constexpr int kDraws = 125000, kRounds = 8, kTokens = 8;
  const float p[kTokens] = {0.25f, 0.125f, 0.125f, 0.0625f, 0.1875f, 0.125f, 0.0625f, 0.0625f};
  const float q[kTokens] = {0.0625f, 0.25f, 0.0625f, 0.125f, 0.125f, 0.25f, 0.0625f, 0.0625f};
  std::vector<double> counts(kTokens, 0.0);
  std::mt19937 random(7);
  std::discrete_distribution<int> draft(std::begin(q), std::end(q));
  const auto uniform = [&] { return static_cast<float>(random() >> 8) * 0x1p-24f; };
  OracleCase c("spec_accept", {{"b", kDraws}, {"gamma", 1}, {"v", kTokens}}, 1);
  for (int i = 0; i < kDraws; ++i)
    for (int j = 0; j < kTokens; ++j) {
      c.tensor("q")[i * kTokens + j] = q[j];
      c.tensor("p")[(2 * i) * kTokens + j] = c.tensor("p")[(2 * i + 1) * kTokens + j] = p[j];
    }
  for (int round = 0; round < kRounds; ++round) {
    for (float& token : c.tensor("draft")) token = static_cast<float>(draft(random));
    for (float& u : c.tensor("u")) u = uniform();
    c.judge();
    for (int i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(c.expected[2 * i])];
  }
  double chi_square = 0;
  for (int j = 0; j < kTokens; ++j) {
    const double expected = static_cast<double>(p[j]) * kDraws * kRounds;
    chi_square += (counts[j] - expected) * (counts[j] - expected) / expected;
  }
  EXPECT_LT(chi_square, 29.9);
  EXPECT_GT(chi_square, 0.1) << "too even to be random";
}

/// h 1, n 2, d 64 with scores 1 and 0 for either query, and values 1 and 5 in the first column.
OracleCase two_keys(const char* id) {
  OracleCase c(id, {{"h", 1}, {"n", 2}, {"d", 64}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("q")[0] = c.tensor("q")[64] = 8;  // divided by the root of 64
  c.tensor("k")[0] = 1;
  c.tensor("v")[0] = 1, c.tensor("v")[64] = 5;
  c.judge();
  return c;
}

TEST(AttentionOracle, TwoKeysByHand) {
  const OracleCase c = two_keys("attention");
  const double first = std::exp(1.0) / (std::exp(1.0) + 1);
  for (const int query : {0, 1}) {
    EXPECT_NEAR(c.expected[query * 64], first + 5 * (1 - first), 1e-14);
    EXPECT_NEAR(c.scale[query * 64], std::hypot(first, 5 * (1 - first), 0x1p-14),
                1e-14);  // the smallest normal half, too
    EXPECT_EQ(c.expected[query * 64 + 1], 0);
  }
}

TEST(CausalAttentionOracle, TheFirstQuerySeesOnlyTheFirstKey) {
  const OracleCase c = two_keys("causal_attention"), full = two_keys("attention");
  EXPECT_EQ(c.expected[0], 1);
  EXPECT_EQ(c.expected[64], full.expected[64]);
}

TEST(VarlenAttentionOracle, SequencesDoNotSeeEachOtherAndHeadsShareKeys) {
  // Four heads on two heads of keys; three sequences, of which the second is empty: tokens 0, then 1 and 2.
  OracleCase c("varlen_attention", {{"total", 3}, {"hq", 4}, {"d", 64}, {"hk", 2}, {"segments", 3}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("cu_seqlens") = {0, 1, 1, 3};
  for (int row = 0; row < 6; ++row) c.tensor("v")[row * 64] = static_cast<float>(1 << row);  // token, head
  c.judge();
  const auto first = [&](int token, int head) { return c.expected[(token * 4 + head) * 64]; };
  EXPECT_EQ(first(0, 1), 1);
  EXPECT_EQ(first(0, 2), 2);
  EXPECT_EQ(first(1, 0), 4);  // not token 0's
  EXPECT_EQ(first(1, 3), 8);
  EXPECT_EQ(first(2, 1), (4 + 16) / 2.0);
  EXPECT_EQ(first(2, 2), (8 + 32) / 2.0);
  EXPECT_DOUBLE_EQ(c.scale[(2 * 4 + 1) * 64], std::hypot(2.0, 8.0));
}

/// Two sequences of two pages of two tokens: none, and three, in pages 3 and 0. Two heads of q for one of k.
TEST(PagedDecodeOracle, FollowsTheTableAndEndsWithTheLastToken) {
  OracleCase c("paged_decode", {{"b", 2}, {"hq", 2}, {"d", 64}, {"max_pages", 2}, {"page", 2}, {"hk", 1}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("page_table") = {1, 2, 3, 0};
  c.tensor("lengths") = {0, 3};
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"k_cache", "v_cache"})
    for (const int slot : {1, 2, 3, 4, 5}) std::fill_n(c.tensor(name).begin() + slot * 64, 64, nan);
  c.tensor("q")[3 * 64] = 8;        // the second head; divided by the root of 64
  c.tensor("k_cache")[7 * 64] = 1;  // its second token
  c.tensor("v_cache")[6 * 64] = 1, c.tensor("v_cache")[7 * 64] = 5;  // the first and the second
  c.tensor("v_cache")[0] = 9;                                        // the third
  c.judge();
  EXPECT_EQ(c.expected[0], 0);
  EXPECT_EQ(c.expected[64], 0);
  EXPECT_NEAR(c.expected[2 * 64], 5, 1e-14) << "no score: the mean";
  EXPECT_NEAR(c.expected[3 * 64], (10 + 5 * std::exp(1.0)) / (2 + std::exp(1.0)), 1e-14);
  EXPECT_NEAR(c.scale[2 * 64], std::sqrt(1 + 25 + 81) / 3, 1e-14);
}

TEST(LinearCrossEntropyOracle, KnownByHand) {
  OracleCase c("linear_cross_entropy", {{"t", 3}, {"h", 8}, {"v", 3}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("x")[0] = 1, c.tensor("w")[8] = 2;  // the second class of the first row
  c.tensor("target") = {1, -100, 2};
  c.judge();
  EXPECT_NEAR(c.expected[0], std::log(2 + std::exp(2.0)) - 2, 1e-14);
  EXPECT_EQ(c.expected[1], 0) << "an ignored row";
  EXPECT_NEAR(c.expected[2], std::log(3.0), 1e-14);
}

TEST(CrossEntropyGradOracle, KnownByHand) {
  OracleCase c("cross_entropy_grad", {{"rows", 2}, {"vocab", 3}}, 1);
  c.tensor("logits") = {0, 2, 0, 0, 0, 0};
  c.tensor("target") = {1, -100};
  c.judge("logits");
  const double sum = 2 + std::exp(2.0);
  EXPECT_NEAR(c.expected[0], 1 / sum, 1e-14);
  EXPECT_NEAR(c.expected[1], std::exp(2.0) / sum - 1, 1e-14) << "the target";
  EXPECT_EQ(c.expected[3], 0) << "an ignored row";
  c.judge("loss");
  EXPECT_NEAR(c.expected[0], std::log(sum) - 2, 1e-14);
  EXPECT_EQ(c.expected[1], 0) << "an ignored row";
}

TEST(Mamba2ScanOracle, KnownByHand) {
  OracleCase c("mamba2_scan", {{"b", 1}, {"l", 3}, {"h", 1}, {"g", 1}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("a") = {-2};
  c.tensor("dt") = {0.5f, 0.25f, 0.125f};
  c.tensor("x")[1] = 4;                                            // the first step writes into channel 1
  c.tensor("into")[5] = 1;                                         // at place 5
  c.tensor("out_of")[5] = 1, c.tensor("out_of")[2 * 128 + 5] = 3;  // the first and the last step read there
  c.judge();
  EXPECT_NEAR(c.expected[1], 2, 1e-14) << "a step reads what it has written";
  EXPECT_EQ(c.expected[64 + 1], 0);
  EXPECT_NEAR(c.expected[2 * 64 + 1], 2 * std::exp(-2 * 0.375) * 3, 1e-14);
  EXPECT_EQ(c.expected[2 * 64], 0) << "another channel";
}

/// Two new tokens of one sequence of three tokens, in page 1 of two; the first of them does not see the
/// third.
TEST(MlaDecodeOracle, KeysAreValuesAndTheFirstNewTokenDoesNotSeeTheSecond) {
  OracleCase c("mla_decode", {{"b", 2}, {"s_q", 2}, {"h", 1}, {"max_pages", 1}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("block_table") = {1, 0};
  c.tensor("lengths") = {3, 1};
  auto& cache = c.tensor("cache");
  const auto token = [&](int page, int slot) { return cache.begin() + (page * 64 + slot) * 576; };
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  std::fill(token(1, 3), cache.end(), nan);
  std::fill(token(0, 1), token(1, 0), nan);
  *token(1, 0) = 1, *token(1, 1) = 5, *token(1, 2) = 9;  // the first column
  token(1, 1)[575] = 24;                                 // a column that is no value
  *token(0, 0) = 7;
  c.tensor("q")[575] = 1;  // the first new token of the first sequence
  c.judge();
  EXPECT_NEAR(c.expected[0], (1 + 5 * std::exp(1.0)) / (1 + std::exp(1.0)), 1e-14);
  EXPECT_NEAR(c.expected[512], 5, 1e-14) << "no score: the mean";
  EXPECT_EQ(c.expected[2 * 512], 0) << "a sequence of one token: the first new one sees none";
  EXPECT_EQ(c.expected[3 * 512], 7);
  EXPECT_NEAR(c.scale[512], std::sqrt(1 + 25 + 81) / 3, 1e-14);
}

/// A list of two tokens of 64, the other one empty. Codes 0x38 and 0x3c are 1 and 1.5.
TEST(SparseDecodeOracle, CodesHaveTheirScalesPositionsHaveNoneAndAnEmptyListGivesZeros) {
  OracleCase c("sparse_decode", {{"b", 2}, {"s_q", 1}, {"h", 1}, {"tokens", 64}, {"topk", 3}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("indices") = {7, 2, -1, -1, -1, -1};
  const auto token = [&](int index) { return c.tensor("cache").begin() + index * 656; };
  *(token(7) + 130) = 0x38, *(token(2) + 130) = 0x3c;  // column 130
  *(token(7) + 519) = 0x40, *(token(2) + 519) = 0x3f;  // scales of block 1: 2 and 0.5
  *(token(2) + 655) = 0x3f, *(token(2) + 654) = 0x80;  // column 575: 1
  c.tensor("q")[575] = 24;
  c.judge();
  const double more = std::exp(1.0);  // what the score of the second token weighs
  EXPECT_NEAR(c.expected[130], (2 + more * 0.75) / (1 + more), 1e-14);
  EXPECT_NEAR(c.scale[130], std::hypot(2, more * 0.75) / (1 + more), 1e-14);
  EXPECT_EQ(c.expected[129], 0);
  EXPECT_EQ(c.expected[512 + 130], 0) << "an empty list";
}

TEST(GroupnormOracle, GroupsOfThirtyTwoChannelsAreNormalisedAlone) {
  OracleCase c("matmul_swish_sum_groupnorm", {{"rows", 2}, {"k", 1}, {"channels", 64}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("x") = {1, 0};
  std::fill(c.tensor("gamma").begin(), c.tensor("gamma").end(), 2.0f);
  for (int j = 0; j < 16; ++j)
    c.tensor("weight")[j] = 1;  // half of the first group of row 0: swish(1), the rest 0
  c.tensor("beta")[40] = 7;
  c.judge();
  const double half = 1 / (1 + std::exp(-1.0)) / 2,
               z = half / std::sqrt(half * half + static_cast<double>(1e-5f));
  EXPECT_NEAR(c.expected[0], 2 * z, 1e-14);
  EXPECT_NEAR(c.expected[31], -2 * z, 1e-14);
  EXPECT_EQ(c.expected[32], 0);  // the second group is constant
  EXPECT_EQ(c.expected[40], 7);
  EXPECT_EQ(c.expected[64], 0);  // and so is row 1
}

TEST(ConvOracle, OnesCountTheTapsInsideTheImage) {
  OracleCase c("conv_bias_scale_relu", {{"n", 1}, {"c_in", 2}, {"h", 3}, {"w", 3}, {"c_out", 1}}, 1);
  c.for_each_input([](float) { return 1.0f; });
  c.tensor("bias")[0] = -8.0f;
  c.tensor("scale")[0] = 0.5f;
  c.judge();  // taps x 2 channels: corner 8, edge 12, centre 18
  EXPECT_EQ(c.expected, (std::vector<double>{0, 2, 0, 2, 5, 2, 0, 2, 0}));
}

TEST(ConvOracle, IsACorrelationAndClampsAfterTheScale) {
  OracleCase c("conv_bias_scale_relu", {{"n", 1}, {"c_in", 1}, {"h", 1}, {"w", 3}, {"c_out", 2}}, 1);
  c.tensor("x") = {1, 2, 4};
  c.tensor("weight") = {
      0, 0, 0, 100, 10, 1, 0, 0, 0,  // left neighbour x 100, itself x 10, right neighbour x 1
      0, 0, 0, 0,   -1, 0, 0, 0, 0};
  c.tensor("bias") = {0, -1};
  c.tensor("scale") = {1, -2};
  c.judge();
  EXPECT_EQ(c.expected, (std::vector<double>{12, 124, 240, 4, 6, 10}));
}

TEST(StridedConvOracle, OnesCountTheTapsInsideTheImage) {
  for (const char* id : {"conv2d", "conv2d_loose"}) {
    OracleCase c(id, {{"n", 1}, {"c_in", 2}, {"h", 11}, {"w", 15}, {"c_out", 1}}, 1);
    c.for_each_input([](float) { return 1.0f; });
    c.tensor("bias")[0] = 0.5f;
    c.judge();  // rows of the image under the filter: 9 and 9; columns: 9, 11, 9
    EXPECT_EQ(c.expected, (std::vector<double>{162.5, 198.5, 162.5, 162.5, 198.5, 162.5})) << id;
  }
}

TEST(StridedConvOracle, ThePoolTakesTheLargestOfNineAndClampsAtZero) {
  for (const char* id : {"conv2d_relu_maxpool", "conv2d_relu_maxpool_loose"}) {
    OracleCase c(id, {{"n", 1}, {"c_in", 1}, {"h", 15}, {"w", 15}, {"c_out", 2}}, 1);
    c.for_each_input([](float) { return 1.0f; });
    c.tensor("bias") = {0.5f, -200.0f};
    c.judge();  // the pixel in the middle sees 11 x 11 ones
    EXPECT_EQ(c.expected, (std::vector<double>{121.5, 0})) << id;
  }
}

TEST(LayernormOracle, AWholeSampleHasMeanBetaAndDeviationGamma) {
  OracleCase c("layernorm", {{"n", 2}, {"c", 3}, {"h", 5}, {"w", 8}}, 1);
  std::fill(c.tensor("gamma").begin(), c.tensor("gamma").end(), 3.0f);
  std::fill(c.tensor("beta").begin(), c.tensor("beta").end(), 7.0f);
  c.judge();
  for (std::size_t sample = 0; sample < 2; ++sample) {
    double sum = 0, squares = 0;
    for (std::size_t j = 0; j < 120; ++j) sum += c.expected[sample * 120 + j];
    for (std::size_t j = 0; j < 120; ++j)
      squares += (c.expected[sample * 120 + j] - 7) * (c.expected[sample * 120 + j] - 7);
    EXPECT_NEAR(sum / 120, 7, 1e-12);
    EXPECT_NEAR(std::sqrt(squares / 120), 3, 1e-4);
  }
}

TEST(LayernormOracle, MeanIsBetaAndDeviationIsGamma) {
  OracleCase c("bias_gelu_layernorm", {{"rows", 3}, {"cols", 200}}, 1);
  std::fill(c.tensor("gamma").begin(), c.tensor("gamma").end(), 3.0f);
  std::fill(c.tensor("beta").begin(), c.tensor("beta").end(), 2.0f);
  c.judge();
  for (int row = 0; row < 3; ++row) {
    const double* y = &c.expected[row * 200];
    const double mean = std::accumulate(y, y + 200, 0.0) / 200;
    double variance = 0;
    for (int j = 0; j < 200; ++j) variance += (y[j] - mean) * (y[j] - mean) / 200;
    EXPECT_NEAR(mean, 2, 1e-12);
    EXPECT_NEAR(std::sqrt(variance), 3, 1e-4);  // eps takes a little
  }
}

TEST(LayernormOracle, KnownByHand) {
  OracleCase c("bias_gelu_layernorm", {{"rows", 1}, {"cols", 2}}, 1);
  c.tensor("x") = {0.5f, -1.0f};
  c.tensor("bias") = {0.5f, 1.0f};  // gelu(1) = 0.8413447460685429, gelu(0) = 0
  c.tensor("residual") = {0.0f, 0.0f};
  c.tensor("gamma") = {2.0f, 1.0f};
  c.tensor("beta") = {0.0f, 10.0f};
  c.judge();
  const double half = 0.8413447460685429 / 2;
  const double z = half / std::sqrt(half * half + static_cast<double>(1e-5f));
  EXPECT_NEAR(c.expected[0], 2 * z, 1e-14);
  EXPECT_NEAR(c.expected[1], 10 - z, 1e-14);
}

TEST(LayernormOracle, OneColumnIsBeta) {
  OracleCase c("bias_gelu_layernorm", {{"rows", 4}, {"cols", 1}}, 1);
  for (double value : c.expected) EXPECT_EQ(value, c.tensor("beta")[0]);
}

TEST(RmsnormOracle, KnownByHand) {
  OracleCase c("rmsnorm", {{"rows", 2}, {"cols", 2}}, 1);
  c.tensor("x") = {3, 4, 0, 0};
  c.tensor("w") = {1, -2};
  c.judge();
  const double rms = std::sqrt(12.5 + static_cast<double>(1e-6f));
  EXPECT_NEAR(c.expected[0], 3 / rms, 1e-15);
  EXPECT_NEAR(c.expected[1], -8 / rms, 1e-15);
  EXPECT_EQ(c.expected[2], 0);  // a row of zeros stays one
}

TEST(RmsnormResidualOracle, NormalisesTheSum) {
  OracleCase c("rmsnorm_residual", {{"rows", 1}, {"cols", 2}}, 1);
  c.tensor("x") = {1, 1};
  c.tensor("residual") = {2, 3};
  c.tensor("w") = {1, 2};
  c.judge();
  const double rms = std::sqrt(12.5 + static_cast<double>(1e-6f));
  EXPECT_NEAR(c.expected[0], 3 / rms, 1e-15);
  EXPECT_NEAR(c.expected[1], 8 / rms, 1e-15);
}

TEST(RmsnormFp8Oracle, TheLargestOfAGroupIs448AndAStepFollowsTheValue) {
  OracleCase c("rmsnorm_fp8", {{"rows", 1}, {"cols", 256}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  for (float& w : c.tensor("w")) w = 1;
  c.tensor("x")[0] = -8, c.tensor("x")[1] = 4.25f, c.tensor("x")[2] = 0.0078125f;  // the second group: zeros
  c.judge();
  EXPECT_NEAR(c.expected[0], -448, 1e-10);
  EXPECT_DOUBLE_EQ(c.scale[0], 16);  // codes from 256 to 448 lie 32 apart
  EXPECT_NEAR(c.expected[1], 238, 1e-10);
  EXPECT_DOUBLE_EQ(c.scale[1], 8);
  EXPECT_NEAR(c.expected[2], 0.4375, 1e-10);
  EXPECT_DOUBLE_EQ(c.scale[2], 0.015625);
  EXPECT_EQ(c.expected[3], 0);
  EXPECT_DOUBLE_EQ(c.scale[3], 0x1p-10);  // codes below 2^-6 lie 2^-9 apart
  EXPECT_EQ(c.expected[200], 0);
}

TEST(Nvfp4QuantiseOracle, TiesGoToEvenAndAScaleOfZeroGivesZeros) {
  OracleCase c("nvfp4_quantise", {{"rows", 2}, {"cols", 32}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  auto& x = c.tensor("x");
  // Scale 1: the middles of all neighbours, and for two of them a number next to the middle.
  const float block[] = {6, 0.25f, -0.75f, 1.25f, 1.75f, -2.5f, 3.5f, 5, -5, 0.251953125f, 1.7421875f};
  std::copy(std::begin(block), std::end(block), x.begin());
  x[16] = 11.25f, x[17] = 2.34375f;    // scale 1.875; 2.34375 / 1.875 = 1.25: a reciprocal in fp32 misses it
  x[32] = 0x1.8p-8f, x[33] = 0x1p-8f;  // 2^-8 * 1.5 / 6 = 2^-10, a tie between 0 and the least scale
  x[48] = 4096, x[49] = -2000;         // 682.7 saturates at 448, 9.1 at 6
  c.judge();
  const std::vector<double> first(c.expected.begin(), c.expected.begin() + 11);
  EXPECT_EQ(first, (std::vector<double>{6, 0, -1, 1, 2, -2, 4, 4, -4, 0.5, 1.5}));
  EXPECT_EQ(c.expected[16], 6);
  EXPECT_EQ(c.expected[17], 1);
  EXPECT_EQ(c.expected[32], 0);
  EXPECT_EQ(c.expected[33], 0);
  EXPECT_EQ(c.expected[48], 6);
  EXPECT_EQ(c.expected[49], -4);
}

TEST(Nvfp4GemvOracle, EachBlockOf16HasBothOfItsScales) {
  OracleCase c("nvfp4_gemv", {{"l", 2}, {"m", 3}, {"k", 32}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  auto &a = c.tensor("a"), &x = c.tensor("x"), &sfa = c.tensor("sfa"), &sfx = c.tensor("sfx");
  a[0] = 6, x[0] = -0.5f;  // matrix 0, row 0, block 0
  a[17] = 3, x[17] = 4;    // block 1
  sfa[0] = 2, sfx[0] = 448, sfa[1] = 0.5f, sfx[1] = 0x1p-9f;
  a[32 * 5 + 31] = 1.5f, x[32 + 31] = 1, sfa[2 * 5 + 1] = 3, sfx[2 + 1] = 8;  // matrix 1, row 2
  c.judge();
  EXPECT_DOUBLE_EQ(c.expected[0], -3.0 * 2 * 448 + 12 * 0.5 * 0x1p-9);
  EXPECT_DOUBLE_EQ(c.scale[0], std::hypot(3.0 * 2 * 448, 12 * 0.5 * 0x1p-9));
  EXPECT_EQ(c.expected[1], 0);
  EXPECT_DOUBLE_EQ(c.expected[5], 1.5 * 3 * 8);
}

TEST(GemmNvfp4Oracle, ScalesLieInTilesOf128RowsAndFourBlocks) {
  OracleCase c("gemm_nvfp4", {{"m", 130}, {"k", 128}, {"n", 8}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  auto &a = c.tensor("a"), &b = c.tensor("b"), &sfa = c.tensor("sfa"), &sfb = c.tensor("sfb");
  a[33 * 128 + 16] = 6, b[5 * 128 + 16] = -0.5f;  // row 33, column 5, block 1
  sfa[1 * 16 + 1 * 4 + 1] = 3, sfb[5 * 16 + 1] = 7;
  a[129 * 128 + 127] = 1.5f, b[127] = 4;  // row 129, column 0, block 7: the second tiles of both directions
  sfa[(2 + 1) * 512 + 1 * 16 + 3] = 448, sfb[512 + 3] = 0x1p-9f;
  c.judge();
  EXPECT_EQ(c.expected[33 * 8 + 5], -3.0 * 3 * 7);
  EXPECT_EQ(c.scale[33 * 8 + 5], 3.0 * 3 * 7);
  EXPECT_EQ(c.expected[129 * 8], 6.0 * 448 * 0x1p-9);
  EXPECT_EQ(c.expected[129 * 8 + 5], 0);
}

TEST(GemmBf16BlackwellOracle, BothOperandsAreReadAlongK) {
  OracleCase c("gemm_bf16_blackwell", {{"m", 2}, {"k", 8}, {"n", 16}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("a")[8 + 3] = 2, c.tensor("a")[8 + 7] = -1;
  c.tensor("b")[9 * 8 + 3] = 5, c.tensor("b")[9 * 8 + 7] = 4;
  c.judge();
  EXPECT_EQ(c.expected[16 + 9], 6);
  EXPECT_DOUBLE_EQ(c.scale[16 + 9], std::hypot(10.0, 4.0));
  EXPECT_EQ(c.expected[9], 0);
}

TEST(RmsnormQkvOracle, TheWeightsHaveARowForEachColumnOfY) {
  OracleCase c("rmsnorm_qkv", {{"m", 1}, {"k", 8}, {"n", 8}}, 1);
  c.for_each_input([](float) { return 0.0f; });
  c.tensor("x")[0] = 3, c.tensor("x")[1] = 4;
  c.tensor("g")[0] = 1, c.tensor("g")[1] = 2;
  c.tensor("w")[0] = 1, c.tensor("w")[1] = 1, c.tensor("w")[8 * 5] = -1;
  c.judge();
  const double rms = std::sqrt(25.0 / 8 + static_cast<double>(1e-6f));
  EXPECT_NEAR(c.expected[0], 11 / rms, 1e-14);
  EXPECT_NEAR(c.expected[5], -3 / rms, 1e-14);
  EXPECT_NEAR(c.scale[0], std::sqrt(9.0 + 64) / rms, 1e-14);
}

/// Zero weights, but v = a, and o is added to the residual as it is. One head; `rows`: of y.
void only_values(OracleCase& c) {
  for (const char* name : {"w_qkv", "w_o", "w_gu", "w_down"})
    std::fill(c.tensor(name).begin(), c.tensor(name).end(), 0.0f);
  for (std::size_t i = 0; i < 128; ++i)
    c.tensor("w_qkv")[(256 + i) * 128 + i] = c.tensor("w_o")[i * 128 + i] = 1;
}
/// The first norm of a row of x.
std::vector<double> first_norm(OracleCase& c, std::size_t row) {
  std::vector<double> a;
  double squares = 0;
  for (std::size_t i = 0; i < 128; ++i) squares += std::pow(c.tensor("x")[row * 128 + i], 2);
  for (std::size_t i = 0; i < 128; ++i)
    a.push_back(c.tensor("x")[row * 128 + i] / std::sqrt(squares / 128 + static_cast<double>(1e-5f)) *
                c.tensor("g_1")[i]);
  return a;
}

TEST(LayerPrefillOracle, ATokenSeesItselfAndThoseInFront) {
  OracleCase c("layer_prefill", {{"t", 2}, {"hq", 1}, {"hk", 1}, {"f", 8}}, 1);
  only_values(c);
  c.judge();
  const auto first = first_norm(c, 0), second = first_norm(c, 1);
  for (std::size_t i = 0; i < 128; ++i) {
    EXPECT_NEAR(c.expected[i], c.tensor("x")[i] + first[i], 1e-12);
    EXPECT_NEAR(c.expected[128 + i], c.tensor("x")[128 + i] + (first[i] + second[i]) / 2, 1e-12);
  }
}

TEST(LayerDecodeOracle, TheNewTokenComesBehindTheUsedPartOfTheCache) {
  OracleCase c("layer_decode", {{"b", 1}, {"hq", 1}, {"hk", 1}, {"f", 8}, {"n", 2}}, 1);
  c.tensor("lengths")[0] = 1;
  only_values(c);
  std::fill(c.tensor("v_cache").begin() + 128, c.tensor("v_cache").end(), 1e6f);
  c.judge();
  const auto own = first_norm(c, 0);
  for (std::size_t i = 0; i < 128; ++i)
    EXPECT_NEAR(c.expected[i], c.tensor("x")[i] + (own[i] + c.tensor("v_cache")[i]) / 2, 1e-12);
}

TEST(SwigluOracle, TheGatesComeFirst) {
  OracleCase c("swiglu", {{"rows", 2}, {"cols", 2}}, 1);
  c.tensor("x") = {0, 1, 5, 3, -100, 100, 2, 2};
  c.judge();
  EXPECT_EQ(c.expected[0], 0);
  EXPECT_NEAR(c.expected[1], 3 / (1 + std::exp(-1.0)), 1e-15);
  EXPECT_NEAR(c.expected[2], 0, 1e-40);
  EXPECT_EQ(c.expected[3], 200);
}

std::vector<std::string> shipped_ids() {
  std::vector<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator(CAPSTONE_PROBLEMS))
    if (std::filesystem::exists(entry.path() / "problem.yaml")) ids.push_back(entry.path().filename());
  std::sort(ids.begin(), ids.end());
  return ids;
}

class Oracle : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, Oracle, ::testing::ValuesIn(shipped_ids()),
                         [](const auto& info) { return info.param; });

TEST_P(Oracle, AnySubsetInAnyOrderGivesTheSameBits) {
  const Problem problem = load_problem(std::filesystem::path(CAPSTONE_PROBLEMS) / GetParam()).value();
  for (const Sizes& sizes : problem.check) {
    OracleCase c(GetParam(), sizes, 2);
    std::vector<std::int64_t> indices;  // a range in the middle, then every seventh element backwards
    const std::int64_t n = c.output_elements();
    for (std::int64_t i = n / 3; i < std::min(n, n / 3 + 50); ++i) indices.push_back(i);
    for (std::int64_t i = n - 1; i >= 0; i -= 7) indices.push_back(i);
    std::vector<double> value, scale;
    c.evaluate(indices, value, scale);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      EXPECT_EQ(value[i], c.expected[indices[i]]);
      EXPECT_EQ(scale[i], c.scale[indices[i]]);
    }
  }
}

TEST_P(Oracle, ScaleIsPositiveUnlessTheAnswerIsExact) {
  const Problem problem = load_problem(std::filesystem::path(CAPSTONE_PROBLEMS) / GetParam()).value();
  OracleCase c(GetParam(), problem.emulate, 3);
  if (problem.tolerance.atol == 0 && problem.tolerance.rtol == 0) {
    for (const double value : c.expected) EXPECT_EQ(value, static_cast<double>(static_cast<float>(value)));
    return;
  }
  for (std::size_t i = 0; i < c.scale.size(); ++i)
    EXPECT_TRUE(c.scale[i] > 0 || std::isinf(c.expected[i])) << i;  // infinities are exact
}

// Checks must not take long. Each element of the elementwise problems costs an erf or an exp, which add
// little to their FLOPs, hence the lower bound there. CPU time, because the machine may be busy.
TEST(OracleSpeed, IsFastEnoughToJudgeInFull) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers are slow";
#endif
  struct Row {
    const char* id;
    Sizes sizes;
    double least;  ///< [FLOP/s] on one core; a laptop reaches about five times as much
  };
  const Row rows[] = {
      {"sgemm", {{"m", 300}, {"k", 300}, {"n", 300}}, 3e8},
      {"conv_bias_scale_relu", {{"n", 2}, {"c_in", 24}, {"h", 40}, {"w", 40}, {"c_out", 40}}, 3e8},
      {"bias_gelu_layernorm", {{"rows", 300}, {"cols", 4096}}, 1e8},
      {"softmax", {{"rows", 300}, {"cols", 8192}}, 5e7},
  };
  for (const Row& row : rows) {
    OracleCase c(row.id, row.sizes, 4);
    const std::clock_t start = std::clock();
    c.judge();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const double rate = cost_at(c.problem(), row.sizes)->flops / seconds;
    RecordProperty(row.id, static_cast<int>(rate / 1e6));
    EXPECT_GT(rate, row.least) << row.id;
  }
}

}  // namespace
}  // namespace capstone
