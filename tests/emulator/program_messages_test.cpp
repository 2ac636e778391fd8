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

 private:
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
