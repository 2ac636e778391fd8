#include "harness/base/json.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace capstone
