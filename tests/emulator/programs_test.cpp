// Whole programs in the style of public CUDA code (programs/): each checks itself and prints PASS.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "harness/runtime/build/run_program.h"
#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(CAPSTONE_TEST_PROGRAMS))
    if (entry.path().extension() == ".cu") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

class Programs : public testing::TestWithParam<std::string> {
  // A Toolkit has these headers; what scripts/fetch_cuda_headers.sh fetches does not.
  void SetUp() override {
    const auto headers = find_cuda_headers(test_resources());
    ASSERT_TRUE(headers) << render(headers.error());
    const bool cublas = fs::exists(*headers / "cublas_v2.h"),
               thrust = fs::exists(*headers / "cccl/thrust") || fs::exists(*headers / "thrust");
    if ((GetParam() == "library_calls" && !cublas) || (GetParam() == "thrust_and_cub" && !thrust))
      GTEST_SKIP() << "no such library in " << headers->string();
  }
};
INSTANTIATE_TEST_SUITE_P(All, Programs, testing::ValuesIn(program_names()), [](const auto& info) { return info.param; });

TEST_P(Programs, PassTheirOwnChecksUnderEverySchedule) {
  ProgramRequest request;
  request.source = fs::path(CAPSTONE_TEST_PROGRAMS) / (GetParam() + ".cu");
  for (const std::string& schedule : kSchedules) {
    request.schedule = schedule;
    request.seed = 7;
    const auto run = run_emulated_program(request, test_resources());
    ASSERT_TRUE(run) << render(run.error());
    ASSERT_TRUE(run->build.result.ok) << run->build.result.log << run->build.not_judgeable;
    EXPECT_EQ(run->process.status, 0) << schedule << "\n" << run->process.out << run->process.err;
    EXPECT_TRUE(run->process.out.ends_with("PASS\n")) << schedule << "\n" << run->process.out << run->process.err;
  }
}

TEST_P(Programs, AreNotAccusedOfRacesOrBadAccesses) {
  static const std::set<std::string> kCopiesAndClusters = {"cluster_histogram", "cuda_pipeline_stages", "device_features",
                                                           "mbarrier_bulk_pipeline", "tma_wgmma_gemm"};
  for (const BuildVariant variant : {BuildVariant::kInstrumented, BuildVariant::kAsan}) {
    if (variant == BuildVariant::kAsan && !kCopiesAndClusters.contains(GetParam())) continue;  // the compiler checks the accesses of the others
    ProgramRequest request;
    request.source = fs::path(CAPSTONE_TEST_PROGRAMS) / (GetParam() + ".cu");
    request.variant = variant;
    const auto run = run_emulated_program(request, test_resources());
    ASSERT_TRUE(run) << render(run.error());
    ASSERT_TRUE(run->build.result.ok) << run->build.result.log << run->build.not_judgeable;
    EXPECT_EQ(run->process.status, 0) << run->process.out << run->process.err;
    EXPECT_TRUE(run->process.out.ends_with("PASS\n")) << run->process.out << run->process.err;
  }
}

// Layouts, swizzles, tiled copies; cp.async, ldmatrix and mma.sync as CuTe's atoms.
TEST(Cute, AtomsOfAmpereMultiplyATile) {
  if (const auto headers = find_cutlass_headers(test_resources()); !headers) GTEST_SKIP() << render(headers.error());
  ProgramRequest request;
  request.source = fs::path(CAPSTONE_TEST_PROGRAMS).parent_path() / "cute_tiles.cu";
  for (const std::string& schedule : kSchedules) {
    request.schedule = schedule;
    request.seed = 7;
    const auto run = run_emulated_program(request, test_resources());
    ASSERT_TRUE(run) << render(run.error());
    if (run->build.not_judgeable.find("CCCL") != std::string::npos) GTEST_SKIP() << run->build.not_judgeable;
    ASSERT_TRUE(run->build.result.ok) << run->build.result.log << run->build.not_judgeable;
    EXPECT_EQ(run->process.out, "PASS\n") << schedule << "\n" << run->process.err;
  }
}

TEST(Cute, MissingHeadersNameTheScriptThatFetchesThem) {
  Resources bare = test_resources();
  bare.cutlass = fs::path(CAPSTONE_TEST_CACHE) / "no-such-folder";
  ProgramRequest request;
  request.source = fs::path(CAPSTONE_TEST_PROGRAMS).parent_path() / "cute_tiles.cu";
  const auto run = run_emulated_program(request, bare);
  ASSERT_TRUE(run) << render(run.error());
  EXPECT_FALSE(run->build.result.ok);
  EXPECT_NE(run->build.not_judgeable.find("CAPSTONE_CUTLASS"), std::string::npos) << run->build.not_judgeable;
}

// Such long rows are not a check size of the problem, because the other tests would then take minutes.
TEST(Cluster, TheSoftmaxThatSharesLongRowsIsRightAndNotAccused) {
  const fs::path root = fs::path(CAPSTONE_TEST_PROGRAMS).parent_path().parent_path().parent_path();
  const fs::path folder = fs::temp_directory_path() / fmt::format("capstone-softmax-cluster-{}", ::getpid());
  fs::create_directories(folder);
  const auto overwrite = fs::copy_options::overwrite_existing;
  fs::copy_file(root / "tests/emulator/softmax_cluster_check.cu", folder / "check.cu", overwrite);
  fs::copy_file(root / "reference_kernels/L8_attention/softmax/05_cluster.cu", folder / "05_cluster.cu", overwrite);
  for (const BuildVariant variant : {BuildVariant::kFast, BuildVariant::kInstrumented}) {
    ProgramRequest request;
    request.source = folder / "check.cu";
    request.variant = variant;
    const auto run = run_emulated_program(request, test_resources());
    ASSERT_TRUE(run) << render(run.error());
    ASSERT_TRUE(run->build.result.ok) << run->build.result.log << run->build.not_judgeable;
    EXPECT_EQ(run->process.status, 0) << run->process.out << run->process.err;
    EXPECT_TRUE(run->process.out.ends_with("PASS\n")) << run->process.out << run->process.err;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace capstone::test
