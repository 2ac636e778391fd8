#include "rewriter/cxx_tokens.h"

#include <gtest/gtest.h>

#include <string>

namespace capstone {
namespace {

using Kind = CxxTokenKind;

std::vector<std::string> texts_of(std::string_view source) {
  std::vector<std::string> texts;
  for (const CxxToken& token : cxx_tokens(source)) texts.emplace_back(token.text);
  return texts;
}

TEST(CxxTokens, TheLongestPunctuatorButAlwaysOneClosingAngle) {
  EXPECT_EQ(texts_of("k<<<1,2>>>(a->*b)"),
            (std::vector<std::string>{"k", "<<<", "1", ",", "2", ">", ">", ">", "(", "a", "->*", "b", ")"}));
  EXPECT_EQ(texts_of("a<b<c>>::d"), (std::vector<std::string>{"a", "<", "b", "<", "c", ">", ">", "::", "d"}));
}

TEST(CxxTokens, NumbersAreWhole) {
  for (const char* number : {"1'000'000", "0x1p-3f", "1e+5f", ".5", "1.", "0b1'01u"})
    EXPECT_EQ(texts_of(number).size(), 1u) << number;
  EXPECT_EQ(texts_of("1-2").size(), 3u);
}

TEST(CxxTokens, LiteralsMayHoldAnything) {
  for (const char* literal :
       {"\"a\\\"//b\"", "R\"x(\n\" )\" )x\"", "u8\"a\"", "LR\"(//)\"", "'\\''", "u'\"'"}) {
    const auto tokens = cxx_tokens(literal);
    ASSERT_EQ(tokens.size(), 1u) << literal;
    EXPECT_EQ(tokens[0].text, literal);
    EXPECT_EQ(tokens[0].kind,
              literal[std::string_view(literal).size() - 1] == '\'' ? Kind::kCharacter : Kind::kString);
  }
  EXPECT_EQ(texts_of("\"no end\nint"), (std::vector<std::string>{"\"no end", "int"}));
}

TEST(CxxTokens, CommentsAndDirectives) {
  const auto tokens = cxx_tokens("/* a */ #define A \\\n 1 // why\nint a; // #b\n  # if A\nx #c");
  const std::vector<std::pair<Kind, std::string>> expected{
      {Kind::kComment, "/* a */"}, {Kind::kDirective, "#define A \\\n 1 "},
      {Kind::kComment, "// why"},  {Kind::kIdentifier, "int"},
      {Kind::kIdentifier, "a"},    {Kind::kPunctuator, ";"},
      {Kind::kComment, "// #b"},   {Kind::kDirective, "# if A"},
      {Kind::kIdentifier, "x"},    {Kind::kPunctuator, "#"},
      {Kind::kIdentifier, "c"}};
  ASSERT_EQ(tokens.size(), expected.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].kind, expected[i].first) << i;
    EXPECT_EQ(tokens[i].text, expected[i].second) << i;
  }
}

TEST(CxxTokens, LinesAreCountedThroughCommentsAndRawStrings) {
  const auto tokens = cxx_tokens("/*\n\n*/ R\"(\n)\" a\nb");
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[1].line, 3);
  EXPECT_EQ(tokens[2].line, 4);
  EXPECT_EQ(tokens[3].line, 5);
}

TEST(CxxTokens, WhatIsNotClosedSaysSo) {
  EXPECT_FALSE(cxx_tokens("/* a").at(0).closed);
  EXPECT_FALSE(cxx_tokens("R\"(a").at(0).closed);
  for (const char* closed : {"/**/", "R\"()\"", "// a", "\"a", "'"})
    EXPECT_TRUE(cxx_tokens(closed).at(0).closed) << closed;
}

TEST(CxxTokens, EveryByteOfAnyTextIsSpaceOrPartOfOneToken) {
  for (const std::string text : {"R\"x", "u8R\"toolongadelimiterhere(\"", "\\", "#", "#\\", "'\\",
                                 "@`\x80\xff", "1'", "e\"", "..", "/", "é→…"}) {
    const auto tokens = cxx_tokens(text);
    const char* at = text.data();
    for (const CxxToken& token : tokens) {
      EXPECT_EQ(token.text.data(), at) << text;
      EXPECT_FALSE(token.text.empty()) << text;
      at = token.text.data() + token.text.size();
    }
    EXPECT_EQ(at, text.data() + text.size()) << text;
  }
}

}  // namespace
}  // namespace capstone
