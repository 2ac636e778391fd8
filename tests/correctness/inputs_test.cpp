#include "harness/correctness/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "harness/correctness/dtype_convert.h"
#include "tests/correctness/case.h"

namespace capstone {
namespace {

using Bytes = std::vector<std::byte>;

Bytes filled(const Problem& problem, std::int64_t n, std::uint64_t seed, Battery battery = Battery::kPlain) {
  Bytes bytes(bytes_of(problem.signature[0].dtype, static_cast<std::size_t>(n)));
  const auto result = fill_tensor(problem, 0, test::n_is(n), seed, battery, bytes);
  EXPECT_TRUE(result.has_value()) << result.error().what;
  return bytes;
}

std::vector<double> values(const Problem& problem, std::int64_t n, std::uint64_t seed,
                           Battery battery = Battery::kPlain) {
  std::vector<double> out(static_cast<std::size_t>(n));
  load_all(problem.signature[0].dtype, filled(problem, n, seed, battery), std::span<double>(out));
  return out;
}

Problem normals(DType type = DType::kF32) { return test::vector_problem(type, InitNormal{0, 1}); }

TEST(Fill, TheBulkPathStoresWhatTheDeviceKernelWould) {
  const std::vector<Init> inits = {InitNormal{1, 2}, InitUniform{-1, 3}, InitInteger{-4, 3},
                                   InitChoice{{0.5, 1, -2}}};
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kE2M1x2})
    for (const Init& init : inits)
      for (const Battery battery : kBatteries) {
        const Problem problem = test::vector_problem(type, init);
        constexpr std::int64_t kCount = 10007;  // not a multiple of a vector or a chunk
        const Bytes bulk = filled(problem, kCount, 77, battery);
        const auto draw = draw_of(problem, 0, test::n_is(kCount), 77, battery);
        ASSERT_TRUE(draw.has_value() && draw->has_value());
        Bytes single(bulk.size());
        for (std::size_t unit = 0; unit < units_of(type, kCount); ++unit)
          random::store_drawn_unit(**draw, type, single.data(), static_cast<std::int64_t>(unit));
        ASSERT_EQ(bulk, single) << name_of(type) << " " << name_of(battery) << " init " << init.index();
      }
}

TEST(Fill, WholeNumbersInBulkAreWhatTheDeviceKernelWouldStoreWithAnyNumberOfThreads) {
  for (const DType type : {DType::kU8, DType::kI32, DType::kI64, DType::kInt4x2}) {
    const Problem problem =
        test::vector_problem(type, type == DType::kInt4x2 ? InitInteger{-7, 5} : InitInteger{3, 200});
    // the shares of two threads, and not a whole chunk
    constexpr std::int64_t kCount = (std::int64_t{1} << 20) + 4099;
    const auto draw = draw_of(problem, 0, test::n_is(kCount), 77, Battery::kPlain);
    ASSERT_TRUE(draw.has_value() && draw->has_value());
    Bytes single(bytes_of(type, kCount));
    for (std::size_t unit = 0; unit < units_of(type, kCount); ++unit)
      random::store_drawn_unit(**draw, type, single.data(), static_cast<std::int64_t>(unit));
    for (const int threads : {1, 3}) {
      Bytes bulk(single.size());
      ASSERT_TRUE(
          fill_tensor(problem, 0, test::n_is(kCount), 77, Battery::kPlain, bulk, threads).has_value());
      EXPECT_TRUE(bulk == single) << name_of(type) << ", " << threads << " threads";
    }
  }
}

TEST(Fill, PackedTypesGetTheValuesOfTheirInitRounded) {
  const auto whole = values(test::vector_problem(DType::kInt4x2, InitInteger{-8, 7}), 8192, 4);
  std::map<double, int> counts;
  for (const double value : whole) ++counts[value];
  ASSERT_EQ(counts.size(), 16u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 512, 120) << value;
  // The same draw in f32, rounded once: nothing is lost in between, and both halves of a byte are used.
  for (const Init& init : {Init(InitNormal{0, 2}), Init(InitUniform{-7, 7})})
    for (const Battery battery : {Battery::kPlain, Battery::kHeavyTails, Battery::kTimesTen}) {
      const auto wide = values(test::vector_problem(DType::kF32, init), 4096, 8, battery),
                 packed = values(test::vector_problem(DType::kE2M1x2, init), 4096, 8, battery);
      for (std::size_t i = 0; i < wide.size(); ++i)
        ASSERT_EQ(packed[i], rounded_to(DType::kE2M1x2, wide[i])) << wide[i];
    }
  const auto powers = values(test::vector_problem(DType::kE8M0, InitChoice{{0.25, 1, 8}}), 300, 2);
  EXPECT_EQ(std::set<double>(powers.begin(), powers.end()), (std::set<double>{0.25, 1, 8}));
}

TEST(Fill, MixedMagnitudesReachFromScalesOfZeroToScalesThatSaturate) {
  // Blocks of 16 in bf16 whose scale in e4m3, largest / 6, is 0, has few bits, and is more than 448.
  const Problem problem = test::vector_problem(DType::kBF16, InitGenerator{"mixed_magnitudes"});
  const auto drawn = values(problem, 16 * 1000, 6);
  int zero = 0, subnormal = 0, large = 0;
  for (std::size_t block = 0; block < drawn.size(); block += 16) {
    double most = 0;
    for (std::size_t i = block; i < block + 16; ++i) most = std::max(most, std::fabs(drawn[i]));
    zero += rounded_to(DType::kE4M3, most / 6) == 0;
    subnormal += most / 6 > 0x1p-10 && most / 6 < 0x1p-6;
    large += most / 6 > 448;
  }
  EXPECT_GT(zero, 20);
  EXPECT_GT(subnormal, 60);
  EXPECT_GT(large, 20);
}

/// x [n, 656] of bytes.
Problem latent_tokens() {
  Problem problem = test::vector_problem(DType::kU8, InitGenerator{"latent_tokens"});
  problem.signature[0].shape.push_back(Expression{"656"});
  return problem;
}

TEST(Fill, LatentTokensHaveFiniteCodesScalesThatArePowersOfTwoAndPositions) {
  constexpr std::size_t kTokens = 500, kRow = 656;
  Bytes drawn(kTokens * kRow);
  ASSERT_TRUE(fill_tensor(latent_tokens(), 0, test::n_is(kTokens), 3, Battery::kPlain, drawn).has_value());
  std::set<double> scales;
  double codes = 0, positions = 0;
  for (std::size_t row = 0; row < drawn.size(); row += kRow) {
    const auto byte = [&](std::size_t at) { return std::to_integer<std::uint32_t>(drawn[row + at]); };
    for (std::size_t x = 0; x < 512; ++x) {
      ASSERT_NE(byte(x) & 0x7f, 0x7fu) << "NaN";
      const double value = narrow::from_e4m3(static_cast<std::uint8_t>(byte(x)));
      codes += value * value;
    }
    for (std::size_t x = 512; x < 528; x += 4) {
      EXPECT_EQ(byte(x) | byte(x + 1), 0u);
      scales.insert(narrow::float_of(byte(x + 2) << 16 | byte(x + 3) << 24));
    }
    for (std::size_t x = 528; x < kRow; x += 2) {
      const double value = narrow::float_of(byte(x) << 16 | byte(x + 1) << 24);
      positions += value * value;
    }
  }
  EXPECT_EQ(scales, (std::set<double>{0x1p-8, 0x1p-7, 0x1p-6}));
  EXPECT_NEAR(std::sqrt(codes / (kTokens * 512)), 96, 1);
  EXPECT_NEAR(std::sqrt(positions / (kTokens * 64)), 1, 0.02);
}

TEST(Fill, LatentTokensInBulkAreWhatTheDeviceKernelWouldStore) {
  const Problem problem = latent_tokens();
  const auto draw = draw_of(problem, 0, test::n_is(3), 77, Battery::kPlain);
  ASSERT_TRUE(draw.has_value() && draw->has_value());
  Bytes bulk(3 * 656), single(bulk.size());
  ASSERT_TRUE(fill_tensor(problem, 0, test::n_is(3), 77, Battery::kPlain, bulk).has_value());
  for (std::size_t i = 0; i < single.size(); ++i)
    random::store_drawn_unit(**draw, DType::kU8, single.data(), static_cast<std::int64_t>(i));
  EXPECT_EQ(bulk, single);
}

TEST(Fill, LatentTokensAreRowsOfTheirLength) {
  const Problem problem = test::vector_problem(DType::kU8, InitGenerator{"latent_tokens"});
  Bytes bytes(64);
  const auto filled = fill_tensor(problem, 0, test::n_is(64), 9, Battery::kPlain, bytes);
  ASSERT_FALSE(filled.has_value());
  EXPECT_NE(render(filled.error()).find("rows of 656 bytes"), std::string::npos);
}

TEST(Fill, AnElementDoesNotDependOnTheLength) {
  const auto few = values(normals(), 100, 5), many = values(normals(), 5000, 5);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

TEST(Fill, AnotherSeedGivesOtherValues) { EXPECT_NE(values(normals(), 64, 1), values(normals(), 64, 2)); }

TEST(Fill, ParametersOfOneProblemAreIndependent) {
  Problem problem = normals();
  problem.signature.insert(problem.signature.begin(),
                           test::tensor("w", Role::kParameter, DType::kF32, {"n"}));
  Bytes w(256), x(256);
  ASSERT_TRUE(fill_tensor(problem, 0, test::n_is(64), 9, Battery::kPlain, w).has_value());
  ASSERT_TRUE(fill_tensor(problem, 1, test::n_is(64), 9, Battery::kPlain, x).has_value());
  EXPECT_NE(w, x);
}

TEST(Battery, EachVariationDoesWhatItSays) {
  const auto plain = values(normals(), 4096, 3), ten = values(normals(), 4096, 3, Battery::kTimesTen);
  const auto offset = values(normals(), 4096, 3, Battery::kOffset),
             flipped = values(normals(), 4096, 3, Battery::kSignFlip),
             far = values(normals(), 4096, 3, Battery::kFarNegative);
  const auto tails = values(normals(), 4096, 3, Battery::kHeavyTails),
             hot = values(normals(), 4096, 3, Battery::kHotElement);
  int grown = 0, burning = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(ten[i], 10 * plain[i], 1e-5);
    EXPECT_NEAR(offset[i], plain[i] + 5, 1e-5);
    EXPECT_EQ(flipped[i], -plain[i]);
    EXPECT_NEAR(far[i], -128 - 32 * std::fabs(plain[i]), 1e-4);
    grown += std::fabs(tails[i]) >= 2 * std::fabs(plain[i]);
    burning += hot[i] == 1000;
  }
  EXPECT_NEAR(grown, 4096 / 64, 30);
  EXPECT_EQ(burning, 1);
}

TEST(Battery, FarNegativeChangesTheFirstInputAlone) {
  Problem problem = normals();
  problem.signature.insert(problem.signature.begin() + 1,
                           test::tensor("z", Role::kInput, DType::kF32, {"n"}));
  Bytes x(256), z(256), plain(256);
  ASSERT_TRUE(fill_tensor(problem, 0, test::n_is(64), 9, Battery::kFarNegative, x).has_value());
  ASSERT_TRUE(fill_tensor(problem, 1, test::n_is(64), 9, Battery::kFarNegative, z).has_value());
  ASSERT_TRUE(fill_tensor(problem, 1, test::n_is(64), 9, Battery::kPlain, plain).has_value());
  EXPECT_EQ(z, plain);
  float value;
  std::memcpy(&value, x.data(), sizeof value);
  EXPECT_LE(value, -128);
}

TEST(Battery, LeavesStatedDomainsAndParametersAlone) {
  const Problem uniform = test::vector_problem(DType::kF32, InitUniform{0, 1});
  EXPECT_EQ(values(uniform, 100, 1), values(uniform, 100, 1, Battery::kOffset));
  Problem weights = normals();
  weights.signature[0].role = Role::kParameter;
  EXPECT_EQ(values(weights, 100, 1), values(weights, 100, 1, Battery::kTimesTen));
  EXPECT_FALSE(battery_applies(uniform, Battery::kOffset));
  EXPECT_TRUE(battery_applies(normals(), Battery::kOffset));
  EXPECT_FALSE(battery_applies(normals(), Battery::kPlain));
}

TEST(Fill, APermutationHoldsEachNumberOnce) {
  auto order = values(test::vector_problem(DType::kI32, InitPermutation{Expression{"n"}}), 1000, 4);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<double>(i));
}

TEST(Fill, OffsetsAreMonotoneFromZeroToTheTotal) {
  const Problem problem =
      test::vector_problem(DType::kI64, InitOffsets{Expression{"20"}, Expression{"n - 1"}});
  bool empty_segment = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto cuts = values(problem, 17, seed);
    EXPECT_EQ(cuts.front(), 0);
    EXPECT_EQ(cuts.back(), 20);
    EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
    empty_segment |= std::adjacent_find(cuts.begin(), cuts.end()) != cuts.end();
  }
  EXPECT_TRUE(empty_segment);
}

TEST(Fill, OffsetsOfARampHaveTheSameLengthsInAnyOrder) {
  const Problem problem =
      test::vector_problem(DType::kI64, InitOffsets{Expression{"48"}, Expression{"n - 1"}, true});
  std::set<std::vector<double>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto cuts = values(problem, 5, seed);
    std::vector<double> lengths;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) lengths.push_back(cuts[i + 1] - cuts[i]);
    orders.insert(lengths);
    std::sort(lengths.begin(), lengths.end());
    EXPECT_EQ(lengths, (std::vector<double>{3, 9, 15, 21}));
  }
  EXPECT_GT(orders.size(), 5u);
  const auto few = values(problem, 13, 4);  // 48 rows in 12 segments: the first of the ramp is empty
  EXPECT_EQ(few.back(), 48);
  EXPECT_NE(std::adjacent_find(few.begin(), few.end()), few.end());
}

TEST(Fill, OffsetsOfTheWrongLengthAreAnError) {
  const Problem problem = test::vector_problem(DType::kI64, InitOffsets{Expression{"20"}, Expression{"n"}});
  Bytes bytes(8 * 17);
  const auto result = fill_tensor(problem, 0, test::n_is(17), 1, Battery::kPlain, bytes);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().what.find("17 elements"), std::string::npos);
}

TEST(Fill, LengthsReachBothEndsAndHaveAKnownSum) {
  const Problem problem = test::vector_problem(DType::kI32, InitLengths{Expression{"3"}, Expression{"1000"}});
  for (const std::int64_t n : {1, 2, 5, 32, 33}) {
    const auto lengths = values(problem, n, 4);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), 0.0), n * 1003 / 2);
    if (n == 1) continue;
    EXPECT_EQ(*std::min_element(lengths.begin(), lengths.end()), 3);
    EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()), 1000);
  }
  EXPECT_NE(values(problem, 32, 4), values(problem, 32, 5)) << "in another order";
  Bytes bytes(4);
  EXPECT_FALSE(fill_tensor(test::vector_problem(DType::kI32, InitLengths{Expression{"2"}, Expression{"1"}}),
                           0, test::n_is(1), 1, Battery::kPlain, bytes));
}

TEST(Fill, CountsHaveTheGivenSumAndSomeAreZero) {
  const Problem problem = test::vector_problem(DType::kI64, InitCounts{Expression{"20"}});
  bool empty = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto counts = values(problem, 16, seed);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.0), 20);
    EXPECT_GE(*std::min_element(counts.begin(), counts.end()), 0);
    empty |= std::count(counts.begin(), counts.end(), 0) > 0;
  }
  EXPECT_TRUE(empty);
}

TEST(Fill, ListsOfTheBestAreDifferentIndicesAndThenMinusOne) {
  Problem problem = test::vector_problem(DType::kI32, InitTopK{Expression{"50"}, Expression{"2"}});
  problem.signature[0].shape = {Expression{"n"}, Expression{"8"}};
  constexpr std::int64_t rows = 5;
  Bytes bytes(4 * rows * 8);
  ASSERT_TRUE(fill_tensor(problem, 0, test::n_is(rows), 9, Battery::kPlain, bytes));
  std::vector<double> numbers(rows * 8);
  load_all(DType::kI32, bytes, std::span<double>(numbers));
  std::int64_t valid = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = numbers.begin() + row * 8, end = first + 8, padding = std::find(first, end, -1);
    EXPECT_EQ(std::count(padding, end, -1), end - padding) << "nothing behind the first -1";
    EXPECT_GE(padding - first, 2);
    EXPECT_EQ(std::set<double>(first, padding).size(), static_cast<std::size_t>(padding - first));
    EXPECT_TRUE(std::all_of(first, padding, [](double index) { return index >= 0 && index < 50; }));
    valid += padding - first;
  }
  EXPECT_EQ(valid, rows * (2 + 8) / 2);
}

/// A cache [3 * 4 pages, 4 slots, 2] of three sequences, its table and their lengths.
Problem paged_problem() {
  Problem problem = test::vector_problem(DType::kBF16, InitPages{"table", "lengths"});
  problem.signature[0].shape = {Expression{"n"}, Expression{"4"}, Expression{"2"}};
  Parameter table, lengths;
  table.name = "table";
  table.dtype = lengths.dtype = DType::kI32;
  table.shape = {Expression{"3"}, Expression{"n / 3"}};
  table.init = InitGenerator{"page_table"};
  lengths.name = "lengths";
  lengths.shape = {Expression{"3"}};
  lengths.init = InitLengths{Expression{"0"}, Expression{"n / 3 * 4"}};
  problem.signature.push_back(table);
  problem.signature.push_back(lengths);
  return problem;
}

std::vector<double> whole_numbers(const Problem& problem, int parameter, std::size_t count) {
  Bytes bytes(4 * count);
  EXPECT_TRUE(fill_tensor(problem, parameter, test::n_is(12), 6, Battery::kPlain, bytes));
  std::vector<double> numbers(count);
  load_all(DType::kI32, bytes, std::span<double>(numbers));
  return numbers;
}

TEST(Fill, APagedCacheHoldsNumbersWhereThereIsATokenAndNaNElsewhere) {
  const Problem problem = paged_problem();
  const int first = static_cast<int>(problem.signature.size()) - 2;
  const auto table = whole_numbers(problem, first, 12), lengths = whole_numbers(problem, first + 1, 3);
  Bytes bytes(2 * 12 * 4 * 2), plain(bytes.size());
  ASSERT_TRUE(fill_tensor(problem, 0, test::n_is(12), 6, Battery::kPlain, bytes));
  const auto draw = draw_of(problem, 0, test::n_is(12), 6, Battery::kPlain);
  ASSERT_TRUE(draw.has_value() && draw->has_value());
  for (std::int64_t i = 0; i < 96; ++i) random::store_drawn(**draw, DType::kBF16, plain.data(), i);
  std::vector<double> cache(96), drawn(96);
  load_all(DType::kBF16, bytes, std::span<double>(cache));
  load_all(DType::kBF16, plain, std::span<double>(drawn));
  for (std::size_t s = 0; s < 3; ++s)
    for (std::size_t token = 0; token < 16; ++token)
      for (std::size_t x = 0; x < 2; ++x) {
        const std::size_t at = (static_cast<std::size_t>(table[s * 4 + token / 4]) * 4 + token % 4) * 2 + x;
        if (static_cast<double>(token) < lengths[s])
          EXPECT_EQ(cache[at], drawn[at]);
        else
          EXPECT_TRUE(std::isnan(cache[at])) << s << " " << token;
      }
  EXPECT_TRUE(battery_applies(problem.signature[0], Battery::kTimesTen));

  const auto paged = paged_cache_of(problem, 0, test::n_is(12), 6);
  ASSERT_TRUE(paged.has_value() && paged->has_value());
  for (std::int64_t i = 0; i < 96; ++i)  // as the device's kernel does it
    (*paged)->unused.poison(DType::kBF16, plain.data(), i,
                            static_cast<std::int64_t>(table[static_cast<std::size_t>(i / 8)]),
                            static_cast<std::int64_t>(lengths[static_cast<std::size_t>(i / 32)]));
  EXPECT_EQ(plain, bytes);
}

TEST(Fill, APagedCacheWhoseTableHasOtherPagesIsAnError) {
  Problem problem = paged_problem();
  problem.signature[0].shape[0] = Expression{"n + 1"};
  Bytes bytes(2 * 13 * 4 * 2);
  const auto result = fill_tensor(problem, 0, test::n_is(12), 6, Battery::kPlain, bytes);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().what.find("13 pages"), std::string::npos);
}

TEST(Fill, GeneratorsAreFoundByNameAndMistypedOnesNamed) {
  const auto table = values(test::vector_problem(DType::kI32, InitGenerator{"page_table"}), 64, 4);
  EXPECT_EQ(std::set<double>(table.begin(), table.end()).size(), 64u);
  Bytes bytes(4 * 8);
  const auto result = fill_tensor(test::vector_problem(DType::kI32, InitGenerator{"page_tabel"}), 0,
                                  test::n_is(8), 1, Battery::kPlain, bytes);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().hint, "did you mean 'page_table'?");
}

TEST(Fill, StructuredRealTensorsKeepTheirStructure) {
  constexpr std::int64_t n = 9;
  auto matrix = [&](const char* generator, std::uint64_t seed = 4) {
    Problem problem = test::vector_problem(DType::kF32, InitGenerator{generator});
    problem.signature[0].shape = {Expression{"n"}, Expression{"n"}};
    Bytes bytes(4 * n * n);
    EXPECT_TRUE(fill_tensor(problem, 0, test::n_is(n), seed, Battery::kPlain, bytes));
    std::vector<double> out(n * n);
    load_all(DType::kF32, bytes, std::span<double>(out));
    return out;
  };
  const auto upper = matrix("upper_triangular"), lower = matrix("lower_triangular"),
             symmetric = matrix("symmetric"), rows = matrix("rows_sum_to_one");
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      if (j < i) {
        EXPECT_EQ(upper[i * n + j], 0);
      }
      if (j > i) {
        EXPECT_EQ(lower[i * n + j], 0);
      }
      EXPECT_EQ(symmetric[i * n + j], symmetric[j * n + i]);
      EXPECT_GT(rows[i * n + j], 0);
      sum += rows[i * n + j];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_GT(std::set<double>(symmetric.begin(), symmetric.end()).size(), 40u);
  EXPECT_NE(matrix("symmetric", 5), symmetric);
  EXPECT_GT(std::set<double>(rows.begin(), rows.end()).size(), 60u)
      << "nine rows, each of eight numbers and a mean";
  Bytes bytes(4 * 8);
  EXPECT_FALSE(fill_tensor(test::vector_problem(DType::kI32, InitGenerator{"symmetric"}), 0, test::n_is(8), 1,
                           Battery::kPlain, bytes));
}

TEST(Fill, ZipfRowsArePeakedPermutationsOfOneSeries) {
  constexpr std::int64_t n = 1000, kRows = 64;
  Problem problem = test::vector_problem(DType::kF32, InitGenerator{"zipf_rows"});
  problem.signature[0].shape = {Expression{"64"}, Expression{"n"}};
  Bytes bytes(4 * n * kRows);
  ASSERT_TRUE(fill_tensor(problem, 0, test::n_is(n), 3, Battery::kPlain, bytes));
  std::vector<double> out(n * kRows);
  load_all(DType::kF32, bytes, std::span<double>(out));
  std::set<double> peaks, places;
  std::size_t with_ties = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto begin = out.begin() + row * n, peak = std::max_element(begin, begin + n);
    EXPECT_NEAR(std::accumulate(begin, begin + n, 0.0), n / (n + 1.0), 0.07);  // 1 - c/(n + c), c up to 64
    EXPECT_GT(*std::min_element(begin, begin + n), 0);
    peaks.insert(*peak);
    places.insert(static_cast<double>(peak - begin));
    const std::set<double> different(begin, begin + n);
    EXPECT_TRUE(different.size() == n || different.size() == n / 4) << different.size();
    with_ties += different.size() == n / 4;
  }
  EXPECT_GT(peaks.size(), 7u) << "1/2 down to 1/65, and the means of four";
  EXPECT_GT(places.size(), 40u);
  EXPECT_GT(with_ties, 4u);
  EXPECT_LT(with_ties, 32u);
}

TEST(Fill, AnInitThatItsTypeCannotHoldIsAnError) {
  Bytes bytes(8);
  for (const auto& [type, init] : std::vector<std::pair<DType, Init>>{{DType::kU8, InitNormal{}},
                                                                      {DType::kU8, InitInteger{0, 256}},
                                                                      {DType::kE4M3, InitInteger{0, 17}},
                                                                      {DType::kInt4x2, InitNormal{}},
                                                                      {DType::kInt4x2, InitInteger{-8, 8}},
                                                                      {DType::kE2M1x2, InitInteger{0, 5}},
                                                                      {DType::kU8, InitChoice{}},
                                                                      {DType::kF32, InitUniform{1, 1}}}) {
    const auto result =
        fill_tensor(test::vector_problem(type, init), 0,
                    test::n_is(static_cast<std::int64_t>(8 / unit_bytes(type)) * elements_per_unit(type)), 1,
                    Battery::kPlain, bytes);
    EXPECT_FALSE(result.has_value()) << name_of(type) << " init " << init.index();
  }
}

TEST(Fill, OutputsScalarsAndWrongSpansAreErrors) {
  Bytes bytes(40);
  EXPECT_FALSE(fill_tensor(normals(), 2, test::n_is(10), 1, Battery::kPlain, bytes).has_value());
  EXPECT_FALSE(fill_tensor(normals(), 1, test::n_is(10), 1, Battery::kPlain, bytes).has_value());
  EXPECT_FALSE(fill_tensor(normals(), 0, test::n_is(11), 1, Battery::kPlain, bytes).has_value());
  EXPECT_FALSE(fill_tensor(normals(), 3, test::n_is(10), 1, Battery::kPlain, bytes).has_value());
}

TEST(Poison, IsNaNOfBothSignsAndManyPayloads) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2}) {
    Bytes bytes(bytes_of(type, 4096));
    poison(bytes, type, 11);
    std::set<std::uint32_t> patterns;
    bool positive = false, negative = false;
    for (std::int64_t i = 0; i < 4096; ++i) {
      const double value = load_as_double(type, bytes.data(), i);
      ASSERT_TRUE(std::isnan(value)) << name_of(type);
      (std::signbit(value) ? negative : positive) = true;
      std::uint32_t pattern = 0;
      std::memcpy(&pattern, bytes.data() + bytes_of(type, static_cast<std::size_t>(i)), unit_bytes(type));
      patterns.insert(pattern);
    }
    EXPECT_TRUE(positive && negative) << name_of(type);
    EXPECT_GE(patterns.size(), type == DType::kE4M3   ? 2u
                               : type == DType::kE5M2 ? 4u
                               : type == DType::kBF16 ? 100u
                                                      : 500u);
  }
}

TEST(Poison, IsRecognisedUntilItIsOverwritten) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kI32,
                           DType::kI64, DType::kU8, DType::kInt4x2, DType::kE2M1x2, DType::kE8M0}) {
    Bytes bytes(bytes_of(type, 5001)), device(bytes.size());
    poison(bytes, type, 12);
    for (std::int64_t i = 0; i < 5001; ++i)
      ASSERT_TRUE(is_poison(bytes, type, 12, i)) << name_of(type) << " " << i;
    for (std::size_t unit = 0; unit < units_of(type, 5001); ++unit)
      random::store_poison(type, 12, device.data(), static_cast<std::int64_t>(unit));
    EXPECT_EQ(bytes, device) << name_of(type);
    bytes[bytes_of(type, 17) - (is_packed(type) ? 1 : 0)] ^= std::byte{0x55};
    EXPECT_FALSE(is_poison(bytes, type, 12, 17)) << name_of(type);
  }
}

TEST(Poison, AGuardBandTellsTheFirstByteWritten) {
  for (const std::size_t length : {1u, 4096u, 40001u}) {
    Bytes band(length);
    poison_bytes(band, 5);
    EXPECT_FALSE(first_overwritten(band, 5).has_value());
    EXPECT_TRUE(first_overwritten(band, 6).has_value());
    band[length - 1] ^= std::byte{1};
    EXPECT_EQ(first_overwritten(band, 5), length - 1);
  }
}

TEST(Fingerprint, EveryByteMatters) {
  Bytes bytes = filled(normals(), 50, 1);
  bytes.resize(197);  // a partial last word
  const std::uint64_t before = fingerprint(bytes);
  std::set<std::uint64_t> seen{before};
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x10};
    EXPECT_TRUE(seen.insert(fingerprint(bytes)).second);
    byte ^= std::byte{0x10};
  }
  EXPECT_EQ(fingerprint(bytes), before);
  EXPECT_NE(fingerprint(bytes, 1), before);
}

TEST(Fingerprint, OrderAndLengthMatter) {
  Bytes bytes(16, std::byte{0});
  bytes[0] = std::byte{1};
  Bytes swapped(16, std::byte{0});
  swapped[8] = std::byte{1};
  EXPECT_NE(fingerprint(bytes), fingerprint(swapped));
  EXPECT_NE(fingerprint(Bytes(7)), fingerprint(Bytes(8)));
  EXPECT_NE(fingerprint(Bytes{}), fingerprint(Bytes(1)));
}

}  // namespace
}  // namespace capstone
