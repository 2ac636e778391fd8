// Hostile files are made as their manifests say, and are given to the readers that such files would reach.
#include <gtest/gtest.h>

#include "harness/analysis/selftest/selftest.h"

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
  for (auto [kind, why] : {std::pair{"climbs", "climbs out"}, std::pair{"absolute", "absolute path"},
                           std::pair{"link", "a link"}, std::pair{"bomb", "larger than"}}) {
    HostileInput input;
    input.archive = kind;
    const auto refused = reader(input);
    ASSERT_TRUE(refused) << kind;
    EXPECT_NE(refused->find(why), std::string::npos) << *refused;
  }
}

TEST(Selftest, SlowReaderIsAnEscape) {
  CorpusCase corpus_case;
  corpus_case.row = 28;
  corpus_case.timeout_seconds = 1e-9;
  corpus_case.input = HostileInput{"reply", "x", "", "", 0, "", false};
  SelftestRequest request;
  request.readers = input_readers();
  auto rows = run_group({corpus_case}, request, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().state, RowState::kEscaped);
}

TEST(Selftest, RefusalThatWasPromisedAndDidNotComeIsAnEscape) {
  CorpusCase corpus_case;
  corpus_case.row = 28;
  corpus_case.input = HostileInput{"reader", "", "", "", 0, "", true};
  SelftestRequest request;
  request.readers["reader"] = [](const HostileInput&) { return std::nullopt; };
  auto rows = run_group({corpus_case}, request, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().state, RowState::kEscaped);
}

TEST(Selftest, InputThatNothingReadsIsNotRun) {
  CorpusCase corpus_case;
  corpus_case.row = 28;
  corpus_case.input = HostileInput{"worklog", "", "", "", 0, "", true};
  auto rows = run_group({corpus_case}, {}, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().state, RowState::kNotRun);
}

TEST(Selftest, WhatCannotShowIsNotBuilt) {
  CorpusCase corpus_case;
  corpus_case.row = 11;
  corpus_case.emulated = {Expectation::Kind::kCannotShow, {}, "nothing is timed", {}};
  corpus_case.source = "/nonexistent.cu";
  auto rows = run_group({corpus_case}, {}, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().state, RowState::kNotRun);
  EXPECT_EQ(rows->front().why, "nothing is timed");
}

TEST(Selftest, NothingIsSaidOfPythonWhereOnlyTheReplayedExecutionWasAskedFor) {
  CorpusCase corpus_case;
  corpus_case.row = 11;
  corpus_case.cuda_replayed.kind = Expectation::Kind::kFallsBack;
  corpus_case.source = "/nonexistent.py";
  SelftestRequest request;
  request.backend = Backend::kCuda;
  request.execution = Execution::kReplayed;
  auto rows = run_group({corpus_case}, request, Resources{}, [](const std::string&) {});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().state, RowState::kNotRun)
      << "a refusal that every Python file meets catches nobody";
  EXPECT_EQ(rows->front().why, "a Python process cannot be captured");
}

TEST(Selftest, OnAGpuHonestKernelsOfAProblemRaceTogetherAndTricksAlone) {
  auto corpus_case = [](std::string name, int row, std::string problem) {
    CorpusCase made;
    made.name = std::move(name);
    made.row = row;
    made.problem = std::move(problem);
    return made;
  };
  const std::vector<CorpusCase> all{corpus_case("a", 0, "softmax"), corpus_case("b", 3, "softmax"),
                                    corpus_case("c", 0, "sgemm"), corpus_case("d", 0, "softmax")};
  const auto groups = groups_of(all, Backend::kCuda);
  ASSERT_EQ(groups.size(), 3u);
  ASSERT_EQ(groups[0].size(), 2u);
  EXPECT_EQ(groups[0][1].name, "d");
  EXPECT_EQ(groups_of(all, Backend::kEmulated).size(), 4u);
  EXPECT_EQ(groups_of(std::vector<CorpusCase>(20, all[0]), Backend::kCuda).size(), 3u)
      << "a race has its limits";
}

TEST(Selftest, FaultOfTheMachineIsAFailureOfItsRow) {
  CorpusCase corpus_case;
  corpus_case.row = 3;
  const RowResult row =
      faulty_row(corpus_case, {"the GPU fell off the bus", "GPU-1", {}, ExitCode::kEnvironment});
  EXPECT_FALSE(rate_of({row}).good());
  EXPECT_EQ(row.why, "the GPU fell off the bus (GPU-1)");
}

}  // namespace
}  // namespace capstone
