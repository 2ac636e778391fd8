#include "harness/project/reply/difference.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/cpu_seconds.h"

namespace capstone {
namespace {

TEST(Difference, EqualTextsHaveNone) { EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n"), ""); }

TEST(Difference, IsWhatDiffPrints) {
  std::string before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
  std::string after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n";
  EXPECT_EQ(unified_diff(before, after, {"prompt (template)", "prompt (sent)"}),
            "--- prompt (template)\n+++ prompt (sent)\n"
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
            "@@ -10,3 +10,4 @@\n 10\n 11\n 12\n+13\n");
}

TEST(Difference, AMissingLastNewlineIsADifference) {
  EXPECT_EQ(unified_diff("a\n", "a"),
            "--- before\n+++ after\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
}

TEST(Difference, EmptySides) {
  EXPECT_EQ(unified_diff("", "a\n"), "--- before\n+++ after\n@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(unified_diff("a\nb\n", ""), "--- before\n+++ after\n@@ -1,2 +0,0 @@\n-a\n-b\n");
}

TEST(Difference, IsShortest) {
  std::string diff = unified_diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n");
  auto count = [&](const std::string& mark) {
    int n = 0;
    for (std::size_t at = diff.find(mark, diff.find("@@")); at != diff.npos; at = diff.find(mark, at + 1))
      ++n;
    return n;
  };
  EXPECT_EQ(count("\n-") + count("\n+"), 5);  // the example of Myers' paper
}

TEST(Difference, ApplyingItGivesTheOtherText) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string a, b;
    int lines = static_cast<int>(random() % 60);
    for (int i = 0; i < lines; ++i) {
      std::string line = "line " + std::to_string(random() % 100000) + "\n";
      if (random() % 5) a += line;
      if (random() % 5) b += line;
    }
    if (a == b) continue;
    if (a.empty()) continue;  // a hunk without old lines is placed only by its number
    auto patched = apply_patch(a, unified_diff(a, b));
    ASSERT_TRUE(patched) << patched.error().what << "\n" << unified_diff(a, b);
    EXPECT_EQ(patched->text, b) << unified_diff(a, b);
  }
}

TEST(Difference, LargeAndUnlikeTextsStayFast) {
  std::string a, b;
  for (int i = 0; i < 60000; ++i) {
    a += "a" + std::to_string(i) + "\n";
    b += "b" + std::to_string(i) + "\n";
  }
  std::string diff;
  EXPECT_LT(testing::cpu_seconds([&] { diff = unified_diff("same\n" + a, "same\n" + b); }), 30);
  EXPECT_NE(diff.find("@@ -1,60001 +1,60001 @@"), diff.npos);
}

TEST(Patch, AmbiguousPlacesAreRefused) {
  auto patched = apply_patch("x\na\ny\na\nz\n", "--- k\n+++ k\n@@ -9 +9 @@\n-a\n+b\n");
  ASSERT_FALSE(patched);
  EXPECT_NE(patched.error().what.find("at several places"), std::string::npos);
  EXPECT_EQ(patched.error().where, "lines 2 and 4");
}

TEST(Patch, TheNamedLineDecidesWhereSeveralFit) {
  auto patched = apply_patch("x\na\ny\na\nz\n", "--- k\n+++ k\n@@ -4 +4 @@\n-a\n+b\n");
  ASSERT_TRUE(patched);
  EXPECT_EQ(patched->text, "x\na\ny\nb\nz\n");
  EXPECT_TRUE(patched->notes.empty());
}

TEST(Patch, WhitespaceMustMatch) {
  EXPECT_FALSE(apply_patch("  a\n", "--- k\n+++ k\n@@ -1 +1 @@\n-    a\n+b\n"));
}

TEST(Patch, SeveralFilesAreRefused) {
  auto patched = apply_patch("a\n", "--- k\n+++ k\n@@ -1 +1 @@\n-a\n+b\n--- l\n+++ l\n@@ -1 +1 @@\n-a\n+b\n");
  ASSERT_FALSE(patched);
  EXPECT_NE(patched.error().what.find("2 files"), std::string::npos);
}

}  // namespace
}  // namespace capstone
