// Whole explanations of reference kernels: the numbers are pinned, because they are the same on every
// machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "harness/analysis/explain/explain.h"
#include "harness/analysis/ladder/ladder.h"
#include "tests/resources.h"

namespace capstone::test {
namespace {
namespace fs = std::filesystem;

class ExplainRun : public testing::Test {
 protected:
  static Resources resources() { return suite_resources_and_headers(); }
  static Problem problem(const char* id) {
    return *load_problem(fs::path(CAPSTONE_SOURCES) / "problems" / id);
  }
  static fs::path rung(const char* path) { return fs::path(CAPSTONE_SOURCES) / "reference_kernels" / path; }
  /// The only line that holds `text`.
  static const LineCounts& line_with(const Explanation& e, const std::string& text) {
    static const LineCounts none;
    for (const KernelCounts& kernel : e.kernels)
      for (const LineCounts& line : kernel.lines)
        if (line.text.find(text) != std::string::npos) return line;
    ADD_FAILURE() << "no count at a line with: " << text;
    return none;
  }
  static void silent(const std::string&) {}
};

#define ASSERT_EXPLAINED(e) ASSERT_TRUE(e) << render((e).error())

TEST_F(ExplainRun, SharedTileSgemmAt128IsPinned) {
  const Problem sgemm = problem("sgemm");
  const ExplainRequest request{
      &sgemm, rung("L4_gemm_ladder_one/sgemm/03_shared_tile.cu"), {{"m", 128}, {"k", 128}, {"n", 128}}, {}};
  const auto e = explain(request, resources(), silent);
  ASSERT_EXPLAINED(e);
  ASSERT_EQ(e->kernels.size(), 1u);
  EXPECT_EQ(e->kernels[0].blocks, 16u);
  EXPECT_EQ(e->kernels[0].threads, 16384u);
  // Two tiles of 32 x 32 floats for each of 4 steps and 16 blocks; a warp reads a row of 128 B.
  for (const char* tile : {"a_tile[ty][tx] =", "b_tile[ty][tx] ="}) {
    const LineCounts& load = line_with(*e, tile);
    EXPECT_EQ(load.global.requests, 2048u);
    EXPECT_EQ(load.global.units, 8192u);
    EXPECT_EQ(load.global.ideal, 8192u);
    EXPECT_EQ(load.shared.units, 2048u);
    EXPECT_DOUBLE_EQ(load.global.lanes_per_request(), 32);
  }
  // Each of 512 warps multiplies 128 times: two words of shared memory, one a broadcast, the other from a
  // row.
  const LineCounts& product = line_with(*e, "sum += a_tile");
  EXPECT_EQ(product.flops, 2u * 128 * 128 * 128);
  EXPECT_EQ(product.shared.units, 2u * 128 * 512);
  EXPECT_EQ(product.shared.ideal, product.shared.units);
  EXPECT_EQ(line_with(*e, "the tiles are complete").barriers, 4u * 512);
  EXPECT_EQ(line_with(*e, "c[row * n + column] = sum").stores, 512u);
  EXPECT_DOUBLE_EQ(e->moved_bytes(), 576 * 1024);
  EXPECT_DOUBLE_EQ(e->compulsory_bytes, 192 * 1024);
  ASSERT_EQ(e->advice.size(), 3u);
  EXPECT_EQ(e->advice[0].line, product.line);
}

TEST_F(ExplainRun, NaiveSgemmIsUncoalescedAtTheProduct) {
  const Problem sgemm = problem("sgemm");
  const ExplainRequest request{&sgemm,
                               rung("L4_gemm_ladder_one/sgemm/01_naive.cu"),
                               {{"m", 64}, {"k", 32}, {"n", 64}},
                               *find_device_like("h100")};
  const auto e = explain(request, resources(), silent);
  ASSERT_EXPLAINED(e);
  const LineCounts& product = line_with(*e, "sum += a[row * k + i]");
  EXPECT_EQ(product.global.requests, 2u * 32 * 128);      // 128 warps
  EXPECT_EQ(product.global.units, 32u * 128 * (32 + 1));  // a column of A, one word of B
  EXPECT_EQ(line_with(*e, "c[row * n + column] = sum").global.units, 128u * 32);
  ASSERT_FALSE(e->advice.empty());
  EXPECT_EQ(e->advice[0].pattern, "uncoalesced");
  ASSERT_TRUE(e->floor);
  EXPECT_EQ(e->floor->bound_by, "shared memory and L1");
}

// The four warps of a warp group read B once. The tiles are 128 x 128, so a longer k is all that a larger
// product changes; the stores do not grow with it.
TEST_F(ExplainRun, TheBoundOfTheHopperRungsIsBelowTheirRecordedTimes) {
  const Problem gemm = problem("gemm_bf16");
  const auto recorded = read_results(rung("results/h100.json"));
  ASSERT_TRUE(recorded) << render(recorded.error());
  const auto ladder = std::find_if(recorded->ladders.begin(), recorded->ladders.end(),
                                   [](const Ladder& l) { return l.problem == "gemm_bf16"; });
  ASSERT_NE(ladder, recorded->ladders.end());
  for (const char* name : {"04_wgmma", "05_producer_consumer", "06_larger_tile"}) {
    SCOPED_TRACE(name);
    const auto step = std::find_if(ladder->steps.begin(), ladder->steps.end(),
                                   [&](const LadderStep& s) { return s.rung.name == name; });
    ASSERT_NE(step, ladder->steps.end());
    const fs::path source = rung("W2_hopper_gemm/gemm_bf16") / (std::string(name) + ".cu");
    const auto e =
        explain({&gemm, source, gemm.emulate, find_device_like("h100").value(), true}, resources(), silent);
    ASSERT_EXPLAINED(e);
    EXPECT_TRUE(e->floor->by_rule);
    EXPECT_LT(e->floor->ms(), step->ms.point);
    EXPECT_GT(e->floor->ms(), step->ms.point / 3);
    EXPECT_NEAR(e->floor->compute_ms, e->floor->work_ms, 1e-3) << "whole tiles at the measured size";
  }
}

TEST_F(ExplainRun, SaysTheSameTwice) {
  const Problem softmax = problem("softmax");
  const ExplainRequest request{
      &softmax, rung("L8_attention/softmax/02_online.cu"), softmax.check.front(), {}};
  ASSERT_TRUE(fs::exists(request.source));
  const auto once = explain(request, resources(), silent), again = explain(request, resources(), silent);
  ASSERT_EXPLAINED(once);
  ASSERT_EXPLAINED(again);
  EXPECT_EQ(Json(*once).dump(), Json(*again).dump());
}

TEST_F(ExplainRun, WhatDoesNotBuildIsToldWithItsLine) {
  const fs::path folder = fs::temp_directory_path() / ("capstone-explain-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "kernel.cu")
      << "#include <cuda_runtime.h>\n__global__ void k() { int broken = ; }\n";
  const Problem softmax = problem("softmax");
  const auto e = explain({&softmax, folder / "kernel.cu", softmax.check.front(), {}}, resources(), silent);
  fs::remove_all(folder);
  ASSERT_FALSE(e);
  EXPECT_EQ(e.error().code, ExitCode::kGateOneFailed);
  EXPECT_NE(e.error().where.find("kernel.cu:2"), std::string::npos) << render(e.error());
}

}  // namespace
}  // namespace capstone::test
