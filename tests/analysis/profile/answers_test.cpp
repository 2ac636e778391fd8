// The answers in words, and how the findings of several sources are combined.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/analysis/profile/profile.h"

namespace capstone {
namespace {

std::string answer(const KernelProfile& k, const std::string& question) {
  for (const Answer& a : answers(k))
    if (a.question == question) return a.text;
  return "no such question";
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

KernelProfile measured() {
  KernelProfile k;
  k.kernel = "k";
  k.time_us = 10;
  k.compute_percent = 20;
  k.memory_percent = 91;
  k.dram_percent = 88;
  k.occupancy_percent = 48;
  k.occupancy_limit_percent = 50;
  k.occupancy_limiter = "registers";
  k.registers = 64;
  k.sectors_per_request = 21.7;
  k.wavefronts_over_ideal = 6.1;
  k.lanes_per_instruction = 31.9;
  k.top_stall = "long scoreboard";
  k.top_stall_percent = 62;
  return k;
}

TEST(Answers, NothingKnownIsNotAvailableAndNeverZero) {
  for (const Answer& a : answers(KernelProfile{})) {
    EXPECT_EQ(a.text, "n/a") << a.question;
    EXPECT_FALSE(a.trouble) << a.question;
  }
}

TEST(Answers, SayTheirNumbers) {
  const KernelProfile k = measured();
  EXPECT_EQ(answer(k, "percent of peak"), "compute 20.0 %, memory 91.0 % (device memory 88.0 %)");
  EXPECT_TRUE(holds(answer(k, "what bounds it"), "memory: its busiest unit runs at 91 %"));
  EXPECT_TRUE(holds(answer(k, "occupancy"),
                    "48.0 % of the warps that an SM can hold; 50.0 % would be possible, limited by registers "
                    "(64 per thread)"));
  EXPECT_TRUE(holds(answer(k, "global memory"), "21.7 sectors"));
  EXPECT_TRUE(holds(answer(k, "shared memory"), "6.10 times the ideal wavefronts: bank conflicts"));
  EXPECT_TRUE(holds(answer(k, "divergence"), "31.9 of 32 lanes are active in an instruction"));
  EXPECT_EQ(answer(k, "top stall"),
            "long scoreboard, 62 % of the waiting time: waiting for global or local memory");
}

TEST(Answers, BoundIsWhatIsBusyAndElseLatency) {
  KernelProfile k = measured();
  k.compute_percent = 95;
  EXPECT_TRUE(holds(answer(k, "what bounds it"), "compute: "));
  k.compute_percent = k.memory_percent = 30;
  EXPECT_TRUE(holds(answer(k, "what bounds it"), "latency: neither compute (30 %) nor memory (30 %)"));
}

TEST(Answers, TroubleIsMarkedAtTheCounterThatIsBad) {
  std::vector<std::string> troubled;
  for (const Answer& a : answers(measured()))
    if (a.trouble) troubled.push_back(a.question);
  EXPECT_EQ(troubled, (std::vector<std::string>{"global memory", "shared memory"}));
  KernelProfile k;
  k.spill_bytes = 260;
  EXPECT_TRUE(holds(answer(k, "registers, spills"), "the compiler spilled 260 bytes per thread"));
  k = {};
  k.blocks = 1057, k.threads = 256, k.waves = 1.001, k.tail_percent = 49.9;
  EXPECT_TRUE(
      holds(answer(k, "grid"), "1.00 waves, the last one mostly empty: 50 % of the capacity is wasted"));
}

TEST(Complete, TakesWhatIsMissingByNameAndKeepsWhatIsKnown) {
  KernelProfile counted, compiled, other;
  counted.kernel = "sgemm<kTile>";
  counted.registers = std::nullopt;
  counted.sectors_per_request = 4;
  compiled.kernel = "capstone::sgemm<16>";
  compiled.registers = 128;
  compiled.sectors_per_request = 99;
  other.kernel = "copy";
  other.registers = 16;
  std::vector<KernelProfile> kernels{counted};
  EXPECT_TRUE(complete(kernels, {other, compiled}).empty());
  ASSERT_EQ(kernels.size(), 1u) << "what is defined and not launched is left out";
  EXPECT_EQ(*kernels[0].registers, 128);
  EXPECT_EQ(*kernels[0].sectors_per_request, 4);
}

KernelProfile compiled_kernel(const std::string& name, double registers) {
  KernelProfile k;
  k.kernel = name;
  k.registers = registers;
  return k;
}

TEST(Complete, TellsInstantiationsApartAsProfilersWriteThem) {
  std::vector<KernelProfile> kernels(1);
  kernels[0].kernel = "fused<(bool)0, (int)4>";
  EXPECT_TRUE(
      complete(kernels, {compiled_kernel("fused<true, 4>", 128), compiled_kernel("fused<false, 4>", 96)})
          .empty());
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(*kernels[0].registers, 96);
}

TEST(Complete, NamesAllThatAKernelMayBeWhereItsNameDoesNotTell) {
  const std::vector<KernelProfile> compiled{compiled_kernel("fused<true>", 128),
                                            compiled_kernel("fused<false>", 96), compiled_kernel("turn", 28)};
  for (const std::string name : {"fused<kAligned>", "kernel"}) {
    std::vector<KernelProfile> kernels(2);
    kernels[0].kernel = "turn", kernels[1].kernel = name;
    EXPECT_EQ(complete(kernels, compiled), std::vector<std::string>{name});
    ASSERT_EQ(kernels.size(), 4u) << name;
    EXPECT_FALSE(kernels[1].registers) << "no guess";
    EXPECT_EQ(kernels[2].kernel, "fused<true>");
    EXPECT_EQ(kernels[3].kernel, "fused<false>");
  }
}

TEST(Complete, LeavesOutOrKeepsWhatIsOnlyCompiledAsAsked) {
  const std::vector<KernelProfile> compiled{compiled_kernel("row<1>", 32), compiled_kernel("row<4>", 56)};
  std::vector<KernelProfile> launched(1), both(1);
  launched[0].kernel = both[0].kernel = "row<1>";
  complete(launched, compiled);
  EXPECT_EQ(launched.size(), 1u);
  complete(both, compiled, true);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(*both[1].registers, 56);
}

TEST(Answers, CanLeaveOutWhatNobodyKnows) {
  const auto known = answers(compiled_kernel("row<4>", 56), false);
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].question, "registers, spills");
  EXPECT_EQ(answers(compiled_kernel("row<4>", 56)).size(), 11u);
}

TEST(Times, AreOfWhatWasLaunched) {
  Profile p;
  p.kernels = {compiled_kernel("fused<true>", 128)};
  EXPECT_FALSE(p.time_ms());
  p.kernels.emplace_back();
  p.kernels.back().launches = 1, p.kernels.back().time_us = 500;
  EXPECT_DOUBLE_EQ(*p.time_ms(), 0.5);
  p.kernels.back().time_us.reset();
  EXPECT_FALSE(p.time_ms());
}

TEST(Counts, BecomeAProfileUnderTheFunctionsName) {
  Explanation e;
  e.kernels.push_back({"fused<Tuned>", 1, 1, 32, 0, {}, "fused<Shape<128, 64>>"});
  EXPECT_EQ(counts_of(e).front().kernel, "fused<Shape<128, 64>>");
}

TEST(Counts, BecomeAProfileWithoutTimes) {
  Explanation e;
  KernelCounts counts{"k", 2, 8, 1024, 49152, {}, {}};
  LineCounts line;
  line.global = {100, 3200, 400, 12800, 3200};
  line.shared = {10, 320, 10, 1280, 160};
  counts.lines.push_back(line);
  e.kernels.push_back(counts);
  const KernelProfile k = counts_of(e).front();
  EXPECT_DOUBLE_EQ(*k.launches, 2);
  EXPECT_DOUBLE_EQ(*k.threads, 128);
  EXPECT_DOUBLE_EQ(*k.dynamic_shared_bytes, 49152);
  EXPECT_DOUBLE_EQ(*k.sectors_per_request, 32);
  EXPECT_DOUBLE_EQ(*k.wavefronts_over_ideal, 32);
  EXPECT_NEAR(*k.lanes_per_instruction, 3360.0 / 110, 1e-9);
  EXPECT_FALSE(k.time_us);
}

}  // namespace
}  // namespace capstone
