#include "harness/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "harness/base/json_number.h"

namespace capstone {
namespace {

std::string nested(int depth, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(ParseJson, WhatIsNestedTooDeepIsRefusedAndEndsNothing) {
  for (const auto& [open, close] :
       {std::pair("[", "]"), std::pair("{\"a\":", "}"), std::pair("[{\"a\":", "}]")})
    for (const int depth : {201, 10000, 200000}) {
      EXPECT_TRUE(parse_json(nested(depth, open, close)).is_discarded()) << open << depth;
      EXPECT_TRUE(parse_json(nested(depth, open, "")).is_discarded()) << open << depth;
    }
  EXPECT_TRUE(parse_json(nested(200, "[", "]")).is_array());
  EXPECT_TRUE(parse_json(nested(100, "[{\"a\":", "}]")).is_array());
}

TEST(ParseJson, BracketsInStringsAreNoDepth) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(parse_json("\"" + brackets + "\""), brackets);
  EXPECT_EQ(parse_json("[\"\\\"" + brackets + "\"]").at(0), "\"" + brackets);
  EXPECT_TRUE(parse_json("\"\\\\\"" + brackets).is_discarded()) << "the string ends before them";
}

TEST(ParseJson, WhatIsNoJsonIsDiscarded) {
  for (const char* text : {"", "{", "]", "\"", "\"\\", "{\"a\":1}}", "nope"})
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
  EXPECT_EQ(parse_json("{\"a\":[1,2]}").at("a").at(1), 2);
}

TEST(JsonNumber, NaNAndInfinityTravelAsWordsAndComeBack) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.5, -0.0, kInfinity, -kInfinity})
    EXPECT_EQ(number_from(parse_json(number(value).dump())), value);
  EXPECT_EQ(number(-kInfinity).dump(), "\"-Infinity\"");
  const std::optional<double> nan = number_from(parse_json(number(std::nan("")).dump()));
  ASSERT_TRUE(nan);
  EXPECT_TRUE(std::isnan(*nan));
}

TEST(JsonNumber, AnotherWordOrNothingIsNoNumber) {
  for (const char* text : {"null", "\"inf\"", "true", "[1]"})
    EXPECT_FALSE(number_from(parse_json(text))) << text;
}

}  // namespace
}  // namespace capstone
