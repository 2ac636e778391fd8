// The memory-checked build: every access out of bounds and every undefined operation at its line, with block
// and thread.
#include <gtest/gtest.h>

#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

const std::string kHead =
    "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cstdint>\n#include <cstdlib>\n";
std::string launch(const std::string& body) {
  return "extern \"C\" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t "
         "stream) {\n" +
         body + "\n}\n";
}
std::string kernel(const std::string& body, const std::string& launched = "k<<<2, 32>>>(x, y, int(n));") {
  return kHead + "__global__ void k(const float* x, float* y, int n) {\n" + body + "\n}\n" + launch(launched);
}
std::string text(const Json& answer, const char* key) { return answer.value(key, std::string()); }

/// Fails under the memory-checked build, at the line marked "// here", with all of `words` in the message.
Json expect_finding(const std::string& source, const std::vector<std::string>& words, std::size_t n = 64) {
  const Json answer = failure_of(source, n, "forward", BuildVariant::kAsan);
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour") << answer;
  for (const std::string& word : words)
    EXPECT_NE(text(answer, "message").find(word), std::string::npos) << word << "\n" << answer;
  EXPECT_EQ(text(answer, "file"), "kernel.cu") << answer;
  EXPECT_EQ(answer.value("line", 0), line_of(source, "// here")) << answer;
  return answer;
}

TEST(MemoryChecked, ReadPastATensorNamesItAndTheThread) {
  const Json answer =
      expect_finding(kernel(R"(
  int i = blockIdx.x * 32 + threadIdx.x;
  y[i] = x[i + 1];  // here
)"),
                     {"out of bounds", "read of 4 bytes", "0 bytes past the end of x (256 bytes)"});
  EXPECT_EQ(text(answer, "kernel"), "k");
  EXPECT_EQ(answer.value("block", Json()), Json({1, 0, 0}));
  EXPECT_EQ(answer.value("thread", Json()), Json({31, 0, 0}));
}

TEST(MemoryChecked, TheEndOfATensorIsExactToTheElement) {
  // 61 floats: the end lies inside of a granule of 8 bytes.
  expect_finding(kernel("int i = blockIdx.x * 32 + threadIdx.x;\n  if (i <= n) y[i] = 1;  // here"),
                 {"write of 4 bytes", "0 bytes past the end of y (244 bytes)"}, 61);
  const EmulatedArtifact honest = build(
      kernel("int i = blockIdx.x * 32 + threadIdx.x;\n  if (i < n) y[i] = x[i];"), 900, BuildVariant::kAsan);
  ASSERT_TRUE(honest.result.ok) << honest.result.log;
  Workbench bench(honest.program, std::vector<float>(61, 3.f), 61);
  EXPECT_TRUE(bench.run().value("ok", false));
  EXPECT_EQ(bench.y(), std::vector<float>(61, 3.f));
}

TEST(MemoryChecked, WriteBeforeATensor) {
  expect_finding(kernel("y[int(threadIdx.x) - 1] = 0;  // here"),
                 {"write of 4 bytes", "4 bytes before the start of y"});
}

TEST(MemoryChecked, SharedMemoryPastTheEndNamesTheArray) {
  const Json answer =
      expect_finding(kernel(R"(
  __shared__ float tile[32];
  __shared__ float other[32];
  other[threadIdx.x] = 0;
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x + 1] + other[threadIdx.x];  // here
)"),
                     {"read of 4 bytes", "0 bytes past the end of tile in kernel.cu:", "(128 bytes)"});
  EXPECT_EQ(answer.value("thread", Json()), Json({31, 0, 0}));
}

TEST(MemoryChecked, DynamicSharedMemoryEndsWhereTheLaunchSaid) {
  const std::string body = R"(
  extern __shared__ float s[];
  s[threadIdx.x] = x[threadIdx.x];  // here
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
)";
  expect_finding(kernel(body, "k<<<2, 32, 31 * 4>>>(x, y, int(n));"),
                 {"write of 4 bytes", "past the end of the dynamic shared memory (124 bytes)"});
  expect_finding(kernel(body), {"dynamic shared memory of 0 bytes"});
}

TEST(MemoryChecked, LocalArrayNamesTheVariable) {
  expect_finding(kernel(R"(
  float acc[8];
  for (int i = 0; i < 8; ++i) acc[i] = x[i] * threadIdx.x;
  y[threadIdx.x] = acc[threadIdx.x % 9];  // here
)"),
                 {"read of 4 bytes", "0 bytes past the end of the local variable acc (32 bytes)"});
}

TEST(MemoryChecked, ConstantTableAndMemoryOfCudaMalloc) {
  expect_finding(kHead + R"(
__constant__ float table[10];
__global__ void k(float* y) { y[threadIdx.x] = table[threadIdx.x]; }  // here
)" + launch("k<<<1, 11>>>(y);"),
                 {"past the end of the variable table (40 bytes)"});
  expect_finding(kHead + R"(
__global__ void k(float* scratch) { scratch[threadIdx.x] = 1; }  // here
)" + launch("float* s; cudaMalloc(&s, 100); k<<<1, 32>>>(s); cudaFree(s);"),
                 {"0 bytes past the end of memory of cudaMalloc (100 bytes)"});
  expect_finding(kHead + R"(
__global__ void k(float* scratch) { scratch[threadIdx.x] = 1; }  // here
)" + launch("float* s; cudaMalloc(&s, 128); cudaFree(s); k<<<1, 32>>>(s);"),
                 {"use of freed memory"});
}

TEST(MemoryChecked, CallsAndInlinedHelpersLeadToTheUsersLine) {
  expect_finding(kernel("y[threadIdx.x] = __ldg(x + threadIdx.x + 40);  // here"), {"past the end of x"});
  expect_finding(kernel("atomicAdd(&y[threadIdx.x + 33], 1.f);  // here"), {"past the end of y"});
}

TEST(MemoryChecked, AsyncCopyOutOfBounds) {
  expect_finding(kHead +
                     "#include <cuda_pipeline.h>\n__global__ void k(const float* x, float* y) {\n  "
                     "__shared__ float s[64];\n"
                     "  __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x + 40], 4);  // here\n"
                     "  __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();\n  y[threadIdx.x] = "
                     "s[threadIdx.x];\n}\n" +
                     launch("k<<<1, 32>>>(x, y);"),
                 {"read of 4 bytes", "past the end of x"});
}

TEST(MemoryChecked, BarriersAndManyBlocksDoNotConfuseTheChecks) {
  const std::string source = kernel(R"(
  __shared__ float tile[33];
  float kept[4];
  for (int round = 0; round < 4; ++round) {
    tile[threadIdx.x] = x[threadIdx.x] + round;
    __syncthreads();
    kept[round] = tile[31 - threadIdx.x];
    __syncthreads();
  }
  y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, kept[threadIdx.x % 4], 1);
)",
                                    "k<<<64, 32>>>(x, y, int(n));");
  const EmulatedArtifact artifact = build(source, 900, BuildVariant::kAsan);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log;
  Workbench bench(artifact.program, std::vector<float>(32, 1.f), 32);
  for (const std::string& schedule : kSchedules)
    EXPECT_TRUE(bench.run(schedule).value("ok", false)) << schedule;
}

TEST(MemoryChecked, TheWorkerGoesOnAfterAFinding) {
  const std::string source = kernel(R"(
  float local[16];
  for (int i = 0; i < 16; ++i) local[i] = i + x[0];
  __syncthreads();
  y[threadIdx.x] = x[0] > 2 ? local[int(x[0])] : local[threadIdx.x % 16];
)",
                                    "k<<<2, 32>>>(x, y, int(n));");
  const EmulatedArtifact artifact = build(source, 900, BuildVariant::kAsan);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log;
  Workbench bad(artifact.program, std::vector<float>(64, 17.f), 64);
  EXPECT_FALSE(bad.run().value("ok", true));
  EXPECT_FALSE(bad.run("reverse").value("ok", true));
  Workbench good(artifact.program, std::vector<float>(64, 1.f), 64);
  EXPECT_TRUE(good.run().value("ok", false));
}

TEST(MemoryChecked, HostCodeOfLaunchIsCheckedToo) {
  const std::string source =
      kHead + launch("static int table[4] = {1, 2, 3, 4};\nvolatile int i = 4;\ny[0] = table[i];  // here");
  EXPECT_NE(text(expect_finding(source, {"past the end of the variable"}), "message").find("in host code"),
            std::string::npos);
}

TEST(MemoryChecked, IntegerOverflowInIndexArithmetic) {
  expect_finding(kernel(R"(
  int row = int(x[0]) * 100000;
  int i = row * row;  // here
  y[threadIdx.x] = i;
)"),
                 {"integer overflow: 100000 * 100000 does not fit int"});
}

TEST(MemoryChecked, ShiftDivisionNullMisalignment) {
  expect_finding(kernel("y[threadIdx.x] = 1 << (32 + int(x[0]));  // here"),
                 {"shift of a int (32 bits) by 33"});
  expect_finding(kernel("y[threadIdx.x] = 7 / (int(x[0]) - 1);  // here"), {"integer division of 7 by zero"});
  expect_finding(kernel("*y = 1;  // here", "k<<<1, 32>>>(x, nullptr, int(n));"),
                 {"write of float through a null pointer"});
  expect_finding(kernel("float4 v = *reinterpret_cast<const float4*>(x + 1); y[threadIdx.x] = v.x;  // here"),
                 {"misaligned", "multiple of 16"});
}

TEST(MemoryChecked, WhatCudaCodeDoesOnPurposeIsNotAccused) {
  const std::string source = kernel(R"(
  __shared__ float tile[4][8];
  tile[0][threadIdx.x] = x[threadIdx.x];                 // flattened
  __syncthreads();
  unsigned hash = threadIdx.x * 2654435761u;             // wraps
  int negative = -int(threadIdx.x) << 4;
  int saturated = int(x[0] * 1e30f);
  __half h = __float2half(x[threadIdx.x]);
  y[threadIdx.x] = tile[0][31 - threadIdx.x] + (hash >> 31) * 0 + negative * 0 + saturated * 0 + __half2float(h) * 0;
)",
                                    "k<<<1, 32>>>(x, y, int(n));");
  const EmulatedArtifact artifact = build(source, 900, BuildVariant::kAsan);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log;
  Workbench bench(artifact.program, std::vector<float>(32, 1.f), 32);
  const Json answer = bench.run();
  EXPECT_TRUE(answer.value("ok", false)) << answer;
}

// ---- accidents that end a kernel, in every build ----------------------------------------------------------

class Accident : public testing::TestWithParam<BuildVariant> {
 protected:
  /// Ends with one of `kinds` at the line marked "// here", names kernel, block and thread.
  void expect(const std::string& source, const std::vector<std::string>& kinds, const std::string& word,
              const Json& more = Json::object()) {
    const EmulatedArtifact artifact = build(source, 900, GetParam());
    ASSERT_TRUE(artifact.result.ok) << artifact.result.log;
    Workbench bench(artifact.program, std::vector<float>(64, 1.f), 64);
    const Json answer = bench.run("forward", 1, more);
    EXPECT_NE(std::find(kinds.begin(), kinds.end(), text(answer, "kind")), kinds.end()) << answer;
    EXPECT_NE(text(answer, "message").find(word), std::string::npos) << answer;
    EXPECT_EQ(text(answer, "file"), "kernel.cu") << answer;
    EXPECT_EQ(answer.value("line", 0), line_of(source, "// here")) << answer;
    EXPECT_EQ(text(answer, "kernel"), "k") << answer;
    EXPECT_EQ(answer.value("block", Json()).size(), 3u) << answer;
    EXPECT_EQ(answer.value("thread", Json()).size(), 3u) << answer;
  }
};

TEST_P(Accident, WildPointer) {
  expect(kernel("if (threadIdx.x == 3) y[int64_t(1) << 40] = 1;  // here"), {"crash", "undefined_behaviour"},
         "");
}
TEST_P(Accident, NullPointer) {
  expect(kernel("if (threadIdx.x == 3) y[threadIdx.x] = 1;  // here", "k<<<1, 32>>>(x, nullptr, int(n));"),
         {"crash", "undefined_behaviour"}, "");
}
TEST_P(Accident, DivisionByZero) {
  expect(kernel("y[threadIdx.x] = 7 / (int(x[0]) - 1);  // here"), {"crash", "undefined_behaviour"}, "zero");
}
TEST_P(Accident, Trap) {
  expect(kernel("if (x[0] > 0) __trap();  // here"), {"undefined_behaviour"}, "__trap()");
}
TEST_P(Accident, Assertion) {
  expect(kHead +
             "#include <cassert>\n__global__ void k(const float* x) {\n  assert(x[0] == 0);  // here\n}\n" +
             launch("k<<<2, 32>>>(x);"),
         {"undefined_behaviour"}, "assertion failed: x[0] == 0");
}
TEST_P(Accident, DeepRecursion) {
  expect(kHead + R"(
__device__ __noinline__ float deep(int n, float* y) { volatile float local[64]; local[n % 64] = n; return n ? deep(n - 1, y) + local[n % 64] : y[0]; }  // here
__global__ void k(float* y) { y[0] = deep(1 << 20, y); }
)" + launch("k<<<1, 1>>>(y);"),
         {"crash"}, "stack overflow");
}
TEST_P(Accident, HugeLocalArray) {
  expect(kHead + R"(
__global__ void k(float* y) {  // here
  volatile float big[1 << 20]; for (int i = 0; i < (1 << 20); i += 1 << 18) big[i] = i; y[threadIdx.x] = big[threadIdx.x << 18];
}
)" + launch("k<<<1, 4>>>(y);"),
         {"crash"}, "stack overflow");
}
TEST_P(Accident, EndlessLoop) {
  expect(kernel("volatile float* v = y;\n  while (v[1] != 5 || v[2] != 5) v[3] = 1;  // here"), {"timed_out"},
         "did not end within 0.1 s", {{"limit_ms", 100}});
}
TEST_P(Accident, EndlessLoopAroundABarrier) {
  expect(kernel("for (;;) { __syncthreads(); if (y[1] == 5) break; }  // here"), {"timed_out"}, "did not end",
         {{"limit_ms", 100}});
}
TEST_P(Accident, Deadlock) {
  expect(kernel("if (threadIdx.x < 16) __shfl_sync(0xffffffffu, 1.f, 0);  // here\n  else __syncthreads();"),
         {"undefined_behaviour"}, "deadlock");
}

std::string variant_name(const testing::TestParamInfo<BuildVariant>& info) {
  return info.param == BuildVariant::kFast ? "Fast" : "MemoryChecked";
}
INSTANTIATE_TEST_SUITE_P(Builds, Accident, testing::Values(BuildVariant::kFast, BuildVariant::kAsan),
                         variant_name);

TEST(Accident, HostCodeThatCrashesOrDoesNotReturnNamesItsLine) {
  const std::string crash = kHead + launch("volatile int* p = nullptr;\n*p = 1;  // here");
  Json answer = failure_of(crash);
  EXPECT_EQ(text(answer, "kind"), "crash");
  EXPECT_EQ(answer.value("line", 0), line_of(crash, "// here")) << answer;
  const std::string loop = kHead + launch("for (volatile int i = 0; i < 1;) i = 0;  // here");
  const EmulatedArtifact artifact = build(loop);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log;
  Workbench bench(artifact.program, {1}, 1);
  answer = bench.run("forward", 1, {{"limit_ms", 50}});
  EXPECT_EQ(text(answer, "kind"), "timed_out");
  EXPECT_NE(text(answer, "message").find("in host code"), std::string::npos) << answer;
  EXPECT_EQ(answer.value("line", 0), line_of(loop, "// here")) << answer;
}

}  // namespace
}  // namespace capstone::test
