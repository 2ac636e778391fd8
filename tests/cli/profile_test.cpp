// `capstone profile` without a GPU: what compiler, cost model and emulator know, and what nobody knows here.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Profiles : public CliTest {};

TEST_F(Profiles, WithoutCountersSaysWhatIsKnownAndWhatIsNot) {
  Outcome shown = capstone({"profile", "02", "--problem", "damped_steps", "--no-ncu"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "no counters of a GPU: ncu was switched off"));
  EXPECT_TRUE(says(shown.out, "times the ideal wavefronts: bank conflicts"));
  EXPECT_TRUE(says(shown.out, "percent of peak    n/a"));
  EXPECT_TRUE(says(shown.out, "modelled, not measured: at least "));
}

TEST_F(Profiles, OfAProjectIsKeptInItsLedger) {
  const fs::path root = project("p", "03", "damped_steps");
  Outcome shown = capstone({"profile", "--no-ncu", "--on", "4090", "--format", "json"}, {.cwd = root});
  ASSERT_EQ(shown.code, 0) << shown;
  const Json json = Json::parse(shown.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << shown;
  EXPECT_TRUE(json["kernels"][0]["time_us"].is_null()) << "unknown is not zero";
  EXPECT_TRUE(json["kernels"][0]["sectors_per_request"].is_number());
  EXPECT_TRUE(says(json["peak"].get<std::string>(), "4090"));
  const auto kept = records(root, "profile");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0]["body"]["source"], "human/kernel.cu");
  EXPECT_EQ(kept[0]["body"]["kernels"], json["kernels"]);
  expect_ledger_intact(root);
}

constexpr const char* kByPointer = R"(#include <cuda_runtime.h>
#include <cstdint>
template <int kElements>
__global__ void add(const float* a, const float* b, float* c, int64_t n) {
  for (int e = 0; e < kElements; ++e) {
    const int64_t i = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * kElements + e;
    if (i < n) c[i] = a[i] + b[i];
  }
}
extern "C" void launch(const float* a, const float* b, float* c, int64_t n, void*, cudaStream_t stream) {
  const int elements = n > 1 << 20 ? 4 : 1;
  const auto kernel = n > 1 << 20 ? add<4> : add<1>;
  kernel<<<unsigned((n + 256 * elements - 1) / (256 * elements)), 256, 0, stream>>>(a, b, c, n);
}
)";

TEST_F(Profiles, AKernelLaunchedThroughAVariableHasItsFactsUnderItsOwnName) {
  spit(home_ / "pointer.cu", kByPointer);
  Outcome shown = capstone({"profile", (home_ / "pointer.cu").string(), "--problem", "vector_add", "--no-ncu",
                            "--format", "json"});
  ASSERT_EQ(shown.code, 0) << shown;
  const Json json = Json::parse(shown.out);
  ASSERT_GE(json["kernels"].size(), 1u);
  const Json& launched = json["kernels"][0];
  EXPECT_EQ(launched["kernel"], "add<1>");
  EXPECT_EQ(launched["launches"], 1);
  if (json["arch"] == "") GTEST_SKIP() << "no nvcc here";
  EXPECT_TRUE(launched["registers"].is_number()) << launched;
  ASSERT_EQ(json["kernels"].size(), 2u) << "at the measured size launch() takes the other one";
  EXPECT_EQ(json["kernels"][1]["kernel"], "add<4>");
  EXPECT_TRUE(json["kernels"][1]["launches"].is_null());
  EXPECT_TRUE(json["kernels"][1]["registers"].is_number());
  Outcome text =
      capstone({"profile", (home_ / "pointer.cu").string(), "--problem", "vector_add", "--no-ncu"});
  EXPECT_TRUE(says(text.out, "add<4>: compiled, not launched at n="));
}

// A toolkit may come without the disassembler; the answer then says so instead of a bare "n/a".
TEST_F(Profiles, MachineCodeIsReadOrTheReasonSaid) {
  Outcome shown = capstone({"profile", "02", "--problem", "damped_steps", "--no-ncu", "--format", "json"});
  ASSERT_EQ(shown.code, 0) << shown;
  const Json json = Json::parse(shown.out);
  if (json["kernels"][0]["memory_instructions"].is_null()) {
    EXPECT_TRUE(says(json["missing"].dump(), "machine code: "));
    return;
  }
  EXPECT_TRUE(json["kernels"][0]["memory_instructions"].contains("LDG.32")) << json["kernels"][0];
  EXPECT_TRUE(json["missing"].empty()) << json["missing"];
}

TEST_F(Profiles, MistakesSayWhatToDo) {
  Outcome arch = capstone({"profile", "02", "--problem", "damped_steps", "--arch", "hopper"});
  EXPECT_EQ(arch.code, 2) << arch;
  EXPECT_TRUE(says(arch.err, "an architecture is called sm_80"));
  Outcome unknown = capstone({"profile", "02", "--problem", "damped_steps", "--arch", "sm_12", "--no-ncu"});
  if (unknown.code != 0) {  // 0: there is no nvcc here
    EXPECT_EQ(unknown.code, 2) << unknown;
    EXPECT_TRUE(says(unknown.err, "does not know the architecture sm_12"));
    EXPECT_TRUE(says(unknown.err, "nvcc --list-gpu-code"));
  }
  Outcome rung = capstone({"profile", "01_naive", "--problem", "damped_steps"});
  EXPECT_EQ(rung.code, 2) << rung;
  EXPECT_TRUE(says(rung.err, "rungs of this problem: 01_uncoalesced"));
  Outcome table = capstone({"profile", "02", "--problem", "damped_steps", "--no-ncu", "--csv", "table.csv"});
  EXPECT_EQ(table.code, 3) << table;
  EXPECT_TRUE(says(table.err, "ncu gave no table to write"));
  spit(home_ / "wrong.cu", "not a kernel\n");
  Outcome broken =
      capstone({"profile", (home_ / "wrong.cu").string(), "--problem", "damped_steps", "--no-ncu"});
  EXPECT_EQ(broken.code, 1) << broken;
  EXPECT_TRUE(says(broken.err, "does not compile"));
}

}  // namespace
}  // namespace capstone::cli_test
