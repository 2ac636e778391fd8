// Replies that try to make a reader hang. Each has about a megabyte; a quadratic step would take minutes.
#include <gtest/gtest.h>

#include <random>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/reply/extract.h"
#include "tests/cpu_seconds.h"

namespace capstone {
namespace {

std::string repeat(std::string_view unit, std::size_t bytes = 1 << 20) {
  std::string text;
  text.reserve(bytes + unit.size());
  while (text.size() < bytes) text += unit;
  return text;
}

constexpr double kLimit = 20;  // [s]; a busy machine takes one

void expect_fast(const std::string& reply, const char* name) {
  Extraction out;
  EXPECT_LT(testing::cpu_seconds([&] { out = extract_code(reply); }), kLimit) << name;
  EXPECT_NE(out.code.empty(), out.why_not.empty()) << name;  // one or the other, always
}

TEST(HostileReply, InlineMarkupIsLinear) {
  for (const char* unit :
       {"`",  "``` ` ", "[",  "[a](", "![",    "*a _b ",    "**x",  "<",       "<a ",       "<!--",
        "<?", "&lt;",   "\\", "](",   "*_~`[", "<![CDATA[", "a<b@", "[]: x\n", "[a]: <b\n", "`a``b```c````d"})
    expect_fast(repeat(unit), unit);
}

TEST(HostileReply, NestingIsLinear) {
  for (const char* unit : {">", "> ", "- ", "* ", "1. ", "+ ", "> - ", "1) * "}) {
    expect_fast(repeat(unit), unit);
    expect_fast(repeat(unit) + "x\n" + repeat("a\n"), unit);
    expect_fast(repeat(repeat(unit, 4000) + "x\n"), unit);
  }
}

TEST(HostileReply, FencesAreLinear) {
  for (const char* unit : {"```\n", "```cuda\nx\n", "~~~\n```\n", "````\n```\n", "```cuda\nvoid f() {\n```\n",
                           "\t", "\n", "    a\n\n", "<pre>\n", "</pre", "<pre></pre>\n\n"})
    expect_fast(repeat(unit), unit);
}

TEST(HostileReply, CodeIsLinear) {
  for (const char* unit : {"{",       "}",
                           "(",       "\"",
                           "'",       "/*",
                           "//",      "#if\n",
                           "#else\n", "#define a a\\\n",
                           "R\"(",    "R\"x\n",
                           "u8R\"",   "extern \"C\" {",
                           "a ",      "<",
                           "launch(", "namespace a {",
                           "\"\"\"",  "@@ -1 +1 @@\n-a\n"})
    expect_fast("```cuda\n" + repeat(unit) + "\n```\n", unit);
}

TEST(HostileReply, BareCodeIsLinear) {
  for (const char* unit : {"#include <a>\n", "__global__ void f() {\n", "// c\n", "}\n",
                           "import torch\n\"\"\"", "@@ -1 +1 @@\n-a\n"})
    expect_fast("__global__ void k() {}\n" + repeat(unit), unit);
}

TEST(HostileReply, APatchAgainstARepetitiveBaseIsLinear) {
  std::string base = repeat("a\n"), patch = "```diff\n--- k\n+++ k\n@@ -5 +5 @@\n";
  for (int i = 0; i < 100000; ++i) patch += " a\n";
  patch += "-b\n+c\n```\n";
  EXPECT_LT(testing::cpu_seconds([&] { EXPECT_FALSE(extract_code(patch, base).why_not.empty()); }), kLimit);
}

TEST(HostileReply, SizeAndBlockLimits) {
  EXPECT_NE(extract_code(std::string(kMaxReplyBytes + 1, 'a')).why_not.find("more than the 4.00 MiB"),
            std::string::npos);
  std::string blocks;
  for (std::size_t i = 0; i <= kMaxCodeBlocks; ++i) blocks += "```c\nint a;\n```\n";
  EXPECT_NE(extract_code(blocks).why_not.find("1001 code blocks"), std::string::npos);
}

// Every fixture, with bytes changed and pieces removed, doubled and moved.
TEST(HostileReply, MutatedRepliesGiveCodeOrAReason) {
  std::vector<std::string> replies;
  for (const auto& entry : fs::directory_iterator(CAPSTONE_REPLIES))
    replies.push_back(read_file(entry.path()).value());
  std::mt19937 random(11);
  auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (int round = 0; round < 1500; ++round) {
    std::string text = replies[below(replies.size())];
    for (int edit = 0; edit < 6; ++edit) {
      std::size_t at = below(text.size()), length = below(80);
      switch (random() % 4) {
        case 0:
          if (!text.empty()) text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), length));
          break;
        default:
          text.insert(at, std::string_view("```\n{}\"'/*\r\0<", 13).substr(below(13)));
          break;
      }
    }
    Extraction out = extract_code(text, round % 2 ? std::optional<std::string>(replies[0]) : std::nullopt);
    EXPECT_NE(out.code.empty(), out.why_not.empty()) << text;
    EXPECT_TRUE(is_utf8(out.code)) << text;
    EXPECT_EQ(out.code.find_first_of(std::string_view("\0\r", 2)), std::string::npos) << text;
  }
}

TEST(HostileReply, Utf16IsExplained) {
  EXPECT_EQ(extract_code(std::string("\xFF\xFE#\0i\0", 6)).why_not,
            "the reply is a UTF-16 file; save it as UTF-8");
}

}  // namespace
}  // namespace capstone
