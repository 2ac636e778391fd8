// What a whole program is told when it does something wrong, or counts on what no GPU promises.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "harness/base/files.h"
#include "harness/runtime/build/run_program.h"
#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

namespace fs = std::filesystem;

class Messages : public testing::Test {
 protected:
  Messages() : folder_(fs::temp_directory_path() / fmt::format("capstone-messages-{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Messages() override { fs::remove_all(folder_); }

  /// Runs the program; `request` says how.
  ProcessResult run(const std::string& source, ProgramRequest request = {}) {
    request.source = folder_ / "program.cu";
    EXPECT_TRUE(write_file_atomic(request.source, source));
    auto run = run_emulated_program(request, test_resources());
    EXPECT_TRUE(run) << render(run.error());
    if (!run) return {};
    EXPECT_TRUE(run->build.result.ok) << run->build.result.log << run->build.not_judgeable;
    return run->process;
  }
  ProcessResult observe(const std::string& source) {
    ProgramRequest request;
    request.variant = BuildVariant::kInstrumented;
    return run(source, std::move(request));
  }

  fs::path folder_;
};

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing: " << part << "\nin: " << text;
}
int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// ---- lock step --------------------------------------------------------------------------------------------

const std::string kOldReductions = R"(#include <cstdio>
__device__ void sum_of_warp(volatile int* s, int t) {
  s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8];
  s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
}
template <unsigned B> __device__ void largest_of_warp(volatile float* s, unsigned t) {
  if (B >= 64 && s[t] < s[t + 32]) s[t] = s[t + 32];
  for (unsigned i = 16; i > 0; i >>= 1) {
    if (t < i) {
      if (s[t] < s[t + i]) s[t] = s[t + i];
    }
  }
}
__global__ void sum(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x < 32) sum_of_warp(s, threadIdx.x);
  if (threadIdx.x == 0) *out = s[0];
}
template <class T> __global__ void sum_of_register(T* out) {
  extern __shared__ T data[];
  int t = threadIdx.x;
  T mine = t;
  data[t] = mine;
  __syncthreads();
  if (t < 32) {
    volatile T* s = data;
    for (int i = 32; i > 0; i /= 2) s[t] = mine = mine + s[t + i];
  }
  if (t == 0) *out = data[0];
}
__global__ void largest(float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = (threadIdx.x * 37) % 64;
  __syncthreads();
  if (threadIdx.x < 32) largest_of_warp<64>(s, threadIdx.x);
  if (threadIdx.x == 0) *out = s[0];
}
int main() {
  int* a; float* b;
  cudaMallocManaged(&a, 8); cudaMallocManaged(&b, 4);
  sum<<<1, 64>>>(a);
  sum_of_register<<<1, 64, 256>>>(a + 1);
  largest<<<1, 64>>>(b);
  cudaDeviceSynchronize();
  printf("%d %d %g\n", a[0], a[1], *b);
}
)";

TEST_F(Messages, AWarpThatCountsOnLockStepGetsItAndAWarning) {
  for (const std::string& schedule : kSchedules) {
    ProgramRequest request;
    request.schedule = schedule;
    const ProcessResult process = run(kOldReductions, std::move(request));
    EXPECT_EQ(process.status, 0) << schedule;
    EXPECT_EQ(process.out, "2016 2016 63\n") << schedule;
    expect_says(process.err,
                "program.cu:3: warning: the kernel reads volatile shared memory that another lane");
    EXPECT_EQ(occurrences(process.err, "warning"), 1) << process.err;
  }
}
TEST_F(Messages, LockStepIsOneFindingForEachKernel) {
  const ProcessResult process = observe(kOldReductions);
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(occurrences(process.err, "race on"), 3) << process.err;
  expect_says(process.err, "volatile does not make them: __syncwarp()");
}
TEST_F(Messages, LanesThatSynchroniseAreNotWarned) {
  const ProcessResult process = run(R"(#include <cstdio>
__global__ void turn(int* out) {
  volatile __shared__ int s[64], ready;
  s[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 5) ready = 1;
  else while (ready != 1);  // lanes may wait for each other
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
int main() {
  int* out;
  cudaMallocManaged(&out, 256);
  turn<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  printf("%d %d\n", out[0], out[63]);
}
)");
  EXPECT_EQ(process.out, "63 0\n");
  EXPECT_EQ(process.err, "");
}

TEST_F(Messages, ANanOfAKernelIsPrintedWithoutASign) {
  const ProcessResult process = run(R"(#include <cstdio>
__device__ void say(const char* what, float x) { printf("%s: %f, %8.2e, %G, ", what, x, x, x); }
__host__ __device__ int both(double x) { return printf("%.1f %s\n", x, "as it is"); }
__global__ void k(float zero) {
  say("made", zero / zero);
  say("numbers", sqrtf(-1 - zero) < 0 ? 1 : 2.5f);
  printf("%*d|%-5.2f|%+d|%5s|%c|%x|%lld|%zu|%%|%lu|%p|%.*f\n", 4, 7, 1.0, 3, "ab", 'c', 255, -5ll, sizeof(int), 6ul,
         (void*)0x10, 2, 0.125);
  both(zero / zero);
}
int main() {
  k<<<1, 1>>>(0);
  cudaDeviceSynchronize();
  volatile double zero = 0;
  both(-(0 / zero) < 0 ? 1 : 4);
}
)");
  EXPECT_EQ(process.status, 0) << process.err;
  EXPECT_EQ(process.out,
            "made: nan,      nan, NAN, numbers: 2.500000, 2.50e+00, 2.5, "
            "   7|1.00 |+3|   ab|c|ff|-5|4|%|6|0x10|0.12\nnan as it is\n4.0 as it is\n");
}

// ---- crashes and endless loops ----------------------------------------------------------------------------

TEST_F(Messages, ACrashOfTheHostIsNamedAndLosesNoOutput) {
  const ProcessResult process = run(R"(#include <cstdio>
int main() {
  printf("before\n");
  int* memory;
  cudaMalloc(&memory, 4);
  volatile int* nothing = nullptr;
  *nothing = 1;
  printf("after\n");
}
)");
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(process.out, "before\n");
  expect_says(process.err, "program.cu:7: in host code: access through a null pointer");
}
TEST_F(Messages, ACrashInsideOfMallocEndsTheProgram) {
  ProgramRequest request;
  request.timeout = std::chrono::seconds(60);
  const ProcessResult process = run(R"(#include <cstdlib>
#include <cstring>
int main() {
  void* (*volatile get)(size_t) = malloc;
  void (*volatile give_back)(void*) = free;
  void* blocks[] = {get(2000), get(2000), get(2000)};
  give_back(blocks[1]);
  memset(blocks[1], 'A', 16);
  return get(3000) == nullptr;
}
)",
                                    std::move(request));
  EXPECT_EQ(process.status, 1);
  expect_says(process.err, "in host code: it crashed inside of malloc() or free()");
}
TEST_F(Messages, AnEndlessKernelIsNamedAndLosesNoOutput) {
  ProgramRequest request;
  request.timeout = std::chrono::seconds(1);
  const ProcessResult process = run(R"(#include <cstdio>
__global__ void k(volatile int* flag) {
  printf("entered\n");
  while (*flag == 0) {
  }
}
int main() {
  int* flag;
  cudaMallocManaged(&flag, 4);
  printf("before\n");
  k<<<1, 1>>>(flag);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
)",
                                    std::move(request));
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(process.out, "before\nentered\nthe launch timed out and was terminated\n");
  expect_says(process.err, "program.cu:4: the kernel did not end within 1 s; it was here");
  expect_says(process.err, "kernel k launched at program.cu:11");
}
TEST_F(Messages, AnEndlessLoopOfTheHostIsNamed) {
  ProgramRequest request;
  request.timeout = std::chrono::seconds(1);
  const ProcessResult process = run(R"(#include <cstdio>
int main() {
  printf("before\n");
  for (volatile int i = 0;; i = 1) {
  }
}
)",
                                    std::move(request));
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(process.out, "before\n");
  expect_says(process.err, "program.cu:4: in host code: did not end within 1 s; it was here");
}
TEST_F(Messages, AFailedKernelLeavesTheErrorThatCudaHas) {
  const ProcessResult process = run(R"(#include <cassert>
#include <cstdio>
__global__ void k(float* a) { a[threadIdx.x] = threadIdx.x; }
int main() {
  float* memory;
  cudaMalloc(&memory, 8192);
  k<<<1, 2048>>>(memory);
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  k<<<1, 32, 300000>>>(memory);
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  k<<<1, 32>>>((float*)8);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  printf("%s\n", cudaGetErrorName(cudaMalloc(&memory, 16)));
  cudaGetLastError();
  printf("%s\n", cudaGetErrorName(cudaMemset(memory, 0, 16)));
}
)");
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(process.out,
            "invalid configuration argument\ninvalid argument\nan illegal memory access was encountered\n"
            "cudaErrorIllegalAddress\ncudaErrorIllegalAddress\n");
  expect_says(process.err, "program.cu:7: invalid configuration: a block of (2048, 1, 1) has 2048 threads");
  expect_says(process.err, "program.cu:9: too much dynamic shared memory: 300000 bytes");
  expect_says(process.err, "program.cu:3: access through a null pointer");
}

// ---- pointers ---------------------------------------------------------------------------------------------

TEST_F(Messages, AHostPointerIsNoArgumentOfAKernel) {
  const ProcessResult process = run(R"(#include <cstdio>
#include <vector>
__device__ float table[32];
__global__ void k(float* a, const float* b) { a[threadIdx.x] = b ? b[threadIdx.x] : 1; }
int main() {
  float *shared, *device, *symbol;
  std::vector<float> host(64), pinned(32);
  cudaMallocManaged(&shared, 128);
  cudaMalloc(&device, 128);
  cudaGetSymbolAddress((void**)&symbol, table);
  cudaHostRegister(pinned.data(), 128, 0);
  k<<<1, 32>>>(device, nullptr);
  k<<<1, 32>>>(shared, device);
  k<<<1, 32>>>(symbol, shared);
  k<<<1, 32>>>(pinned.data(), symbol);
  printf("%s %g\n", cudaGetErrorString(cudaDeviceSynchronize()), pinned[3]);
  k<<<1, 32>>>(shared, host.data());
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
)");
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(process.out, "no error 1\nan illegal memory access was encountered\n");
  expect_says(process.err, "program.cu:17: argument 2 of the kernel points to memory of the host");
}
TEST_F(Messages, ASourceWithoutMainIsToldSo) {
  ProgramRequest request;
  request.source = folder_ / "no_main.cu";
  ASSERT_TRUE(write_file_atomic(request.source, "__global__ void k() {}\n"));
  const auto run = run_emulated_program(request, test_resources());
  ASSERT_TRUE(run) << render(run.error());
  ASSERT_TRUE(run->build.result.first_error);
  expect_says(run->build.result.first_error->text, "no source defines main()");
}

TEST_F(Messages, WhatTheStandInForPyTorchLacksIsNamed) {
  ProgramRequest request;
  request.source = folder_ / "lacks.cu";
  ASSERT_TRUE(write_file_atomic(request.source,
                                "#include <torch/extension.h>\nint main() {\n"
                                "  at::Tensor x = at::ones({2, 2});\n  x = at::conv2d(x, x);\n}\n"));
  const auto call = run_emulated_program(request, test_resources());
  ASSERT_TRUE(call) << render(call.error());
  expect_says(call->build.not_judgeable, "lacks.cu:4: the stand-in for PyTorch has no conv2d()");
  ASSERT_TRUE(write_file_atomic(request.source, "#include <ATen/native/Pool.h>\nint main() {}\n"));
  const auto header = run_emulated_program(request, test_resources());
  ASSERT_TRUE(header) << render(header.error());
  expect_says(header->build.not_judgeable, "header 'ATen/native/Pool.h' is not in the stand-in for PyTorch");
}

TEST_F(Messages, AProgramIsKeptInsteadOfRun) {
  ProgramRequest request;
  request.output = folder_ / "kept";
  const ProcessResult kept =
      run("#include <cstdio>\nint main() { std::puts(\"ran\"); return 3; }\n", request);
  EXPECT_TRUE(kept.ok());
  EXPECT_EQ(kept.out, "");
  ProcessSpec spec;
  spec.argv = {request.output.string()};
  const auto ran = run_process(spec);
  ASSERT_TRUE(ran) << render(ran.error());
  EXPECT_EQ(ran->status, 3);
  EXPECT_EQ(ran->out, "ran\n");
}

TEST_F(Messages, TheHostCannotUseMemoryOfCudaMalloc) {
  const ProcessResult process = run(R"(#include <cstdio>
__global__ void k(int* a) { *a = 5; }
int main() {
  int *device, host = 3;
  cudaMalloc(&device, 4);
  for (int i = 0; i < 3; ++i) {
    cudaMemcpy(device, &host, 4, cudaMemcpyHostToDevice);
    k<<<1, 1>>>(device);
    cudaMemcpy(&host, device, 4, cudaMemcpyDeviceToHost);
  }
  printf("%d\n", host);
  printf("%d\n", *device);
}
)");
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(process.out, "5\n");
  expect_says(process.err, "program.cu:12: in host code: the host accesses memory of cudaMalloc");
  expect_says(process.err, "copy it with cudaMemcpy, or allocate it with cudaMallocManaged");
}
TEST_F(Messages, CopiesHaveADirectionAndALength) {
  const ProcessResult process = run(R"(#include <cstdio>
int main() {
  float host[16] = {1, 2, 3, 4}, *device, *shared;
  cudaMalloc(&device, 16);
  cudaMallocManaged(&shared, 16);
  auto say = [](cudaError_t error) { printf("%d ", error); };
  say(cudaMemcpy(device, host, 16, cudaMemcpyHostToDevice));
  say(cudaMemcpy(shared, device, 16, cudaMemcpyDeviceToHost));
  say(cudaMemcpy(shared, device, 16, cudaMemcpyDeviceToDevice));
  say(cudaMemcpy(host, device + 1, 12, cudaMemcpyDefault));
  say(cudaMemcpy(device, host, 16, cudaMemcpyDeviceToHost));
  say(cudaMemcpy(host, device, 64, cudaMemcpyDeviceToHost));
  say(cudaMemset(device, 0, 17));
  cudaFree(device);
  say(cudaMemcpy(device, host, 16, cudaMemcpyHostToDevice));
}
)");
  EXPECT_EQ(process.out, "0 0 0 0 1 1 1 1 ");
  expect_says(process.err, "program.cu:11: cudaMemcpy: wrong direction: the target is device memory");
  expect_says(process.err, "program.cu:12: cudaMemcpy: the source has fewer than 64 bytes left of the 16");
  expect_says(process.err, "program.cu:13: cudaMemset: the target has fewer than 17 bytes left of the 16");
  expect_says(process.err, "program.cu:15: cudaMemcpy: the target is device memory that is not allocated");
}
TEST_F(Messages, WritesBeyondAnAllocationAreNoticed) {
  const ProcessResult process = run(R"(#include <cstdio>
__global__ void k(float* a) { a[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
int main() {
  float *first, *second;
  cudaMalloc(&first, 1000 * 4);
  cudaMalloc(&second, 4);
  k<<<4, 256>>>(first);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
)");
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(process.out, "an illegal memory access was encountered\n");
  expect_says(process.err, "memory was written out of bounds: 96 bytes past the end of memory of cudaMalloc");
}

// ---- how it is built --------------------------------------------------------------------------------------

TEST_F(Messages, TheLanguageMayBeNewerAndOpenMpObeyed) {
  ProgramRequest request;
  request.standard = "c++20";
  request.openmp = true;
  const ProcessResult process = run(R"(#include <omp.h>
#include <concepts>
#include <cstdio>
template <std::integral T> __global__ void k(T* out) { *out = []<int N>() { return N; }.template operator()<5>(); }
int main() {
  int* out;
  cudaMallocManaged(&out, 4);
  k<<<1, 1>>>(out);
  cudaDeviceSynchronize();
  omp_set_num_threads(2);
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  ++threads;
  printf("%d %d\n", *out, threads);
}
)",
                                    std::move(request));
  EXPECT_EQ(process.status, 0);
  EXPECT_EQ(process.out, "5 2\n");
}

// ---- clusters ---------------------------------------------------------------------------------------------

TEST_F(Messages, ABlockThatLeavesItsClusterTooEarlyIsNamed) {
  const ProcessResult process = run(R"(#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2) k(int* out) {
  __shared__ int box;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) box = -1;
  int* const other = cluster.map_shared_rank(&box, 0);
  cluster.sync();
  if (cluster.block_rank() == 0) return;  // cluster.sync() is missing
  for (int i = 0; i < 1000; ++i) __nanosleep(100);
  if (blockIdx.x < 3) *other = 7;  // harmless here: shared memory lives as long as its cluster
  else *cluster.map_shared_rank(&box, 0) = 7;
}
int main() {
  k<<<4, 32>>>(nullptr);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
)");
  EXPECT_EQ(process.status, 1);
  EXPECT_EQ(process.out, "unspecified launch failure\n");
  expect_says(process.err, "shared memory of block 0 of the cluster, which has left the kernel");
  expect_says(process.err, "block (3,0,0)");
}

}  // namespace
}  // namespace capstone::test
