// A mistake is named only where it explains the output.
#include "harness/correctness/trials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numbers>
#include <random>

#include "harness/correctness/dtype_convert.h"
#include "tests/correctness/case.h"

namespace capstone {
namespace {

constexpr std::int64_t kRows = 24, kInner = 45, kColumns = 40;

/// The operands of y = (x · w + u) * v, as floats.
struct Operands {
  const float *x, *w, *u, *v;
};

double element(const Operands& o, std::int64_t row, std::int64_t column, std::int64_t inner = kInner,
               std::int64_t columns = kColumns) {
  double sum = 0;
  for (std::int64_t k = 0; k < inner; ++k) sum += double(o.x[row * inner + k]) * o.w[k * columns + column];
  return (sum + o.u[column]) * o.v[column];
}

class AffineOracle : public Oracle::Source {
 public:
  Result<void> evaluate(const Problem&, const Sizes& sizes,
                        const std::vector<std::span<const std::byte>>& tensors, int,
                        std::span<const std::int64_t> indices, std::span<double> value,
                        std::span<double> scale) override {
    const std::int64_t inner = sizes[1].second, columns = sizes[2].second;
    const auto floats = [&](std::size_t i) { return reinterpret_cast<const float*>(tensors[i].data()); };
    const Operands operands{floats(0), floats(1), floats(2), floats(3)};
    for (std::size_t i = 0; i < indices.size(); ++i) {
      value[i] = element(operands, indices[i] / columns, indices[i] % columns, inner, columns);
      scale[i] = std::fabs(value[i]) + 1;
    }
    return {};
  }
};

using Kernel = std::function<double(const Operands&, std::int64_t row, std::int64_t column)>;

/// Examines the output of `kernel`, then tries mistakes on it.
CaseResult said_of(const Kernel& kernel, std::int64_t rows = kRows, std::int64_t columns = kColumns) {
  Problem problem;
  problem.id = "affine";
  problem.symbols = {"r", "k", "n"};
  problem.signature = {test::tensor("x", Role::kInput, DType::kF32, {"r", "k"}),
                       test::tensor("w", Role::kParameter, DType::kF32, {"k", "n"}),
                       test::tensor("u", Role::kParameter, DType::kF32, {"n"}),
                       test::tensor("v", Role::kParameter, DType::kF32, {"n"}),
                       test::tensor("y", Role::kOutput, DType::kF32, {"r", "n"})};
  problem.flops = Expression{"r * k * n"};
  problem.bytes = Expression{"r * k"};
  problem.tolerance = {1e-4, 1e-5};
  const Oracle oracle(std::make_shared<AffineOracle>());
  const CasePlan plan{"check-0", {{"r", rows}, {"k", kInner}, {"n", columns}}, 7, Battery::kPlain};
  const PreparedCase prepared = prepare_case(problem, plan, oracle, 0).value();
  std::vector<std::byte> before = prepared.image;
  poison_image(problem, prepared, before, 3);
  std::vector<std::byte> after = before;
  const auto at = [&](std::size_t slot) {
    return reinterpret_cast<float*>(after.data() + prepared.layout.tensors[slot].offset);
  };
  const Operands operands{at(0), at(1), at(2), at(3)};
  for (std::int64_t i = 0; i < rows * columns; ++i)
    at(4)[i] = static_cast<float>(kernel(operands, i / columns, i % columns));
  CaseResult result = examine(problem, prepared, before, after, 3);
  EXPECT_TRUE(try_mistakes(problem, prepared, before, after, oracle, result));
  return result;
}

/// The right computation with other operands, each read through a function of its index.
Kernel with(const std::function<double(const Operands&, char, std::int64_t)>& read) {
  return [read](const Operands& o, std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t k = 0; k < kInner; ++k)
      sum += read(o, 'x', row * kInner + k) * read(o, 'w', k * kColumns + column);
    return (sum + read(o, 'u', column)) * read(o, 'v', column);
  };
}
double value(const Operands& o, char name, std::int64_t i) {
  return (name == 'x' ? o.x : name == 'w' ? o.w : name == 'u' ? o.u : o.v)[i];
}

struct Mistake {
  std::string pattern;
  Kernel kernel;
};

TEST(Trials, NameTheMistakeThatExplainsTheOutput) {
  const auto reads = [](char which, auto change) {
    return with([=](const Operands& o, char name, std::int64_t i) {
      return name == which ? change(o, i) : value(o, name, i);
    });
  };
  const std::vector<Mistake> mistakes = {
      {"as if u were 0", reads('u', [](const Operands&, std::int64_t) { return 0.0; })},
      {"as if v were 1", reads('v', [](const Operands&, std::int64_t) { return 1.0; })},
      {"as if u counted twice", reads('u', [](const Operands& o, std::int64_t i) { return 2.0 * o.u[i]; })},
      {"as if u had the other sign", reads('u', [](const Operands& o, std::int64_t i) { return -o.u[i]; })},
      {"as if u and v were swapped", with([](const Operands& o, char name, std::int64_t i) {
         return value(o, name == 'u' ? 'v' : name == 'v' ? 'u' : name, i);
       })},
      {"as if u were read in place of v",
       reads('v', [](const Operands& o, std::int64_t i) { return o.u[i]; })},
      {"as if u were added after the multiplication by v, not before",
       [](const Operands& o, std::int64_t row, std::int64_t column) {
         return element({o.x, o.w, o.u, o.v}, row, column) - o.u[column] * o.v[column] + o.u[column];
       }},
      {"as if w were stored by columns",
       reads('w',
             [](const Operands& o, std::int64_t i) { return o.w[i % kColumns * kInner + i / kColumns]; })},
      {"as if a row of x had 24 elements, not 45",
       reads('x', [](const Operands& o, std::int64_t i) { return o.x[i / kInner * kRows + i % kInner]; })},
      {"off by one: as if each element of u were read at its index + 1",
       reads('u', [](const Operands& o, std::int64_t i) { return o.u[std::min(i + 1, kColumns - 1)]; })},
      {"as if v[0] were read for every element",
       reads('v', [](const Operands& o, std::int64_t) { return o.v[0]; })},
      {"as if the last 13 of 45 elements of each row of x were left out",
       reads('x', [](const Operands& o, std::int64_t i) { return i % kInner < 32 ? o.x[i] : 0; })},
      {"as if the last element of each row of x were left out",
       reads('x', [](const Operands& o, std::int64_t i) { return i % kInner < kInner - 1 ? o.x[i] : 0; })},
      {"stale tile: as if the first tile of x (16 elements) were used again and again",
       reads('x',
             [](const Operands& o, std::int64_t i) { return o.x[i / kInner * kInner + i % kInner % 16]; })},
      // Three tiles for 45 elements: the last one is whole.
      {"stale tile: as if the first tile along k (16 elements) were used again and again",
       [](const Operands& o, std::int64_t row, std::int64_t column) {
         double sum = 0;
         for (std::int64_t k = 0; k < 48; ++k)
           sum += double(o.x[row * kInner + k % 16]) * o.w[k % 16 * kColumns + column];
         return (sum + o.u[column]) * o.v[column];
       }},
      {"as if u counted 24 times (r)",
       reads('u', [](const Operands& o, std::int64_t i) { return 24.0 * o.u[i]; })},
      {"as if the exponential of x had base 2",
       reads('x', [](const Operands& o, std::int64_t i) { return std::numbers::ln2 * o.x[i]; })},
      {"as if the variance were divided by 39, not by 40",
       reads('u', [](const Operands& o, std::int64_t i) { return std::sqrt(39.0 / 40) * o.u[i]; })},
      {"as if u were read at the row's index, not at the column's",
       [](const Operands& o, std::int64_t row, std::int64_t column) {
         return element(o, row, column) + (o.u[row] - o.u[column]) * o.v[column];
       }},
      {"precision: as if the inputs were rounded to bf16",
       with([](const Operands& o, char name, std::int64_t i) {
         return rounded_to(DType::kBF16, value(o, name, i));
       })},
      {"transposed inside each tile of 8 x 8",
       [](const Operands& o, std::int64_t row,
          std::int64_t column) { return element(o, row / 8 * 8 + column % 8, column / 8 * 8 + row % 8); }},
  };
  for (const Mistake& mistake : mistakes) {
    const CaseResult result = said_of(mistake.kernel);
    ASSERT_TRUE(result.diagnosis) << mistake.pattern;
    EXPECT_EQ(result.diagnosis->pattern, mistake.pattern);
    EXPECT_EQ(result.problem, "wrong result: " + mistake.pattern);
    EXPECT_FALSE(result.hint.empty());
  }
}

/// y = a * x + b
class ScalarOracle : public Oracle::Source {
 public:
  Result<void> evaluate(const Problem& problem, const Sizes& sizes,
                        const std::vector<std::span<const std::byte>>& tensors, int,
                        std::span<const std::int64_t> indices, std::span<double> value,
                        std::span<double> scale) override {
    const double a = problem.signature[1].value->evaluate(sizes).value(),
                 b = problem.signature[2].value->evaluate(sizes).value();
    const auto* x = reinterpret_cast<const float*>(tensors[0].data());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      value[i] = a * x[indices[i]] + b;
      scale[i] = 1;
    }
    return {};
  }
};

TEST(Trials, NameAScalarThatIsLeftOut) {
  const auto scalar = [](const char* name, const char* value) {
    Parameter parameter = test::tensor(name, Role::kScalar, DType::kF32, {});
    parameter.value = Expression{value};
    return parameter;
  };
  Problem problem;
  problem.id = "line";
  problem.symbols = {"n"};
  problem.signature = {test::tensor("x", Role::kInput, DType::kF32, {"n"}), scalar("a", "0.75"),
                       scalar("b", "0.5"), test::tensor("y", Role::kOutput, DType::kF32, {"n"})};
  problem.flops = problem.bytes = Expression{"n"};
  problem.tolerance = {1e-4, 1e-5};
  const Oracle oracle(std::make_shared<ScalarOracle>());
  const PreparedCase prepared =
      prepare_case(problem, {"check-0", {{"n", 300}}, 7, Battery::kPlain}, oracle, 0).value();
  const auto said = [&](float a, float b) {
    std::vector<std::byte> before = prepared.image;
    poison_image(problem, prepared, before, 3);
    std::vector<std::byte> after = before;
    const auto* x = reinterpret_cast<const float*>(after.data() + prepared.layout.tensors[0].offset);
    auto* y = reinterpret_cast<float*>(after.data() + prepared.layout.tensors[1].offset);
    for (int i = 0; i < 300; ++i) y[i] = a * x[i] + b;
    CaseResult result = examine(problem, prepared, before, after, 3);
    EXPECT_TRUE(try_mistakes(problem, prepared, before, after, oracle, result));
    return result.problem;
  };
  EXPECT_EQ(said(1, 0.5f), "wrong result: as if a were 1");
  EXPECT_EQ(said(0.75f, 0), "wrong result: as if b were 0");
}

/// y[r] = sum over k of x[r, k] * s[k / 16]; refuses scales of another number, as oracles do.
class GroupedOracle : public Oracle::Source {
 public:
  Result<void> evaluate(const Problem&, const Sizes& sizes,
                        const std::vector<std::span<const std::byte>>& tensors, int,
                        std::span<const std::int64_t> indices, std::span<double> value,
                        std::span<double> scale) override {
    const std::int64_t inner = sizes[1].second;
    const auto groups = static_cast<std::size_t>((inner + 15) / 16);
    if (tensors[1].size() != groups * sizeof(float)) return fail("another number of scales");
    const auto *x = reinterpret_cast<const float*>(tensors[0].data()),
               *s = reinterpret_cast<const float*>(tensors[1].data());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      value[i] = 0;
      for (std::int64_t k = 0; k < inner; ++k) value[i] += double(x[indices[i] * inner + k]) * s[k / 16];
      scale[i] = std::fabs(value[i]) + 1;
    }
    return {};
  }
};

TEST(Trials, ASizeThatWouldNeedFewerGroupsIsNotTried) {
  Problem problem;
  problem.id = "grouped";
  problem.symbols = {"r", "k"};
  problem.signature = {test::tensor("x", Role::kInput, DType::kF32, {"r", "k"}),
                       test::tensor("s", Role::kInput, DType::kF32, {"ceil_div(k, 16)"}),
                       test::tensor("y", Role::kOutput, DType::kF32, {"r"})};
  problem.flops = problem.bytes = Expression{"r * k"};
  problem.tolerance = {1e-4, 1e-5};
  const Oracle oracle(std::make_shared<GroupedOracle>());
  const PreparedCase prepared =
      prepare_case(problem, {"check-0", {{"r", 300}, {"k", 45}}, 7, Battery::kPlain}, oracle, 0).value();
  std::vector<std::byte> before = prepared.image;
  poison_image(problem, prepared, before, 3);
  std::vector<std::byte> after = before;
  auto* y = reinterpret_cast<float*>(after.data() + prepared.layout.tensors[2].offset);
  for (int r = 0; r < 300; ++r) y[r] = static_cast<float>(r * r % 17);  // no mistake explains it: all are tried
  CaseResult result = examine(problem, prepared, before, after, 3);
  EXPECT_TRUE(try_mistakes(problem, prepared, before, after, oracle, result));
  EXPECT_EQ(result.problem.find("as if"), std::string::npos) << result.problem;
}

TEST(Trials, SayNothingWhereNoMistakeExplainsTheOutput) {
  std::mt19937_64 engine(5);
  std::normal_distribution<double> noise;
  std::vector<double> random(kRows * kColumns);
  for (double& each : random) each = noise(engine);
  const auto number = [&](std::int64_t row, std::int64_t column) {
    return random[static_cast<std::size_t>(row * kColumns + column)];
  };
  const std::vector<Kernel> kernels = {
      [&](const Operands&, std::int64_t r, std::int64_t c) { return number(r, c); },
      [&](const Operands& o, std::int64_t r, std::int64_t c) {
        return element(o, r, c) + 0.1 * number(r, c);
      },
      [&](const Operands& o, std::int64_t r, std::int64_t c) { return element(o, r, c) * (1 + 0.1 * r); },
      [&](const Operands& o, std::int64_t r, std::int64_t c) { return std::sin(element(o, r, c)); },
      [&](const Operands& o, std::int64_t r, std::int64_t c) { return element(o, (r * 7 + 3) % kRows, c); },
      [&](const Operands& o, std::int64_t r, std::int64_t c) {
        return element(o, r, c) + o.u[(c * 5) % kColumns];
      },
      [&](const Operands& o, std::int64_t r, std::int64_t c) {
        return r < 3 && c < 5 ? 1.5 : element(o, r, c);
      },
  };
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const CaseResult result = said_of(kernels[i]);
    ASSERT_TRUE(result.diagnosis) << i;
    EXPECT_EQ(result.diagnosis->pattern.find("as if"), std::string::npos) << result.diagnosis->pattern;
    EXPECT_EQ(result.diagnosis->pattern.find("tile"), std::string::npos) << result.diagnosis->pattern;
  }
}

// Among the many trials, some come near to any number.
TEST(Trials, OneNumberThatIsOffByLittleIsSeldomExplained) {
  int named = 0, wrong = 0;
  for (int tolerances = 5; tolerances < 205; ++tolerances) {
    const CaseResult said = said_of(
        [&](const Operands& o, std::int64_t, std::int64_t) {
          const double right = element(o, 0, 0, kInner, 1);
          return right + tolerances * 1e-4 * (std::fabs(right) + 1);
        },
        1, 1);
    wrong += !said.passed;
    named += said.diagnosis && said.diagnosis->pattern.find("as if") != std::string::npos;
  }
  EXPECT_EQ(wrong, 200);
  EXPECT_LE(named, 10);  // 28 by the rules for many numbers
}

TEST(Trials, ARightOutputStaysRight) {
  const CaseResult result =
      said_of([](const Operands& o, std::int64_t r, std::int64_t c) { return element(o, r, c); });
  EXPECT_TRUE(result.passed);
  EXPECT_FALSE(result.diagnosis);
}

TEST(Trials, TheMapShowsWhereTheWrongElementsAre) {
  const CaseResult result = said_of([](const Operands& o, std::int64_t r, std::int64_t c) {
    return r >= 16 && c >= 32 ? 1e6 * static_cast<double>(r * c) : element(o, r, c);
  });
  ASSERT_TRUE(result.diagnosis);
  EXPECT_EQ(result.diagnosis->map_of, "y, 2 x 1 elements a cell");
  ASSERT_EQ(result.diagnosis->map.size(), 12u);
  std::string right, half;
  for (int i = 0; i < 40; ++i) right += "·";
  for (int i = 0; i < 32; ++i) half += "·";
  for (int i = 0; i < 8; ++i) half += "█";
  EXPECT_EQ(result.diagnosis->map.front(), right);
  EXPECT_EQ(result.diagnosis->map.back(), half);
}

}  // namespace
}  // namespace capstone
