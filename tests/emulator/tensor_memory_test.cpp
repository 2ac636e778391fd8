// What the emulator says of mistakes with tensor memory (tensor_memory_mistakes.cu), with the descriptors of
// tiles that tensor copies brought, and with clusterlaunchcontrol. Each rule is the PTX ISA's.
#include <gtest/gtest.h>

#include "harness/runtime/build/run_program.h"
#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

ProcessResult run_with(int mistake, const std::string& schedule, BuildVariant variant = BuildVariant::kFast,
                       const char* program = "tensor_memory_mistakes.cu") {
  ProgramRequest request;
  request.source = std::filesystem::path(CAPSTONE_TEST_PROGRAMS).parent_path() / program;
  request.arguments = {std::to_string(mistake)};
  request.schedule = schedule;
  request.variant = variant;
  auto run = run_emulated_program(request, test_resources());
  EXPECT_TRUE(run) << render(run.error());
  if (!run) return {};
  EXPECT_TRUE(run->build.result.ok) << run->build.result.log << run->build.not_judgeable;
  EXPECT_NE(run->build.arch_note.find("never run on hardware here"), std::string::npos)
      << run->build.arch_note;
  return run->process;
}

TEST(TensorMemory, TheRightTileIsNotAccused) {
  for (const std::string& schedule : kSchedules) {
    const ProcessResult right = run_with(0, schedule);
    EXPECT_EQ(right.out, "PASS\n") << schedule << right.err;
  }
  EXPECT_EQ(run_with(0, "forward", BuildVariant::kInstrumented).out, "PASS\n");
}

TEST(TensorMemory, MistakesAreNamed) {
  static const std::pair<int, const char*> kMistakes[] = {
      {1, "the tcgen05.mma in "},
      {2, "tcgen05.ld: nothing orders it behind the tcgen05.mma"},
      {3, "it was not waited for"},
      {4, "no tcgen05.fence::before_thread_sync follows the tcgen05.st"},
      {5, "no tcgen05.fence::after_thread_sync precedes it"},
      {6, "its 32 columns of tensor memory are never freed"},
      {7, "are no allocation, or were freed before"},
      {8, "warp 1 frees what warp 0 allocated"},
      {9, "the block has given up its right to allocate"},
      {10, "tcgen05.alloc: 48 columns"},
      {11, "64 columns behind an allocation of 32"},
      {12, ".cta_group::2 in a kernel that has used .cta_group::1"},
      {13, "warp 1 may touch lanes 32 to 63, and the address begins at lane 0"},
      {14, "columns 32 to 32 of tensor memory are not allocated"},
      {15, "bits 46 to 48 must be 0b001"},
      {16, "swizzling mode 3 (bits 61 to 63) does not exist"},
      {17, "128 x 0 (M x N) does not exist"},
      {18, "type 3 of matrix A"},
      {19, "bits from 6 on are reserved and not 0"},
      {20, "96 x 32 (M x N) does not exist"},
      {21, "matrix A reaches beyond the block's shared memory"},
      {22, "the tcgen05.ld in "},
      {23, "tcgen05.dealloc: the tcgen05.mma in "},
      {24, "the lanes of the warp give different operands"},
      {25, "bit 2 (sparse) is 1, and the instruction has no .sp"},
      {26, "the metadata of row 0, elements 0 to 3 of A is 0"},
      {27, "bits 36 to 38, 62 and 63 must be 0"},
      {28, "column shift 33; with M = 128 at most 32"},
      {29, "column shift 8, and bits 30 and 31 of the instruction descriptor allow 0"}};
  for (const auto& [mistake, text] : kMistakes) {
    const ProcessResult run = run_with(mistake, "forward");
    EXPECT_NE(run.status, 0) << mistake;
    EXPECT_NE(run.err.find(text), std::string::npos) << mistake << ": " << text << "\n" << run.err;
  }
}

TEST(TensorMemory, WhatTheIsaLeavesOpenIsRefusedByName) {
  static const std::pair<int, const char*> kRefusals[] = {
      {32, "sparsity selector 2 and metadata from column 0 on"},
      {33, "tcgen05.mma.sp with .kind::tf32"},
      {34, "tcgen05.mma.sp with M = 64"},
      {35, "tcgen05.mma.ashift: which way it moves the rows of A"},
      {36, "start count 4 of the zero-column mask skips all of the first span of 4 columns"}};
  for (const auto& [which, text] : kRefusals) {
    const ProcessResult run = run_with(which, "forward");
    EXPECT_NE(run.status, 0) << which;
    EXPECT_NE(run.err.find(text), std::string::npos) << which << ": " << text << "\n" << run.err;
    EXPECT_NE(run.err.find("blackwell_questions.md"), std::string::npos) << run.err;
  }
}

TEST(TensorMemory, WhatOnlyOrderShowsIsARace) {
  const ProcessResult unordered = run_with(30, "forward", BuildVariant::kInstrumented);
  EXPECT_NE(unordered.status, 0) << unordered.out;
  const ProcessResult early = run_with(31, "forward", BuildVariant::kInstrumented);
  EXPECT_NE(early.err.find("race on a register of tcgen05.ld"), std::string::npos) << early.err;
}

TEST(TensorMemory, ADescriptorThatDisagreesWithTheTensorMapIsNamed) {
  static const std::pair<int, const char*> kMistakes[] = {
      {1, "matrix A is read with 128-byte swizzling, and the tensor copy in "},
      {1, "wrote it with no swizzling"},
      {2, "matrix A is read with 64-byte swizzling, and the tensor copy in "},
      {2, "wrote it with 128-byte swizzling"}};
  for (const std::string& schedule : kSchedules) {
    for (const auto& [mistake, text] : kMistakes) {
      const ProcessResult run = run_with(mistake, schedule, BuildVariant::kFast, "tensor_map_mistakes.cu");
      EXPECT_NE(run.err.find(text), std::string::npos) << schedule << ": " << text << "\n" << run.err;
    }
    for (const int right : {0, 3})
      EXPECT_EQ(run_with(right, schedule, BuildVariant::kFast, "tensor_map_mistakes.cu").out, "PASS\n")
          << schedule << " " << right;
  }
}

constexpr const char* kLaunchControl = "launch_control_mistakes.cu";

TEST(LaunchControl, TheRightKernelIsNotAccused) {
  for (const std::string& schedule : kSchedules)
    for (const BuildVariant variant : {BuildVariant::kFast, BuildVariant::kInstrumented}) {
      const ProcessResult right = run_with(0, schedule, variant, kLaunchControl);
      EXPECT_EQ(right.out, "PASS\n") << schedule << right.err;
    }
}

TEST(LaunchControl, MistakesAreNamed) {
  static const std::pair<int, const char*> kMistakes[] = {
      {1, "is not a multiple of 16"},
      {2, "must lie in the block's own shared memory"},
      {3, "this is no answer of try_cancel; wait for its mbarrier"},
      {4, "get_first_ctaid: the request failed"},
      {5, "the block has seen a request fail, and makes another one"},
      {6, "with .multicast: a block of the cluster has left the kernel"}};
  for (const auto& [mistake, text] : kMistakes) {
    const ProcessResult run = run_with(mistake, "forward", BuildVariant::kFast, kLaunchControl);
    EXPECT_NE(run.status, 0) << mistake;
    EXPECT_NE(run.err.find(text), std::string::npos) << mistake << ": " << text << "\n" << run.err;
  }
}

}  // namespace
}  // namespace capstone::test
