// capstone-worker-cuda SUBMISSION.so: loads one submission and runs it on tensors that the GPU host owns.
//
// Untrusted as soon as the submission is loaded: all its answers are unverified claims. It times with CUDA
// events. The judge checks, through the GPU host, the outputs of exactly those runs that were timed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "harness/runtime/cuda/cuda_common.h"

namespace {

using namespace capstone::gpu;
using Json = capstone::Json;
using Clock = std::chrono::steady_clock;

class Runner {
 public:
  explicit Runner(const char* path) : submission_(path) {
    CAPSTONE_CUDA(cudaEventCreate(&begin_));
    CAPSTONE_CUDA(cudaEventCreate(&end_));
  }

  Json handle(const Json& request, int fd) {
    const std::string op = request.value("op", "");
    if (op == "hello") return hello();
    if (op == "arena") {
      arena_.import(fd, request.at("bytes").get<std::size_t>());
      return {{"ok", true}};
    }
    if (op == "expected") {
      expected_.import(fd, request.at("bytes").get<std::size_t>());
      return {{"ok", true}};
    }
    if (op == "workspace")
      return {{"ok", true},
              {"bytes", submission_.workspace(Slots(request.at("args"), arena_.base()).data())}};
    if (op == "prepared")
      return {
          {"ok", true},
          {"bytes",
           submission_.prepared ? submission_.prepared(Slots(request.at("args"), arena_.base()).data()) : 0}};
    if (op == "prepare") return prepare(request);
    if (op == "run") return run(request);
    return {{"ok", false}, {"kind", "exception"}, {"message", "unknown request: " + op}};
  }

 private:
  Json hello() {
    int runtime = 0;
    CAPSTONE_CUDA(cudaRuntimeGetVersion(&runtime));
    Json answer{{"ok", true}, {"protocol", 1}, {"backend", "cuda"}, {"runtime", runtime}};
    if (submission_.label) answer["label"] = submission_.label();
    return answer;
  }

  // Repacks parameters; untimed.
  Json prepare(const Json& request) {
    if (!submission_.prepare) throw std::runtime_error("the problem has no prepare()");
    Slots slots(request.at("args"), arena_.base(), expected_.base());
    cudaGetLastError();
    submission_.prepare(slots.data(), at_offset(request, "prepared", arena_.base(), expected_.base()),
                        cudaStreamPerThread);
    cudaError_t left = cudaGetLastError(), finished = cudaDeviceSynchronize();
    if (left != cudaSuccess || finished != cudaSuccess) return launch_failure(left, finished);
    return {{"ok", true}};
  }

  // One timed sample (repeat = 1, hidden behind a spin) or `repeat` calls back to back.
  Json run(const Json& request) {
    Slots slots(request.at("args"), arena_.base(), expected_.base());
    int repeat = std::max(1, request.value("repeat", 1));
    void* workspace = at_offset(request, "workspace", arena_.base(), expected_.base());
    void* prepared = at_offset(request, "prepared", arena_.base(), expected_.base());
    cudaStream_t stream = cudaStreamPerThread;
    cudaGetLastError();
    if (long long hide = request.value("hide_ns", 0ll); hide > 0) spin<<<1, 1, 0, stream>>>(hide);
    CAPSTONE_CUDA(cudaEventRecord(begin_, stream));
    auto t0 = Clock::now();
    for (int i = 0; i < repeat; ++i) submission_.call(slots.data(), workspace, prepared, stream);
    auto t1 = Clock::now();
    cudaError_t left = cudaGetLastError();
    cudaEventRecord(end_, stream);
    cudaError_t finished = cudaDeviceSynchronize();
    auto t2 = Clock::now();
    if (left != cudaSuccess || finished != cudaSuccess) return launch_failure(left, finished);
    float ms = 0;
    CAPSTONE_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
    const double launch_ns = std::chrono::duration<double, std::nano>(t1 - t0).count() / repeat;
    return {{"ok", true},
            {"ms", double(ms) / repeat},
            {"launch_ns", launch_ns},
            {"host_ms", std::chrono::duration<double, std::milli>(t2 - t0).count() / repeat}};
  }

  Submission submission_;
  Arena arena_;
  Arena expected_{Arena::kExpectedAddress};
  cudaEvent_t begin_{}, end_{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr,
                 "usage: capstone-worker-cuda SUBMISSION.so (started by capstone; speaks on descriptor 3)\n");
    return 2;
  }
  std::unique_ptr<Runner> runner;
  return serve([&](const Json& request, int fd, int&) {
    if (!runner) {
      CAPSTONE_CUDA(cudaFree(nullptr));
      runner = std::make_unique<Runner>(argv[1]);
    }
    return runner->handle(request, fd);
  });
}
