// How long launches may hide, and when a time is the host's.
#include <gtest/gtest.h>

#include "harness/judge/timed_arm.h"

namespace capstone {
namespace {

TimedArm arm_of(bool trusted, bool python, double launch_ms = 0, double sample_ms = 0) {
  TimedArm arm;
  arm.trusted = trusted;
  arm.python = python;
  arm.launch_ms = launch_ms;
  if (sample_ms > 0) arm.clean.samples = {{sample_ms, sample_ms}, {sample_ms}};
  return arm;
}

TEST(HiddenLaunches, OfOursAreHiddenForMillisecondsThoseOfAClaimForMicroseconds) {
  std::vector<TimedArm> arms = {arm_of(true, true), arm_of(false, false), arm_of(false, false)};
  arms[2].trusted_clock = true;
  EXPECT_EQ(longest_hidden_ns(arms, 0), 2e6);
  EXPECT_EQ(longest_hidden_ns(arms, 1), 50e3);
  EXPECT_EQ(longest_hidden_ns(arms, 2), 2e6);
}

// A copy of EfficientNet took 2.8 ms where the reference took 0.72: three hundred launches, hidden for the
// reference alone.
TEST(HiddenLaunches, OfAReferenceAreHiddenNoLongerThanThoseOfItsCopyInPython) {
  const std::vector<TimedArm> arms = {arm_of(true, true), arm_of(true, true), arm_of(false, true)};
  for (std::size_t a = 0; a < arms.size(); ++a) EXPECT_EQ(longest_hidden_ns(arms, a), 300e3) << a;
}

TEST(HiddenLaunches, OfAClaimInCudaAreHiddenNoLongerBesidePython) {
  const std::vector<TimedArm> arms = {arm_of(true, true), arm_of(false, true), arm_of(false, false)};
  EXPECT_EQ(longest_hidden_ns(arms, 2), 50e3);
}

TEST(BoundByLaunches, IsSaidWhereMostOfATimeIsTheHosts) {
  const std::vector<TimedArm> arms = {arm_of(true, true, 2.9, 2.7), arm_of(false, true, 1.2, 2.6),
                                      arm_of(false, true, 0.2, 0.1), arm_of(false, true, 9, 0)};
  EXPECT_EQ(bound_by_launches(arms, 0),
            "bound by its launches: the host takes 2.90 ms for one, 300 µs of it hidden");
  EXPECT_EQ(bound_by_launches(arms, 1), "") << "the GPU still works when the last launch is made";
  EXPECT_EQ(bound_by_launches(arms, 2), "") << "hidden whole";
  EXPECT_EQ(bound_by_launches(arms, 3), "") << "never timed";
}

}  // namespace
}  // namespace capstone
