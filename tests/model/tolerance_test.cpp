// The tolerance of every shipped problem accepts correct single precision and refuses lower precision.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "harness/correctness/dtype_convert.h"
#include "problems/oracle.h"
#include "tests/model/float_kernels.h"

namespace capstone {
namespace {

using namespace capstone::testing;

/// Rounds to `bits` explicit mantissa bits, to nearest even: 10 is TF32 (and half, within its range), 7 is
/// bfloat16.
float keep_bits(float value, int bits) {
  std::uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  const int drop = 23 - bits;
  word += (1u << (drop - 1)) - 1 + ((word >> drop) & 1u);
  word &= ~((1u << drop) - 1);
  std::memcpy(&value, &word, sizeof word);
  return value;
}

/// The sizes that the judge uses: everything under `check` and `emulate`.
std::vector<Sizes> judged_sizes(const std::string& id) {
  const Problem problem = load_problem(std::filesystem::path(CAPSTONE_PROBLEMS) / id).value();
  std::vector<Sizes> all = problem.check;
  all.push_back(problem.emulate);
  return all;
}

Sizes emulate_sizes(const std::string& id) { return judged_sizes(id).back(); }

class Tolerance : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, Tolerance,
                         ::testing::Values("bias_gelu_layernorm", "conv2d", "conv2d_relu_maxpool",
                                           "conv_bias_scale_relu", "copy", "empty_launch", "fma_peak",
                                           "layernorm", "matmul_swish_sum_groupnorm", "scan", "sgemm",
                                           "softmax", "sum", "transpose", "triad", "vector_add"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Tolerance, PlainFloatStaysBelowAThirdOfTheBound) {
  for (const Sizes& sizes : judged_sizes(GetParam())) {
    OracleCase c(GetParam(), sizes, 1);
    const double badness = c.badness(float_kernel(c));
    EXPECT_LT(badness, 0.34) << to_string(sizes);
  }
}

TEST_P(Tolerance, FloatPassesTheInputBattery) {
  const std::pair<const char*, float (*)(float)> battery[] = {
      {"times ten", [](float v) { return v * 10; }}, {"offset", [](float v) { return v + 5; }},
      {"sign flip", [](float v) { return -v; }},     {"heavy tails", [](float v) { return v * v * v; }},
      {"tiny", [](float v) { return v * 1e-3f; }},
  };
  for (const auto& [name, change] : battery)
    for (const Sizes& sizes : judged_sizes(GetParam())) {
      OracleCase c(GetParam(), sizes, 2);
      c.for_each_input(change);
      c.judge();
      EXPECT_LT(c.badness(float_kernel(c)), 1) << name << " at " << to_string(sizes);
    }
}

TEST_P(Tolerance, OneHotElementPasses) {
  for (const Sizes& sizes : judged_sizes(GetParam())) {
    OracleCase c(GetParam(), sizes, 3);
    c.tensor(c.problem().signature[0].name)[0] = 1e4f;
    c.judge();
    EXPECT_LT(c.badness(float_kernel(c)), 1) << to_string(sizes);
  }
}

TEST_P(Tolerance, RoundedInputsFail) {
  for (int bits : {10, 7}) {
    OracleCase c(GetParam(), emulate_sizes(GetParam()), 4);
    c.for_each_input([bits](float v) { return keep_bits(v, bits); });
    EXPECT_GT(c.badness(float_kernel(c)), 3) << bits << " mantissa bits";
  }
}

TEST_P(Tolerance, RoundedOutputsFail) {
  for (int bits : {10, 7}) {
    OracleCase c(GetParam(), emulate_sizes(GetParam()), 5);
    auto got = float_kernel(c);
    for (float& value : got) value = keep_bits(value, bits);
    EXPECT_GT(c.badness(got), 1) << bits << " mantissa bits";
  }
}

TEST_P(Tolerance, TrivialAnswersFail) {
  OracleCase c(GetParam(), emulate_sizes(GetParam()), 6);
  const std::size_t n = c.expected.size();
  const double mean = std::accumulate(c.expected.begin(), c.expected.end(), 0.0) / static_cast<double>(n);
  const std::pair<const char*, float> constants[] = {
      {"zeros", 0.0f}, {"mean", static_cast<float>(mean)}, {"constant", static_cast<float>(c.expected[0])}};
  for (const auto& [name, value] : constants) {
    if (n == 1 && value != 0) continue;  // one output is its own mean
    EXPECT_GT(c.badness(std::vector<float>(n, value)), 1) << name;
  }
  for (const Parameter& p : c.problem().signature)
    if (!p.is_scalar() && !p.is_written() && !c.problem().because.contains("copy")) {
      std::vector<float> copy(n);
      const auto& input = c.tensor(p.name);
      for (std::size_t i = 0; i < n; ++i) copy[i] = input[i % input.size()];
      EXPECT_GT(c.badness(copy), 1) << "copy of " << p.name;
    }
}

TEST_P(Tolerance, LastHundredthMissingFails) {
  OracleCase c(GetParam(), emulate_sizes(GetParam()), 7);
  auto got = float_kernel(c);
  std::fill(got.end() - static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, got.size() / 100)), got.end(),
            0.0f);
  EXPECT_GT(c.badness(got), 1);
}

TEST_P(Tolerance, NaNFails) {
  OracleCase c(GetParam(), emulate_sizes(GetParam()), 8);
  auto got = float_kernel(c);
  got[got.size() / 2] = std::nanf("");
  EXPECT_GT(c.badness(got), 1);
}

// A single running sum of 4096 products is the worst case of a correct kernel; TF32 must not look like it.
TEST(ToleranceOfLongSums, SeparatesFloatFromTf32) {
  const Sizes sizes = {{"m", 16}, {"k", 4096}, {"n", 64}};
  OracleCase c("sgemm", sizes, 9);
  EXPECT_LT(c.badness(sgemm(c)), 0.34);
  c.for_each_input([](float v) { return keep_bits(v, 10); });
  EXPECT_GT(c.badness(sgemm(c)), 3);
}

TEST(ToleranceOfLongSums, FloatWithAnOffsetPasses) {
  OracleCase c("sgemm", {{"m", 16}, {"k", 4096}, {"n", 64}}, 10);
  c.for_each_input([](float v) { return v + 5; });
  c.judge();
  EXPECT_LT(c.badness(sgemm(c)), 1);
}

TEST(ToleranceOfLongRows, SoftmaxOfThePublishedLengthPasses) {
  OracleCase c("softmax", {{"rows", 4}, {"cols", 65536}}, 11);
  EXPECT_LT(c.badness(softmax(c, exp_plain)), 1);
}

/// A product of bf16 matrices whose sums are rounded to `sum_bits` after each addition, and whose result is
/// rounded to bf16.
std::vector<float> gemm_bf16(OracleCase& c, int sum_bits) {
  const auto m = c.size("m"), k = c.size("k"), n = c.size("n");
  const auto &a = c.tensor("a"), &b = c.tensor("b");
  std::vector<float> out(static_cast<std::size_t>(m * n), 0.0f);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) {
        float& sum = out[i * n + j];
        sum += a[i * k + p] * b[p * n + j];
        if (sum_bits < 23) sum = keep_bits(sum, sum_bits);
      }
  for (float& value : out) value = keep_bits(value, 7);
  return out;
}

TEST(ToleranceOfGemmBf16, SumsInFloatPassAndSumsInBf16Fail) {
  for (const std::int64_t k : {64, 304}) {
    OracleCase c("gemm_bf16", {{"m", 64}, {"k", k}, {"n", 64}}, 16);
    EXPECT_LT(c.badness(gemm_bf16(c, 23)), 0.67)
        << k;  // one rounding to bf16 is at most two thirds of the bound
    EXPECT_GT(c.badness(gemm_bf16(c, 7)), 2) << k;
  }
}

TEST(ToleranceOfGemmBf16, OperandsInFp8Fail) {
  OracleCase c("gemm_bf16", {{"m", 64}, {"k", 128}, {"n", 64}}, 17);
  c.for_each_input([](float v) { return keep_bits(v, 3); });
  EXPECT_GT(c.badness(gemm_bf16(c, 23)), 3);
}

/// A product with sums rounded to `sum_bits` after each addition, in float.
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m,
                           std::int64_t k, std::int64_t n, int sum_bits) {
  std::vector<float> out(static_cast<std::size_t>(m * n), 0.0f);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) {
        float& sum = out[i * n + j];
        sum += a[i * k + p] * b[p * n + j];
        if (sum_bits < 23) sum = keep_bits(sum, sum_bits);
      }
  return out;
}

/// A product with bias and GELU; the argument of GELU is rounded to bf16 if two kernels do it.
std::vector<float> gemm_bias_gelu(OracleCase& c, int sum_bits, bool two_kernels) {
  const auto m = c.size("m"), k = c.size("k"), n = c.size("n");
  auto out = product(c.tensor("a"), c.tensor("b"), m, k, n, sum_bits);
  for (std::int64_t i = 0; i < m * n; ++i) {
    float v = two_kernels ? keep_bits(out[i], 7) : out[i];
    v += c.tensor("bias")[i % n];
    out[i] = keep_bits(0.5f * v * (1 + std::tanh(0.79788456f * (v + 0.044715f * v * v * v))), 7);
  }
  return out;
}

TEST(ToleranceOfGemmBiasGelu, OneOrTwoKernelsPassAndSumsInBf16OrOperandsInFp8Fail) {
  OracleCase c("gemm_bias_gelu", {{"m", 64}, {"k", 304}, {"n", 64}}, 26);
  EXPECT_LT(c.badness(gemm_bias_gelu(c, 23, false)), 0.5);
  EXPECT_LT(c.badness(gemm_bias_gelu(c, 23, true)), 0.8);
  EXPECT_GT(c.badness(gemm_bias_gelu(c, 7, false)), 2);
  c.for_each_input([](float v) { return keep_bits(v, 3); });
  EXPECT_GT(c.badness(gemm_bias_gelu(c, 23, false)), 3);
}

/// Two products and SwiGLU; three kernels round gate, up, and SiLU.
std::vector<float> gemm_swiglu(OracleCase& c, int sum_bits, bool three_kernels) {
  const auto m = c.size("m"), k = c.size("k"), n = c.size("n");
  auto gate = product(c.tensor("x"), c.tensor("wg"), m, k, n, sum_bits);
  auto up = product(c.tensor("x"), c.tensor("wu"), m, k, n, sum_bits);
  const auto rounded = [&](float v) { return three_kernels ? keep_bits(v, 7) : v; };
  for (std::int64_t i = 0; i < m * n; ++i) {
    const float g = rounded(gate[i]);
    gate[i] = keep_bits(rounded(g / (1 + std::exp(-g))) * rounded(up[i]), 7);
  }
  return gate;
}

TEST(ToleranceOfGemmSwiglu, OneOrThreeKernelsPassAndSumsInBf16OrOperandsInFp8Fail) {
  OracleCase c("gemm_swiglu", {{"m", 64}, {"k", 304}, {"n", 64}}, 27);
  EXPECT_LT(c.badness(gemm_swiglu(c, 23, false)), 0.5);
  EXPECT_LT(c.badness(gemm_swiglu(c, 23, true)), 0.9);
  EXPECT_GT(c.badness(gemm_swiglu(c, 7, false)), 2);
  c.for_each_input([](float v) { return keep_bits(v, 3); });
  EXPECT_GT(c.badness(gemm_swiglu(c, 23, false)), 3);
}

/// A product of fp8 matrices with block scales, whose sums of 128 products are rounded to `part_bits` and
/// added in `sum_bits`, and whose result is rounded to bf16.
std::vector<float> gemm_fp8_block(OracleCase& c, int part_bits, int sum_bits) {
  const auto m = c.size("m"), k = c.size("k"), n = c.size("n"), blocks = (k + 127) / 128;
  const auto &a = c.tensor("a"), &b = c.tensor("b"), &sfa = c.tensor("sfa"), &sfb = c.tensor("sfb");
  const auto rounded = [](float value, int bits) { return bits < 23 ? keep_bits(value, bits) : value; };
  std::vector<float> out;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t block = 0; block < blocks; ++block) {
        float part = 0;
        for (std::int64_t p = block * 128; p < std::min(k, block * 128 + 128); ++p)
          part = rounded(part + a[i * k + p] * b[j * k + p], part_bits);
        sum = rounded(sum + part * sfa[i * blocks + block] * sfb[j / 128 * blocks + block], sum_bits);
      }
      out.push_back(keep_bits(sum, 7));
    }
  return out;
}

TEST(ToleranceOfGemmFp8Block, PromotedSumsPassAndSumsInBf16OrOperandsInFp4Fail) {
  OracleCase c("gemm_fp8_block", {{"m", 32}, {"k", 2048}, {"n", 64}}, 18);
  EXPECT_LT(c.badness(gemm_fp8_block(c, 23, 23)), 0.67);
  EXPECT_LT(c.badness(gemm_fp8_block(c, 13, 23)), 0.67);  // as a tensor core of Hopper adds
  EXPECT_GT(c.badness(gemm_fp8_block(c, 23, 7)), 2);
  c.for_each_input([](float v) { return keep_bits(v, 1); });
  EXPECT_GT(c.badness(gemm_fp8_block(c, 23, 23)), 3);
}

/// The same for rows of several experts.
std::vector<float> moe_gemm_contiguous(OracleCase& c, int part_bits, int sum_bits) {
  const auto m = c.size("m"), k = c.size("k"), experts = c.size("experts"), n = c.size("n"),
             blocks = (k + 127) / 128;
  const auto &a = c.tensor("a"), &b = c.tensor("b"), &sfa = c.tensor("sfa"), &sfb = c.tensor("sfb");
  const auto& tile_offsets = c.tensor("tile_offsets");
  const auto rounded = [](float value, int bits) { return bits < 23 ? keep_bits(value, bits) : value; };
  std::vector<float> out;
  for (std::int64_t i = 0; i < m; ++i) {
    std::int64_t expert = 0;
    while (expert + 1 < experts && tile_offsets[expert + 1] <= static_cast<float>(i / 128)) ++expert;
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t scales = (expert * ((n + 127) / 128) + j / 128) * blocks;
      float sum = 0;
      for (std::int64_t block = 0; block < blocks; ++block) {
        float part = 0;
        for (std::int64_t p = block * 128; p < std::min(k, block * 128 + 128); ++p)
          part = rounded(part + a[i * k + p] * b[(expert * n + j) * k + p], part_bits);
        sum = rounded(sum + part * sfa[i * blocks + block] * sfb[scales + block], sum_bits);
      }
      out.push_back(keep_bits(sum, 7));
    }
  }
  return out;
}

TEST(ToleranceOfMoeGemmContiguous, PromotedSumsPassAndSumsInBf16OrOperandsInFp4Fail) {
  OracleCase c("moe_gemm_contiguous", {{"m", 256}, {"k", 2048}, {"experts", 3}, {"n", 16}}, 18);
  EXPECT_LT(c.badness(moe_gemm_contiguous(c, 23, 23)), 0.67);
  EXPECT_LT(c.badness(moe_gemm_contiguous(c, 13, 23)), 0.67);  // as a tensor core of Hopper adds
  EXPECT_GT(c.badness(moe_gemm_contiguous(c, 23, 7)), 2);
  c.for_each_input([](float v) { return keep_bits(v, 1); });
  EXPECT_GT(c.badness(moe_gemm_contiguous(c, 23, 23)), 3);
}

/// The same for groups with room for max_m rows each, all of them used.
std::vector<float> moe_gemm_masked(OracleCase& c, int part_bits, int sum_bits) {
  const auto groups = c.size("groups"), max_m = c.size("max_m"), k = c.size("k"), n = c.size("n"),
             blocks = (k + 127) / 128;
  const auto &a = c.tensor("a"), &b = c.tensor("b"), &sfa = c.tensor("sfa"), &sfb = c.tensor("sfb");
  const auto rounded = [](float value, int bits) { return bits < 23 ? keep_bits(value, bits) : value; };
  std::vector<float> out;
  for (std::int64_t i = 0; i < groups * max_m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t group = i / max_m, scales = (group * ((n + 127) / 128) + j / 128) * blocks;
      float sum = 0;
      for (std::int64_t block = 0; block < blocks; ++block) {
        float part = 0;
        for (std::int64_t p = block * 128; p < std::min(k, block * 128 + 128); ++p)
          part = rounded(part + a[i * k + p] * b[(group * n + j) * k + p], part_bits);
        sum = rounded(sum + part * sfa[i * blocks + block] * sfb[scales + block], sum_bits);
      }
      out.push_back(keep_bits(sum, 7));
    }
  return out;
}

TEST(ToleranceOfMoeGemmMasked, PromotedSumsPassAndSumsInBf16OrOperandsInFp4Fail) {
  OracleCase c("moe_gemm_masked", {{"groups", 2}, {"max_m", 128}, {"k", 2048}, {"n", 16}}, 18);
  c.tensor("masked_m") = {128, 128};
  c.judge();
  EXPECT_LT(c.badness(moe_gemm_masked(c, 23, 23)), 0.67);
  EXPECT_LT(c.badness(moe_gemm_masked(c, 13, 23)), 0.67);  // as a tensor core of Hopper adds
  EXPECT_GT(c.badness(moe_gemm_masked(c, 23, 7)), 2);
  c.for_each_input([](float v) { return keep_bits(v, 1); });
  c.tensor("masked_m") = {128, 128};
  EXPECT_GT(c.badness(moe_gemm_masked(c, 23, 23)), 3);
}

/// What a tensor core of Hopper keeps of a number next to `largest`: multiples of 2^-13 of its power of two.
double aligned_to(double largest, double value) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  const double unit = std::ldexp(1.0, exponent - 1 - 13);
  return std::trunc(value / unit) * unit;
}

/// A product of fp8 matrices: 32 products of an instruction and the sum so far lose what the largest of them
/// leaves no room for (`fast`), or nothing; the result is rounded to bf16.
std::vector<float> gemm_fp8(OracleCase& c, bool fast) {
  const auto m = c.size("m"), k = c.size("k"), n = c.size("n");
  const auto &a = c.tensor("a"), &b = c.tensor("b");
  const double factor = static_cast<double>(c.tensor("sa")[0]) * c.tensor("sb")[0];
  std::vector<float> out;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t first = 0; first < k; first += 32) {
        double largest = std::fabs(sum), next = 0;
        std::array<double, 32> products{};
        for (std::int64_t p = first; p < std::min(k, first + 32); ++p) {
          products[p - first] = static_cast<double>(a[i * k + p]) * b[j * k + p];
          largest = std::max(largest, std::fabs(products[p - first]));
        }
        for (const double product : products) next += fast ? aligned_to(largest, product) : product;
        sum = fast ? aligned_to(largest, sum) + next : sum + next;
        if (fast) sum = aligned_to(sum, sum);
      }
      out.push_back(keep_bits(static_cast<float>(sum * factor), 7));
    }
  return out;
}

TEST(ToleranceOfGemmFp8, FastSumsPassAtTheLongestKAndOperandsInFp4Fail) {
  OracleCase c("gemm_fp8", {{"m", 16}, {"k", 16384}, {"n", 32}}, 19);
  EXPECT_LT(c.badness(gemm_fp8(c, false)), 0.2);
  EXPECT_LT(c.badness(gemm_fp8(c, true)), 0.75);
  c.for_each_input([](float v) { return keep_bits(v, 1); });
  EXPECT_GT(c.badness(gemm_fp8(c, false)), 3);
}

/// A matrix of bf16 times a vector, with sums rounded to `sum_bits`, and results to bf16.
std::vector<float> gemv(OracleCase& c, int sum_bits) {
  const auto m = c.size("m"), k = c.size("k");
  const auto &a = c.tensor("a"), &x = c.tensor("x");
  std::vector<float> y(static_cast<std::size_t>(m), 0.0f);
  for (std::int64_t i = 0; i < m; ++i) {
    float& sum = y[i];
    for (std::int64_t j = 0; j < k; ++j) {
      sum += a[i * k + j] * x[j];
      if (sum_bits < 23) sum = keep_bits(sum, sum_bits);
    }
    sum = keep_bits(sum, 7);
  }
  return y;
}

TEST(ToleranceOfGemv, SumsInFloatPassAndSumsInBf16OrOperandsInFp8Fail) {
  OracleCase c("gemv", {{"m", 256}, {"k", 1000}}, 20);
  EXPECT_LT(c.badness(gemv(c, 23)), 0.67);
  EXPECT_GT(c.badness(gemv(c, 7)), 2);
  c.for_each_input([](float v) { return keep_bits(v, 3); });
  EXPECT_GT(c.badness(gemv(c, 23)), 3);
}

/// RMSNorm of rows in float; `round` is what happens to a number before it meets the weight.
std::vector<float> rmsnorm(OracleCase& c, const std::vector<float>& x,
                           const std::function<float(float)>& round) {
  const auto rows = c.size("rows"), cols = c.size("cols");
  std::vector<float> y(x.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    float squares = 0;
    for (std::int64_t j = 0; j < cols; ++j) squares += x[r * cols + j] * x[r * cols + j];
    const float scale = 1 / std::sqrt(squares / static_cast<float>(cols) + c.tensor("eps")[0]);
    for (std::int64_t j = 0; j < cols; ++j)
      y[r * cols + j] = round(x[r * cols + j] * scale) * c.tensor("w")[j];
  }
  return y;
}
float unrounded(float v) { return v; }
float to_bf16(float v) { return keep_bits(v, 7); }

TEST(ToleranceOfRmsnorm, OneRoundingPassesAndTwoOrOperandsInFp8Fail) {
  OracleCase c("rmsnorm", {{"rows", 64}, {"cols", 4096}}, 21);
  const auto badness = [&](const std::function<float(float)>& round) {
    auto y = rmsnorm(c, c.tensor("x"), round);
    for (float& v : y) v = to_bf16(v);
    return c.badness(y);
  };
  EXPECT_LT(badness(unrounded), 0.67);
  EXPECT_GT(badness(to_bf16), 1);
  c.for_each_input([](float v) { return keep_bits(v, 3); });
  EXPECT_GT(badness(unrounded), 3);
}

TEST(ToleranceOfRmsnormResidual, TheSumMayBeRoundedBeforeTheNorm) {
  OracleCase c("rmsnorm_residual", {{"rows", 64}, {"cols", 2048}}, 22);
  for (const bool rounded : {false, true}) {
    std::vector<float> sum = c.tensor("residual");
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += c.tensor("x")[i];
    if (rounded)
      for (float& v : sum) v = to_bf16(v);
    auto y = rmsnorm(c, sum, unrounded);
    for (float& v : y) v = to_bf16(v);
    EXPECT_LT(c.badness(y), 0.8) << rounded;
    for (float& v : y) v *= 1.02f;
    EXPECT_GT(c.badness(y), 1) << rounded;
  }
}

/// The number of e4m3 that `round` picks for a value below 448, of the two around it.
float to_e4m3(float value, float (*round)(float)) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const float step = std::ldexp(1.0f, std::max(exponent - 1, -6) - 3);
  return round(value / step) * step;
}

TEST(ToleranceOfRmsnormFp8, OnlyTheNearestCodePasses) {
  OracleCase c("rmsnorm_fp8", {{"rows", 16}, {"cols", 2048}}, 23);
  const auto badness = [&](const std::function<float(float)>& first, float (*round)(float),
                           bool power_of_two) {
    auto y = rmsnorm(c, c.tensor("x"), first);
    for (std::size_t group = 0; group < y.size(); group += 128) {
      float scale = 1e-10f;
      for (std::size_t i = group; i < group + 128; ++i) scale = std::max(scale, std::fabs(y[i]));
      scale /= 448;
      if (power_of_two) scale = std::exp2(std::ceil(std::log2(scale)));
      for (std::size_t i = group; i < group + 128; ++i) y[i] = to_e4m3(y[i] / scale, round);
    }
    return c.badness(y);
  };
  EXPECT_LE(badness(unrounded, std::nearbyint, false), 1);
  EXPECT_GT(badness(unrounded, std::trunc, false), 1.5);
  EXPECT_GT(badness(to_bf16, std::nearbyint, false), 1);  // two roundings pick wrong codes
  EXPECT_GT(badness(unrounded, std::nearbyint, true), 1);
}

/// Codes of blocks of 16 in fp4: x divided by, or multiplied with the reciprocal of, the rounded scale.
std::vector<float> nvfp4(OracleCase& c, bool reciprocal, bool by_rounded_scale) {
  const auto& x = c.tensor("x");
  std::vector<float> y(x.size());
  for (std::size_t block = 0; block < x.size(); block += 16) {
    float largest = 0;
    for (std::size_t i = block; i < block + 16; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = static_cast<float>(rounded_to(DType::kE4M3, static_cast<double>(largest / 6)));
    const float divisor = by_rounded_scale ? scale : largest / 6;
    for (std::size_t i = block; i < block + 16; ++i) {
      const float quotient = scale == 0 ? 0 : reciprocal ? x[i] * (1 / divisor) : x[i] / divisor;
      y[i] = static_cast<float>(rounded_to(DType::kE2M1x2, static_cast<double>(quotient)));
    }
  }
  return y;
}

TEST(ToleranceOfNvfp4Quantise, DivisionsInFloatAreExactAndReciprocalsMissTies) {
  OracleCase c("nvfp4_quantise", {{"rows", 64}, {"cols", 4096}}, 23);
  const auto different = [&](const std::vector<float>& got) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < got.size(); ++i) count += static_cast<double>(got[i]) != c.expected[i];
    return count;
  };
  EXPECT_EQ(different(nvfp4(c, false, true)), 0u);
  EXPECT_GT(different(nvfp4(c, true, true)), 10u);
  EXPECT_GT(different(nvfp4(c, false, false)), 1000u);
}

/// y = (x g) w^T with sums in float, scaled at the end; `round` is what happens to a product x g.
std::vector<float> rmsnorm_qkv(OracleCase& c, const std::function<float(float)>& round) {
  const auto m = c.size("m"), k = c.size("k"), n = c.size("n");
  const auto &x = c.tensor("x"), &g = c.tensor("g"), &w = c.tensor("w");
  std::vector<float> y(static_cast<std::size_t>(m * n)), row(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < m; ++i) {
    float squares = 0;
    for (std::int64_t j = 0; j < k; ++j) squares += x[i * k + j] * x[i * k + j];
    for (std::int64_t j = 0; j < k; ++j) row[j] = round(x[i * k + j] * g[j]);
    const float scale = 1 / std::sqrt(squares / static_cast<float>(k) + c.tensor("eps")[0]);
    for (std::int64_t column = 0; column < n; ++column) {
      float sum = 0;
      for (std::int64_t j = 0; j < k; ++j) sum += row[j] * w[column * k + j];
      y[i * n + column] = to_bf16(sum * scale);
    }
  }
  return y;
}

TEST(ToleranceOfRmsnormQkv, TheFoldedRowMayBeRoundedToBf16NotToFp8) {
  OracleCase c("rmsnorm_qkv", {{"m", 16}, {"k", 1024}, {"n", 256}}, 24);
  EXPECT_LT(c.badness(rmsnorm_qkv(c, to_bf16)), 0.8);
  EXPECT_GT(c.badness(rmsnorm_qkv(c, [](float v) { return keep_bits(v, 3); })), 3);
}

/// to[r][j] = a[r] . w[j] in float, rounded to bf16.
std::vector<float> linear(const std::vector<float>& a, const std::vector<float>& w, std::int64_t k) {
  const auto rows = static_cast<std::int64_t>(a.size()) / k, columns = static_cast<std::int64_t>(w.size()) / k;
  std::vector<float> to;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += a[r * k + i] * w[j * k + i];
      to.push_back(to_bf16(sum));
    }
  return to;
}
/// A layer of one head as PyTorch's bf16 modules run it: every intermediate is rounded. `round`: what happens to the operand
/// of the product number `at`.
std::vector<float> layer_prefill(OracleCase& c, int at, const std::function<float(float)>& round) {
  const std::int64_t d = 128, t = c.size("t"), f = c.size("f");
  const auto norm = [&](std::vector<float> rows, const std::vector<float>& gain) {
    for (std::int64_t r = 0; r < t; ++r) {
      float squares = 0;
      for (std::int64_t i = 0; i < d; ++i) squares += rows[r * d + i] * rows[r * d + i];
      const float scale = 1 / std::sqrt(squares / static_cast<float>(d) + c.tensor("eps")[0]);
      for (std::int64_t i = 0; i < d; ++i) rows[r * d + i] = to_bf16(rows[r * d + i] * scale * gain[i]);
    }
    return rows;
  };
  auto product = [&, number = 0](std::vector<float> a, const char* w, std::int64_t k) mutable {
    if (number++ == at) std::transform(a.begin(), a.end(), a.begin(), round);
    return linear(a, c.tensor(w), k);
  };
  auto qkv = product(norm(c.tensor("x"), c.tensor("g_1")), "w_qkv", d);
  for (std::int64_t r = 0; r < t; ++r)
    for (std::int64_t i = 0; i < d; ++i) {
      if (i % d >= d / 2) continue;
      for (const std::int64_t head : {0, 1}) {
        const double angle = static_cast<double>(r) * std::pow(500000.0, -2.0 * static_cast<double>(i) / d);
        const float c0 = static_cast<float>(std::cos(angle)), s0 = static_cast<float>(std::sin(angle));
        float &left = qkv[r * 3 * d + head * d + i], &right = qkv[r * 3 * d + head * d + i + d / 2];
        const float a = left, b = right;
        left = to_bf16(a * c0 - b * s0), right = to_bf16(b * c0 + a * s0);
      }
    }
  std::vector<float> o, r = c.tensor("x");
  for (std::int64_t i = 0; i < t; ++i) {
    std::vector<float> weight;
    float total = 0;
    for (std::int64_t j = 0; j <= i; ++j) {
      float score = 0;
      for (std::int64_t x = 0; x < d; ++x) score += qkv[i * 3 * d + x] * qkv[j * 3 * d + d + x];
      weight.push_back(std::exp(score / std::sqrt(static_cast<float>(d))));
      total += weight.back();
    }
    for (std::int64_t x = 0; x < d; ++x) {
      float sum = 0;
      for (std::int64_t j = 0; j <= i; ++j) sum += to_bf16(weight[j]) * qkv[j * 3 * d + 2 * d + x];
      o.push_back(to_bf16(sum / total));
    }
  }
  const auto add = [&](const std::vector<float>& more) {
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = to_bf16(r[i] + more[i]);
  };
  add(product(o, "w_o", d));
  const auto gu = product(norm(r, c.tensor("g_2")), "w_gu", d);
  std::vector<float> h;
  for (std::int64_t i = 0; i < t; ++i)
    for (std::int64_t j = 0; j < f; ++j) {
      const float gate = gu[i * 2 * f + j];
      h.push_back(to_bf16(to_bf16(gate / (1 + std::exp(-gate))) * gu[i * 2 * f + f + j]));
    }
  add(product(h, "w_down", f));
  return r;
}

TEST(ToleranceOfLayerPrefill, EveryIntermediateMayBeRoundedToBf16AndNoOperandToFp8) {
  OracleCase c("layer_prefill", {{"t", 32}, {"hq", 1}, {"hk", 1}, {"f", 256}}, 26);
  EXPECT_LT(c.badness(layer_prefill(c, -1, to_bf16)), 0.8);
  for (int operand = 0; operand < 4; ++operand)
    EXPECT_GT(c.badness(layer_prefill(c, operand, [](float v) { return keep_bits(v, 3); })), 1) << operand;
}

TEST(ToleranceOfSwiglu, OneRoundingPassesAndOperandsInFp8Fail) {
  OracleCase c("swiglu", {{"rows", 16}, {"cols", 2048}}, 25);
  const auto badness = [&] {
    std::vector<float> y(static_cast<std::size_t>(c.size("rows") * c.size("cols")));
    const auto& x = c.tensor("x");
    const auto cols = static_cast<std::size_t>(c.size("cols"));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float gate = x[i / cols * 2 * cols + i % cols], up = x[i / cols * 2 * cols + cols + i % cols];
      y[i] = to_bf16(gate / (1 + std::exp(-gate)) * up);
    }
    return c.badness(y);
  };
  EXPECT_LT(badness(), 0.67);
  c.for_each_input([](float v) { return keep_bits(v, 3); });
  EXPECT_GT(badness(), 3);
}

/// A product with weights of four bits: the sums of groups of 128 rounded to `sum_bits`, and the result to
/// bf16.
std::vector<float> w4a16(OracleCase& c, int sum_bits) {
  const auto m = c.size("m"), k = c.size("k"), n = c.size("n");
  const auto &x = c.tensor("x"), &w = c.tensor("w"), &scales = c.tensor("scales");
  std::vector<float> y(static_cast<std::size_t>(m * n), 0.0f);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float& sum = y[i * n + j];
      for (std::int64_t p = 0; p < k; ++p) {
        sum += x[i * k + p] * (w[j * k + p] * scales[j * (k / 128) + p / 128]);
        if (sum_bits < 23) sum = keep_bits(sum, sum_bits);
      }
      sum = keep_bits(sum, 7);
    }
  return y;
}

TEST(ToleranceOfW4a16, SumsInFloatPassAndSumsInBf16OrXInFp8Fail) {
  OracleCase c("w4a16_gemm", {{"m", 8}, {"k", 1024}, {"n", 100}}, 22);
  EXPECT_LT(c.badness(w4a16(c, 23)), 0.67);
  EXPECT_GT(c.badness(w4a16(c, 7)), 2);
  for (float& v : c.tensor("x")) v = keep_bits(v, 3);
  EXPECT_GT(c.badness(w4a16(c, 23)), 3);
}

// The weights that the judge draws are exact in bf16, so that a kernel may decode them into it.
TEST(ToleranceOfW4a16, WeightsInBf16AreExact) {
  OracleCase c("w4a16_gemm", {{"m", 1}, {"k", 1024}, {"n", 100}}, 23);
  for (const float scale : c.tensor("scales"))
    for (int level = -8; level < 8; ++level)
      EXPECT_EQ(keep_bits(static_cast<float>(level) * scale, 7), static_cast<float>(level) * scale);
}

/// Rounds to half, also below its smallest normal number.
float to_half(float value) {
  return std::abs(value) < 0x1p-14f ? std::nearbyint(value * 0x1p24f) * 0x1p-24f : keep_bits(value, 10);
}

/// Attention with fp32 scores, weights rounded by `to_weight`, and the result rounded to half.
std::vector<float> attention(OracleCase& c, const std::function<float(float)>& to_weight) {
  const auto h = c.size("h"), n = c.size("n"), d = c.size("d");
  const bool causal = c.problem().id == "causal_attention";
  const auto &q = c.tensor("q"), &k = c.tensor("k"), &v = c.tensor("v");
  std::vector<float> o(q.size(), 0.0f), weight(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < h * n; ++row) {
    const std::int64_t first = row / n * n, keys = causal ? row % n + 1 : n;
    for (std::int64_t j = 0; j < keys; ++j) {
      float sum = 0;
      for (std::int64_t x = 0; x < d; ++x) sum += q[row * d + x] * k[(first + j) * d + x];
      weight[j] = sum / std::sqrt(static_cast<float>(d));
    }
    const float maximum = *std::max_element(weight.begin(), weight.begin() + keys);
    float total = 0;
    for (std::int64_t j = 0; j < keys; ++j) total += weight[j] = std::exp(weight[j] - maximum);
    for (std::int64_t j = 0; j < keys; ++j)
      for (std::int64_t x = 0; x < d; ++x)
        o[row * d + x] += to_weight(weight[j] / total) * v[(first + j) * d + x];
  }
  for (float& value : o) value = to_half(value);
  return o;
}
std::vector<float> attention(OracleCase& c, int weight_bits) {
  return attention(c, [weight_bits](float weight) { return keep_bits(weight, weight_bits); });
}

TEST(ToleranceOfAttention, WeightsInHalfPassWhereTheyAreSubnormal) {
  for (const char* id : {"attention", "causal_attention"})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {  // heavy tails: one key outweighs the others by far
      OracleCase c(id, {{"h", 2}, {"n", 37}, {"d", 128}}, seed);
      std::mt19937 random(static_cast<unsigned>(seed));
      c.for_each_input(
          [&](float v) { return random() % 64 ? v : v * static_cast<float>(2u << random() % 6); });
      c.judge();
      EXPECT_LT(c.badness(attention(c, to_half)), 0.67) << id << " " << seed;
    }
}

TEST(ToleranceOfAttention, WeightsInHalfPassAndInBf16Fail) {
  for (const char* id : {"attention", "causal_attention"}) {
    OracleCase c(id, {{"h", 2}, {"n", 200}, {"d", 64}}, 18);
    EXPECT_LT(c.badness(attention(c, 10)), 0.67) << id;
    EXPECT_GT(c.badness(attention(c, 6)), 1) << id;
    c.for_each_input([](float v) { return keep_bits(v, 7); });
    EXPECT_GT(c.badness(attention(c, 23)), 1.5) << id << ": operands in bf16";
  }
}

/// Packed sequences with grouped heads: fp32 scores, weights rounded to so many bits, the result to bf16.
std::vector<float> varlen_attention(OracleCase& c, int weight_bits) {
  const auto total = c.size("total"), hq = c.size("hq"), d = c.size("d"), hk = c.size("hk");
  const auto &q = c.tensor("q"), &k = c.tensor("k"), &v = c.tensor("v"), &offsets = c.tensor("cu_seqlens");
  std::vector<float> o(q.size(), 0.0f), weight(static_cast<std::size_t>(total));
  for (std::int64_t row = 0; row < total * hq; ++row) {
    const std::int64_t token = row / hq, head = row % hq / (hq / hk);
    const auto first = static_cast<std::int64_t>(
        *(std::upper_bound(offsets.begin(), offsets.end(), static_cast<float>(token)) - 1));
    float maximum = -INFINITY, sum = 0;
    for (std::int64_t j = first; j <= token; ++j) {
      float score = 0;
      for (std::int64_t x = 0; x < d; ++x) score += q[row * d + x] * k[(j * hk + head) * d + x];
      maximum = std::max(maximum, weight[j] = score / std::sqrt(static_cast<float>(d)));
    }
    for (std::int64_t j = first; j <= token; ++j) sum += weight[j] = std::exp(weight[j] - maximum);
    for (std::int64_t j = first; j <= token; ++j)
      for (std::int64_t x = 0; x < d; ++x)
        o[row * d + x] += keep_bits(weight[j], weight_bits) / sum * v[(j * hk + head) * d + x];
  }
  for (float& value : o) value = keep_bits(value, 7);
  return o;
}

TEST(ToleranceOfVarlenAttention, WeightsInBf16PassAndOperandsInFp8Fail) {
  const Sizes sizes = {{"total", 200}, {"hq", 4}, {"d", 64}, {"hk", 2}, {"segments", 3}};
  OracleCase c("varlen_attention", sizes, 21);
  EXPECT_LT(c.badness(varlen_attention(c, 7)), 0.67);
  EXPECT_GT(c.badness(varlen_attention(c, 3)), 1);
  for (const char* name : {"q", "k", "v"})
    for (float& value : c.tensor(name)) value = keep_bits(value, 3);
  EXPECT_GT(c.badness(varlen_attention(c, 22)), 2) << "operands in fp8";
}

/// Latent attention over pages: fp32 scores, weights rounded to so many bits, the result to bf16.
std::vector<float> mla_decode(OracleCase& c, int weight_bits) {
  constexpr std::int64_t kPage = 64, kKey = 576, kValue = 512;
  const auto b = c.size("b"), s_q = c.size("s_q"), h = c.size("h"), max_pages = c.size("max_pages");
  const auto &q = c.tensor("q"), &cache = c.tensor("cache"), &table = c.tensor("block_table");
  std::vector<float> o(static_cast<std::size_t>(b * s_q * h * kValue), 0.0f);
  for (std::int64_t row = 0; row < b * s_q * h; ++row) {
    const std::int64_t s = row / h / s_q, later = s_q - 1 - row / h % s_q;
    const auto seen = static_cast<std::int64_t>(c.tensor("lengths")[s]) - later;
    const auto token = [&](std::int64_t j) {
      const auto page = static_cast<std::int64_t>(table[s * max_pages + j / kPage]);
      return cache.begin() + (page * kPage + j % kPage) * kKey;
    };
    std::vector<float> weight(static_cast<std::size_t>(std::max<std::int64_t>(seen, 0)));
    float maximum = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < seen; ++j) {
      const float score = std::inner_product(token(j), token(j) + kKey, q.begin() + row * kKey, 0.0f);
      maximum = std::max(maximum, weight[j] = score / 24);
    }
    for (float& w : weight) sum += w = std::exp(w - maximum);
    for (std::int64_t j = 0; j < seen; ++j)
      for (std::int64_t x = 0; x < kValue; ++x)
        o[row * kValue + x] += keep_bits(weight[j], weight_bits) / sum * token(j)[x];
  }
  for (float& value : o) value = keep_bits(value, 7);
  return o;
}

TEST(ToleranceOfMlaDecode, WeightsInBf16PassAndACacheInFp8Fails) {
  OracleCase c("mla_decode", {{"b", 3}, {"s_q", 2}, {"h", 3}, {"max_pages", 3}}, 24);
  EXPECT_LT(c.badness(mla_decode(c, 7)), 0.67);
  EXPECT_GT(c.badness(mla_decode(c, 3)), 1);
  for (float& value : c.tensor("cache"))
    if (!std::isnan(value)) value = keep_bits(value, 3);
  EXPECT_GT(c.badness(mla_decode(c, 22)), 2) << "a cache in fp8";
}

/// Latent attention over lists: fp32 scores, weights rounded to so many bits, the result to bf16.
std::vector<float> sparse_decode(OracleCase& c, int weight_bits) {
  constexpr std::int64_t kKey = 576, kValue = 512, kToken = 656;
  const auto h = c.size("h"), topk = c.size("topk");
  const auto &q = c.tensor("q"), &cache = c.tensor("cache"), &indices = c.tensor("indices");
  const auto byte = [&](std::int64_t i) { return static_cast<std::uint32_t>(cache[i]); };
  std::vector<float> o(static_cast<std::size_t>(c.size("b") * c.size("s_q") * h * kValue), 0.0f);
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(o.size()) / kValue; ++row) {
    std::vector<float> tokens, weight;
    float maximum = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < topk; ++j) {
      const auto index = static_cast<std::int64_t>(indices[row / h * topk + j]);
      if (index < 0) continue;
      for (std::int64_t x = 0; x < kKey; ++x) {
        const std::int64_t at = index * kToken + (x < kValue ? x : 528 + (x - kValue) * 2);
        const std::int64_t scale = index * kToken + 512 + x / 128 * 4;
        tokens.push_back(
            x < kValue ? static_cast<float>(capstone_types::e4m3_value(static_cast<std::uint8_t>(byte(at)))) *
                             std::bit_cast<float>(byte(scale) | byte(scale + 1) << 8 | byte(scale + 2) << 16 |
                                                  byte(scale + 3) << 24)
                       : std::bit_cast<float>(byte(at) << 16 | byte(at + 1) << 24));
      }
      weight.push_back(std::inner_product(tokens.end() - kKey, tokens.end(), q.begin() + row * kKey, 0.0f) /
                       24);
      maximum = std::max(maximum, weight.back());
    }
    for (float& w : weight) sum += w = std::exp(w - maximum);
    for (std::size_t j = 0; j < weight.size(); ++j)
      for (std::int64_t x = 0; x < kValue; ++x)
        o[row * kValue + x] += keep_bits(weight[j], weight_bits) / sum * tokens[j * kKey + x];
  }
  for (float& value : o) value = keep_bits(value, 7);
  return o;
}

TEST(ToleranceOfSparseDecode, WeightsInBf16PassAndQueriesInFp8Fail) {
  OracleCase c("sparse_decode", {{"b", 3}, {"s_q", 2}, {"h", 3}, {"tokens", 256}, {"topk", 150}}, 25);
  EXPECT_LT(c.badness(sparse_decode(c, 7)), 0.67);
  EXPECT_GT(c.badness(sparse_decode(c, 3)), 1);
  for (float& value : c.tensor("q")) value = keep_bits(value, 3);
  EXPECT_GT(c.badness(sparse_decode(c, 22)), 2) << "queries in fp8";
}

/// The sum of 32 products and of the sum so far as an instruction of Hopper's tensor cores makes it: what
/// lies below 2^-bits of the largest of them is dropped, towards zero.
float tensor_core_sum(float sum, const std::vector<float>& products, int bits) {
  float largest = std::fabs(sum);
  for (const float product : products) largest = std::max(largest, std::fabs(product));
  if (largest == 0) return 0;
  const float unit = std::ldexp(1.0f, std::ilogb(largest) - bits);
  float total = std::trunc(sum / unit);
  for (const float product : products) total += std::trunc(product / unit);
  return total * unit;
}

/// Logits of the lightning indexer, added up in tensor cores that keep so many bits.
std::vector<float> indexer_logits(OracleCase& c, int bits) {
  constexpr std::int64_t kHeads = 64, kDim = 128, kStep = 32;
  const auto s = c.size("s"), n = c.size("n");
  const auto &q = c.tensor("q"), &k = c.tensor("k"), &sk = c.tensor("sk"), &w = c.tensor("w");
  std::vector<float> logits(static_cast<std::size_t>(s * n), -INFINITY), products(kStep);
  for (std::int64_t i = 0; i < s; ++i)
    for (auto j = static_cast<std::int64_t>(c.tensor("starts")[i]); j < c.tensor("ends")[i]; ++j) {
      float sum = 0;
      for (std::int64_t head = 0; head < kHeads; ++head) {
        float product = 0;
        for (std::int64_t d = 0; d < kDim; d += kStep) {
          for (std::int64_t e = 0; e < kStep; ++e)
            products[e] = q[(i * kHeads + head) * kDim + d + e] * k[j * kDim + d + e];
          product = tensor_core_sum(product, products, bits);
        }
        sum += w[i * kHeads + head] * std::max(product, 0.0f);
      }
      logits[i * n + j] = sum * sk[j];
    }
  return logits;
}

TEST(ToleranceOfIndexerLogits, SumsOfATensorCorePassAndOperandsInFp4OrAMissingHeadFail) {
  OracleCase c("indexer_logits", {{"s", 9}, {"n", 60}}, 31);
  EXPECT_LT(c.badness(indexer_logits(c, 22)), 0.1);
  EXPECT_LT(c.badness(indexer_logits(c, 13)), 0.34);
  const std::vector<float> q = c.tensor("q"), k = c.tensor("k"), w = c.tensor("w");
  for (const char* name : {"q", "k", "w"})  // all terms of all sums have one sign: losses add up
    for (float& value : c.tensor(name)) value = keep_bits(std::fabs(value) + 1, 3);
  c.judge();
  EXPECT_LT(c.badness(indexer_logits(c, 13)), 0.34);
  c.tensor("q") = q, c.tensor("k") = k, c.tensor("w") = w;
  c.judge();
  for (std::size_t i = 63; i < w.size(); i += 64) c.tensor("w")[i] = 0;
  EXPECT_GT(c.badness(indexer_logits(c, 22)), 3) << "without the last head";
  c.tensor("w") = w;
  for (const char* name : {"q", "k"})
    for (float& value : c.tensor(name)) value = keep_bits(value, 1);
  EXPECT_GT(c.badness(indexer_logits(c, 22)), 3) << "operands in fp4";
}

/// Loss of logits rounded to so many bits.
std::vector<float> linear_cross_entropy(OracleCase& c, int logit_bits) {
  const auto t = c.size("t"), h = c.size("h"), v = c.size("v");
  std::vector<float> loss(static_cast<std::size_t>(t), 0.0f), z(static_cast<std::size_t>(v));
  for (std::int64_t i = 0; i < t; ++i) {
    const auto x = c.tensor("x").begin() + i * h;
    for (std::int64_t j = 0; j < v; ++j)
      z[j] = keep_bits(std::inner_product(x, x + h, c.tensor("w").begin() + j * h, 0.0f), logit_bits);
    const float maximum = *std::max_element(z.begin(), z.end());
    float sum = 0;
    for (const float logit : z) sum += std::exp(logit - maximum);
    const auto chosen = static_cast<std::int64_t>(c.tensor("target")[i]);
    if (chosen >= 0 && chosen < v) loss[i] = maximum + std::log(sum) - z[chosen];
  }
  return loss;
}

/// Gradients of the cross-entropy loss; the probability is rounded to so many bits before 1 is subtracted, the gradient
/// to those of a bf16.
std::vector<float> cross_entropy_grad(OracleCase& c, int probability_bits) {
  const auto rows = c.size("rows"), vocab = c.size("vocab");
  std::vector<float> gradient(static_cast<std::size_t>(rows * vocab), 0.0f);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto x = c.tensor("logits").begin() + r * vocab;
    const auto chosen = static_cast<std::int64_t>(c.tensor("target")[r]);
    if (chosen < 0 || chosen >= vocab) continue;
    const float maximum = *std::max_element(x, x + vocab);
    float sum = 0;
    for (std::int64_t j = 0; j < vocab; ++j) sum += std::exp(x[j] - maximum);
    for (std::int64_t j = 0; j < vocab; ++j)
      gradient[r * vocab + j] = keep_bits(
          keep_bits(std::exp(x[j] - maximum) / sum, probability_bits) - (j == chosen ? 1.0f : 0.0f), 7);
  }
  return gradient;
}

TEST(ToleranceOfCrossEntropyGrad, ProbabilitiesInBf16PassAndFp8Fails) {
  OracleCase c("cross_entropy_grad", {{"rows", 24}, {"vocab", 300}}, 27);
  c.judge("logits");
  EXPECT_LT(c.badness(cross_entropy_grad(c, 22)), 0.9);
  EXPECT_LT(c.badness(cross_entropy_grad(c, 7)), 1);
  EXPECT_GT(c.badness(cross_entropy_grad(c, 3)), 2) << "probabilities in fp8";
  for (float& value : c.tensor("logits")) value = keep_bits(value, 3);
  EXPECT_GT(c.badness(cross_entropy_grad(c, 22)), 2) << "logits in fp8";
}

TEST(ToleranceOfLinearCrossEntropy, LogitsInBf16PassAndOperandsInFp8Fail) {
  OracleCase c("linear_cross_entropy", {{"t", 24}, {"h", 304}, {"v", 300}}, 27);
  EXPECT_LT(c.badness(linear_cross_entropy(c, 22)), 0.1);
  EXPECT_LT(c.badness(linear_cross_entropy(c, 7)), 1);
  for (const char* name : {"x", "w"})
    for (float& value : c.tensor(name)) value = keep_bits(value, 3);
  EXPECT_GT(c.badness(linear_cross_entropy(c, 22)), 2) << "operands in fp8";
}

/// The recurrence in fp32; the state is rounded to so many bits where it is read, the result to bf16.
std::vector<float> mamba2_scan(OracleCase& c, int state_bits) {
  constexpr std::int64_t kChannels = 64, kStates = 128;
  const auto b = c.size("b"), l = c.size("l"), h = c.size("h"), g = c.size("g");
  const auto &x = c.tensor("x"), &dt = c.tensor("dt"), &into = c.tensor("into"), &out_of = c.tensor("out_of");
  std::vector<float> y(x.size());
  for (std::int64_t row = 0; row < b * h; ++row) {
    const std::int64_t batch = row / h, head = row % h;
    std::vector<float> state(kChannels * kStates, 0.0f);
    for (std::int64_t t = 0; t < l; ++t) {
      const std::int64_t step = batch * l + t, at = step * h + head, shared = step * g + head / (h / g);
      const float decay = std::exp(dt[at] * c.tensor("a")[head]);
      for (std::int64_t p = 0; p < kChannels; ++p) {
        float sum = 0;
        for (std::int64_t n = 0; n < kStates; ++n) {
          float& s = state[p * kStates + n];
          s = s * decay + dt[at] * x[at * kChannels + p] * into[shared * kStates + n];
          sum += keep_bits(s, state_bits) * out_of[shared * kStates + n];
        }
        y[at * kChannels + p] = keep_bits(sum, 7);
      }
    }
  }
  return y;
}

TEST(ToleranceOfMamba2Scan, StatesInBf16PassAndInputsInFp8Fail) {
  OracleCase c("mamba2_scan", {{"b", 1}, {"l", 70}, {"h", 2}, {"g", 1}}, 28);
  EXPECT_LT(c.badness(mamba2_scan(c, 22)), 0.67);
  EXPECT_LT(c.badness(mamba2_scan(c, 7)), 1);
  for (const char* name : {"x", "into", "out_of"})
    for (float& value : c.tensor(name)) value = keep_bits(value, 3);
  EXPECT_GT(c.badness(mamba2_scan(c, 22)), 2) << "inputs in fp8";
}

TEST(ToleranceOfFmaPeak, EveryOneOfTheTermsCounts) {
  OracleCase c("fma_peak", {{"n", 256}, {"terms", 1024}}, 19);
  EXPECT_LT(c.badness(float_kernel(c)), 0.34);
  for (int k = 1016; k < 1024; ++k) c.tensor("c")[k] = 0;  // the expected values do not change
  EXPECT_GT(c.badness(float_kernel(c)), 3);
}

// The class in which the published kernels were judged: fp16 and bf16 operands pass, fp8 does not.
TEST(ToleranceOfOneHundredth, OperandsInBf16PassAndInFp8Fail) {
  for (const char* id : {"conv2d_loose", "conv2d_relu_maxpool_loose"})
    for (const int bits : {10, 7, 3}) {
      OracleCase c(id, emulate_sizes(id), 21);
      c.for_each_input([bits](float v) { return keep_bits(v, bits); });
      const double badness = c.badness(conv2d(c, std::string(id) != "conv2d_loose"));
      if (bits > 3)
        EXPECT_LT(badness, 0.67) << id << ", " << bits << " bits";
      else
        EXPECT_GT(badness, 3) << id;
    }
}

TEST(ToleranceOfOneHundredth, IsTheRuleOfKernelBenchOnItsOwnInputs) {
  OracleCase c("conv2d_loose", emulate_sizes("conv2d_loose"), 22);
  for (const double scale : c.scale) EXPECT_EQ(scale, 1);
}

TEST(ToleranceOfOneHundredth, HalfPrecisionFailsInTheStrictClass) {
  for (const char* id : {"conv2d", "conv2d_relu_maxpool"}) {
    OracleCase c(id, emulate_sizes(id), 23);
    c.for_each_input([](float v) { return keep_bits(v, 10); });
    EXPECT_GT(c.badness(conv2d(c, std::string(id) != "conv2d")), 3) << id;
  }
}

TEST(ToleranceOfSoftmax, PowerOfTwoFormPasses) {
  for (float factor : {1.0f, 10.0f, 100.0f}) {
    OracleCase c("softmax", {{"rows", 16}, {"cols", 1024}}, 12);
    c.for_each_input([factor](float v) { return v * factor; });
    c.judge();
    EXPECT_LT(c.badness(softmax(c, exp_by_power_of_two)), 0.5) << factor;
  }
}

TEST(ToleranceOfLayernorm, TanhFormOfGeluFails) {
  OracleCase c("bias_gelu_layernorm", {{"rows", 8}, {"cols", 512}}, 13);
  EXPECT_GT(c.badness(bias_gelu_layernorm(c, gelu_tanh)), 3);
}

TEST(ToleranceOfLayernorm, WelfordPasses) {
  for (float offset : {0.0f, 5.0f}) {
    OracleCase c("bias_gelu_layernorm", {{"rows", 8}, {"cols", 4096}}, 14);
    c.for_each_input([offset](float v) { return v + offset; });
    c.judge();
    EXPECT_LT(c.badness(bias_gelu_layernorm(c, gelu_erf, Variance::kWelford)), 0.7) << offset;
  }
}

TEST(ToleranceOfLayernorm, NearlyConstantRowsPass) {
  for (std::int64_t cols : {1, 2, 3, 7}) {
    OracleCase c("bias_gelu_layernorm", {{"rows", 200}, {"cols", cols}}, 15);
    EXPECT_LT(c.badness(bias_gelu_layernorm(c, gelu_erf)), 1) << cols;
  }
}

}  // namespace
}  // namespace capstone
