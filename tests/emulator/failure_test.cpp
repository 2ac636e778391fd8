// Kernels that must fail, and what the worker reports about them.
#include <gtest/gtest.h>

#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

const std::string kHead =
    "#include <cuda_runtime.h>\n#include <cstdint>\n#include <cstdlib>\n#include <stdexcept>\n";
std::string launch(const std::string& body) {
  return "extern \"C\" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t "
         "stream) {\n" +
         body + "\n}\n";
}
std::string text(const Json& answer, const char* key) { return answer.value(key, std::string()); }

TEST(Failure, DeadlockNamesWhoWaitsWhere) {
  const std::string source = kHead + R"(
__global__ void k(float* y) {
  if (threadIdx.x < 16)
    y[0] = __shfl_down_sync(0xffffffffu, 1.f, 1);  // wait
  else
    __syncthreads();
}
)" + launch("k<<<2, 32>>>(y);  // launch");
  const Json answer = failure_of(source);
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour");
  EXPECT_NE(text(answer, "message").find("deadlock"), std::string::npos);
  EXPECT_NE(text(answer, "message").find("16 from (0,0,0) wait at a warp collective"), std::string::npos)
      << answer;
  EXPECT_NE(text(answer, "message").find("16 from (16,0,0) wait at __syncthreads()"), std::string::npos)
      << answer;
  EXPECT_EQ(text(answer, "kernel"), "k");
  EXPECT_EQ(text(answer, "launched_at"), "kernel.cu:" + std::to_string(line_of(source, "// launch")));
  EXPECT_EQ(answer.value("line", 0), line_of(source, "// wait"));
  EXPECT_EQ(answer.value("block", Json()).size(), 3u) << answer;
}

/// A box of 4 x 4 floats of the 8 x 8 floats at x, fetched from (column, 2) or stored there.
std::string tensor_copy(const std::string& column, bool load) {
  const std::string where = load ? "%0], [%1, {%3, %4}], [%2];\" ::\"r\"(tile_at), \"l\"(&map), \"r\"(full_at)"
                                 : "%0, {%2, %3}], [%1];\" ::\"l\"(&map), \"r\"(tile_at)";
  const std::string copy = load ? "shared::cluster.global.tile.mbarrier::complete_tx::bytes ["
                                : "global.shared::cta.tile.bulk_group [";
  return kHead + R"(
#include <cuda.h>
#include <cudaTypedefs.h>
__global__ void k(const __grid_constant__ CUtensorMap map, float* y) {
  __shared__ alignas(128) float tile[16];
  __shared__ uint64_t full;
  const unsigned tile_at = __cvta_generic_to_shared(tile), full_at = __cvta_generic_to_shared(&full);
  tile[threadIdx.x % 16] = 3;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full_at));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 64;" ::"r"(full_at) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.)" +
         copy + where + ", \"r\"(" + column + R"(), "r"(2) : "memory");  // copy
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
  y[threadIdx.x] = 1;
}
)" + launch(R"(
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &result);
  CUtensorMap map;
  cuuint64_t extents[] = {8, 8}, strides[] = {32};
  cuuint32_t box[] = {4, 4}, steps[] = {1, 1};
  ((PFN_cuTensorMapEncodeTiled_v12000)encode)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, )" +
                std::string(load ? "const_cast<float*>(x)" : "y") + R"(, extents, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  k<<<1, 64>>>(map, y);)");
}

TEST(Failure, ATensorCopyBeginsAtASixteenthByteOfARow) {
  for (const bool load : {true, false}) {
    const std::string source = tensor_copy("1", load);
    const Json answer = failure_of(source);
    EXPECT_EQ(text(answer, "kind"), "undefined_behaviour") << answer;
    EXPECT_NE(text(answer, "message").find("the innermost coordinate 1 is byte 4 of a row"), std::string::npos)
        << answer;
    EXPECT_EQ(answer.value("line", 0), line_of(source, "// copy"));
    for (const char* column : {"4", "-4"})
      EXPECT_EQ(evaluate(tensor_copy(column, load), std::vector<float>(64), 64).size(), 64u) << column;
  }
}

TEST(Failure, ThreadsThatReturnEarlyDoNotBlockTheOthers) {
  const std::string source = kHead + R"(
__global__ void k(const float* x, float* y, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  y[threadIdx.x] = x[threadIdx.x];
}
)" + launch("k<<<1, 96>>>(x, y, int(n));");
  EXPECT_EQ(evaluate(source, {1, 2, 3}, 3), (std::vector<float>{1, 2, 3}));
}

TEST(Failure, BlockTooLargeIsALaunchError) {
  const std::string source =
      kHead + "__global__ void k(float* y) { y[0] = 1; }\n" + launch("k<<<1, 2048>>>(y);");
  const Json answer = failure_of(source);
  EXPECT_EQ(text(answer, "kind"), "launch_error");
  EXPECT_NE(text(answer, "message").find("2048 threads"), std::string::npos);
  EXPECT_EQ(text(answer, "launched_at"), "kernel.cu:" + std::to_string(line_of(source, "k<<<1, 2048")));
}

TEST(Failure, DynamicSharedMemoryWithoutOptInIsALaunchError) {
  const Json answer = failure_of(
      kHead + "__global__ void k(float* y) { extern __shared__ float s[]; s[0] = 1; y[0] = s[0]; }\n" +
      launch("k<<<1, 32, 60000>>>(y);"));
  EXPECT_EQ(text(answer, "kind"), "launch_error");
  EXPECT_NE(text(answer, "hint").find("cudaFuncSetAttribute"), std::string::npos) << answer;
}

TEST(Failure, TooMuchStaticSharedMemoryIsALaunchError) {
  const Json answer = failure_of(
      kHead +
      "__global__ void k(float* y) { __shared__ float big[128][128]; big[0][0] = 1; y[0] = big[0][0]; }\n" +
      launch("k<<<1, 32>>>(y);"));
  EXPECT_EQ(text(answer, "kind"), "launch_error");
  EXPECT_NE(text(answer, "message").find("48 KiB"), std::string::npos) << answer;
}

TEST(Failure, NullPointerNamesThreadAndLine) {
  const std::string source = kHead + R"(
__global__ void k(float* y) {
  if (threadIdx.x == 5) y[threadIdx.x] = 1;  // here
}
)" + launch("k<<<1, 32>>>(nullptr);");
  const Json answer = failure_of(source);
  EXPECT_EQ(text(answer, "kind"), "crash");
  EXPECT_NE(text(answer, "message").find("null pointer"), std::string::npos) << answer;
  EXPECT_EQ(answer.value("thread", Json()), Json({5, 0, 0})) << answer;
  EXPECT_EQ(text(answer, "file"), "kernel.cu");
  EXPECT_EQ(answer.value("line", 0), line_of(source, "// here"));
}

TEST(Failure, AThreadBehindOthersThatEndedIsNamed) {
  const std::string source = kHead + R"(
__global__ void k(float* y) {
  if (threadIdx.x % 16 == 3) __syncwarp(1u << threadIdx.x % 32);
  if (threadIdx.y == 2 && threadIdx.z == 1 && threadIdx.x == 21) y[threadIdx.x] = 1;  // here
}
)" + launch("k<<<3, dim3(32, 4, 2)>>>(nullptr);");
  const Json answer = failure_of(source);
  EXPECT_EQ(text(answer, "kind"), "crash");
  EXPECT_EQ(answer.value("thread", Json()), Json({21, 2, 1})) << answer;
  EXPECT_EQ(answer.value("line", 0), line_of(source, "// here"));
}

TEST(Failure, AMatrixInstructionOfAPartialWarpIsNamed) {
  const std::string source = "#include <mma.h>\n" + kHead + R"(
__global__ void k(float* y) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> a;
  fragment<matrix_b, 16, 16, 16, half, row_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(a, half(1.0f));
  fill_fragment(b, half(1.0f));
  fill_fragment(c, 0.0f);
  mma_sync(c, a, b, c);  // here
  y[0] = c.x[0];
}
)" + launch("k<<<1, dim3(1, 4)>>>(y);");
  const Json answer = failure_of(source);
  EXPECT_NE(text(answer, "message").find("needs all 32 lanes of its warp; here are 4"), std::string::npos) << answer;
  EXPECT_EQ(answer.value("line", 0), line_of(source, "// here"));
}

TEST(Failure, DivisionByZeroIsACrashAndTheWorkerLivesOn) {
  const EmulatedArtifact artifact = build(kHead + R"(
__global__ void k(const float* x, float* y, int64_t n) { y[threadIdx.x] = 7 / int(x[threadIdx.x]); }
)" + launch("k<<<1, 4>>>(x, y, n);"));
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log;
  Workbench bench(artifact.program, {1, 0, 1, 1}, 4);
  const Json answer = bench.run();
  EXPECT_EQ(text(answer, "kind"), "crash") << answer;
  EXPECT_NE(text(answer, "message").find("division by zero"), std::string::npos);
  EXPECT_EQ(text(bench.run("reverse"), "kind"), "crash");
}

TEST(Failure, WritePastSharedMemoryIsFound) {
  const Json answer = failure_of(kHead + R"(
__global__ void k(float* y) {
  __shared__ float first[32];
  __shared__ float second[32];
  second[threadIdx.x] = 0;
  first[threadIdx.x + 1] = 2;
  __syncthreads();
  y[threadIdx.x] = first[threadIdx.x];
}
)" + launch("k<<<1, 32>>>(y);"));
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour");
  EXPECT_NE(text(answer, "message").find("past the end of first in kernel.cu:"), std::string::npos) << answer;
}

TEST(Failure, MaskWithoutTheCallingLane) {
  const Json answer =
      failure_of(kHead + "__global__ void k(float* y) { y[0] = __shfl_sync(0x1u, 1.f, 0); }\n" +
                 launch("k<<<1, 32>>>(y);"));
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour");
  EXPECT_NE(text(answer, "message").find("does not name the calling lane"), std::string::npos) << answer;
}

TEST(Failure, TrapAndAssertNameTheLine) {
  const std::string source =
      kHead + "#include <cassert>\n__global__ void k(float* y) {\n  assert(y == nullptr);  // here\n}\n" +
      launch("k<<<1, 1>>>(y);");
  const Json answer = failure_of(source);
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour");
  EXPECT_NE(text(answer, "message").find("assertion failed: y == nullptr"), std::string::npos) << answer;
}

// The limit is for the busiest thread: on an idle machine these two blocks end after 0.3 s, on one processor
// after 0.6 s.
TEST(Failure, TwoBlocksOnOneProcessorEachHaveTheTimeLimit) {
  const std::string source = kHead + R"(
#include <sched.h>
#include <time.h>
__global__ void k(float* y) {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  sched_setaffinity(0, sizeof first, &first);
  timespec begin{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do {
    for (volatile int i = 0; i < 1000000; i = i + 1) {}
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 300000000);
  y[blockIdx.x] = 1;
}
)" + launch("k<<<2, 1>>>(y);");
  const EmulatedArtifact artifact = build(source);
  Workbench bench(artifact.program, std::vector<float>(64, 1.f), 64);
  const auto begin = std::chrono::steady_clock::now();
  const Json answer = bench.run("forward", 1, {{"limit_ms", 450}});
  if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(4 * 450))
    GTEST_SKIP() << "this machine is too busy to say";
  EXPECT_EQ(text(answer, "kind"), "") << answer;
  EXPECT_EQ(bench.y()[1], 1);
}

TEST(Failure, AssertOfHostCodeIsNotBlamedOnAKernel) {
  const std::string source = kHead + "#include <cassert>\n__global__ void k(float* y) { y[0] = 1; }\n" +
                             launch("k<<<1, 1>>>(y);\ncudaDeviceSynchronize();\nassert(y[0] == 2);  // here");
  const Json answer = failure_of(source);
  EXPECT_EQ(text(answer, "kind"), "exception");
  EXPECT_EQ(text(answer, "message"), "the host program stopped itself: assertion failed: y[0] == 2")
      << answer;
  EXPECT_EQ(text(answer, "file"), "kernel.cu");
  EXPECT_EQ(answer.value("line", 0), line_of(source, "// here"));
  EXPECT_FALSE(answer.contains("kernel")) << answer;
}

TEST(Failure, GridSynchronisationNeedsACooperativeLaunch) {
  const Json answer = failure_of(kHead +
                                 "#include <cooperative_groups.h>\n__global__ void k(float* y) { "
                                 "cooperative_groups::this_grid().sync(); }\n" +
                                 launch("k<<<2, 32>>>(y);"));
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour");
  EXPECT_NE(text(answer, "hint").find("cudaLaunchCooperativeKernel"), std::string::npos) << answer;
}

TEST(Failure, BlockThatLeavesACooperativeGridIsADeadlock) {
  const Json answer = failure_of(
      kHead +
      "#include <cooperative_groups.h>\n__global__ void k(float* y) {\n  if (blockIdx.x == 1) return;\n"
      "  cooperative_groups::this_grid().sync();  // here\n}\n" +
      launch("void* a[] = {&y}; cudaLaunchCooperativeKernel((void*)k, 3, 32, a);"));
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour");
  EXPECT_NE(text(answer, "message").find("1 blocks that left"), std::string::npos) << answer;
}

TEST(Failure, MbarrierBeforeItsInitialisation) {
  const Json answer = failure_of(kHead +
                                 "__global__ void k(float* y) {\n  __shared__ unsigned long long bar;\n"
                                 "  asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" :: "
                                 "\"r\"((unsigned)__cvta_generic_to_shared(&bar)));  // here\n}\n" +
                                 launch("k<<<1, 1>>>(y);"));
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour");
  EXPECT_NE(text(answer, "message").find("mbarrier is used before its initialisation"), std::string::npos)
      << answer;
}

TEST(Failure, NamedBarrierWithTwoNumbersOfThreads) {
  const Json answer =
      failure_of(kHead +
                 "__global__ void k(float* y) {\n  if (threadIdx.x < 32) asm volatile(\"bar.sync 1, 64;\");\n"
                 "  else asm volatile(\"bar.sync 1, 96;\");\n}\n" +
                 launch("k<<<1, 96>>>(y);"));
  EXPECT_EQ(text(answer, "kind"), "undefined_behaviour");
  EXPECT_NE(text(answer, "message").find("barrier 1 is used for"), std::string::npos) << answer;
}

TEST(Failure, ClusterCallsOutsideOfAClusterAreExplained) {
  const Json answer = failure_of(kHead +
                                 "#include <cooperative_groups.h>\n__global__ void k(float* y) { "
                                 "cooperative_groups::this_cluster().sync(); }\n" +
                                 launch("k<<<2, 32>>>(y);"));
  EXPECT_NE(text(answer, "message").find("launched without a cluster"), std::string::npos) << answer;
}

TEST(Failure, ExceptionAndExitOfHostCodeAreAnswered) {
  EXPECT_EQ(text(failure_of(kHead + launch("throw std::runtime_error(\"no such size\");")), "kind"),
            "exception");
  const Json left = failure_of(kHead + "__global__ void k() {}\n" +
                               launch("k<<<0, 1>>>(); if (cudaGetLastError() != cudaSuccess) exit(1);"));
  EXPECT_EQ(text(left, "kind"), "launch_error") << left;
}

TEST(Failure, StackOverflowIsNamed) {
  const Json answer = failure_of(kHead + R"(
__device__ __noinline__ float deep(int n, float* y) { volatile float local[64]; local[n % 64] = n; return n ? deep(n - 1, y) + local[(n + 1) % 64] : y[0]; }
__global__ void k(float* y) { y[0] = deep(1 << 20, y); }
)" + launch("k<<<1, 1>>>(y);"));
  EXPECT_EQ(text(answer, "kind"), "crash");
  EXPECT_NE(text(answer, "message").find("stack overflow"), std::string::npos) << answer;
}

TEST(Protocol, UnknownRequestsAreAnswered) {
  const EmulatedArtifact artifact = build(kHead + launch(""));
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log;
  Workbench bench(artifact.program, {1}, 1);
  EXPECT_FALSE(bench.ask({{"op", "dance"}}).value("ok", true));
  EXPECT_FALSE(
      bench.ask({{"op", "run"}, {"args", Json::array()}, {"schedule", "sideways"}}).value("ok", true));
  EXPECT_FALSE(bench.ask({{"op", "run"}, {"args", {Json{{"at", 1u << 30}}}}}).value("ok", true));
  EXPECT_TRUE(bench.run().value("ok", false));
}

}  // namespace
}  // namespace capstone::test
