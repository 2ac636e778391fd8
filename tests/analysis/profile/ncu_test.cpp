// Reading the output of Nsight Compute. ncu_raw.csv: the relevant columns of a table from an H200 (ncu
// 2025.3.1), four launches of three kernels.
#include "harness/analysis/profile/ncu.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/analysis/profile/verified_launch.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

std::string table() {
  return read_file(fs::path(CAPSTONE_SOURCES) / "tests/analysis/profile/ncu_raw.csv").value_or("");
}

std::vector<KernelProfile> kernels_of(const std::string& csv) {
  const auto kernels = read_ncu(csv, "table.csv");
  EXPECT_TRUE(kernels) << render(kernels.error());
  return kernels.value_or(std::vector<KernelProfile>{});
}

TEST(Ncu, LaunchesOfAKernelAreOneEntryInTheOrderOfTheFirst) {
  const auto kernels = kernels_of(table());
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].kernel, "words_stride_16");
  EXPECT_EQ(kernels[0].launches, 2);
  EXPECT_EQ(kernels[1].kernel, "words_in_a_row");
  EXPECT_EQ(kernels[1].launches, 1);
}

// One block more than fit at once; ncu prints the number of waves with two digits.
TEST(Ncu, ATailOfOneBlockIsCountedFromWholeNumbers) {
  const std::string csv =
      R"x("ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","launch__block_size","launch__grid_size","launch__occupancy_limit_barriers",)x"
      R"x("launch__occupancy_limit_blocks","launch__occupancy_limit_registers","launch__occupancy_limit_shared_mem","launch__occupancy_limit_warps",)x"
      R"x("launch__sm_count","launch__waves_per_multiprocessor")x"
      "\n"
      R"x("","","","","ns","","","block","block","block","block","block","SM","")x"
      "\n"
      R"x("0","advance(const float *)","(32, 8, 1)","(1057, 1, 1)","261,504","256","1,057","32","32","8","19","8","132","1.00")x"
      "\n";
  const auto kernels = kernels_of(csv);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_DOUBLE_EQ(*kernels[0].waves, 1057.0 / (8 * 132));
  EXPECT_NEAR(*kernels[0].tail_percent, 49.95, 0.01);
}

TEST(Ncu, CountsOfLaunchesAreAddedAndTheirRatiosAreNot) {
  const KernelProfile k = kernels_of(table())[0];
  EXPECT_DOUBLE_EQ(*k.time_us, 2 * 12.416);
  EXPECT_DOUBLE_EQ(*k.blocks, 32);
  EXPECT_DOUBLE_EQ(*k.threads, 32);
  EXPECT_DOUBLE_EQ(*k.wavefronts_over_ideal, 6) << "4,608 of 768, twice";
  EXPECT_DOUBLE_EQ(*k.sectors_per_load, 4);
  EXPECT_DOUBLE_EQ(*k.lanes_per_instruction, 27.5);
  EXPECT_DOUBLE_EQ(*k.local_requests_per_warp, 96) << "3,072 requests of 32 warps";
}

TEST(Ncu, OccupancyNamesWhatLimitsItAndTheLongestWaitIsTheTopStall) {
  const KernelProfile k = kernels_of(table())[1];
  EXPECT_DOUBLE_EQ(*k.occupancy_limit_percent, 50);
  EXPECT_DOUBLE_EQ(*k.occupancy_percent, 71.9);
  EXPECT_FALSE(k.occupancy_limiter.empty());
  EXPECT_EQ(k.top_stall, "long scoreboard");
  EXPECT_DOUBLE_EQ(*k.top_stall_percent, 91);
}

TEST(Ncu, MetricThatIsNotAvailableIsUnknownAndNeverZero) {
  for (const KernelProfile& k : kernels_of(table()))
    EXPECT_FALSE(k.tensor_percent) << k.kernel << ": n/a in the table";
  const auto bare =
      kernels_of("\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"ns\"\n\"k(int)\",\"1,000\"\n");
  ASSERT_EQ(bare.size(), 1u);
  EXPECT_DOUBLE_EQ(*bare[0].time_us, 1);
  EXPECT_FALSE(bare[0].sectors_per_load);
  EXPECT_FALSE(bare[0].compute_percent);
  EXPECT_FALSE(bare[0].top_stall_percent);
  EXPECT_TRUE(Json(bare[0])["compute_percent"].is_null());
}

TEST(Ncu, TableIsFoundAmongWhatElseIsPrinted) {
  const std::string output =
      "==PROF== Connected to process 6846\n==PROF== Profiling \"k\" - 0: 0%....100% - 10 passes\n" + table() +
      "==PROF== Disconnected\n";
  EXPECT_EQ(ncu_table(output), table());
  EXPECT_TRUE(ncu_table("==ERROR== no kernels were profiled\n").empty());
}

TEST(Ncu, TableWithoutAKernelIsAnError) {
  const auto none = read_ncu("\"ID\",\"Time\"\n\"0\",\"1\"\n", "table.csv");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().where, "table.csv");
}

TEST(Ncu, UnknownMetricsAreThoseThatItNames) {
  const std::vector<std::string> asked{"gpu__time_duration.sum",
                                       "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                                       "launch__grid_size"};
  EXPECT_EQ(
      unknown_metrics(
          "==ERROR== Failed to find metric sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active\n",
          asked),
      std::vector<std::string>{asked[1]});
  EXPECT_EQ(
      unknown_metrics("==ERROR== Failed to find metrics: launch__grid_size, gpu__time_duration\n", asked),
      (std::vector<std::string>{asked[0], asked[2]}));
  EXPECT_TRUE(unknown_metrics("==PROF== gpu__time_duration.sum\n", asked).empty()) << "only what is an error";
}

TEST(Ncu, RefusalSaysWhatToDoAboutThePermission) {
  EXPECT_NE(ncu_refusal("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
                        "Performance Counters")
                .find("administrator"),
            std::string::npos);
  EXPECT_EQ(ncu_refusal("==ERROR== Unknown option --cache\n"), "ncu: Unknown option --cache");
}

TEST(Ncu, AskedMetricsCoverEveryAnswerAndNoneTwice) {
  auto metrics = ncu_metrics();
  std::sort(metrics.begin(), metrics.end());
  EXPECT_EQ(std::unique(metrics.begin(), metrics.end()), metrics.end());
  const auto arguments = ncu_arguments(metrics);
  EXPECT_EQ(arguments.back(), join(metrics, ","));
  EXPECT_NE(std::find(arguments.begin(), arguments.end(), "--csv"), arguments.end());
}

TEST(Tail, IsTheRoomThatTheLastWaveLeavesEmpty) {
  EXPECT_NEAR(*tail_of(1.001), 49.95, 0.01);
  EXPECT_DOUBLE_EQ(*tail_of(4), 0);
  EXPECT_NEAR(*tail_of(31.03), 3.03, 0.01);
  EXPECT_FALSE(tail_of(0.4)) << "no wave is full: another question";
}

TEST(VerifiedLaunch, AReferenceInFloat64IsAskedAtCheckSizesAlone) {
  Problem problem;
  problem.check = {{{"n", 16}}, {{"n", 32}}};
  problem.measure = {{"n", 1 << 28}};
  EXPECT_TRUE(oracle_answers_at(problem, problem.measure)) << "an oracle.cpp computes single elements";
  problem.oracle_is_reference = true;
  EXPECT_FALSE(oracle_answers_at(problem, problem.measure));
  EXPECT_TRUE(oracle_answers_at(problem, problem.check[1]));
}

}  // namespace
}  // namespace capstone
