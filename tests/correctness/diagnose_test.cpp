#include "harness/correctness/diagnose.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "harness/correctness/dtype_convert.h"
#include "harness/correctness/inputs.h"

namespace capstone {
namespace {

constexpr std::uint64_t kSeed = 21;
constexpr Tolerance kDiagnosed{1e-4, 1e-5};

/// An output [rows, columns] of random values, correct until a test changes it.
struct Output {
  DType type = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<double> expected, scale, got;
  std::vector<bool> written;
  std::vector<NamedTensor> inputs;

  Output(std::vector<std::int64_t> extents, DType t = DType::kF32) : type(t), shape(std::move(extents)) {
    std::size_t total = 1;
    for (const auto extent : shape) total *= static_cast<std::size_t>(extent);
    std::mt19937_64 engine(4);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < total; ++i) {
      expected.push_back(rounded_to(type, 3 * normal(engine) + 0.5));
      scale.push_back(std::fabs(expected.back()));
    }
    got = expected;
    written.assign(total, true);
  }
  std::int64_t columns() const { return shape.back(); }
  double& at(std::int64_t row, std::int64_t column) {
    return got[static_cast<std::size_t>(row * columns() + column)];
  }
  double truth(std::int64_t row, std::int64_t column) const {
    return expected[static_cast<std::size_t>(row * columns() + column)];
  }

  void each(const std::function<void(std::int64_t, std::int64_t)>& visit) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(got.size()); ++i)
      visit(i / columns(), i % columns());
  }
  void unwritten_if(const std::function<bool(std::int64_t, std::int64_t)>& test) {
    each([&](std::int64_t r, std::int64_t c) {
      if (test(r, c)) written[static_cast<std::size_t>(r * columns() + c)] = false;
    });
  }
  Diagnosis run() const {
    std::vector<std::byte> bytes(bytes_of(type, got.size()));
    poison(bytes, type, kSeed);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (written[i]) store_rounded(type, bytes.data(), static_cast<std::int64_t>(i), got[i]);
    const Diagnosis diagnosis = diagnose("y", type, shape, bytes, expected, scale, kDiagnosed, kSeed, inputs);
    EXPECT_FALSE(diagnosis.hint.empty());
    return diagnosis;
  }
  std::string pattern() const { return run().pattern; }
};

TEST(Diagnose, CountsAndShowsFirstAndWorst) {
  Output y({8, 10});
  y.at(2, 3) += 0.01;
  y.at(5, 7) += 5.0;
  const Diagnosis diagnosis = y.run();
  EXPECT_EQ(diagnosis.output, "y");
  EXPECT_EQ(diagnosis.wrong, 2);
  EXPECT_EQ(diagnosis.total, 80);
  EXPECT_EQ(diagnosis.first, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(diagnosis.worst, (std::vector<std::int64_t>{5, 7}));
  EXPECT_NEAR(diagnosis.worst_got - diagnosis.worst_expected, 5.0, 1e-5);
}

TEST(Diagnose, TheFirstWrongElementsAreKeptOneByOne) {
  Output y({8, 10});
  y.each([&](auto r, auto c) { y.at(r, c) += 1; });
  y.unwritten_if([](auto r, auto c) { return r == 0 && c == 1; });
  const Diagnosis diagnosis = y.run();
  ASSERT_EQ(diagnosis.mismatches.size(), 8u);
  const Mismatch& first = diagnosis.mismatches.front();
  EXPECT_EQ(first.index, (std::vector<std::int64_t>{0, 0}));
  EXPECT_NEAR(first.got - first.expected, 1, 1e-6);
  EXPECT_DOUBLE_EQ(first.allowed, 1.1e-4 * std::fabs(first.expected));
  EXPECT_FALSE(first.unwritten);
}

TEST(Diagnose, WhatWasNeverWrittenIsMarked) {
  Output y({16, 32});
  y.unwritten_if([](auto r, auto) { return r >= 8; });
  const Diagnosis diagnosis = y.run();
  EXPECT_TRUE(diagnosis.first_unwritten);
  EXPECT_TRUE(diagnosis.worst_unwritten);
  EXPECT_TRUE(diagnosis.mismatches.at(0).unwritten);
}

TEST(Diagnose, NothingWritten) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kI32,
                           DType::kI64, DType::kE8M0}) {
    Output y({16, 32}, type);
    y.unwritten_if([](auto, auto) { return true; });
    EXPECT_EQ(y.pattern(), "nothing written") << name_of(type);
  }
}

TEST(Diagnose, RowsNotWritten) {
  Output y({70, 32});
  y.unwritten_if([](auto r, auto) { return r >= 64; });
  const Diagnosis diagnosis = y.run();
  EXPECT_EQ(diagnosis.pattern, "part not written: rows >= 64");
  EXPECT_NE(diagnosis.hint.find("round the grid up"), std::string::npos) << diagnosis.hint;
}

TEST(Diagnose, TailNotWritten) {
  Output matrix({7, 100});
  matrix.unwritten_if([](auto r, auto c) { return r * 100 + c >= 640; });
  EXPECT_EQ(matrix.pattern(), "part not written: the tail: elements from flat index 640 on (60 of 700)");
  Output vector({1000});
  vector.unwritten_if([](auto, auto c) { return c >= 768; });
  EXPECT_EQ(vector.pattern(), "part not written: elements >= 768");
}

TEST(Diagnose, LastColumnNotWritten) {
  Output y({16, 33});
  y.unwritten_if([](auto, auto c) { return c == 32; });
  EXPECT_EQ(y.pattern(), "part not written: the last column");
}

TEST(Diagnose, EverySecondElementNotWritten) {
  Output y({1024});
  y.unwritten_if([](auto, auto c) { return c % 2 == 1; });
  EXPECT_EQ(y.pattern(), "part not written: every second element (index mod 2 = 1)");
}

TEST(Diagnose, OneLaneOfAVectorNotWritten) {
  Output y({16, 64});
  y.unwritten_if([](auto, auto c) { return c % 4 == 3; });
  EXPECT_EQ(y.pattern(), "part not written: every 4th column (index mod 4 = 3)");
}

TEST(Diagnose, NotWrittenAndWrongBesides) {
  Output y({70, 32});
  y.unwritten_if([](auto r, auto) { return r >= 64; });
  y.at(0, 0) += 1;
  EXPECT_EQ(y.pattern(), "part not written: rows >= 64; 1 more are written and wrong");
}

std::function<void(std::int64_t, std::int64_t)> garble(
    Output& y, const std::function<bool(std::int64_t, std::int64_t)>& where) {
  return [&y, where](std::int64_t r, std::int64_t c) {
    if (where(r, c)) y.at(r, c) = std::sin(static_cast<double>(13 * r + 7 * c * c)) * 9 + 20;
  };
}

TEST(Diagnose, OnlyTheLastRowsWrong) {
  Output y({100, 40});
  y.each(garble(y, [](auto r, auto) { return r >= 96; }));
  EXPECT_EQ(y.pattern(), "only rows >= 96");
}

TEST(Diagnose, OnlyTheLastColumnsWrong) {
  Output y({64, 100});
  y.each(garble(y, [](auto, auto c) { return c >= 96; }));
  EXPECT_EQ(y.pattern(), "only columns >= 96");
}

TEST(Diagnose, OnlyTheTailWrong) {
  Output y({10, 100});
  y.each(garble(y, [](auto r, auto c) { return r * 100 + c >= 992; }));
  EXPECT_EQ(y.pattern(), "only the tail: elements from flat index 992 on (8 of 1000)");
}

TEST(Diagnose, BothRaggedEdges) {
  Output y({70, 70});
  y.each(garble(y, [](auto r, auto c) { return r >= 64 || c >= 64; }));
  EXPECT_EQ(y.pattern(), "only both edges: rows >= 64 and columns >= 64");
}

TEST(Diagnose, ACornerOfTheLastTile) {
  Output y({70, 70});
  y.each(garble(y, [](auto r, auto c) { return r >= 64 && c >= 64; }));
  EXPECT_EQ(y.pattern(), "only rows >= 64, columns >= 64");
}

TEST(Diagnose, OneChannelOfAnImageBatch) {
  Output y({4, 8, 6, 6});
  for (std::size_t i = 0; i < y.got.size(); ++i)
    if (i / 36 % 8 == 5) y.got[i] = std::sin(static_cast<double>(i * i)) * 9 + 20;
  EXPECT_EQ(y.pattern(), "only index of dimension 1 5");
}

TEST(Diagnose, Transposed) {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{32, 32}, {20, 50}}) {
    Output y({rows, columns});
    y.each([&](auto r, auto c) { y.got[static_cast<std::size_t>(c * rows + r)] = y.truth(r, c); });
    EXPECT_EQ(y.pattern(), "transposed") << rows;
  }
}

TEST(Diagnose, EachMatrixOfABatchTransposed) {
  Output y({3, 16, 24});
  for (std::int64_t b = 0; b < 3; ++b)
    for (std::int64_t r = 0; r < 16; ++r)
      for (std::int64_t c = 0; c < 24; ++c)
        y.got[static_cast<std::size_t>(b * 384 + c * 16 + r)] =
            y.expected[static_cast<std::size_t>(b * 384 + r * 24 + c)];
  EXPECT_EQ(y.pattern(), "transposed");
}

TEST(Diagnose, OffByOneElement) {
  Output y({20, 30});
  y.each([&](auto r, auto c) { y.at(r, c) = c + 1 < 30 ? y.truth(r, c + 1) : -99; });
  EXPECT_EQ(y.pattern(), "off by one: each element holds the value of the next element");
}

TEST(Diagnose, OffByOneRow) {
  Output y({20, 30});
  y.each([&](auto r, auto c) { y.at(r, c) = r > 0 ? y.truth(r - 1, c) : -99; });
  EXPECT_EQ(y.pattern(), "off by one: each element holds the value of the previous row");
}

TEST(Diagnose, ScaledByAConstantNamesItsOrigin) {
  Output twice({20, 30}), mean({20, 30}), bessel({16, 8});
  twice.each([&](auto r, auto c) { twice.at(r, c) *= 2; });
  mean.each([&](auto r, auto c) { mean.at(r, c) /= 30; });
  bessel.each([&](auto r, auto c) { bessel.at(r, c) *= std::sqrt(7.0 / 8); });
  EXPECT_EQ(twice.pattern(), "scaled by a constant: 2");
  EXPECT_NE(twice.run().hint.find("accumulated twice"), std::string::npos);
  EXPECT_EQ(mean.pattern(), "scaled by a constant: 0.03333");
  EXPECT_NE(mean.run().hint.find("1 / 30"), std::string::npos);
  EXPECT_NE(bessel.run().hint.find("n - 1"), std::string::npos) << bessel.run().hint;
}

TEST(Diagnose, OffsetByAConstant) {
  Output y({20, 30});
  y.each([&](auto r, auto c) { y.at(r, c) += 0.25; });
  EXPECT_EQ(y.pattern(), "offset by a constant: +0.25");
}

TEST(Diagnose, SignFlipped) {
  Output y({20, 30});
  y.each([&](auto r, auto c) { y.at(r, c) = -y.at(r, c); });
  EXPECT_EQ(y.pattern(), "sign flipped");
}

TEST(Diagnose, RowsScaledDifferently) {
  Output y({20, 30});
  y.each([&](auto r, auto c) { y.at(r, c) *= 1.5 + 0.1 * static_cast<double>(r); });
  EXPECT_EQ(y.pattern(), "each row is scaled by a different factor");
}

TEST(Diagnose, ColumnsOffsetDifferently) {
  Output y({20, 30});
  y.each([&](auto r, auto c) { y.at(r, c) += 1 + 0.1 * static_cast<double>(c); });
  EXPECT_EQ(y.pattern(), "each column is offset by a different amount");
}

TEST(Diagnose, NaNInWholeRows) {
  Output y({20, 30});
  y.each([&](auto r, auto c) {
    if (r % 7 == 3) y.at(r, c) = std::nan("");
  });
  const Diagnosis diagnosis = y.run();
  EXPECT_NE(diagnosis.pattern.find("NaN in whole rows"), std::string::npos) << diagnosis.pattern;
  EXPECT_NE(diagnosis.hint.find("-inf"), std::string::npos);
}

TEST(Diagnose, NaNEverywhereIsNotTakenForPoison) {
  Output y({20, 30});
  y.each([&](auto r, auto c) { y.at(r, c) = std::nan(""); });
  EXPECT_EQ(y.pattern(), "NaN everywhere");
}

TEST(Diagnose, Infinity) {
  Output y({20, 30});
  y.each([&](auto r, auto c) { y.at(r, c) = std::numeric_limits<double>::infinity(); });
  EXPECT_EQ(y.pattern(), "infinite results");
}

TEST(Diagnose, AllZerosAndOneConstant) {
  Output zeros({20, 30}), ones({20, 30});
  std::fill(zeros.got.begin(), zeros.got.end(), 0.0);
  std::fill(ones.got.begin(), ones.got.end(), 7.5);
  EXPECT_EQ(zeros.pattern(), "all zeros");
  EXPECT_EQ(ones.pattern(), "one constant: 7.5");
}

TEST(Diagnose, RowsOfZeros) {
  Output y({40, 30});
  y.each([&](auto r, auto c) {
    if (r >= 32) y.at(r, c) = 0;
  });
  EXPECT_EQ(y.pattern(), "only rows >= 32: all zeros");
}

TEST(Diagnose, ACopyOfAnInputIsNamed) {
  Output y({20, 30});
  std::vector<float> x;
  for (std::size_t i = 0; i < y.got.size(); ++i)
    x.push_back(static_cast<float>(std::cos(static_cast<double>(i))));
  for (std::size_t i = 0; i < y.got.size(); ++i) y.got[i] = static_cast<double>(x[i]);
  y.inputs = {{"x", DType::kF32, std::as_bytes(std::span(x))}};
  EXPECT_EQ(y.pattern(), "a copy of x");
}

TEST(Diagnose, TheReluIsMissing) {
  Output y({20, 30});
  for (std::size_t i = 0; i < y.expected.size(); ++i) {
    y.expected[i] = std::max(0.0, y.expected[i]);
    y.scale[i] = y.expected[i];
  }
  EXPECT_NE(y.pattern().find("negative where 0 is expected"), std::string::npos) << y.pattern();
}

TEST(Diagnose, ScatteredElementsAreCountedAndNoCauseIsGuessed) {
  Output y({64, 64});
  std::mt19937_64 engine(8);
  for (int k = 0; k < 9; ++k) y.got[engine() % y.got.size()] += 1 + k;
  const Diagnosis diagnosis = y.run();
  EXPECT_EQ(diagnosis.pattern, "single elements here and there (9 of 4096)");
  EXPECT_EQ(diagnosis.hint.find("race"), std::string::npos);
}

TEST(Diagnose, ASingleElement) {
  Output y({64, 64});
  y.at(10, 20) = 0;
  EXPECT_EQ(y.pattern(), "a single element (1 of 4096)");
}

/// A product of k terms whose factors are first rounded to `type`.
Output rounded_product(DType type) {
  constexpr std::int64_t kN = 48, kK = 64;
  std::mt19937_64 engine(6);
  std::normal_distribution<double> normal;
  std::vector<double> a(kN * kK), b(kK * kN);
  for (auto* factors : {&a, &b})
    for (double& factor : *factors) factor = rounded_to(DType::kF32, normal(engine));
  Output y({kN, kN});
  y.each([&](auto r, auto c) {
    double exact = 0, rough = 0, scale = 0;
    for (std::int64_t k = 0; k < kK; ++k) {
      const double x = a[static_cast<std::size_t>(r * kK + k)], w = b[static_cast<std::size_t>(k * kN + c)];
      exact += x * w;
      rough += rounded_to(type, x) * rounded_to(type, w);
      scale += std::fabs(x * w);
    }
    const auto i = static_cast<std::size_t>(r * kN + c);
    y.expected[i] = exact;
    y.scale[i] = scale;
    y.got[i] = rough;
  });
  return y;
}

TEST(Diagnose, LowerPrecisionIsNamed) {
  const std::string half = rounded_product(DType::kF16).pattern();
  EXPECT_NE(half.find("as after rounding to fp16 or TF32"), std::string::npos) << half;
  // Larger errors have many reasons; that it is the inputs' type is tried (trials.h), not guessed.
  for (const DType type : {DType::kBF16, DType::kE4M3}) {
    const std::string pattern = rounded_product(type).pattern();
    EXPECT_EQ(pattern.find("errors everywhere, about "), 0u) << pattern;
  }
}

TEST(Diagnose, NoPatternStillSaysWhatToDo) {
  Output y({30, 30});
  y.each(garble(y, [](auto, auto) { return true; }));
  EXPECT_EQ(y.pattern(), "no pattern found");
}

TEST(Diagnose, AnotherSizeIsSaid) {
  const std::vector<double> expected(4, 1.0);
  const std::vector<std::byte> bytes(12);
  EXPECT_EQ(diagnose("y", DType::kF32, {4}, bytes, expected, expected, kDiagnosed, 1).pattern,
            "wrong number of elements");
}

TEST(MultiIndex, IsRowMajor) {
  EXPECT_EQ(multi_index({4, 5, 6}, 3 * 30 + 2 * 6 + 1), (std::vector<std::int64_t>{3, 2, 1}));
}

}  // namespace
}  // namespace capstone
