// What the GPU reports between samples, and when a block must not count.
#include "harness/judge/disturbance.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace capstone {
namespace {

Json busy(long pid) {
  Json report = Json::object(), process = Json::object();
  process["pid"] = pid;
  process["sm_percent"] = 80;
  report["busy"].push_back(process);
  return report;
}

TEST(Disturbance, HeatAndAPowerBrakeVoidABlockAndAPowerCapDoesNot) {
  EXPECT_EQ(disturbance_in({{"throttle", 0x20}}), "the GPU slowed down because it was hot");
  EXPECT_EQ(disturbance_in({{"throttle", 0x40}}), "the GPU slowed down because it was hot");
  EXPECT_EQ(disturbance_in({{"throttle", 0x80}}), "the GPU slowed down because of its power supply");
  EXPECT_EQ(disturbance_in({{"throttle", 0x4}}), "") << "a power cap is how fast this GPU is";
  EXPECT_EQ(disturbance_in(Json::object()), "");
}

TEST(Disturbance, AnotherProcessOnTheGpuVoidsABlockOurOwnDoNot) {
  EXPECT_EQ(disturbance_in(busy(::getpid())), "");
  EXPECT_EQ(disturbance_in(busy(::getppid())),
            "another process (" + std::to_string(::getppid()) + ") computes on this GPU");
}

TEST(Disturbance, ClocksMoreThanTwoPercentApartVoidABlock) {
  EXPECT_EQ(clock_change(std::vector<PowerReading>{{1980, 300}, {1950, 500}}), "");
  EXPECT_EQ(clock_change(std::vector<PowerReading>{{1980, 300}, {1700, 690}}),
            "the SM clock went from 1700 to 1980 MHz between arms");
  EXPECT_EQ(clock_change(std::vector<PowerReading>{{0, 0}, {1980, 300}}), "") << "one is not reported";
  EXPECT_EQ(clock_change({}), "");
}

TEST(Disturbance, PowerAndClockComeFromTheReport) {
  const PowerReading reading = power_of({{"sm_mhz", 1755}, {"watts", 691.2}});
  EXPECT_EQ(reading.sm_mhz, 1755);
  EXPECT_EQ(reading.watts, 691.2);
  EXPECT_EQ(power_of(Json::object()).watts, 0);
}

}  // namespace
}  // namespace capstone
