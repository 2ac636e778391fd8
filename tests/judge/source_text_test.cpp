#include "harness/judge/source_text.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

TEST(HiddenText, PlainSourcesAndOtherLanguagesInCommentsAreFine) {
  for (const char* source :
       {"int x = 1'000'000; // Größe, größer als 1 · µs\n", "/* Überschrift\n наверх */ int y;",
        "const char* s = \"naïve \\\" ünïcode\"; char c = '\\'';", "auto r = R\"x(\" übrig)x\"; int z;",
        "\xef\xbb\xbfint bom;", ""})
    EXPECT_EQ(label_of_hidden_text(source, false), "") << source;
  EXPECT_EQ(label_of_hidden_text("x = 1  # größer\ns = \"\"\"don't\nnaïve\"\"\"\n", true), "");
}

TEST(HiddenText, MarksOfDirectionAreNamedWherever) {
  EXPECT_EQ(label_of_hidden_text("int a;\n/* \xe2\x80\xae } */ if (x) {", false),
            "source: U+202E in line 2 changes the direction of writing: read it with care");
  EXPECT_NE(label_of_hidden_text("const char* s = \"\xe2\x81\xa6\";", false), "");
  EXPECT_NE(label_of_hidden_text("# \xe2\x80\x8f\n", true), "");
}

TEST(HiddenText, InvisibleCharactersAreNamed) {
  EXPECT_EQ(label_of_hidden_text("int a\xe2\x80\x8b"
                                 "b;",
                                 false),
            "source: U+200B in line 1 is invisible: read it with care");
}

TEST(HiddenText, LettersThatLookLikeOthersAreNamedInCodeAlone) {
  const std::string look_alike =
      "c\xd0\xbel"
      "s";  // a Cyrillic o
  EXPECT_EQ(label_of_hidden_text("// " + look_alike + "\n\nint " + look_alike + " = 1;", false),
            "source: U+043E in line 3 may look like another letter: read it with care");
  EXPECT_NE(label_of_hidden_text("/* */ int n = 1'000; int " + look_alike + ";", false), "");
  EXPECT_NE(label_of_hidden_text("s = 'a' # b\n" + look_alike + " = 1", true), "");
  EXPECT_NE(label_of_hidden_text("int \xff;", false), "") << "bytes that are no text";
}

}  // namespace
}  // namespace capstone
