#include "harness/correctness/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "harness/correctness/dtype_convert.h"
#include "harness/correctness/inputs.h"

namespace capstone {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");
constexpr Tolerance kTolerance{1e-4, 1e-5};

/// n expected values, and an output that holds them, rounded.
struct Fixture {
  DType type;
  std::vector<double> expected, scale;
  std::vector<std::byte> got;

  explicit Fixture(std::size_t n, DType t = DType::kF32)
      : type(t), expected(n), scale(n), got(bytes_of(t, n)) {
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] = std::sin(0.7 * static_cast<double>(i)) + 1.5;
      scale[i] = std::fabs(expected[i]);
    }
    store_all(type, expected, got);
  }
  void put(std::size_t i, double value) {
    store_rounded(type, got.data(), static_cast<std::int64_t>(i), value);
  }
  Comparison run(Tolerance tolerance = kTolerance) const {
    return compare(type, got, expected, scale, tolerance);
  }
};

TEST(Compare, TheRoundedTruthPasses) {
  for (const std::size_t n : {1u, 7u, 1024u, 3001u}) {
    const auto result = Fixture(n).run();
    EXPECT_TRUE(result.passed);
    EXPECT_EQ(result.total, static_cast<std::int64_t>(n));
    EXPECT_EQ(result.first, -1);
    EXPECT_LT(result.max_rel, 1e-7);
  }
}

TEST(Compare, TheRoundedTruthPassesWithoutAnyToleranceInEveryType) {
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kE2M1x2, DType::kE8M0})
    EXPECT_TRUE(Fixture(2000, type).run({0, 0}).passed) << name_of(type);
}

TEST(Compare, PackedElementsAreJudgedOneByOne) {
  for (const DType type : {DType::kInt4x2, DType::kE2M1x2})
    for (const std::size_t at : {0u, 1u, 1023u, 1024u, 2999u}) {
      Fixture fixture(3000, type);
      for (std::size_t i = 0; i < 3000; ++i) fixture.expected[i] = static_cast<double>(i % 5) - 2;
      store_all(type, fixture.expected, fixture.got);
      ASSERT_TRUE(fixture.run({0, 0}).passed);
      fixture.put(at, 3);
      const auto result = fixture.run({0, 0});
      EXPECT_FALSE(result.passed);
      EXPECT_EQ(result.wrong, 1);
      EXPECT_EQ(result.first, static_cast<std::int64_t>(at)) << name_of(type);
      EXPECT_EQ(result.total, 3000);
    }
}

TEST(Compare, TheSignOfAZeroOfFp4DoesNotMatter) {
  Fixture fixture(16, DType::kE2M1x2);
  for (double& value : fixture.expected) value = 0;
  for (std::size_t i = 0; i < 16; ++i) fixture.put(i, i % 2 ? -0.0 : 0.0);
  EXPECT_TRUE(fixture.run({0, 0}).passed);
}

TEST(Compare, AScaleThatIsNoNumberFails) {
  Fixture fixture(100, DType::kE8M0);
  fixture.put(40, kNaN);
  const auto result = fixture.run({1, 1});
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.nans, 1);
}

TEST(Compare, NaNInCandidateFails) {
  for (const std::size_t at : {0u, 1500u, 2999u}) {
    Fixture fixture(3000);
    fixture.put(at, kNaN);
    const auto result = fixture.run({1e9, 1e9});
    EXPECT_FALSE(result.passed);
    EXPECT_EQ(result.nans, 1);
    EXPECT_EQ(result.wrong, 1);
    EXPECT_EQ(result.first, static_cast<std::int64_t>(at));
    EXPECT_EQ(result.max_abs, kInf);
  }
}

TEST(Compare, NaNWhereNaNIsExpectedPasses) {
  Fixture fixture(10);
  fixture.expected[3] = kNaN;
  EXPECT_FALSE(fixture.run().passed);
  fixture.put(3, kNaN);
  EXPECT_TRUE(fixture.run().passed);
  EXPECT_EQ(fixture.run().nans, 0);
}

TEST(Compare, InfinitiesMustAgree) {
  Fixture fixture(10);
  fixture.expected[3] = kInf;
  EXPECT_FALSE(fixture.run().passed) << "a finite result against infinity";
  fixture.put(3, -kInf);
  EXPECT_FALSE(fixture.run().passed) << "the other infinity";
  fixture.put(3, kInf);
  EXPECT_TRUE(fixture.run().passed);
  fixture.put(4, kInf);
  EXPECT_FALSE(fixture.run({1e9, 1e9}).passed) << "infinity against a number";
}

TEST(Compare, OverflowOfANarrowTypeIsWhatTheTypeHolds) {
  Fixture half(4, DType::kF16), byte(4, DType::kE4M3);
  half.expected[0] = half.scale[0] = 1e6;
  half.put(0, kInf);
  EXPECT_TRUE(half.run().passed);
  byte.expected[0] = byte.scale[0] = 1e6;
  byte.put(0, 448);
  EXPECT_TRUE(byte.run().passed);
  half.expected[0] = half.scale[0] = 60000;
  EXPECT_FALSE(half.run().passed);
}

TEST(Compare, NearTheOverflowBothSidesOfTheRoundingPass) {
  Fixture half(1, DType::kF16);
  half.expected[0] = half.scale[0] = 65519;  // rounds to 65504; a value 0.01 % larger rounds to infinity
  half.put(0, kInf);
  EXPECT_TRUE(half.run().passed);
}

TEST(Compare, ToleranceIsAbsoluteTimesScalePlusRelative) {
  Fixture fixture(1);
  fixture.expected[0] = 0;
  fixture.scale[0] = 100;  // a sum that cancels
  fixture.put(0, 0.9e-3);
  EXPECT_TRUE(fixture.run().passed);
  fixture.put(0, 1.1e-3);
  EXPECT_FALSE(fixture.run().passed);
  fixture.expected[0] = 10;
  fixture.scale[0] = 0;
  fixture.put(0, 10.0009);
  EXPECT_TRUE(fixture.run().passed);
  fixture.put(0, 10.0012);
  EXPECT_FALSE(fixture.run().passed);
}

TEST(Compare, FindsFirstAndWorst) {
  Fixture fixture(5000);
  fixture.put(1234, fixture.expected[1234] + 0.1);
  fixture.put(4321, fixture.expected[4321] + 0.4);
  fixture.put(4999, fixture.expected[4999] - 0.2);
  const auto result = fixture.run();
  EXPECT_EQ(result.wrong, 3);
  EXPECT_EQ(result.first, 1234);
  EXPECT_EQ(result.worst, 4321);
  EXPECT_NEAR(result.max_abs, 0.4, 1e-6);
  EXPECT_NEAR(result.rms, std::sqrt((0.01 + 0.16 + 0.04) / 5000), 1e-6);
}

TEST(Compare, ErrorsBelowTheToleranceAreReported) {
  Fixture fixture(2000);
  fixture.put(77, fixture.expected[77] * (1 + 5e-5));
  const auto result = fixture.run();
  EXPECT_TRUE(result.passed);
  EXPECT_NEAR(result.max_rel, 5e-5, 1e-6);
}

TEST(Compare, IntegersAreExactWhateverTheTolerance) {
  Fixture fixture(100, DType::kI32);
  for (std::size_t i = 0; i < 100; ++i) fixture.expected[i] = static_cast<double>(i) * 20000000;
  store_all(fixture.type, fixture.expected, fixture.got);
  EXPECT_TRUE(fixture.run().passed);
  fixture.put(50, fixture.expected[50] + 1);
  EXPECT_FALSE(fixture.run({1, 1}).passed);
}

TEST(Compare, AnotherSizeFails) {
  Fixture fixture(10);
  fixture.got.resize(36);
  EXPECT_FALSE(fixture.run().passed);
  EXPECT_EQ(fixture.run().wrong, 10);
}

TEST(Compare, PoisonNeverPasses) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2}) {
    Fixture fixture(3000, type);
    poison(fixture.got, type, 3);
    EXPECT_EQ(fixture.run({10, 10}).wrong, 3000) << name_of(type);
  }
}

TEST(CompareF32, AgreesWithTheDoubleComparison) {
  std::vector<float> expected(3003), got(3003);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<float>(std::cos(0.1 * static_cast<double>(i)));
    got[i] = expected[i] * (i % 100 == 5 ? 1.01f : 1.00001f);
  }
  const auto result = compare_f32(got, expected, {1e-4, 0});
  EXPECT_EQ(result.wrong, 30);
  EXPECT_EQ(result.first, 5);
  std::vector<double> wide(expected.begin(), expected.end()), scale;
  for (const double value : wide) scale.push_back(std::fabs(value));
  const auto same = compare(DType::kF32, std::as_bytes(std::span(got)), wide, scale, {1e-4, 0});
  EXPECT_EQ(result.wrong, same.wrong);
  EXPECT_EQ(result.worst, same.worst);
  EXPECT_DOUBLE_EQ(result.rms, same.rms);
  EXPECT_DOUBLE_EQ(result.max_rel, same.max_rel);
}

}  // namespace
}  // namespace capstone
