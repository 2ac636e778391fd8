// Progress events, as lines and as values.
#include "harness/judge/events.h"

#include <gtest/gtest.h>

#include <vector>

namespace capstone {
namespace {

TEST(StageEvents, AreLinesForThoseWhoShowText) {
  std::vector<std::string> lines;
  const Narration say = [&](const std::string& line) { lines.push_back(line); };
  StageEvent one(Stage::kGateOne, "human", "rows=64");
  one.number = 2;
  one.total = 9;
  say(one);
  one.build = "asan build: accesses out of bounds";
  say(one);
  StageEvent two(Stage::kGateTwo, {});
  two.number = 1;
  two.total = 5;
  two.seconds = 3.2;
  two.expected_seconds = 10;
  say(two);
  say({Stage::kBuild, {}, "human for the CPU"});
  say({Stage::kLoad, "llm"});
  say({Stage::kLoad, {}, "PyTorch 2.11.0"});
  say({Stage::kWait, {}, "NVIDIA H200: another capstone command is using it"});
  say({Stage::kEmulatedTimes, "human"});
  say("a note");
  const std::vector<std::string> expected{
      "human: gate one, case 2 of 9 (rows=64)",
      "human: gate one, case 2 of 9 (rows=64) (asan build: accesses out of bounds)",
      "gate two: restart 1 of at least 5, 3 s of about 10 s",
      "building human for the CPU",
      "loading llm",
      "starting PyTorch 2.11.0",
      "waiting for NVIDIA H200: another capstone command is using it",
      "human: emulated times",
      "a note"};
  EXPECT_EQ(lines, expected);
}

TEST(StageEvents, AreValuesForPrograms) {
  std::vector<StageEvent> events;
  const Narration say = [&](const StageEvent& event) { events.push_back(event); };
  say({Stage::kEmulatedTimes, "human"});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].stage, Stage::kEmulatedTimes);
  EXPECT_EQ(events[0].candidate, "human");
}

}  // namespace
}  // namespace capstone
