// Theoretical occupancy against the results of NVIDIA's calculator.
#include "harness/analysis/profile/occupancy.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

TEST(Occupancy, IsLimitedByWhateverIsScarcest) {
  const SmLimits hopper = *sm_limits("sm_90a");
  const Occupancy full = theoretical_occupancy(hopper, 256, 32, 4288);
  EXPECT_EQ(full.blocks, 8);
  EXPECT_DOUBLE_EQ(full.percent, 100);
  const Occupancy registers = theoretical_occupancy(hopper, 256, 128, 0);
  EXPECT_EQ(registers.blocks, 2);
  EXPECT_DOUBLE_EQ(registers.percent, 25);
  EXPECT_EQ(registers.limiter, "registers");
  const Occupancy shared = theoretical_occupancy(hopper, 256, 32, 227 * 1024);
  EXPECT_EQ(shared.blocks, 1);
  EXPECT_DOUBLE_EQ(shared.percent, 12.5);
  EXPECT_EQ(shared.limiter, "shared memory");
  const Occupancy small = theoretical_occupancy(hopper, 32, 16, 0);
  EXPECT_EQ(small.limiter, "blocks");
  EXPECT_DOUBLE_EQ(small.percent, 50);
}

TEST(Occupancy, DiffersFromChipToChip) {
  EXPECT_DOUBLE_EQ(theoretical_occupancy(*sm_limits("sm_86"), 1024, 32, 0).percent, 100.0 * 32 / 48)
      << "one block of 1024 in 1536 threads";
  EXPECT_DOUBLE_EQ(theoretical_occupancy(*sm_limits("sm_80"), 1024, 32, 0).percent, 100);
  EXPECT_DOUBLE_EQ(theoretical_occupancy(*sm_limits("sm_75"), 256, 64, 0).percent, 100);
  EXPECT_FALSE(sm_limits("sm_13"));
  EXPECT_FALSE(sm_limits("nonsense"));
}

TEST(Occupancy, BlockThatNeverFitsIsNone) {
  EXPECT_EQ(theoretical_occupancy(*sm_limits("sm_90"), 1024, 255, 0).blocks, 0);
}

}  // namespace
}  // namespace capstone
