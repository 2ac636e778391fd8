#include "harness/course/claims.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

Measurement timed(double speedup, double half_width, const char* device = "NVIDIA H200") {
  Measurement m;
  m.candidate = "human";
  m.source_sha256 = "aa";
  m.gate_one = GateOne::kPassed;
  m.gate_two = GateTwo::kFaster;
  m.environment = {{"device", device}, {"driver", "580"}, {"nvcc", "13.0"}, {"tool", "0.2.0"}};
  m.measured.emplace();
  m.measured->arms = {{"native", "cuBLAS", {}, 0, 0, {}}};
  m.measured->speedup = Interval{speedup, speedup - half_width, speedup + half_width};
  return m;
}

LedgerView ledger_of(Measurement m) {
  LedgerView ledger;
  ledger.human.push_back(std::move(m));
  return ledger;
}

TEST(Claim, FivePercentAreForgivenMoreIsAContradiction) {
  EXPECT_EQ(compare_claim(ledger_of(timed(2.09, 0.01)), timed(2.0, 0.01)).agreement, Agreement::kAgrees);
  Claim off = compare_claim(ledger_of(timed(2.2, 0.01)), timed(2.0, 0.01));
  EXPECT_EQ(off.agreement, Agreement::kContradicts);
  EXPECT_EQ(off.text, "2.20x claimed, 2.00x measured now: 10.0 % apart, 5.0 % allowed");
}

TEST(Claim, WideIntervalsForgiveThreeStandardErrors) {
  EXPECT_EQ(compare_claim(ledger_of(timed(2.2, 0.2)), timed(2.0, 0.01)).agreement, Agreement::kAgrees);
}

TEST(Claim, AnotherGpuBaselineOrVersionContradictsNothing) {
  EXPECT_EQ(compare_claim(ledger_of(timed(9, 0.01, "NVIDIA T4")), timed(2, 0.01)).agreement,
            Agreement::kNotComparable);
  Measurement other = timed(9, 0.01);
  other.measured->arms[0].label = "cuDNN";
  EXPECT_EQ(compare_claim(ledger_of(other), timed(2, 0.01)).agreement, Agreement::kNotComparable);
  other = timed(9, 0.01);
  other.environment["driver"] = "550";
  Claim claim = compare_claim(ledger_of(other), timed(2, 0.01));
  EXPECT_EQ(claim.agreement, Agreement::kNotComparable);
  EXPECT_EQ(claim.text, "different driver: 550 in the ledger, 580 now");
}

TEST(Claim, GateOneIsComparedAndTheLastVerdictOfThatSourceCounts) {
  LedgerView ledger = ledger_of(timed(2, 0.01));
  ledger.human.push_back(timed(2, 0.01));
  ledger.human.back().gate_one = GateOne::kWrong;
  Claim claim = compare_claim(ledger, timed(2, 0.01));
  EXPECT_EQ(claim.agreement, Agreement::kGateOneDiffers);
  EXPECT_EQ(claim.text, "the ledger says WRONG; judged again: PASS");
  Measurement fresh = timed(2, 0.01);
  fresh.source_sha256 = "bb";
  EXPECT_EQ(compare_claim(ledger, fresh).agreement, Agreement::kNeverMeasured);
  fresh = timed(2, 0.01);
  fresh.gate_one = GateOne::kNotJudgeable;
  EXPECT_EQ(compare_claim(ledger, fresh).agreement, Agreement::kNotComparable);
}

TEST(Claim, WithoutASpeedupHereAClaimedOneIsNotComparable) {
  Measurement emulated = timed(2, 0.01);
  emulated.gate_two = GateTwo::kNotJudged;
  EXPECT_EQ(compare_claim(ledger_of(timed(2, 0.01)), emulated).agreement, Agreement::kNotComparable);
  EXPECT_EQ(compare_claim(ledger_of(emulated), timed(2, 0.01)).agreement, Agreement::kAgrees)
      << "the ledger claims no speedup";
}

}  // namespace
}  // namespace capstone
