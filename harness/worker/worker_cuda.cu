// capstone-worker-cuda SUBMISSION.so: loads one submission and runs it on tensors that the player owns.
//
// Untrusted as soon as the submission is loaded: everything it says is a claim. It times with CUDA events; the judge
// checks outputs of the very runs that were timed through the player.
#include <dlfcn.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "harness/worker/cuda_common.h"
#include "harness/worker/wire.h"

namespace {

using capstone::Wire;
using capstone::gpu::Arena;
using Json = Wire::Json;
using Clock = std::chrono::steady_clock;

// Keeps the GPU busy while the host enqueues the launch, so that its cost is hidden from the events around it.
__global__ void spin(long long nanoseconds) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

struct Submission {
  using Call = void (*)(const void* const*, void*, void*, void*);
  using Workspace = std::size_t (*)(const void* const*);
  using Label = const char* (*)();
  Call call = nullptr;
  Workspace workspace = nullptr;
  Label label = nullptr;

  explicit Submission(const char* path) {
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(std::string("the built kernel cannot be loaded: ") + ::dlerror());
    call = reinterpret_cast<Call>(::dlsym(library, "capstone_call"));
    workspace = reinterpret_cast<Workspace>(::dlsym(library, "capstone_workspace_bytes"));
    label = reinterpret_cast<Label>(::dlsym(library, "baseline_label"));
    if (!call || !workspace) throw std::runtime_error("the built kernel lacks its adapter");
  }
};

// Argument slots of the adapter: 8 bytes each, and the pointers to them.
class Slots {
 public:
  Slots(const Json& args, char* arena) {
    values_.reserve(args.size());
    for (const Json& arg : args) {
      std::uint64_t bits = 0;
      if (arg.contains("at")) {
        char* address = arena + arg["at"].get<std::size_t>();
        std::memcpy(&bits, &address, sizeof address);
      } else if (arg.contains("f32")) {
        float value = arg["f32"].get<float>();
        std::memcpy(&bits, &value, sizeof value);
      } else if (arg.contains("f64")) {
        double value = arg["f64"].get<double>();
        std::memcpy(&bits, &value, sizeof value);
      } else {
        std::int64_t value = arg.begin().value().get<std::int64_t>();
        std::memcpy(&bits, &value, sizeof value);
      }
      values_.push_back(bits);
    }
    for (std::uint64_t& value : values_) pointers_.push_back(&value);
  }
  const void* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::uint64_t> values_;
  std::vector<const void*> pointers_;
};

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
    if (op == "workspace") {
      Slots slots(request.at("args"), arena_.base());
      return {{"ok", true}, {"bytes", submission_.workspace(slots.data())}};
    }
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

  // One timed sample (repeat = 1, hidden behind a spin) or `repeat` calls back to back.
  Json run(const Json& request) {
    Slots slots(request.at("args"), arena_.base());
    int repeat = std::max(1, request.value("repeat", 1));
    bool hide = request.value("hide_launch", false);
    auto at = request.find("workspace");
    void* workspace = at != request.end() && at->is_number() ? arena_.base() + at->get<std::size_t>() : nullptr;
    cudaStream_t stream = cudaStreamPerThread;
    cudaGetLastError();
    // 1.5 times what the last launches took on the host, bounded: a launch() that synchronises is not hidden.
    if (hide) spin<<<1, 1, 0, stream>>>(static_cast<long long>(std::min(launch_ns_ * 1.5 + 5000, 2e6)));
    CAPSTONE_CUDA(cudaEventRecord(begin_, stream));
    auto t0 = Clock::now();
    for (int i = 0; i < repeat; ++i) submission_.call(slots.data(), workspace, nullptr, stream);
    auto t1 = Clock::now();
    cudaError_t left = cudaGetLastError();
    cudaEventRecord(end_, stream);
    cudaError_t finished = cudaDeviceSynchronize();
    auto t2 = Clock::now();
    if (left != cudaSuccess || finished != cudaSuccess) return failure(left, finished);
    float ms = 0;
    CAPSTONE_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
    double launched = std::chrono::duration<double, std::nano>(t1 - t0).count() / repeat;
    launch_ns_ = launch_ns_ == 0 ? launched : 0.7 * launch_ns_ + 0.3 * launched;
    return {{"ok", true}, {"ms", double(ms) / repeat},
            {"host_ms", std::chrono::duration<double, std::milli>(t2 - t0).count() / repeat}};
  }

  static Json failure(cudaError_t left, cudaError_t finished) {
    bool at_launch = left != cudaSuccess;
    cudaError_t code = at_launch ? left : finished;
    Json answer{{"ok", false}, {"kind", at_launch ? "launch_error" : "undefined_behaviour"},
                {"message", std::string(at_launch ? "the launch failed: " : "the kernel failed: ") + cudaGetErrorString(code) +
                                " (" + cudaGetErrorName(code) + ")"}};
    switch (code) {
      case cudaErrorInvalidConfiguration:
        answer["hint"] = "too many threads a block (1024 at most), or an empty grid";
        break;
      case cudaErrorInvalidValue:
        answer["hint"] = "often more than 48 KB of dynamic shared memory without cudaFuncSetAttribute("
                         "…MaxDynamicSharedMemorySize…)";
        break;
      case cudaErrorIllegalAddress:
        answer["hint"] = "an index leaves its tensor: run `compute-sanitizer`, or measure with --backend emulated for the line";
        break;
      case cudaErrorMisalignedAddress:
        answer["hint"] = "a vector load (float4) at an address that is not a multiple of its size: rows need not be aligned";
        break;
      case cudaErrorNoKernelImageForDevice:
        answer["hint"] = "the kernel was built for another architecture";
        break;
      default:
        break;
    }
    return answer;
  }

  Submission submission_;
  Arena arena_;
  cudaEvent_t begin_{}, end_{};
  double launch_ns_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: capstone-worker-cuda SUBMISSION.so (started by capstone; speaks on descriptor 3)\n");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  Wire wire;
  Json request;
  int fd = -1;
  std::unique_ptr<Runner> runner;
  while (wire.receive(request, fd)) {
    if (request.value("op", "") == "quit") {
      wire.send({{"ok", true}});
      return 0;
    }
    Json answer;
    try {
      if (!runner) {
        CAPSTONE_CUDA(cudaFree(nullptr));
        runner = std::make_unique<Runner>(argv[1]);
      }
      answer = runner->handle(request, fd);
    } catch (const std::exception& problem) {
      answer = {{"ok", false}, {"kind", "exception"}, {"message", problem.what()}};
    }
    wire.send(answer);
  }
  return 0;
}
