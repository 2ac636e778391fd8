#include "harness/course/claims.h"

#include <gtest/gtest.h>

#include <limits>

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

TEST(Claim, AnotherGpuOrBaselineContradictsNothingButTheNumbersAreTold) {
  const Claim other_gpu = compare_claim(ledger_of(timed(9, 0.01, "NVIDIA T4")), timed(2, 0.01));
  EXPECT_EQ(other_gpu.agreement, Agreement::kNotComparable);
  EXPECT_EQ(other_gpu.text,
            "different GPU: NVIDIA T4 in the ledger, NVIDIA H200 now; 9.00x claimed, 2.00x measured now");
  Measurement other = timed(9, 0.01);
  other.measured->arms[0].label = "cuDNN";
  EXPECT_EQ(compare_claim(ledger_of(other), timed(2, 0.01)).agreement, Agreement::kNotComparable);
}

TEST(Claim, AnotherDriverExplainsHalfButNotFiveTimes) {
  Measurement other = timed(2.5, 0.01);
  other.environment["driver"] = "550";
  Claim claim = compare_claim(ledger_of(other), timed(2, 0.01));
  EXPECT_EQ(claim.agreement, Agreement::kNotComparable);
  EXPECT_EQ(claim.text, "different driver: 550 in the ledger, 580 now; 2.50x claimed, 2.00x measured now");
  other.measured->speedup = Interval{10, 9.99, 10.01};
  claim = compare_claim(ledger_of(other), timed(2, 0.01));
  EXPECT_EQ(claim.agreement, Agreement::kContradicts);
  EXPECT_EQ(claim.text,
            "10.0x claimed, 2.00x measured now: 400.0 % apart, 50.0 % allowed; different driver: 550 in the "
            "ledger, 580 now");
}

TEST(Claim, AnIntervalWithoutEndIsNoClaimAndNoExcuse) {
  Measurement wide = timed(5, 0);
  wide.measured->speedup = Interval{5, 0.1, 30};
  EXPECT_EQ(compare_claim(ledger_of(wide), timed(1, 0.01)).agreement, Agreement::kContradicts)
      << "a decided verdict stands on it";
  wide.gate_two = GateTwo::kUnresolved;
  const Claim claim = compare_claim(ledger_of(wide), timed(1, 0.01));
  EXPECT_EQ(claim.agreement, Agreement::kNotComparable);
  EXPECT_EQ(claim.text, "5.00x [0.100, 30.0] is too wide to be a claim; 5.00x claimed, 1.00x measured now");
}

TEST(Claim, NoNumberIsMalformed) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const Interval& bad :
       {Interval{nan, 1, 2}, Interval{5, nan, 6}, Interval{5, 4, nan}, Interval{5, 4, inf}, Interval{5, 6, 7},
        Interval{-5, -6, -4}, Interval{5, 0, 6}}) {
    Measurement odd = timed(5, 0.01);
    odd.measured->speedup = bad;
    const Claim claim = compare_claim(ledger_of(odd), timed(5, 0.01));
    EXPECT_EQ(claim.agreement, Agreement::kContradicts) << claim.text;
    EXPECT_NE(claim.text.find("malformed"), std::string::npos) << claim.text;
  }
}

TEST(Claim, WhatIsPrintedIsClaimedWhateverTheVerdictSays) {
  Measurement hidden = timed(9.87, 0.01);
  hidden.backend = Backend::kCuda;
  hidden.gate_two = GateTwo::kNotJudged;
  EXPECT_EQ(compare_claim(ledger_of(hidden), timed(2, 0.01)).agreement, Agreement::kContradicts);
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
