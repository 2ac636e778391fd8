// The answers in words, and how what several sources know is put together.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/profile/profile.h"

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
  EXPECT_TRUE(holds(answer(k, "occupancy"), "48.0 % of the warps that an SM holds, of 50.0 % possible, limited by registers (64 a thread)"));
  EXPECT_TRUE(holds(answer(k, "global memory"), "21.7 sectors"));
  EXPECT_TRUE(holds(answer(k, "shared memory"), "6.10 times the ideal wavefronts: bank conflicts"));
  EXPECT_TRUE(holds(answer(k, "divergence"), "31.9 of 32 lanes work in an instruction"));
  EXPECT_EQ(answer(k, "top stall"), "long scoreboard, 62 % of the waiting: waiting for global or local memory");
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
  EXPECT_TRUE(holds(answer(k, "registers, spills"), "the compiler spilt 260 bytes a thread"));
  k = {};
  k.blocks = 1057, k.threads = 256, k.waves = 1.001, k.tail_percent = 49.9;
  EXPECT_TRUE(holds(answer(k, "grid"), "1.00 waves, the last one mostly empty: 50 % of the room is wasted"));
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
  complete(kernels, {other, compiled});
  ASSERT_EQ(kernels.size(), 1u) << "what is defined and not launched is left out";
  EXPECT_EQ(*kernels[0].registers, 128);
  EXPECT_EQ(*kernels[0].sectors_per_request, 4);
}

TEST(Counts, BecomeAProfileWithoutTimes) {
  Explanation e;
  KernelCounts counts{"k", 2, 8, 1024, 49152, {}};
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
