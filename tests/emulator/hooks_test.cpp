// The instrumented build: exact bounds, alignment, uninitialised reads. One file holds all kernels; x[0] says
// which of them runs.
#include <gtest/gtest.h>

#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

const std::string kSource = R"(
__device__ float table[4] = {1, 2, 3, 4};
__constant__ float constants[4];
struct Parameters { float scale[8]; };
__global__ void misaligned(const float* x, float* y) {
  const float2 v = *reinterpret_cast<const float2*>(x + 1 + 2 * threadIdx.x);  // case 0
  y[threadIdx.x] = v.x + v.y;
}
__global__ void past_the_end(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x + 1];  // case 1
}
__global__ void before_the_start(const float* x, float* y) {
  y[int(threadIdx.x) - 1] = x[threadIdx.x];  // case 2
}
__global__ void past_shared(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x + 1] = x[threadIdx.x];  // case 3
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}
__global__ void past_dynamic(const float* x, float* y) {
  extern __shared__ float dynamic[];
  dynamic[2 * threadIdx.x] = x[threadIdx.x];  // case 4
}
__global__ void host_pointer(const float* host, float* y) {
  y[threadIdx.x] = host[threadIdx.x];  // case 5
}
__global__ void uninitialised_shared(const float* x, float* y) {
  __shared__ float tile[64];
  if (threadIdx.x < 63) tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];  // case 6
}
__global__ void reads_its_output(const float* x, float* y) {
  y[threadIdx.x] += x[threadIdx.x];  // case 7
}
__global__ void freed(const float* memory, float* y) {
  y[threadIdx.x] = memory[threadIdx.x];  // case 8
}
__global__ void all_is_well(const float* x, float* y, const float* copy, Parameters p) {
  extern __shared__ float dynamic[];
  float local[8];
  for (int i = 0; i < 8; ++i) local[(i + threadIdx.x) % 8] = p.scale[i];
  dynamic[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = dynamic[63 - threadIdx.x] + table[threadIdx.x % 4] + constants[threadIdx.x % 4] + copy[threadIdx.x] +
                   local[threadIdx.x % 8];
}
__global__ void fills(float* memory) { memory[threadIdx.x] = 1.f; }
__global__ void null_pointer(const float* nothing, float* y) {
  y[threadIdx.x] = nothing[threadIdx.x];  // case 11
}
__global__ void copies(const float* x, float* y, size_t bytes) {
  if (threadIdx.x == 0) memcpy(y, x, bytes);  // case 13
}
__global__ void adds_by_swaps(float* memory) {
  unsigned* sum = reinterpret_cast<unsigned*>(memory);
  unsigned old = *sum, assumed;  // case 14
  do {
    assumed = old;
    old = atomicCAS(sum, assumed, assumed + 1);
  } while (assumed != old);
}
extern "C" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) {
  float host[64] = {}, *memory;
  cudaMalloc(&memory, 64 * sizeof(float));
  switch (int(x[0])) {
    case 0: misaligned<<<1, 16>>>(x, y); break;
    case 1: past_the_end<<<1, 64>>>(x, y); break;
    case 2: before_the_start<<<1, 64>>>(x, y); break;
    case 3: past_shared<<<1, 64>>>(x, y); break;
    case 4: past_dynamic<<<1, 64, 64 * sizeof(float)>>>(x, y); break;
    case 5: host_pointer<<<1, 64>>>(host, y); break;
    case 6: uninitialised_shared<<<1, 64>>>(x, y); break;
    case 7: reads_its_output<<<1, 64>>>(x, y); break;
    case 8: cudaFree(memory); freed<<<1, 64>>>(memory, y); return;
    case 9:
      cudaMemcpy(memory, x, 64 * sizeof(float), cudaMemcpyDeviceToDevice);
      cudaMemcpyToSymbol(constants, host, sizeof constants);
      all_is_well<<<1, 64, 64 * sizeof(float)>>>(x, y, memory, Parameters{});
      break;
    case 10:
      fills<<<1, 64>>>(memory);
      freed<<<1, 64>>>(memory, y);
      break;
    case 11: null_pointer<<<1, 64>>>(nullptr, y); break;
    case 12: freed<<<1, 64>>>(memory, y); break;
    case 13: copies<<<1, 64>>>(x, y, static_cast<size_t>(n) * 4 + 4); break;
    case 14: adds_by_swaps<<<1, 64>>>(memory); break;
  }
  cudaFree(memory);
}
)";

Json observed(int kernel) {
  static const EmulatedArtifact artifact = build(kSource, 900, BuildVariant::kInstrumented);
  EXPECT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  if (!artifact.result.ok) return Json::object();
  std::vector<float> x(64, 1.f);
  x[0] = static_cast<float>(kernel);
  Workbench bench(artifact.program, x, 64);
  return bench.observe();
}

/// The run fails at the line of `// case N`, with one finding of that kind.
void expect_finding(int kernel, const std::string& kind, const std::string& text) {
  const Json answer = observed(kernel);
  EXPECT_FALSE(answer.value("ok", true)) << answer.dump();
  EXPECT_EQ(answer.value("kind", ""), "undefined_behaviour");
  EXPECT_NE(answer.value("message", "").find(text), std::string::npos) << answer.dump();
  EXPECT_EQ(answer.value("line", 0), line_of(kSource, "// case " + std::to_string(kernel) + "\n"))
      << answer.dump();
  const Json findings = answer.value("report", Json::object()).value("findings", Json::array());
  ASSERT_EQ(findings.size(), 1u) << answer.dump();
  EXPECT_EQ(findings[0].value("kind", ""), kind);
  EXPECT_EQ(findings[0].value("line", 0), answer.value("line", 0));
}

TEST(Hooks, AMisalignedVectorLoadIsNamed) { expect_finding(0, "misaligned", "a load of 8 bytes"); }
TEST(Hooks, AReadOneElementPastAnInputIsNamed) {
  expect_finding(1, "out_of_bounds", "0 bytes past the end of `x` (256 bytes)");
}
TEST(Hooks, AWriteBeforeAnOutputIsNamed) {
  expect_finding(2, "out_of_bounds", "4 bytes before the start of `y`");
}
TEST(Hooks, AWritePastASharedArrayIsNamed) {
  expect_finding(3, "out_of_bounds", "0 bytes past the end of shared memory `tile` (256 bytes)");
}
TEST(Hooks, AWritePastDynamicSharedMemoryIsNamed) {
  expect_finding(4, "out_of_bounds", "0 bytes past the end of dynamic shared memory (256 bytes)");
}
TEST(Hooks, AHostPointerInAKernelIsNamed) { expect_finding(5, "out_of_bounds", "host pointer"); }
TEST(Hooks, AReadOfUnwrittenSharedMemoryIsNamed) {
  expect_finding(6, "uninitialised_read", "shared memory `tile` at byte 252");
}
TEST(Hooks, AReadOfAnOutputBeforeItIsWrittenIsNamed) {
  expect_finding(7, "uninitialised_read", "`y` at byte 0");
}
TEST(Hooks, AReadOfUnwrittenMemoryThatBeginsASwapIsNamed) {
  const Json answer = observed(14);  // the swap reads there, too
  EXPECT_NE(answer.value("message", "").find("read of uninitialised memory: `memory` at byte 0"),
            std::string::npos)
      << answer.dump();
  EXPECT_EQ(answer.value("line", 0), line_of(kSource, "// case 14\n"));
}
TEST(Hooks, FreedMemoryIsOutOfBounds) { expect_finding(8, "out_of_bounds", "load of 4 bytes"); }
TEST(Hooks, ANullPointerIsNamed) { expect_finding(11, "out_of_bounds", "the null pointer"); }
TEST(Hooks, ACallOfMemcpyIsAnAccess) { expect_finding(13, "out_of_bounds", "a load of 260 bytes"); }
TEST(Hooks, FreshMemoryHoldsNoValues) {
  const Json answer = observed(12);
  EXPECT_NE(answer.value("message", "").find("read of uninitialised memory: `memory`"), std::string::npos)
      << answer.dump();
}
TEST(Hooks, ParametersLocalsSymbolsAndCopiesAreFine) {
  const Json answer = observed(9);
  EXPECT_TRUE(answer.value("ok", false)) << answer.dump(1);
}
TEST(Hooks, MemoryThatAnEarlierKernelFilledIsInitialised) {
  const Json answer = observed(10);
  EXPECT_TRUE(answer.value("ok", false)) << answer.dump(1);
}

// The compiler does not tell the hooks of a store of a structure that a function returns, if the function was
// not inlined. Therefore all functions are inlined.
TEST(Hooks, WhatAFunctionThatReturnsAStructureStoresIsWritten) {
  const std::string source = R"(
#include <cuda_fp16.h>
#include <cstdint>
struct Partial { float maximum, sum; };
__device__ Partial combine(Partial a, Partial b) {
  Partial r;
  r.maximum = fmaxf(a.maximum, b.maximum);
  r.sum = a.sum * expf(a.maximum - r.maximum) + b.sum * expf(b.maximum - r.maximum);
  if (r.sum > 1e30f) { r.sum = sqrtf(r.sum) + cosf(a.sum) * sinf(b.sum) + logf(r.sum); r.maximum += floorf(r.sum) * ceilf(a.sum); }
  return r;
}
__global__ void produce(const float* x, __half* w, Partial* p, __half* last) {
  const int i = threadIdx.x;
  w[i] = __float2half(x[i]);
  p[i] = combine({x[i], 1}, {x[63 - i], 1});
  p[64 + i] = combine(p[i], {x[i], 2});
  p[i] = combine(p[64 + i], p[i]);
  last[i] = __float2half(p[i].sum + x[0]);
}
__global__ void consume(const __half* w, const Partial* p, const __half* last, float* y) {
  const int i = threadIdx.x;
  y[i] = __half2float(w[i]) + p[i].sum + p[64 + i].maximum + __half2float(last[i]);
}
extern "C" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) {
  __half *w = (__half*)(y + 64), *last = w + 64;
  Partial* p = (Partial*)(y + 256);
  produce<<<1, 64>>>(x, w, p, last);
  consume<<<1, 64>>>(w, p, last, y);
}
)";
  const EmulatedArtifact artifact = build(source, 64, BuildVariant::kInstrumented);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  Workbench bench(artifact.program, std::vector<float>(64, 1.f), 1024);
  const Json answer = bench.observe();
  EXPECT_TRUE(answer.value("ok", false)) << answer.dump(1);
  EXPECT_EQ(answer.value("report", Json::object()).value("findings", Json()), Json::array())
      << answer.dump(1);
}

}  // namespace
}  // namespace capstone::test
