// Documents of earlier versions are read under today's names.
#include "harness/model/upgrade.h"

#include <gtest/gtest.h>

#include "harness/model/record.h"

namespace capstone {
namespace {

TEST(Upgrade, AMeasurementOfVersion02IsReadWhole) {
  const Json old = parse_recorded(R"({
    "contestant": "human", "version": "v1", "backend": "cuda", "tier": "host", "tier_reason": "it reads back",
    "environment": {"outside_clock": {"outside_ms": 1.5, "agrees": true}},
    "measured": {"clock": "events", "arms": [{"name": "native", "hot_ms": 0.25, "samples_ms": [[1, 2]]}]}})");
  const auto m = old.get<Measurement>();
  EXPECT_EQ(m.candidate, "human");
  EXPECT_EQ(Json(m)["execution"], "in-process");
  EXPECT_EQ(m.execution_reason, "it reads back");
  EXPECT_EQ(m.environment["host_timer"]["host_timer_ms"], 1.5);
  ASSERT_EQ(m.measured->arms.size(), 1u);
  EXPECT_EQ(m.measured->arms[0].warm_ms, 0.25);
}

TEST(Upgrade, SealedBecomesReplayed) {
  EXPECT_EQ(parse_recorded(R"({"rows": [{"tier": "sealed"}]})")["rows"][0]["execution"], "replayed");
}

TEST(Upgrade, TheTierOfAProblemIsANumberAndKeepsItsName) {
  EXPECT_EQ(parse_recorded(R"({"id": "sum", "tier": 1})").dump(), R"({"id":"sum","tier":1})");
}

TEST(Upgrade, TodaysNamesStayAndKeepTheirOrder) {
  const std::string text =
      R"({"candidate":"llm","execution":"replayed","cases":[{"id":"check-0"}],"n":[1,2]})";
  EXPECT_EQ(parse_recorded(text).dump(), text);
}

TEST(Upgrade, WhatIsNotJsonIsDiscarded) { EXPECT_TRUE(parse_recorded("{\"contestant\": ").is_discarded()); }

}  // namespace
}  // namespace capstone
