#include "harness/correctness/dtype_convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "harness/correctness/narrow.h"
#include "harness/correctness/random.h"
#include "problems/oracle.h"

namespace capstone {
namespace {

// Floating types whose codes count up with the magnitude, in a byte or two or in half a byte.
constexpr DType kNarrow[] = {DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kE2M1x2};

int bits_of(DType type) { return static_cast<int>(8 * unit_bytes(type)) / elements_per_unit(type); }

std::uint32_t code_of(DType type, double value) {
  std::byte bytes[8] = {};
  store_rounded(type, bytes, 0, value);
  std::uint32_t code = 0;
  std::memcpy(&code, bytes, unit_bytes(type));
  return code;
}

double value_of(DType type, std::uint32_t code) {
  std::byte bytes[8] = {};
  std::memcpy(bytes, &code, unit_bytes(type));
  return load_as_double(type, bytes, 0);
}

TEST(Convert, EveryCodeOfEveryNarrowTypeComesBack) {
  for (const DType type : kNarrow) {
    const std::uint32_t codes = 1u << bits_of(type);
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
    const std::uint32_t magnitudes = 1u << (bits_of(type) - 1);
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

TEST(Convert, EveryCodeOfE2m1HasItsValue) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (std::uint32_t code = 0; code < 16; ++code) {
    const double expected = kMagnitudes[code % 8] * (code < 8 ? 1 : -1);
    EXPECT_EQ(value_of(DType::kE2M1x2, code), expected) << code;
    EXPECT_EQ(std::signbit(value_of(DType::kE2M1x2, code)), code >= 8) << code;
    EXPECT_EQ(capstone_types::e2m1_value(code), expected) << code;
  }
}

TEST(Convert, E2m1SaturatesAndHasNoNaN) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double large : {5.01, 6.0, 6.5, 7.0, 8.0, 1e30, infinity}) {
    EXPECT_EQ(code_of(DType::kE2M1x2, large), 7u) << large;
    EXPECT_EQ(code_of(DType::kE2M1x2, -large), 15u) << -large;
  }
  EXPECT_EQ(code_of(DType::kE2M1x2, 5.0), 6u);  // a tie between 4 and 6: to the even code
  EXPECT_EQ(code_of(DType::kE2M1x2, 0.25), 0u);
  EXPECT_EQ(code_of(DType::kE2M1x2, 0.75), 2u);
  EXPECT_EQ(code_of(DType::kE2M1x2, -0.25), 8u);  // minus zero
  EXPECT_EQ(code_of(DType::kE2M1x2, -1e-300), 8u);
  EXPECT_EQ(code_of(DType::kE2M1x2, std::nan("")), 7u);
}

TEST(Convert, EveryCodeOfE8m0IsAPowerOfTwo) {
  for (std::uint32_t code = 0; code < 255; ++code) {
    const double value = value_of(DType::kE8M0, code);
    ASSERT_EQ(value, std::ldexp(1.0, static_cast<int>(code) - 127)) << code;
    ASSERT_EQ(code_of(DType::kE8M0, value), code);
    ASSERT_EQ(capstone_types::e8m0_value(static_cast<std::uint8_t>(code)), value);
    if (code == 254) continue;
    const double middle = 1.5 * value;  // of two powers of two
    ASSERT_EQ(code_of(DType::kE8M0, std::nextafter(middle, 0.0)), code) << code;
    ASSERT_EQ(code_of(DType::kE8M0, middle), code + 1) << code;
  }
  EXPECT_TRUE(std::isnan(value_of(DType::kE8M0, 255)));
  EXPECT_TRUE(std::isnan(capstone_types::e8m0_value(255)));
}

TEST(Convert, E8m0SaturatesAndHasNeitherSignNorZero) {
  EXPECT_EQ(code_of(DType::kE8M0, 0.0), 0u);
  EXPECT_EQ(code_of(DType::kE8M0, 1e-300), 0u);
  EXPECT_EQ(code_of(DType::kE8M0, 1e300), 254u);
  EXPECT_EQ(code_of(DType::kE8M0, std::numeric_limits<double>::infinity()), 254u);
  EXPECT_EQ(code_of(DType::kE8M0, -4.0), 129u);
  EXPECT_EQ(code_of(DType::kE8M0, std::nan("")), 255u);
}

TEST(Convert, EveryCodeOfE4m3IsWhatOraclesRead) {
  for (std::uint32_t code = 0; code < 256; ++code) {
    const double value = value_of(DType::kE4M3, code),
                 read = capstone_types::e4m3_value(static_cast<std::uint8_t>(code));
    ASSERT_TRUE(value == read || (std::isnan(value) && std::isnan(read))) << code;
    ASSERT_EQ(std::isnan(value), code % 128 == 127) << code;
  }
}

TEST(Convert, OraclesRoundAsStoresDo) {
  for (int i = -4000; i <= 4000; ++i)
    for (const double scale : {1.0 / 1024, 1.0 / 64, 1.0, 3.0}) {
      const double value = i * scale;
      ASSERT_EQ(capstone_types::nearest_e2m1(value), rounded_to(DType::kE2M1x2, value)) << value;
      ASSERT_EQ(capstone_types::nearest_e4m3(value), rounded_to(DType::kE4M3, value)) << value;
    }
}

TEST(Convert, EveryCodeOfInt4IsTwosComplement) {
  for (std::uint32_t code = 0; code < 16; ++code) {
    const int value = code < 8 ? static_cast<int>(code) : static_cast<int>(code) - 16;
    EXPECT_EQ(value_of(DType::kInt4x2, code), value) << code;
    EXPECT_EQ(code_of(DType::kInt4x2, value), code) << code;
  }
  EXPECT_EQ(rounded_to(DType::kInt4x2, 2.5), 2);
  EXPECT_EQ(rounded_to(DType::kInt4x2, 3.5), 4);
  EXPECT_EQ(rounded_to(DType::kInt4x2, -0.5), 0);
  EXPECT_EQ(rounded_to(DType::kInt4x2, 7.5), 7);
  EXPECT_EQ(rounded_to(DType::kInt4x2, 1e30), 7);
  EXPECT_EQ(rounded_to(DType::kInt4x2, -1e30), -8);
  EXPECT_EQ(rounded_to(DType::kInt4x2, std::nan("")), 0);
}

TEST(Convert, TheFirstOfAPairIsInTheLowHalfAndTheOtherStays) {
  for (const DType type : {DType::kInt4x2, DType::kE2M1x2})
    for (unsigned pair = 0; pair < 256; ++pair)
      for (std::int64_t i = 0; i < 2; ++i) {
        std::byte bytes[1] = {static_cast<std::byte>(pair)};
        EXPECT_EQ(load_as_double(type, bytes, i), value_of(type, i ? pair >> 4 : pair & 15u));
        const double other = load_as_double(type, bytes, 1 - i);
        store_rounded(type, bytes, i, 3);
        EXPECT_EQ(load_as_double(type, bytes, i), 3);
        EXPECT_EQ(load_as_double(type, bytes, 1 - i), other);
        EXPECT_EQ(
            type == DType::kInt4x2 ? capstone_types::int4_at(bytes, i) : capstone_types::e2m1_at(bytes, i),
            3);
      }
}

TEST(ScaleLayout, ATileIsThatOfBlockScaledTensorCores) {
  // Row r and column c of a tile of 128 x 4, as the PTX ISA and cuBLAS draw it.
  for (std::int64_t r = 0; r < 128; ++r)
    for (std::int64_t c = 0; c < 4; ++c)
      EXPECT_EQ(capstone_types::swizzled_scale_index(r, c, 4), (r % 32) * 16 + (r / 32) * 4 + c);
  EXPECT_EQ(capstone_types::swizzled_scale_index(0, 4, 8), 512);     // tiles follow one another along a row,
  EXPECT_EQ(capstone_types::swizzled_scale_index(128, 0, 8), 1024);  // then come those of the next 128 rows
}

TEST(ScaleLayout, EveryByteHasOnePlaceAndEveryPlaceOneByte) {
  for (const auto& [rows, columns] : {std::pair{128, 4}, {1, 1}, {129, 5}, {300, 13}, {256, 16}}) {
    const std::int64_t bytes = capstone_types::swizzled_scales(rows, columns);
    std::vector<int> used(static_cast<std::size_t>(bytes), 0);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t at = capstone_types::swizzled_scale_index(r, c, columns);
        ASSERT_TRUE(at >= 0 && at < bytes) << r << " " << c;
        ++used[static_cast<std::size_t>(at)];
      }
    std::int64_t elements = 0;
    for (std::int64_t at = 0; at < bytes; ++at) {
      const auto place = capstone_types::swizzled_scale_place(at, columns);
      ASSERT_EQ(capstone_types::swizzled_scale_index(place.row, place.column, columns), at);
      const bool inside = place.row < rows && place.column < columns;
      ASSERT_EQ(used[static_cast<std::size_t>(at)], inside ? 1 : 0) << at;
      elements += inside;
    }
    EXPECT_EQ(elements, static_cast<std::int64_t>(rows) * columns);
  }
}

TEST(Convert, BulkIsTheSingleConversion) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 5000; ++i)
    values.push_back(narrow::float_of(random::word_at(3, 0, random::kValues, i)));
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kI32,
                           DType::kU8, DType::kInt4x2, DType::kE2M1x2, DType::kE8M0}) {
    std::vector<std::byte> bulk(bytes_of(type, values.size())), single(bulk.size());
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
