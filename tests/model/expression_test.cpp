#include "harness/model/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace capstone {
namespace {

const Sizes kSizes = {{"rows", 6}, {"cols", 4}, {"hq", 32}, {"hk", 8}};

double value(const std::string& text) {
  auto result = Expression{text}.evaluate(kSizes);
  EXPECT_TRUE(result) << text << ": " << (result ? "" : result.error().what);
  return result.value_or(-12345);
}

Error error_of(const std::string& text) {
  auto result = Expression{text}.evaluate(kSizes);
  EXPECT_FALSE(result) << text << " = " << *result;
  return result ? Error{} : result.error();
}

TEST(Expression, ArithmeticFollowsPrecedence) {
  EXPECT_EQ(value("rows"), 6);
  EXPECT_EQ(value("2 + 3 * cols"), 14);
  EXPECT_EQ(value("4 * (3 * rows * cols + 3 * cols)"), 336);
  EXPECT_EQ(value("-rows + 10"), 4);
  EXPECT_EQ(value("2^10"), 1024);
  EXPECT_EQ(value("7 / 2"), 3.5);
  EXPECT_DOUBLE_EQ(value("1.0e-5"), 1e-5);
}

TEST(Expression, ModuloBindsLikeMultiplication) {
  EXPECT_EQ(value("hq % hk"), 0);
  EXPECT_EQ(value("rows % cols + 1"), 3);
  EXPECT_EQ(value("2 * rows % 5"), 2);
}

TEST(Expression, RelationsAreOneOrZero) {
  EXPECT_EQ(value("hq % hk == 0"), 1);
  EXPECT_EQ(value("rows < cols || cols <= 4"), 1);
  EXPECT_EQ(value("rows < cols && cols <= 4"), 0);
  EXPECT_EQ(value("rows != 6"), 0);
}

TEST(Expression, FunctionsRoundUpAndDivide) {
  EXPECT_EQ(value("ceil_div(rows, cols)"), 2);
  EXPECT_EQ(value("round_up(rows, 16)"), 16);
  EXPECT_EQ(value("max(rows, cols, hk)"), 8);
  EXPECT_EQ(value("min(rows, cols)"), 4);
  EXPECT_EQ(value("floor(7/2) + ceil(7/2)"), 7);
  EXPECT_EQ(value("log2(hq) + sqrt(cols) + abs(0-1)"), 8);
}

// floor((24 - 2) / 11) was 1, because the library's optimizer divided each summand.
TEST(Expression, AQuotientThatIsWholeStaysWhole) {
  for (int r = 2; r <= 64; ++r)
    for (int q = -9; q <= 9; ++q)
      for (int h = 10; h < 80; h += 3) {
        const auto floored = evaluate_expression(
            "floor((h + " + std::to_string(q) + ") / " + std::to_string(r) + ")", {{"h", h}});
        ASSERT_TRUE(floored);
        ASSERT_EQ(*floored, std::floor(double(h + q) / r)) << h << " " << q << " " << r;
      }
  EXPECT_EQ(*evaluate_expression("floor((height - 2) / 11)", {{"height", 24}}), 2);
  EXPECT_EQ(*evaluate_whole("3 * (2 * height + 6) / 9", {{"height", 24}}), 18);
}

TEST(Expression, UndefinedSymbolNamesTheNearest) {
  const Error error = error_of("2 * row");
  EXPECT_EQ(error.what, "undefined symbol `row`");
  EXPECT_EQ(error.hint, "did you mean `rows`?");
  EXPECT_NE(error.where.find("character 5"), std::string::npos) << error.where;
}

TEST(Expression, UndefinedFunctionNamesTheNearest) {
  const Error error = error_of("ceildiv(rows, 2)");
  EXPECT_EQ(error.what, "no function `ceildiv`");
  EXPECT_EQ(error.hint, "did you mean `ceil_div`?");
}

TEST(Expression, SyntaxErrorsAreErrors) {
  for (const char* text : {"",
                           "  ",
                           "rows +",
                           "rows cols",
                           "(rows",
                           "rows)",
                           "()",
                           "2rows",
                           "rows,cols",
                           "max(",
                           "max()",
                           "rows = 2",
                           "rows & cols",
                           "\"rows\"",
                           "rows ? 1 : 2",
                           "rows; cols",
                           "*",
                           "1..2",
                           "0x10",
                           "rows[0]",
                           "min(1,2",
                           "rows */ cols",
                           "rows // cols",
                           "ceil_div(1)"}) {
    const auto result = Expression{text}.evaluate(kSizes);
    EXPECT_FALSE(result) << text << " = " << *result;
    if (!result) {
      EXPECT_FALSE(result.error().what.empty()) << text;
    }
  }
}

TEST(Expression, AssignmentHasAHint) { EXPECT_EQ(error_of("rows = 6").hint, "write `==`"); }

TEST(Expression, ConstantsOfTheLibraryAreNotVisible) {
  EXPECT_EQ(error_of("_pi").what, "undefined symbol `_pi`");
  EXPECT_EQ(error_of("rnd()").what, "no function `rnd`");
}

TEST(Expression, NoFiniteValueIsAnError) {
  for (const char* text : {"1 / (rows - 6)", "rows % 0", "log2(0)", "sqrt(0-1)", "10^400"})
    EXPECT_NE(error_of(text).what.find("no finite value"), std::string::npos) << text;
}

TEST(Expression, WholeNumbersAreRoundedAndChecked) {
  EXPECT_EQ(*Expression{"rows / 3 * 3"}.evaluate_integer(kSizes), 6);
  EXPECT_EQ(*Expression{"10 * 0.3"}.evaluate_integer({}), 3);
  EXPECT_FALSE(Expression{"rows / 4"}.evaluate_integer(kSizes));
  EXPECT_FALSE(Expression{"cols - rows"}.evaluate_integer(kSizes));
  EXPECT_FALSE(Expression{"2^60"}.evaluate_integer(kSizes));
}

TEST(Expression, HostileTextIsRefusedQuickly) {
  EXPECT_FALSE(Expression{std::string(100000, '(')}.evaluate(kSizes));
  EXPECT_FALSE(Expression{std::string(500, '-') + "1"}.evaluate({{"a", 1}}).value_or(0) > 1);
  EXPECT_FALSE(Expression{std::string("ro\0ws", 5)}.evaluate(kSizes));
}

TEST(Expression, SymbolsComeInOrderWithoutFunctionsAndExponents) {
  std::vector<std::string> names;
  for (const SymbolUse& use : symbols_in("max(b, 1e5) * a + 2.5e-3 * b")) names.push_back(use.name);
  EXPECT_EQ(names, (std::vector<std::string>{"b", "a", "b"}));
}

TEST(Expression, OneThatWasReadIsReadAgainWhenItsSymbolsChange) {
  const auto at = [](const std::string& text, const Sizes& sizes) {
    return evaluate_expression(text, sizes);
  };
  EXPECT_EQ(at("a * b + 1", {{"a", 2}, {"b", 3}}), 7);
  EXPECT_EQ(at("a * b + 1", {{"a", 4}, {"b", 3}}), 13) << "other values";
  EXPECT_EQ(at("a * b + 1", {{"b", 5}, {"a", 4}, {"c", 9}}), 21) << "other symbols";
  EXPECT_FALSE(at("a * b + 1", {{"a", 4}})) << "one symbol less";
  EXPECT_FALSE(at("a * / b", {{"a", 4}, {"b", 2}}));
  EXPECT_FALSE(at("a * / b", {{"a", 4}, {"b", 2}})) << "what was refused stays refused";
  EXPECT_FALSE(at("a / b + 0", {{"a", 4}, {"b", 0}}));
  EXPECT_EQ(at("a / b + 0", {{"a", 4}, {"b", 2}}), 2) << "finite again";
  EXPECT_EQ(at("4096", {}), 4096);
}

TEST(Expression, ThreadsDoNotDisturbEachOther) {
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 500; ++i) {
        auto result = Expression{"rows * 1000 + cols % 7"}.evaluate({{"rows", t}, {"cols", i}});
        if (!result || *result != t * 1000 + i % 7) ++wrong[t];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace capstone
