#include "harness/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace capstone {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Text, TrimJoinReplace) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(replace_all("aaa", "a", "aa"), "aaaaaa") << "what was put in is not looked at again";
  EXPECT_EQ(replace_all("abc", "", "x"), "abc");
}

TEST(Utf8, AcceptsWellFormedText) {
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8("µs × 2 → 日本 😀"));
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8, RejectsEveryKindOfMalformedByte) {
  EXPECT_FALSE(is_utf8("\xC0\xAF")) << "overlong";
  EXPECT_FALSE(is_utf8("\xE0\x80\xAF")) << "overlong";
  EXPECT_FALSE(is_utf8("\xED\xA0\x80")) << "surrogate";
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80")) << "above U+10FFFF";
  EXPECT_FALSE(is_utf8("abc\xE2\x82")) << "cut short";
  EXPECT_FALSE(is_utf8("\x80")) << "lone continuation";
  EXPECT_FALSE(is_utf8("\xFF"));
}

TEST(Printable, KeepsLinesAndTabsAndDropsWhatATerminalObeys) {
  EXPECT_EQ(printable("a\tb\nc\r\nµ"), "a\tb\nc\r\nµ");
  EXPECT_EQ(printable("\x1b[2Jx\ry\x7f\xc2\x9bz"), "\xEF\xBF\xBD[2Jx\xEF\xBF\xBDy\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(Utf8, ReplacesOnlyWhatIsMalformed) {
  EXPECT_EQ(to_utf8("caf\xE9 µ"), "caf\xEF\xBF\xBD µ");
  EXPECT_TRUE(is_utf8(to_utf8("\xF0\x9F\xFF\xC3")));
  EXPECT_EQ(to_utf8("日本"), "日本");
}

TEST(Formats, TimesCarryTheirUnitAndThreeDigits) {
  EXPECT_EQ(format_time_ms(0.0412), "41.2 µs");
  EXPECT_EQ(format_time_ms(1.234), "1.23 ms");
  EXPECT_EQ(format_time_ms(4500), "4.50 s");
  EXPECT_EQ(format_time_ms(0.9996), "1.00 ms") << "rounds up into the next unit";
  EXPECT_EQ(format_time_ms(999.7), "1.00 s");
  EXPECT_EQ(format_time_ms(0.0000512), "0.0512 µs");
  EXPECT_EQ(format_time_ms(0), "0 µs");
  EXPECT_EQ(format_time_ms(kNaN), "n/a");
}

TEST(Formats, SpeedupsHaveThreeDigitsOnBothSidesOfOne) {
  EXPECT_EQ(format_speedup(2.0833), "2.08x");
  EXPECT_EQ(format_speedup(0.5124), "0.512x");
  EXPECT_EQ(format_speedup(0.0512), "0.0512x");
  EXPECT_EQ(format_speedup(9.996), "10.0x");
  EXPECT_EQ(format_speedup(99.96), "100x");
  EXPECT_EQ(format_speedup(1234), "1234x");
  EXPECT_EQ(format_speedup(kNaN), "n/a");
  EXPECT_EQ(format_speedup(std::numeric_limits<double>::infinity()), "n/a");
}

TEST(Formats, RatesAndBytes) {
  EXPECT_EQ(format_bandwidth(3.35e12), "3.35 TB/s");
  EXPECT_EQ(format_bandwidth(412e9), "412 GB/s");
  EXPECT_EQ(format_bandwidth(999.9e9), "1.00 TB/s");
  EXPECT_EQ(format_flops(51.6e12), "51.6 TFLOP/s");
  EXPECT_EQ(format_flops(27e9), "27.0 GFLOP/s");
  EXPECT_EQ(format_flops(kNaN), "n/a");
  EXPECT_EQ(format_bytes(1.5 * 1024 * 1024 * 1024), "1.50 GiB");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(2048), "2.00 KiB");
}

TEST(Clock, UtcIsIso8601WithSeconds) {
  const std::string now = utc_now();
  ASSERT_EQ(now.size(), 20u) << now;
  EXPECT_EQ(now[10], 'T');
  EXPECT_EQ(now.back(), 'Z');
  EXPECT_GE(std::stoi(now.substr(0, 4)), 2024);
}

}  // namespace
}  // namespace capstone
