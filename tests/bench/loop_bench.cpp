// How long a student waits for a verdict on the CPU after each edit, with a warm cache: what `capstone try`
// and an emulated `capstone measure` do, builds included.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/judge/judge.h"

namespace {

using namespace capstone;

enum class Loop { kTry, kMeasure };

/// `rung`: the kernel that is edited; each edit is a constant of another value.
void judge_an_edited_kernel(benchmark::State& state, Loop loop, const char* rung, bool right) {
  const fs::path sources = CAPSTONE_SOURCES;
  Resources resources;
  resources.share = CAPSTONE_BENCH_SHARE;
  resources.libexec = CAPSTONE_BENCH_LIBEXEC;
  resources.cache = CAPSTONE_BENCH_CACHE;
  const char* path = std::getenv("PATH");
  resources.path_variable = path ? path : "";
  const auto problem = load_problem(sources / "problems" / "softmax");
  const auto source = read_file(sources / rung);
  if (!problem || !source) return state.SkipWithError("no problem or no kernel");
  const ScratchFolder folder(fs::temp_directory_path() / "capstone-loop");
  if (!make_folders(folder.path())) return state.SkipWithError("no folder for the kernel");
  JudgeRequest request;
  request.problem = &*problem;
  request.candidates = {{"human", folder.path() / "kernel.cu"}};
  request.options.backend = Backend::kEmulated;
  request.timing = loop == Loop::kMeasure;
  request.nvcc = loop == Loop::kMeasure;
  int edit = 0;
  const auto edit_and_judge = [&] {
    const std::string edited = fmt::format("constexpr int kEdit{}_{} = 0;\n{}", ::getpid(), ++edit, *source);
    if (!write_file_atomic(request.candidates.front().source, edited)) return false;
    const auto judged = judge(request, resources, [](const std::string&) {});
    return judged && (judged->front().gate_one == GateOne::kPassed) == right;
  };
  if (!edit_and_judge()) return state.SkipWithError("not the verdict that this kernel must get");
  for (auto _ : state)
    if (!edit_and_judge()) return state.SkipWithError("the verdict changed");
}

// Compilers and workers do the work: wall time.
#define LOOP_BENCHMARK(name, title, ...)                       \
  BENCHMARK_CAPTURE(judge_an_edited_kernel, name, __VA_ARGS__) \
      ->Name("loop/" title)                                    \
      ->Unit(benchmark::kMillisecond)                          \
      ->UseRealTime()                                          \
      ->Iterations(5)

LOOP_BENCHMARK(try_first, "try softmax, first rung", Loop::kTry,
               "reference_kernels/L8_attention/softmax/01_three_pass.cu", true);
LOOP_BENCHMARK(try_one_read, "try softmax, one read", Loop::kTry,
               "reference_kernels/L8_attention/softmax/04_one_read.cu", true);
LOOP_BENCHMARK(try_wrong, "try softmax, wrong", Loop::kTry,
               "tests/wrong_kernels/softmax/sum_stops_one_early.cu", false);
LOOP_BENCHMARK(measure_one_read, "measure softmax, one read", Loop::kMeasure,
               "reference_kernels/L8_attention/softmax/04_one_read.cu", true);

}  // namespace
