// Hostile files are what their manifests say, and the readers are those that a stranger's file meets.
#include <gtest/gtest.h>

#include "harness/selftest/selftest.h"

namespace capstone {
namespace {

TEST(HostileInput, TextIsRepeatedBetweenItsEnds) {
  HostileInput input;
  input.begin = "a";
  input.repeat = "bc";
  input.times = 3;
  input.end = "d";
  EXPECT_EQ(hostile_text(input), "abcbcbcd");
}

TEST(HostileInput, HarmlessReplyIsRead) {
  HostileInput input;
  input.begin = "```cuda\n__global__ void k() {}\nextern \"C\" void launch() { k<<<1, 1>>>(); }\n```\n";
  EXPECT_EQ(input_readers().at("reply")(input), std::nullopt);
}

TEST(HostileInput, ArchivesAreRefusedForWhatTheyAre) {
  const auto reader = input_readers().at("submission");
  for (auto [kind, why] : {std::pair{"climbs", "climbs out"}, std::pair{"absolute", "absolute path"}, std::pair{"link", "a link"},
                           std::pair{"bomb", "larger than"}}) {
    HostileInput input;
    input.archive = kind;
    const auto refused = reader(input);
    ASSERT_TRUE(refused) << kind;
    EXPECT_NE(refused->find(why), std::string::npos) << *refused;
  }
}

TEST(Selftest, SlowReaderIsAnEscape) {
  Exhibit exhibit;
  exhibit.row = 28;
  exhibit.timeout_seconds = 1e-9;
  exhibit.input = HostileInput{"reply", "x", "", "", 0, "", false};
  SelftestRequest request;
  request.readers = input_readers();
  auto row = run_exhibit(exhibit, request, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(row);
  EXPECT_EQ(row->state, RowState::kEscaped);
}

TEST(Selftest, RefusalThatWasPromisedAndDidNotComeIsAnEscape) {
  Exhibit exhibit;
  exhibit.row = 28;
  exhibit.input = HostileInput{"reader", "", "", "", 0, "", true};
  SelftestRequest request;
  request.readers["reader"] = [](const HostileInput&) { return std::nullopt; };
  auto row = run_exhibit(exhibit, request, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(row);
  EXPECT_EQ(row->state, RowState::kEscaped);
}

TEST(Selftest, InputThatNothingReadsIsNotRun) {
  Exhibit exhibit;
  exhibit.row = 28;
  exhibit.input = HostileInput{"worklog", "", "", "", 0, "", true};
  auto row = run_exhibit(exhibit, {}, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(row);
  EXPECT_EQ(row->state, RowState::kNotRun);
}

TEST(Selftest, WhatCannotShowIsNotBuilt) {
  Exhibit exhibit;
  exhibit.row = 11;
  exhibit.emulated = {Expectation::Kind::kCannotShow, {}, "nothing is timed", {}};
  exhibit.source = "/nonexistent.cu";
  auto row = run_exhibit(exhibit, {}, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(row);
  EXPECT_EQ(row->state, RowState::kNotRun);
  EXPECT_EQ(row->why, "nothing is timed");
}

}  // namespace
}  // namespace capstone
