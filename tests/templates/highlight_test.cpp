// Syntax highlighting keeps every character of a source, line by line.
#include "templates/highlight.h"

#include <gtest/gtest.h>

#include <string>

namespace capstone {
namespace {

std::string marked(const std::string& source) {
  std::string text;
  for (const auto& line : highlighted_lines(source)) {
    for (const Highlight& part : line)
      text += *part.kind ? std::string("<") + part.kind + ":" + std::string(part.text) + ">"
                         : std::string(part.text);
    text += "|";
  }
  return text;
}

TEST(Highlight, KnowsTheKindsOfTokens) {
  EXPECT_EQ(marked("#define N 4\n__global__ void f(float* y) { y[0] = 1.5f; } // one\n"),
            "<directive:#define N 4>|<keyword:__global__> <keyword:void> f(<keyword:float>* y) { "
            "y[<literal:0>] = <literal:1.5f>; } <comment:// one>|");
  EXPECT_EQ(marked("printf(\"a%d\", 'x');"), "printf(<string:\"a%d\">, <string:'x'>);|");
}

TEST(Highlight, ACommentOverSeveralLinesKeepsItsLines) {
  EXPECT_EQ(marked("a /* one\n\n two */ b\n"), "a <comment:/* one>||<comment: two */> b|");
}

TEST(Highlight, EmptyAndUnfinishedSourcesAreLines) {
  EXPECT_EQ(marked(""), "");
  EXPECT_EQ(marked("\n"), "|");
  EXPECT_EQ(marked("/* no end\n\"no end"), "<comment:/* no end>|<comment:\"no end>|");
}

}  // namespace
}  // namespace capstone
