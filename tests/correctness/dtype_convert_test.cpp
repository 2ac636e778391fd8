#include "harness/correctness/dtype_convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "harness/correctness/narrow.h"
#include "harness/correctness/random.h"

namespace capstone {
namespace {

constexpr DType kNarrow[] = {DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2};

std::uint32_t code_of(DType type, double value) {
  std::byte bytes[8] = {};
  store_rounded(type, bytes, 0, value);
  std::uint32_t code = 0;
  std::memcpy(&code, bytes, size_of(type));
  return code;
}

double value_of(DType type, std::uint32_t code) {
  std::byte bytes[8] = {};
  std::memcpy(bytes, &code, size_of(type));
  return load_as_double(type, bytes, 0);
}

TEST(Convert, EveryCodeOfEveryNarrowTypeComesBack) {
  for (const DType type : kNarrow) {
    const std::uint32_t codes = 1u << (8 * size_of(type));
    for (std::uint32_t code = 0; code < codes; ++code) {
      const double value = value_of(type, code);
      if (std::isnan(value)) continue;
      if (type == DType::kE5M2 && std::isinf(value)) continue;  // stores saturate: infinity is never written
      ASSERT_EQ(code_of(type, value), code) << name_of(type) << " " << value;
    }
  }
}

// Rounding to nearest, ties to even, checked against its definition between each pair of neighbours.
TEST(Convert, RoundsToTheNearestAndTiesToEven) {
  for (const DType type : kNarrow) {
    const std::uint32_t magnitudes = 1u << (8 * size_of(type) - 1);
    for (std::uint32_t code = 0; code + 1 < magnitudes; ++code) {
      const double low = value_of(type, code), high = value_of(type, code + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const double middle = 0.5 * (low + high);
      const std::uint32_t even = code % 2 ? code + 1 : code;
      ASSERT_EQ(code_of(type, middle), even) << name_of(type) << " " << middle;
      ASSERT_EQ(code_of(type, std::nextafter(middle, 0.0)), code) << name_of(type) << " " << middle;
      ASSERT_EQ(code_of(type, std::nextafter(middle, 1e300)), code + 1) << name_of(type) << " " << middle;
    }
  }
}

TEST(Convert, ADoubleIsRoundedOnceAndNotThroughFloat) {
  // 1 + 2^-11 is the tie between two halves. A slightly larger value must go up, although float would drop
  // the difference.
  EXPECT_EQ(code_of(DType::kF16, 1 + 0x1p-11), 0x3c00u);
  EXPECT_EQ(code_of(DType::kF16, 1 + 0x1p-11 + 0x1p-40), 0x3c01u);
}

TEST(Convert, KnownValues) {
  EXPECT_EQ(value_of(DType::kE4M3, 0x7e), 448.0);
  EXPECT_EQ(value_of(DType::kE4M3, 0x01), 0x1p-9);
  EXPECT_EQ(value_of(DType::kE5M2, 0x7b), 57344.0);
  EXPECT_EQ(value_of(DType::kE5M2, 0x01), 0x1p-16);
  EXPECT_EQ(value_of(DType::kF16, 0x7bff), 65504.0);
  EXPECT_EQ(value_of(DType::kF16, 0x0001), 0x1p-24);
  EXPECT_EQ(value_of(DType::kBF16, 0x3f80), 1.0);
  EXPECT_EQ(value_of(DType::kBF16, 0x0001), 0x1p-133);
}

TEST(Convert, OverflowIsInfinityForHalvesAndSaturationForFp8) {
  EXPECT_EQ(rounded_to(DType::kF16, 65519.9), 65504.0);
  EXPECT_TRUE(std::isinf(rounded_to(DType::kF16, 65520.0)));
  EXPECT_TRUE(std::isinf(rounded_to(DType::kF16, -1e30)));
  EXPECT_TRUE(std::isinf(rounded_to(DType::kBF16, 3.4e38)));
  EXPECT_EQ(rounded_to(DType::kE4M3, 1e6), 448.0);
  EXPECT_EQ(rounded_to(DType::kE4M3, -std::numeric_limits<double>::infinity()), -448.0);
  EXPECT_EQ(rounded_to(DType::kE5M2, 1e30), 57344.0);
}

TEST(Convert, NaNStaysNaN) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2})
    EXPECT_TRUE(std::isnan(rounded_to(type, std::nan("")))) << name_of(type);
}

TEST(Convert, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(rounded_to(DType::kI32, 2.5), 2.0);
  EXPECT_EQ(rounded_to(DType::kI32, 3e9), 2147483647.0);
  EXPECT_EQ(rounded_to(DType::kI64, -1e30), -0x1p63);
  EXPECT_EQ(rounded_to(DType::kU8, -4.0), 0.0);
  EXPECT_EQ(rounded_to(DType::kU8, 300.0), 255.0);
  EXPECT_EQ(rounded_to(DType::kI32, std::nan("")), 0.0);
}

TEST(Convert, BulkIsTheSingleConversion) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 5000; ++i)
    values.push_back(narrow::float_of(random::word_at(3, 0, random::kValues, i)));
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kI32, DType::kU8}) {
    std::vector<std::byte> bulk(values.size() * size_of(type)), single(bulk.size());
    store_all(type, std::span<const float>(values), bulk);
    for (std::size_t i = 0; i < values.size(); ++i)
      store_rounded(type, single.data(), static_cast<std::int64_t>(i), static_cast<double>(values[i]));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double a = load_as_double(type, bulk.data(), at), b = load_as_double(type, single.data(), at);
      ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << name_of(type) << " " << values[i];
    }
    std::vector<double> doubles(values.size());
    load_all(type, bulk, std::span<double>(doubles));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double b = load_as_double(type, bulk.data(), static_cast<std::int64_t>(i));
      ASSERT_TRUE(doubles[i] == b || (std::isnan(b) && std::isnan(doubles[i])));
    }
  }
}

}  // namespace
}  // namespace capstone
