#include "harness/project/versions.h"

#include <gtest/gtest.h>

#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

TEST(NextVersion, NewContentGetsTheNextNumber) {
  LedgerView ledger;
  EXPECT_EQ(next_version(ledger, "human", sha256_hex("first")).value(), "v1");
  for (const char* version : {"v1", "v9", "v10"}) ledger.human.push_back(measurement(version));
  EXPECT_EQ(next_version(ledger, "human", sha256_hex("new")).value(), "v11");
}

TEST(NextVersion, ASourceThatWasMeasuredKeepsItsName) {
  LedgerView ledger;
  for (const char* version : {"v1", "v2"}) ledger.human.push_back(measurement(version));
  EXPECT_EQ(next_version(ledger, "human", sha256_hex("source of v1")).value(), "v1");
}

TEST(NextVersion, AFailedVersionUsesItsNumberUp) {
  LedgerView ledger;
  ledger.human.push_back(measurement("v1", 0, "emulated", GateOne::kBuildFailed));
  EXPECT_EQ(next_version(ledger, "human", sha256_hex("new")).value(), "v2");
}

TEST(NextVersion, TheTwoCandidatesCountApart) {
  LedgerView ledger;
  ledger.human.push_back(measurement("v3"));
  EXPECT_EQ(next_version(ledger, "llm", sha256_hex("source of v3")).value(), "attempt-1");
  ledger.llm.push_back(measurement("attempt-1"));
  EXPECT_EQ(next_version(ledger, "llm", sha256_hex("x")).value(), "attempt-2");
}

TEST(NextVersion, WhatWasMadeTogetherCountsApart) {
  LedgerView ledger;
  ledger.human.push_back(measurement("v3"));
  EXPECT_EQ(next_version(ledger, "together", sha256_hex("source of v3")).value(), "t1");
}

TEST(NextVersion, NonsenseIsRefused) {
  EXPECT_FALSE(next_version({}, "robot", sha256_hex("x")));
  EXPECT_FALSE(next_version({}, "human", "abc"));
}

}  // namespace
}  // namespace capstone
