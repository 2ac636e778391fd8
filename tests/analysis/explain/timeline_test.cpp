// The replay of recorded waits: small lists by hand, then two reference kernels.
#include "harness/analysis/explain/timeline.h"

#include <gtest/gtest.h>

#include "tests/resources.h"

namespace capstone::test {
namespace {

namespace fs = std::filesystem;

Timeline replayed(const Json& waits, const EngineTimes& times = {}) {
  const auto line = replay_waits({{"waits", waits}}, times);
  EXPECT_TRUE(line) << render(line.error());
  return line.value_or(Timeline{});
}

TEST(Timeline, AProductWaitsForTheCopyThatItsThreadHasSeen) {
  const Timeline line = replayed({{"c", 0, 0, 64}, {"o", 0, 0, 0}, {"w", 0, 0, 0}, {"m", 0, 0, 0}}, {3, 2});
  ASSERT_EQ(line.products.size(), 1u);
  EXPECT_EQ(line.products[0].begin, 3);
  EXPECT_EQ(line.end(), 5);
  EXPECT_EQ(line.overlapping(), 0);
}

TEST(Timeline, WhatReportsToOnePhaseOfABarrierIsOneCopy) {
  const Timeline line =
      replayed({{"c", 0, 0, 64}, {"c", 1, 0, 64}, {"o", 0, 0, 0}, {"c", 0, 0, 64}, {"o", 0, 0, 0}});
  ASSERT_EQ(line.copies.size(), 2u);
  EXPECT_EQ(line.copies[1].begin, 1);
}

TEST(Timeline, ACopyThatNeedsNoArrivalRunsDuringTheProduct) {
  const Timeline line = replayed({{"c", 0, 0, 64},
                                  {"c", 0, 1, 64},
                                  {"o", 0, 0, 0},
                                  {"w", 128, 0, 0},
                                  {"m", 128, 2, 0},
                                  {"o", 0, 1, 0},
                                  {"w", 128, 1, 0},
                                  {"m", 128, 2, 0},
                                  {"d", 128, 2, 0}});
  EXPECT_EQ(line.end(), 3);
  EXPECT_EQ(line.overlapping(), 1);
}

TEST(Timeline, ACopyIntoAFullStageWaitsForTheArrivalOfItsReader) {
  const Timeline line = replayed({{"c", 0, 0, 64},
                                  {"o", 0, 0, 0},
                                  {"w", 128, 0, 0},
                                  {"m", 128, 2, 0},
                                  {"d", 128, 2, 0},
                                  {"a", 128, 1, 0},
                                  {"o", 128, 1, 0},
                                  {"w", 0, 1, 0},
                                  {"c", 0, 0, 64}});
  ASSERT_EQ(line.copies.size(), 2u);
  EXPECT_EQ(line.copies[1].begin, 2);
}

TEST(Timeline, ThreadsThatMeetGoOnWithTheLast) {
  const Timeline line = replayed({{"m", 0, 0, 0}, {"d", 0, 0, 0}, {"s", 0, 0, 0}, {"c", 64, 1, 64}});
  EXPECT_EQ(line.copies[0].begin, 1);
}

TEST(Timeline, ALeftOutOrBrokenListIsAnError) {
  EXPECT_FALSE(replay_waits(Json::object(), {}));
  EXPECT_FALSE(replay_waits({{"waits", {{"c", "x"}}}}, {}));
}

TEST(Timeline, TheProducerOfAHopperProductCopiesWhileTheConsumerMultiplies) {
  const Problem problem = *load_problem(fs::path(CAPSTONE_SOURCES) / "problems/gemm_bf16");
  const auto line_of = [&](const char* rung) {
    const fs::path source = fs::path(CAPSTONE_SOURCES) / "reference_kernels/W2_hopper_gemm/gemm_bf16" / rung;
    auto line = timeline({&problem, source, {{"m", 128}, {"k", 512}, {"n", 128}}, {}}, {},
                         suite_resources_and_headers(), [](const std::string&) {});
    EXPECT_TRUE(line) << render(line.error());
    return line.value_or(Timeline{});
  };
  const Timeline turns = line_of("04_wgmma.cu"), at_once = line_of("05_producer_consumer.cu");
  EXPECT_EQ(turns.end(), 16);
  EXPECT_EQ(turns.overlapping(), 0);
  EXPECT_EQ(at_once.end(), 9);
  EXPECT_EQ(at_once.overlapping(), 7);
}

}  // namespace
}  // namespace capstone::test
