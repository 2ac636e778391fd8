// Counts per line: sectors, wavefronts, lanes, operations, against what textbooks and Nsight Compute say. One
// file holds all kernels, so that it is built once; x[0] says which of them runs.
#include <gtest/gtest.h>

#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

const std::string kSource = R"(
#include <cuda_fp16.h>
#include <mma.h>
__global__ void coalesced(const float* x, float* y) {
  const float v = x[threadIdx.x];  // coalesced load
  y[threadIdx.x] = v;  // coalesced store
}
__global__ void strided(const float* x, float* y) {
  const float v = x[threadIdx.x * 32];  // strided load
  y[threadIdx.x] = v;
}
__global__ void shifted(const float* x, float* y) {
  const float v = x[threadIdx.x + 1];  // shifted load
  y[threadIdx.x] = v;
}
__global__ void vectors(const float* x, float* y) {
  const float4 v = reinterpret_cast<const float4*>(x)[threadIdx.x];  // float4 load
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
__global__ void pairs(const float* x, float* y) {
  const float2 v = reinterpret_cast<const float2*>(x)[threadIdx.x];  // float2 load
  y[threadIdx.x] = v.x + v.y;
}
__global__ void broadcast(const float* x, float* y) {
  const float v = x[blockIdx.x + 1];  // broadcast load
  y[threadIdx.x] = v;
}
__global__ void halves(const __half* x, float* y) {
  const __half v = x[threadIdx.x];  // half load
  y[threadIdx.x] = __half2float(v);
}
__global__ void half_of_the_lanes(const float* x, float* y) {
  if (threadIdx.x % 2) y[threadIdx.x] = x[threadIdx.x];  // odd lanes
}
template <int kPitch>
__global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][kPitch];
  for (int r = threadIdx.y; r < 32; r += 8) tile[r][threadIdx.x] = x[r * 32 + threadIdx.x];  // rows in
  __syncthreads();  // transpose barrier
  for (int r = threadIdx.y; r < 32; r += 8) y[r * 32 + threadIdx.x] = tile[threadIdx.x][r];  // columns out
}
__global__ void shared_words(const float* x, float* y) {
  __shared__ float s[32 * 33];
  for (int i = threadIdx.x; i < 32 * 33; i += 32) s[i] = 1.f;
  __syncwarp();
  float v = s[threadIdx.x];  // unit stride
  v += s[2 * threadIdx.x];  // stride two
  v += s[16 * threadIdx.x];  // stride sixteen
  v += s[33 * threadIdx.x];  // stride thirty-three
  v += s[0];  // one word
  v += s[threadIdx.x / 2];  // two lanes a word
  y[threadIdx.x] = v;
}
__global__ void shared_vectors(const float* x, float* y) {
  __shared__ float4 s[64];
  s[threadIdx.x] = make_float4(1, 2, 3, 4);  // vector store
  s[threadIdx.x + 32] = make_float4(1, 2, 3, 4);
  __syncwarp();
  const float4 v = s[threadIdx.x];  // vector load
  const float4 w = s[2 * threadIdx.x];  // strided vector load
  const float2 p = reinterpret_cast<const float2*>(s)[threadIdx.x];  // pair load
  const float4 a = s[threadIdx.x / 2];  // vector load in pairs
  const float4 b = s[threadIdx.x % 2 + threadIdx.x / 4 * 2];  // vector load in pairs of the next but one
  const float4 c = s[threadIdx.x / 8];  // vector load of a fragment's rows
  const float4 d = s[threadIdx.x % 8];  // vector load of a fragment's columns
  const float4 e = s[2 * (threadIdx.x / 2)];  // strided vector load in pairs
  const float2 f = reinterpret_cast<const float2*>(s)[7];  // pair for all
  y[threadIdx.x] = v.x + w.y + p.x + a.x + b.x + c.x + d.x + e.x + f.x;
}
__global__ void loops_of_different_length(const float* x, float* y) {
  float sum = 0;
  for (int row = 0; row < 2; ++row) {
    const int length = row == 0 ? threadIdx.x % 4 : 3 - threadIdx.x % 4;
    for (int k = 0; k < length; ++k) sum += x[32 * (4 * row + k) + threadIdx.x];  // inner
    y[32 * row + threadIdx.x] = sum;  // outer
  }
}
__global__ void atomic_sum(const float* x, float* y) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);  // atomic
  __syncthreads();
  y[threadIdx.x] = float(count);
}
__global__ void arithmetic(const float* x, float* y) {
  const float a = x[threadIdx.x], b = x[threadIdx.x + 32];
  float c = fmaf(a, b, a);  // one fma
  c = c * b;  // one product
  for (int i = 0; i < 10; ++i) c = c * a + b;  // ten fmas
  y[threadIdx.x] = c;
}
template <int kTile>
__global__ void sgemm(const float* a, const float* b, float* c, int n) {
  __shared__ float as[kTile][kTile], bs[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += kTile) {
    as[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];  // tile of A
    bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];  // tile of B
    __syncthreads();
    for (int k = 0; k < kTile; ++k)
      sum += as[threadIdx.y][k] * bs[k][threadIdx.x];  // product
    __syncthreads();
  }
  c[row * n + column] = sum;
}
__global__ void tensor_core(float* y) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(a, __float2half(1.f));
  wmma::fill_fragment(b, __float2half(1.f));
  wmma::fill_fragment(c, 0.f);
  wmma::mma_sync(c, a, b, c);  // wmma
  wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);
}
__global__ void load_matrix(const __half* x, float* y) {
  __shared__ __align__(16) __half s[8][8 * 4];
  reinterpret_cast<uint4*>(&s[0][0])[threadIdx.x] = reinterpret_cast<const uint4*>(x)[threadIdx.x];
  __syncwarp();
  unsigned r0, r1, r2, r3;
  const unsigned address = __cvta_generic_to_shared(&s[threadIdx.x % 8][threadIdx.x / 8 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address));  // ldmatrix
  y[threadIdx.x] = float(r0 + r1 + r2 + r3);
}
__global__ void pipelined(const float* x, float* y) {
  __shared__ __align__(16) float s[128];
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(unsigned(__cvta_generic_to_shared(&s[4 * threadIdx.x]))), "l"(x + 4 * threadIdx.x));  // cp.async
  asm volatile("cp.async.wait_all;");
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void long_loop(const float* x, float* y) {
  float sum = 0;
  for (int k = 0; k < 5000; ++k) sum += x[k % 63 * 32 + threadIdx.x];  // long loop
  y[threadIdx.x] = sum;
}
__device__ __noinline__ float helper(float v) { return v + 1; }
template <bool kAligned>
__global__ void by_pointer(const float* x, float* y) { y[threadIdx.x] = helper(x[threadIdx.x]); }
void launch_by_pointer(const float* x, float* y) {
  for (bool aligned : {true, false}) {
    const auto kernel = aligned ? by_pointer<true> : by_pointer<false>;
    kernel<<<1, 32>>>(x, y);
  }
}
void launch_through_the_runtime(const float* x, float* y) {
  void* arguments[] = {&x, &y};
  cudaLaunchKernel(by_pointer<true>, dim3(1), dim3(32), arguments, 0, 0);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1), config.blockDim = dim3(32);
  cudaLaunchKernelEx(&config, coalesced, x, y);
}
extern "C" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) {
  switch (int(x[0])) {
    case 0: coalesced<<<4, 64>>>(x, y); break;
    case 1: strided<<<1, 32>>>(x, y); break;
    case 2: shifted<<<1, 32>>>(x, y); break;
    case 3: vectors<<<1, 32>>>(x, y); break;
    case 4: pairs<<<1, 32>>>(x, y); break;
    case 5: broadcast<<<1, 32>>>(x, y); break;
    case 6: halves<<<1, 32>>>(reinterpret_cast<const __half*>(x), y); break;
    case 7: half_of_the_lanes<<<1, 32>>>(x, y); break;
    case 8: transpose<32><<<1, dim3(32, 8)>>>(x, y); break;
    case 9: transpose<33><<<1, dim3(32, 8)>>>(x, y); break;
    case 10: shared_words<<<1, 32>>>(x, y); break;
    case 11: shared_vectors<<<1, 32>>>(x, y); break;
    case 12: loops_of_different_length<<<1, 32>>>(x, y); break;
    case 13: atomic_sum<<<2, 64>>>(x, y); break;
    case 14: arithmetic<<<1, 32>>>(x, y); break;
    case 15: sgemm<16><<<dim3(2, 2), dim3(16, 16)>>>(x, x + 1024, y, 32); break;
    case 16: tensor_core<<<1, 32>>>(y); break;
    case 17: load_matrix<<<1, 32>>>(reinterpret_cast<const __half*>(x), y); break;
    case 18: pipelined<<<1, 32>>>(x, y); break;
    case 19: long_loop<<<1, 64>>>(x, y); break;
    case 20: sgemm<16><<<dim3(8, 8), dim3(16, 16)>>>(x, x + 128 * 128, y, 128); break;
    case 21: launch_by_pointer(x, y); break;
    case 22: launch_through_the_runtime(x, y); break;
  }
}
)";

class HooksCounts : public testing::Test {
 protected:
  static Json answer_of(int kernel, const std::string& schedule = "forward", std::size_t size = 2048) {
    static const EmulatedArtifact artifact = build(kSource, 900, BuildVariant::kInstrumented);
    EXPECT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
    if (!artifact.result.ok) return Json::object();
    std::vector<float> x(size, 1.f);
    x[0] = static_cast<float>(kernel);
    Workbench bench(artifact.program, x, size);
    const Json answer = bench.observe(schedule);
    EXPECT_TRUE(answer.value("ok", false)) << answer.dump(1);
    return answer;
  }
  static Json kernel_of(int kernel) {
    const Json answer = answer_of(kernel);
    const Json kernels = answer.value("report", Json::object()).value("kernels", Json::array());
    EXPECT_EQ(kernels.size(), 1u) << answer.dump();
    return kernels.empty() ? Json::object() : kernels[0];
  }
  /// What the kernel's counts say about the line that holds `marker`.
  static Json line_of_kernel(int kernel, const std::string& marker) {
    const Json counts = kernel_of(kernel);
    for (const Json& line : counts.value("lines", Json::array()))
      if (line.value("line", 0) == line_of(kSource, marker)) return line;
    ADD_FAILURE() << "no counts for " << marker << ": " << counts.dump(1);
    return Json{{"global", Json::object()}, {"shared", Json::object()}};
  }
  static void expect_sectors(int kernel, const std::string& marker, int sectors, int ideal, int bytes) {
    const Json global = line_of_kernel(kernel, marker)["global"];
    EXPECT_EQ(global.value("requests", 0), 1) << marker;
    EXPECT_EQ(global.value("sectors", 0), sectors) << marker;
    EXPECT_EQ(global.value("ideal_sectors", 0), ideal) << marker;
    EXPECT_EQ(global.value("bytes", 0), bytes) << marker;
  }
  static void expect_wavefronts(int kernel, const std::string& marker, int requests, int wavefronts,
                                int ideal) {
    const Json shared = line_of_kernel(kernel, marker)["shared"];
    EXPECT_EQ(shared.value("requests", 0), requests) << marker;
    EXPECT_EQ(shared.value("wavefronts", 0), wavefronts) << marker;
    EXPECT_EQ(shared.value("ideal", 0), ideal) << marker;
  }
};

TEST_F(HooksCounts, ACoalescedLoadTakesFourSectorsAWarp) {
  const Json load = line_of_kernel(0, "// coalesced load"), store = line_of_kernel(0, "// coalesced store");
  EXPECT_EQ(load["global"].value("requests", 0), 8);
  EXPECT_EQ(load["global"].value("sectors", 0), 32);
  EXPECT_EQ(load["global"].value("loads", 0), 8);
  EXPECT_EQ(load["global"].value("active_lanes", 0), 256);
  EXPECT_EQ(store["global"].value("stores", 0), 8);
  const Json kernel = kernel_of(0);
  EXPECT_EQ(kernel.value("blocks", 0), 4);
  EXPECT_EQ(kernel.value("threads", 0), 256);
}
TEST_F(HooksCounts, AStridedLoadTakesASectorALane) { expect_sectors(1, "// strided load", 32, 4, 128); }
TEST_F(HooksCounts, AShiftedLoadTakesOneSectorMore) { expect_sectors(2, "// shifted load", 5, 4, 128); }
TEST_F(HooksCounts, AFloat4LoadIsOneRequestOfSixteenSectors) {
  expect_sectors(3, "// float4 load", 16, 16, 512);
}
TEST_F(HooksCounts, AFloat2LoadIsOneRequestOfEightSectors) { expect_sectors(4, "// float2 load", 8, 8, 256); }
TEST_F(HooksCounts, ABroadcastTakesOneSector) { expect_sectors(5, "// broadcast load", 1, 1, 128); }
TEST_F(HooksCounts, AHalfLoadTakesTwoSectors) { expect_sectors(6, "// half load", 2, 2, 64); }
TEST_F(HooksCounts, ADivergentLineKnowsItsLanes) {
  const Json global = line_of_kernel(7, "// odd lanes")["global"];
  EXPECT_EQ(global.value("requests", 0), 2);
  EXPECT_EQ(global.value("active_lanes", 0), 32);
  EXPECT_EQ(global.value("sectors", 0), 8);
  EXPECT_EQ(global.value("ideal_sectors", 0), 4);
}
TEST_F(HooksCounts, AColumnOfAnUnpaddedTileTakesThirtyTwoWavefronts) {
  expect_wavefronts(8, "// rows in", 32, 32, 32);
  expect_wavefronts(8, "// columns out", 32, 1024, 32);
}
TEST_F(HooksCounts, PaddingTakesTheConflictsAway) { expect_wavefronts(9, "// columns out", 32, 32, 32); }
TEST_F(HooksCounts, BarriersAreCountedForWarps) {
  EXPECT_EQ(line_of_kernel(8, "// transpose barrier").value("barriers", 0), 8);
}
TEST_F(HooksCounts, WavefrontsFollowTheBanks) {
  expect_wavefronts(10, "// unit stride", 1, 1, 1);
  expect_wavefronts(10, "// stride two", 1, 2, 1);
  expect_wavefronts(10, "// stride sixteen", 1, 16, 1);
  expect_wavefronts(10, "// stride thirty-three", 1, 1, 1);
  expect_wavefronts(10, "// one word", 1, 1, 1);
  expect_wavefronts(10, "// two lanes a word", 1, 1, 1);
}
TEST_F(HooksCounts, WideSharedAccessesAreSplitInParts) {
  expect_wavefronts(11, "// vector store", 1, 4, 4);
  expect_wavefronts(11, "// vector load\n", 1, 4, 4);
  expect_wavefronts(11, "// strided vector load\n", 1, 8, 4);
  expect_wavefronts(11, "// pair load", 1, 2, 2);
}
TEST_F(HooksCounts, WideLoadsInPairsTakeHalfTheParts) {
  expect_wavefronts(11, "// vector load in pairs\n", 1, 2, 2);
  expect_wavefronts(11, "// vector load in pairs of the next but one", 1, 2, 2);
  expect_wavefronts(11, "// vector load of a fragment's rows", 1, 2, 2);
  expect_wavefronts(11, "// vector load of a fragment's columns", 1, 4, 4);
  expect_wavefronts(11, "// strided vector load in pairs", 1, 4, 2);
  expect_wavefronts(11, "// pair for all", 1, 1, 1);
}
TEST_F(HooksCounts, LanesThatLeaveALoopEarlyWaitBehindIt) {
  const Json inner = line_of_kernel(12, "// inner"), outer = line_of_kernel(12, "// outer");
  EXPECT_EQ(inner["global"].value("requests", 0), 6);  // the longest lane of each row: 3 + 3
  EXPECT_EQ(inner["global"].value("active_lanes", 0), 96);
  EXPECT_EQ(outer["global"].value("requests", 0), 2);
  EXPECT_EQ(outer["global"].value("active_lanes", 0), 64);
}
TEST_F(HooksCounts, AtomicsAreCountedForThreads) {
  EXPECT_EQ(line_of_kernel(13, "// atomic").value("atomics", 0), 128);
}
TEST_F(HooksCounts, OperationsAreThoseOfTheSource) {
  EXPECT_EQ(line_of_kernel(14, "// one fma").value("flops", 0), 2 * 32);
  EXPECT_EQ(line_of_kernel(14, "// one product").value("flops", 0), 32);
  EXPECT_EQ(line_of_kernel(14, "// ten fmas").value("flops", 0), 20 * 32);
}
TEST_F(HooksCounts, ATiledProductHasItsTextbookCounts) {
  const Json product = line_of_kernel(15, "// product");
  EXPECT_EQ(product.value("flops", 0), 2 * 32 * 32 * 32);
  // 4 blocks of 8 warps, 32 steps, two loads each; neither conflicts.
  EXPECT_EQ(product["shared"].value("requests", 0), 4 * 8 * 32 * 2);
  EXPECT_EQ(product["shared"].value("wavefronts", 0), 4 * 8 * 32 * 2);
  const Json tile = line_of_kernel(15, "// tile of A");
  EXPECT_EQ(tile["global"].value("sectors", 0), 4 * 8 * 2 * 4);  // two rows of 16 floats a warp
}
TEST_F(HooksCounts, TensorCoresCountTheirOperations) {
  EXPECT_EQ(line_of_kernel(16, "// wmma").value("flops", 0), 2 * 16 * 16 * 16);
}
TEST_F(HooksCounts,
       LdmatrixIsOneRequestOfFourParts) {  // rows 64 bytes apart: four of eight share their banks
  expect_wavefronts(17, "// ldmatrix\n", 1, 16, 4);
}
TEST_F(HooksCounts, AnAsynchronousCopyIsALoadAndASharedStore) {
  const Json line = line_of_kernel(18, "// cp.async\n");
  EXPECT_EQ(line["global"].value("sectors", 0), 16);
  EXPECT_EQ(line["shared"].value("wavefronts", 0), 4);
}
TEST_F(HooksCounts, ALongLoopWithoutBarriersIsCountedWhole) {
  const Json line = line_of_kernel(19, "// long loop");
  EXPECT_EQ(line["global"].value("requests", 0), 2 * 5000);
  EXPECT_EQ(line["global"].value("active_lanes", 0), 64 * 5000);
}
TEST_F(HooksCounts, AKernelThatAVariableNamesIsKnownByItsFunction) {
  const Json kernels = answer_of(21)["report"]["kernels"];
  ASSERT_EQ(kernels.size(), 2u) << "one variable, two kernels: " << kernels.dump();
  EXPECT_EQ(kernels[0]["kernel"], "kernel");
  EXPECT_EQ(kernels[0]["function"], "_Z10by_pointerILb1EEvPKfPf");
  EXPECT_EQ(kernels[1]["function"], "_Z10by_pointerILb0EEvPKfPf");
  EXPECT_EQ(kernel_of(15)["function"], "_Z5sgemmILi16EEvPKfS1_Pfi") << "so is one that the launch names";
}
TEST_F(HooksCounts, AKernelThatTheRuntimeLaunchesIsKnownByItsFunction) {
  const Json kernels = answer_of(22)["report"]["kernels"];
  ASSERT_EQ(kernels.size(), 2u) << kernels.dump();
  EXPECT_EQ(kernels[0]["function"], "_Z10by_pointerILb1EEvPKfPf");
  EXPECT_EQ(kernels[1]["function"], "_Z9coalescedPKfPf");
}
TEST_F(HooksCounts, CountsAreTheSameOnEveryRunAndUnderEverySchedule) {
  const Json first = answer_of(15)["report"]["kernels"];
  EXPECT_EQ(answer_of(15)["report"]["kernels"], first);
  for (const std::string& schedule : kSchedules)
    EXPECT_EQ(answer_of(15, schedule)["report"]["kernels"], first) << schedule;
}

}  // namespace
}  // namespace capstone::test
