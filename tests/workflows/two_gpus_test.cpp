// The exchange between two GPUs: what the program's lines become, what the reader refuses, and how a time is
// split into wire and wait. The numbers are made up so that every part can be computed by hand.
#include "harness/workflows/two_gpus.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace capstone::workflows {
namespace {

Json lists(const std::vector<double>& first, const std::vector<double>& second) {
  return std::vector<std::vector<double>>{first, second};
}

// A plain copy of 100 MB takes 1000 µs out of GPU 0 and 500 µs out of GPU 1 when both copy: 100 and 200 GB/s.
Json record() {
  const Json samples = Json::array({Json::array({110, 150, 240, 120, 190, 250, 1, 2, 3, 4, 5, 6})});
  const Json queued = Json::array({Json::array({85, 130, 215, 90, 160, 210, 1, 2, 3, 4, 5, 6})});
  const Json one = {{"method", "copies"},
                    {"tokens", 128},
                    {"routing", "70/30"},
                    {"format", "e4m3"},
                    {"crossing", {120, 128}},
                    {"expert_rows", {1434, 614}},
                    {"dispatch_bytes", {5000000, 8000000}},
                    {"combine_bytes", {4000000, 2000000}},
                    {"checked", 1835008},
                    {"wrong", 0},
                    {"lost", 0},
                    {"launched", samples},
                    {"queued", queued}};
  return {{"demo", "two-gpus"},
          {"schema", 1},
          {"tool", "0.2.0"},
          {"time", "2026-11-27T00:00:00Z"},
          {"device", "2 x made up"},
          {"nccl", ""},
          {"no_nccl", "not here"},
          {"stopped", ""},
          {"timer_step_ns", 32},
          {"link", {{"bytes", 100e6}, {"alone_us", lists({900}, {450})}, {"both_us", lists({1000}, {500})}}},
          {"cases", Json::array({one})}};
}

std::string refusal(const Json& json) {
  const auto run = read_two_gpus(json);
  return run ? "accepted" : run.error().what;
}

TEST(TwoGpus, WireIsTheBytesOfTheSlowerDirectionAtTheBandwidthWhenBothCopy) {
  const auto run = read_two_gpus(record());
  ASSERT_TRUE(run) << run.error().what;
  EXPECT_DOUBLE_EQ(run->bandwidth(0), 100e9);
  EXPECT_DOUBLE_EQ(run->bandwidth(1), 200e9);
  // 5 MB at 100 GB/s take 50 µs, 8 MB at 200 GB/s only 40.
  const ExchangeSplit dispatch = split_of(*run, run->cases[0], Exchange::kDispatch);
  EXPECT_DOUBLE_EQ(dispatch.wire, 50);
  EXPECT_DOUBLE_EQ(dispatch.bytes, 5e6);
}

TEST(TwoGpus, DispatchLastsFromTheMeetingToTheLaterArrival) {
  const auto run = read_two_gpus(record());
  ASSERT_TRUE(run);
  const ExchangeSplit parts = split_of(*run, run->cases[0], Exchange::kDispatch);
  EXPECT_DOUBLE_EQ(parts.time.point, 120);
  EXPECT_DOUBLE_EQ(parts.wait(), 70);
  EXPECT_DOUBLE_EQ(parts.launch, 30);  // 120 as launched, 90 when queued
  EXPECT_DOUBLE_EQ(parts.other, 0);
  EXPECT_DOUBLE_EQ(parts.rest, 40);
}

TEST(TwoGpus, CombineBeginsWithTheFirstGpuThatHasItsResultsAndWaitsForTheOther) {
  const auto run = read_two_gpus(record());
  ASSERT_TRUE(run);
  const ExchangeSplit parts = split_of(*run, run->cases[0], Exchange::kCombine);
  EXPECT_DOUBLE_EQ(parts.time.point, 100);  // from 150 to 250
  EXPECT_DOUBLE_EQ(parts.wire, 40);         // 4 MB at 100 GB/s
  EXPECT_DOUBLE_EQ(parts.launch, 15);       // 85 when queued: from 130 to 215
  EXPECT_DOUBLE_EQ(parts.other, 30);        // 160 - 130
  EXPECT_DOUBLE_EQ(parts.rest, 15);
  EXPECT_DOUBLE_EQ(parts.wait(), parts.launch + parts.other + parts.rest);
}

TEST(TwoGpus, MedianOfTheRepetitionsCounts) {
  Json json = record();
  Json slow = json["cases"][0]["launched"][0], fast = slow;
  slow[0] = 900, fast[0] = 10, fast[3] = 20;
  json["cases"][0]["launched"].push_back(slow);
  json["cases"][0]["launched"].push_back(fast);
  const auto run = read_two_gpus(json);
  ASSERT_TRUE(run) << run.error().what;
  const Interval time = split_of(*run, run->cases[0], Exchange::kDispatch).time;
  EXPECT_DOUBLE_EQ(time.point, 120);
  EXPECT_DOUBLE_EQ(time.low, 20);
  EXPECT_DOUBLE_EQ(time.high, 900);
}

TEST(TwoGpus, ARecordThatIsReadAndWrittenStaysTheSame) {
  const auto run = read_two_gpus(record());
  ASSERT_TRUE(run);
  EXPECT_EQ(two_gpus_json(*run), record());
}

TEST(TwoGpus, ReaderSaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal(Json::array()), "not a run of two GPUs: it is no JSON object");
  EXPECT_EQ(refusal({{"demo", "warmup"}}), "not a run of two GPUs: `demo` must be two-gpus");
  Json newer = record();
  newer["schema"] = 2;
  EXPECT_EQ(refusal(newer), "not a run of two GPUs: `schema` is 2; this capstone reads 1");
  Json nameless = record();
  nameless.erase("device");
  EXPECT_EQ(refusal(nameless), "not a run of two GPUs: it names no `device`");
  Json no_link = record();
  no_link.erase("link");
  EXPECT_EQ(refusal(no_link), "not a run of two GPUs: it has no `link`");
  Json one_way = record();
  one_way["link"]["both_us"] = Json::array({Json::array({1000})});
  EXPECT_EQ(refusal(one_way), "not a run of two GPUs: link.both_us has 1 lists, not one for each direction");
  Json instant = record();
  instant["link"]["both_us"][1] = Json::array({0});
  EXPECT_EQ(refusal(instant), "not a run of two GPUs: link.both_us must hold times above 0");
  Json empty = record();
  empty["cases"] = Json::array();
  EXPECT_EQ(refusal(empty), "not a run of two GPUs: it has no `cases`");
  Json short_row = record();
  short_row["cases"][0]["queued"][0].erase(0);
  EXPECT_EQ(refusal(short_row), "not a run of two GPUs: cases[0].queued[0] has 11 numbers, not 12");
  Json negative = record();
  negative["cases"][0]["launched"][0][3] = -1;
  EXPECT_EQ(refusal(negative), "not a run of two GPUs: cases[0].launched[0] has a number that is no time");
  Json lonely = record();
  lonely["cases"][0]["dispatch_bytes"] = Json::array({1});
  EXPECT_EQ(refusal(lonely),
            "not a run of two GPUs: cases[0].dispatch_bytes has 1 numbers, not one for each GPU");
  Json text = record();
  text["cases"][0]["tokens"] = "many";
  EXPECT_NE(refusal(text).find("cases[0].tokens must be"), std::string::npos) << refusal(text);
}

// The lines of the program for the record above, without the last.
std::string lines() {
  return "NCCL version 2.27.7\n"
         "{\"devices\": [\"made up\", \"made up\"], \"hidden\": 7168, \"timer_step_ns\": 32}\n"
         "{\"link\": " +
         record()["link"].dump() + "}\n{\"case\": " + record()["cases"][0].dump() + "}\n";
}

TEST(TwoGpus, LinesOfTheProgramBecomeARecord) {
  const auto run = two_gpus_of_output(lines() + "{\"no_nccl\": \"not here\"}\n{\"done\": true}\n");
  ASSERT_TRUE(run) << run.error().what;
  EXPECT_EQ(run->device, "2 x made up");
  EXPECT_EQ(run->no_nccl, "not here");
  EXPECT_EQ(run->cases.size(), 1u);
  EXPECT_EQ(run->stopped, "");
}

TEST(TwoGpus, ARunThatIsCutShortKeepsWhatItMeasured) {
  const auto limit = two_gpus_of_output(lines() + "{\"stopped\": \"the time limit of 150 s is over\"}\n");
  ASSERT_TRUE(limit) << limit.error().what;
  EXPECT_EQ(limit->cases.size(), 1u);
  EXPECT_EQ(limit->stopped, "the time limit of 150 s is over");
  const auto killed = two_gpus_of_output(lines() + "{\"case\": {\"method\": \"nc");
  ASSERT_TRUE(killed) << killed.error().what;
  EXPECT_EQ(killed->cases.size(), 1u);
  EXPECT_EQ(killed->stopped, "the program ended early");
}

TEST(TwoGpus, ARunThatMeasuredNothingSaysWhy) {
  const auto run = two_gpus_of_output("{\"stopped\": \"there are not two GPUs here\"}\n");
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().what, "nothing was measured: there are not two GPUs here");
  EXPECT_EQ(run.error().code, ExitCode::kEnvironment);
  EXPECT_FALSE(two_gpus_of_output(""));
}

}  // namespace
}  // namespace capstone::workflows
