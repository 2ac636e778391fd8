// Kernels whose results must be right under every schedule.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

const std::string kHead = "#include <cuda_runtime.h>\n#include <cstdint>\n";
std::string launch(const std::string& body) {
  return "extern \"C\" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t "
         "stream) {\n" +
         body + "\n}\n";
}
std::vector<float> iota(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

class Schedules : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Schedules, testing::ValuesIn(kSchedules),
                         [](const auto& info) { return info.param; });

TEST_P(Schedules, SharedMemoryAndBarriersReverseABlock) {
  const std::string source = kHead + R"(
template <int N> __global__ void __launch_bounds__(N) reverse(const float* x, float* y) {
  __shared__ float first[N], second[N];
  first[threadIdx.x] = x[blockIdx.x * N + threadIdx.x];
  __syncthreads();
  second[N - 1 - threadIdx.x] = first[threadIdx.x];
  __syncthreads();
  y[blockIdx.x * N + threadIdx.x] = second[threadIdx.x];
}
)" + launch("reverse<128><<<n / 128, 128, 0, stream>>>(x, y);");
  const auto y = evaluate(source, iota(512), 512, GetParam());
  ASSERT_EQ(y.size(), 512u);
  for (int i = 0; i < 512; ++i) ASSERT_EQ(y[i], i / 128 * 128 + 127 - i % 128) << i;
}

TEST_P(Schedules, WarpAndBlockReductions) {
  const std::string source = kHead + R"(
__global__ void sum(const float* x, float* y, int n) {
  extern __shared__ float partial[];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[i];
  for (int d = 16; d; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.f;
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) y[0] = s;
  }
  int odd = __syncthreads_count(threadIdx.x & 1);
  int all = __syncthreads_and(1), any = __syncthreads_or(threadIdx.x == 77);
  unsigned ballot = __ballot_sync(~0u, threadIdx.x & 1);
  unsigned same = __match_any_sync(~0u, threadIdx.x / 4);
  int most = __reduce_max_sync(~0u, int(threadIdx.x));
  if (threadIdx.x == 5) { y[1] = odd; y[2] = all; y[3] = any; y[4] = ballot == 0xaaaaaaaau; y[5] = same; y[6] = most;
    y[7] = __popc(__brev(7)) + __ffs(8) + __clz(1) + __byte_perm(0x03020100, 0, 0x3210) / 0x03020100; }
}
)" + launch("sum<<<1, 256, 8 * sizeof(float)>>>(x, y, int(n));");
  const auto y = evaluate(source, std::vector<float>(1000, 0.5f), 8, GetParam());
  EXPECT_EQ(y, (std::vector<float>{500, 128, 1, 1, 1, 0xf0, 31, 3 + 4 + 31 + 1}));
}

TEST_P(Schedules, AtomicsHistogramAndSpinLock) {
  const std::string source =
      kHead + R"(
__device__ int lock_word, counted;
__global__ void work(const float* x, float* y) {
  __shared__ unsigned bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[int(x[blockIdx.x * blockDim.x + threadIdx.x]) % 8], 1);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&y[threadIdx.x], float(bins[threadIdx.x]));
  bool done = false;
  while (!done)
    if (atomicCAS(&lock_word, 0, 1) == 0) { counted += 1; __threadfence(); atomicExch(&lock_word, 0); done = true; }
}
)" +
      launch(
          "int zero = 0; cudaMemcpyToSymbol(counted, &zero, sizeof zero); cudaMemsetAsync(y, 0, 9 * 4, "
          "stream);\n"
          "work<<<4, 64>>>(x, y); int c; cudaMemcpyFromSymbol(&c, counted, 4); y[8] = c;");
  const auto y = evaluate(source, iota(256), 9, GetParam());
  EXPECT_EQ(y, (std::vector<float>{32, 32, 32, 32, 32, 32, 32, 32, 256}));
}

TEST_P(Schedules, CooperativeGroups) {
  const std::string source = kHead + R"(
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__device__ int odd_count;
__global__ void k(const float* x, float* y) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  float s = cg::reduce(tile, x[block.thread_rank()], cg::plus<float>());
  if (tile.thread_rank() == 0) y[tile.meta_group_rank()] = s;
  if (threadIdx.x & 1) {
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(&odd_count, int(active.size()));
  }
  block.sync();
  if (block.thread_rank() == 0) y[4] = odd_count;
}
)" + launch("int zero = 0; cudaMemcpyToSymbol(odd_count, &zero, 4); k<<<1, 64>>>(x, y);");
  EXPECT_EQ(evaluate(source, std::vector<float>(64, 2.f), 5, GetParam()),
            (std::vector<float>{32, 32, 32, 32, 32}));
}

TEST_P(Schedules, PipelinedCopiesThatWait) {
  const std::string source = kHead + R"(
#include <cuda_pipeline.h>
__global__ void k(const float4* x, float4* y, int tiles) {
  __shared__ float4 buffer[2][32];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&buffer[0][t], &x[t], 16);
  __pipeline_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) __pipeline_memcpy_async(&buffer[(i + 1) & 1][t], &x[(i + 1) * 32 + t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    y[i * 32 + t] = buffer[i & 1][31 - t];
    __syncthreads();
  }
}
)" + launch("k<<<1, 32>>>((const float4*)x, (float4*)y, int(n / 128));");
  const auto y = evaluate(source, iota(512), 512, GetParam());
  ASSERT_EQ(y.size(), 512u);
  EXPECT_EQ(y[0], 124);
  EXPECT_EQ(y[128], 252);
}

TEST_P(Schedules, TensorCoreInstructions) {
  const std::string source = kHead + R"(
#include <cuda_fp16.h>
__device__ unsigned pack(float low, float high) { __half2 h = __floats2half2_rn(low, high); return *reinterpret_cast<unsigned*>(&h); }
// One warp: C[16][8] = A[16][16] · B[16][8], A(i,k) = (i + 2k) % 7 - 3, B(k,j) = (3k + j) % 5 - 2.
__global__ void k(const float*, float* y) {
  __shared__ __align__(16) __half a[16][24], b[16][8];
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  for (int e = lane; e < 256; e += 32) a[e / 16][e % 16] = __float2half(float((e / 16 + 2 * (e % 16)) % 7 - 3));
  for (int e = lane; e < 128; e += 32) b[e / 8][e % 8] = __float2half(float((3 * (e / 8) + e % 8) % 5 - 2));
  __syncwarp();
  unsigned fa[4], fb[2];
  unsigned pa = (unsigned)__cvta_generic_to_shared(&a[lane % 16][lane / 16 * 8]);
  unsigned pb = (unsigned)__cvta_generic_to_shared(&b[lane % 16][0]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(fb[0]), "=r"(fb[1]) : "r"(pb));
  float c[4] = {1, 1, 1, 1};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  unsigned h[2] = {pack(1, 1), pack(1, 1)};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
    : "+r"(h[0]), "+r"(h[1]) : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) {
    y[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = c[i];
    __half2 p = *reinterpret_cast<__half2*>(&h[i / 2]);
    y[128 + (g + i / 2 * 8) * 8 + t * 2 + i % 2] = __half2float(i % 2 ? __high2half(p) : __low2half(p));
  }
}
)" + launch("k<<<1, 32>>>(x, y);");
  const auto y = evaluate(source, {0}, 256, GetParam());
  ASSERT_EQ(y.size(), 256u);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float expected = 1;
      for (int k = 0; k < 16; ++k) expected += float((i + 2 * k) % 7 - 3) * float((3 * k + j) % 5 - 2);
      ASSERT_EQ(y[i * 8 + j], expected) << i << ' ' << j;
      ASSERT_EQ(y[128 + i * 8 + j], expected) << i << ' ' << j;
    }
}

TEST_P(Schedules, Tf32AndWmma) {
  const std::string source = kHead + R"(
#include <cuda_bf16.h>
#include <mma.h>
__global__ void k(const float*, float* y) {
  using namespace nvcuda;
  __shared__ __align__(32) __nv_bfloat16 a[256], b[256];
  for (int e = threadIdx.x; e < 256; e += 32) { a[e] = __float2bfloat16(float(e % 9 - 4)); b[e] = __float2bfloat16(float(e % 7 - 3)); }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 2.f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(c, fa, fb, c);
  wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);
  // m16n8k8 with tf32: A(i,k) = i + k, B(k,j) = j + 1 (one more bit than tf32 holds must not count)
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  float d[4] = {};
  unsigned A[4], B[2];
  for (int r = 0; r < 4; ++r) A[r] = __float_as_uint(float(g + r % 2 * 8 + t + r / 2 * 4)) | 1u;
  for (int r = 0; r < 2; ++r) B[r] = __float_as_uint(float(g + 1));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
  for (int i = 0; i < 4; ++i) y[256 + (g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
}
)" + launch("k<<<1, 32>>>(x, y);");
  const auto y = evaluate(source, {0}, 384, GetParam());
  ASSERT_EQ(y.size(), 384u);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float expected = 2;
      for (int k = 0; k < 16; ++k) expected += float((i * 16 + k) % 9 - 4) * float((j * 16 + k) % 7 - 3);
      ASSERT_EQ(y[i * 16 + j], expected) << i << ' ' << j;
    }
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float expected = 0;
      for (int k = 0; k < 8; ++k) expected += float(i + k) * float(j + 1);
      ASSERT_EQ(y[256 + i * 8 + j], expected) << i << ' ' << j;
    }
}

TEST_P(Schedules, BlocksThatWaitForOneAnother) {
  // Each block adds to what its predecessor published: on a GPU all of them are resident.
  const std::string source = kHead + R"(
__device__ volatile int flags[64];
__global__ void chain(const float* x, float* y) {
  if (threadIdx.x == 0) {
    float before = 0;
    if (blockIdx.x > 0) {
      while (atomicAdd((int*)&flags[blockIdx.x - 1], 0) == 0) {}
      before = ((volatile float*)y)[blockIdx.x - 1];
    }
    y[blockIdx.x] = before + x[blockIdx.x];
    __threadfence();
    atomicExch((int*)&flags[blockIdx.x], 1);
  }
}
)" + launch("int zero[64] = {}; cudaMemcpyToSymbol(flags, zero, sizeof zero); chain<<<n, 32>>>(x, y);");
  const auto y = evaluate(source, std::vector<float>(16, 1.f), 16, GetParam());
  ASSERT_EQ(y.size(), 16u);
  EXPECT_EQ(y[15], 16);
}

TEST(Schedule, MissingBarrierShowsUnderAtLeastOne) {
  const std::string source = kHead + R"(
__global__ void k(const float* x, float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[63 - threadIdx.x];  // no __syncthreads()
}
)" + launch("k<<<1, 64>>>(x, y);");
  int wrong = 0;
  for (const std::string& schedule : kSchedules)
    wrong += evaluate(source, iota(64), 64, schedule)[10] != 53.f;
  EXPECT_GT(wrong, 0);
}

TEST(Schedule, MissingWaitForACopyShowsWhenCopiesAreLate) {
  const std::string source = kHead + R"(
__global__ void k(const float* x, float* y) {
  __shared__ __align__(16) float s[32];
  unsigned to = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" :: "r"(to), "l"(x + threadIdx.x));
  asm volatile("cp.async.commit_group;\n" ::);
  __syncthreads();  // no wait_group
  y[threadIdx.x] = s[threadIdx.x];
}
)" + launch("k<<<1, 32>>>(x, y);");
  EXPECT_NE(evaluate(source, iota(32), 32, "forward")[3], 3.f);
  EXPECT_EQ(evaluate(source, iota(32), 32, "reverse")[3], 3.f);
}

TEST(Memory, UninitialisedSharedMemoryIsNaNInEveryBlock) {
  const std::string source = kHead + R"(
__global__ void k(const float*, float* y) {
  __shared__ float s[2];
  y[blockIdx.x] = s[0];
  s[0] = 1;
}
)" + launch("k<<<4, 1>>>(x, y);");
  for (float v : evaluate(source, {0}, 4)) EXPECT_TRUE(std::isnan(v));
}

TEST(Launch, LambdasFunctorsPointersAndNullArguments) {
  const std::string source = kHead + R"(
template <class F> __global__ void apply(const float* x, float* y, const float* none, F f) {
  if (none == nullptr) y[threadIdx.x] = f(x[threadIdx.x]);
}
struct Times { float k; __device__ float operator()(float v) const { return v * k; } };
__global__ void plain(float* y, int i) { y[i] += 1; }
#define LAUNCH(kernel, ...) kernel<<<1, 1>>>(__VA_ARGS__)
)" + launch(R"(  apply<<<1, 4>>>(x, y, NULL, Times{3.f});
  float bias = 10;
  apply<<<1, 2>>>(x, y, 0, [=] __device__ (float v) { return v + bias; });
  void (*pointer)(float*, int) = plain;
  pointer<<<1, 1>>>(y, 3);
  LAUNCH(plain, y, 3);
  int index = 3; float* target = y;
  void* arguments[] = {&target, &index};
  cudaLaunchKernel(plain, dim3(1), dim3(1), arguments, 0, stream);)");
  EXPECT_EQ(evaluate(source, {1, 2, 3, 4}, 4), (std::vector<float>{11, 12, 9, 15}));
}

TEST(Api, StreamsEventsMemoryAndProperties) {
  const std::string source = kHead + R"(
#include <cstdlib>
__global__ void k(float* y, float v) { y[0] = v; }
#define CHECK(call) do { if ((call) != cudaSuccess) std::abort(); } while (0)
)" + launch(R"(  cudaStream_t s; cudaEvent_t a, b; float* p; float ms;
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
  CHECK(cudaMallocAsync(&p, 1024, s)); CHECK(cudaEventRecord(a, s)); k<<<1, 1, 0, s>>>(p, 7.f); CHECK(cudaEventRecord(b, s));
  CHECK(cudaEventSynchronize(b)); CHECK(cudaEventElapsedTime(&ms, a, b)); CHECK(cudaMemcpyAsync(y, p, 4, cudaMemcpyDeviceToDevice, s));
  CHECK(cudaStreamSynchronize(s)); CHECK(cudaFreeAsync(p, s)); CHECK(cudaStreamDestroy(s)); CHECK(cudaEventDestroy(a)); CHECK(cudaEventDestroy(b));
  cudaDeviceProp prop; CHECK(cudaGetDeviceProperties(&prop, 0)); y[1] = prop.major; y[2] = prop.warpSize;
  int blocks; CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 256, 0)); y[3] = blocks;)");
  EXPECT_EQ(evaluate(source, {0}, 4), (std::vector<float>{7, 9, 32, 8}));
}

TEST(Api, OptInBoundsTheDynamicPartAlone) {
  // As on a GPU: static memory comes on top of what the attribute allows.
  const std::string source = kHead + R"(
__global__ void k(const float* x, float* y) {
  __shared__ float fixed[32];
  extern __shared__ float large[];
  fixed[threadIdx.x] = x[threadIdx.x];
  large[16383 - threadIdx.x] = fixed[threadIdx.x];
  y[threadIdx.x] = large[16383 - threadIdx.x];
}
)" +
                             launch(
                                 "cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, "
                                 "65536); k<<<1, 32, 65536>>>(x, y);");
  const std::vector<float> x(32, 3.0f);
  EXPECT_EQ(evaluate(source, x, 32), x);
}

TEST(Api, DynamicSharedMemoryAfterOptingIn) {
  const std::string source = kHead + R"(
__global__ void k(const float* x, float* y) {
  extern __shared__ unsigned char raw[];
  float* s = reinterpret_cast<float*>(raw);
  s[20000 + threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[20031 - threadIdx.x];
}
)" +
                             launch(
                                 "cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, "
                                 "100000); k<<<1, 32, 100000>>>(x, y);");
  EXPECT_EQ(evaluate(source, iota(32), 32)[0], 31);
}

TEST(Arithmetic, HalfBfloatAndFp8) {
  const std::string source = kHead + R"(
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__global__ void k(const float* x, float* y) {
  y[0] = __half2float(__hfma(__float2half(x[0]), __float2half(2.f), __float2half(0.5f)));
  __half2 p = __hfma2(__floats2half2_rn(1, 2), __floats2half2_rn(3, 4), __float2half2_rn(1.f));
  y[1] = __low2float(p) + __high2float(p);
  y[2] = __half2float(hexp(__float2half(0.f))) + __half2float(hrcp(__float2half(4.f)));
  y[3] = __bfloat162float(__hfma(__float2bfloat16(3.f), __float2bfloat16(3.f), __float2bfloat16(1.f)));
  y[4] = float(__nv_fp8_e4m3(x[1]));
  y[5] = __expf(0.f) + rsqrtf(4.f) + __fdividef(1.f, 4.f) + __saturatef(7.f);
  y[6] = __half2float(__hadd(__float2half(1.f), __float2half(2.f))) + __half2float(__hmul(__float2half(3.f), __float2half(2.f)));
  y[7] = min(3, 4u) + max(2.f, 5) + __float2int_rn(2.5f);
}
)" + launch("k<<<1, 1>>>(x, y);");
  EXPECT_EQ(evaluate(source, {3.f, 1.0625f}, 8), (std::vector<float>{6.5f, 13, 1.25f, 10, 1, 2.75f, 9, 10}));
}

TEST(Arithmetic, SumsOfPairsUnderAConditionTakeTheRightPairs) {
  const std::string source = kHead + R"(
struct Pair { unsigned first, second; };
__global__ void sums(float* y) {
  __shared__ Pair of_warp[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 31) of_warp[warp] = {215u + warp, 32u + 3 * warp};
  __syncthreads();
  Pair above{0, 0};
#pragma unroll
  for (int w = 0; w < 32; ++w)
    if (w < warp) above.first += of_warp[w].first, above.second += of_warp[w].second;
  y[threadIdx.x * 2] = above.first, y[threadIdx.x * 2 + 1] = above.second;
}
)" + launch("sums<<<1, 1024, 0, stream>>>(y);");
  const auto y = evaluate(source, {0}, 2048);
  ASSERT_EQ(y.size(), 2048u);
  for (int t = 0; t < 1024; ++t) {
    const int warp = t / 32, before = warp * (warp - 1) / 2;
    ASSERT_EQ(y[t * 2], 215 * warp + before) << t;
    ASSERT_EQ(y[t * 2 + 1], 32 * warp + 3 * before) << t;
  }
}

TEST(Arithmetic, InlineScalarPtx) {
  const std::string source = kHead + R"(
__global__ void k(const float* x, float* y) {
  float e; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(3.f));
  unsigned lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  float4 v; asm volatile("ld.global.nc.v4.f32 {%0,%1,%2,%3}, [%4+16];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(x));
  unsigned c; asm("{ .reg .pred p; setp.gt.s32 p, %1, 4; selp.u32 %0, 7, 9, p; }" : "=r"(c) : "r"(5));
  unsigned b; asm("bfe.u32 %0, %1, 4, 8;" : "=r"(b) : "r"(0xabcu));
  asm volatile("red.global.add.f32 [%0], %1;" :: "l"(y + 4), "f"(2.f) : "memory");
  if (threadIdx.x == 3) { y[0] = e; y[1] = lane; y[2] = v.x + v.w; y[3] = c + b; }
}
)" + launch("cudaMemset(y, 0, 20); k<<<1, 32>>>(x, y);");
  EXPECT_EQ(evaluate(source, iota(8), 5), (std::vector<float>{8, 3, 11, 7 + 0xab, 64}));
}

TEST(Workspace, BytesComeFromTheCandidate) {
  const EmulatedArtifact artifact =
      build(kHead + "extern \"C\" size_t workspace_bytes(int64_t n) { return 12 * n; }\n" + launch(""));
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log;
  Workbench bench(artifact.program, {1, 2}, 2);
  const Json arguments = {Json{{"at", 0}}, Json{{"at", 256}}, Json{{"i64", 5}}};
  EXPECT_EQ(bench.ask({{"op", "workspace"}, {"args", arguments}}).value("bytes", 0), 60);
}

}  // namespace
}  // namespace capstone::test
