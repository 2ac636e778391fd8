#include "harness/base/instant.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

TEST(Instant, ReadsWhatPlatformsAndPeopleWrite) {
  const std::pair<const char*, const char*> cases[] = {
      {"2026-11-20T23:59Z", "2026-11-20T23:59:00Z"},
      {"2026-11-20 23:59:30 +01:00", "2026-11-20T22:59:30Z"},
      {"2021-03-05 14:22:33.123456000 -0800", "2021-03-05T22:22:33Z"},
      {" 2024-02-29T00:00:00Z ", "2024-02-29T00:00:00Z"},
      {"2026-01-01 00:30 +02:00", "2025-12-31T22:30:00Z"},
      {"1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"},
      {"2026-11-20 10:00 UTC", "2026-11-20T10:00:00Z"}};
  for (const auto& [written, utc] : cases) {
    auto read = parse_instant(written);
    ASSERT_TRUE(read) << written << ": " << read.error().what;
    EXPECT_EQ(utc_text(*read), utc) << written;
  }
}

TEST(Instant, RefusesWhatLeavesTheMomentOpen) {
  const std::pair<const char*, const char*> cases[] = {
      {"2026-11-20T23:59", "the time has no time zone"},
      {"2026-11-20", "not a date with a time of day"},
      {"20.11.2026 23:59 +01:00", "not a date with a time of day"},
      {"2026-02-30T10:00Z", "this date does not exist"},
      {"2026-11-20T24:00Z", "not a date with a time of day"},
      {"2026-11-20T10:00Z and more", "the time has no time zone"},
      {"", "not a date with a time of day"},
      {"2026-11-20T10:00+1:00", "the time has no time zone"}};
  for (const auto& [written, why] : cases) {
    auto read = parse_instant(written);
    ASSERT_FALSE(read) << written;
    EXPECT_EQ(read.error().what.substr(0, std::string(why).size()), why) << written;
    EXPECT_FALSE(read.error().hint.empty());
  }
}

}  // namespace
}  // namespace capstone
