// How fast the emulator runs kernels. CAPSTONE_BENCH_OTHER=PROGRAM times emulator_cases.cu as something else
// built it, side by side.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "harness/base/files.h"
#include "harness/runtime/build/build.h"
#include "harness/runtime/build/run_program.h"

namespace {

using namespace capstone;

void report(benchmark::State& state, const ProcessResult& process) {
  double seconds = 0, amount = 0;
  if (!process.ok() || std::sscanf(process.out.c_str(), "%lf %lf", &seconds, &amount) != 2)
    return state.SkipWithError((process.out + process.err).substr(0, 200).c_str());
  state.SetIterationTime(seconds);
  state.counters["rate"] = benchmark::Counter(amount / seconds);
}

Resources bench_resources() {
  Resources resources;
  resources.share = CAPSTONE_BENCH_SHARE;
  resources.libexec = CAPSTONE_BENCH_LIBEXEC;
  resources.cache = CAPSTONE_BENCH_CACHE;
  const char* path = std::getenv("PATH");
  resources.path_variable = path ? path : "";
  return resources;
}

/// Builds a program that no cache holds. The first one or two also compile the headers.
void build_of_hello(benchmark::State& state, BuildVariant variant) {
  const Resources resources = bench_resources();
  BuildRequest request;
  request.source = resources.cache / "hello" / "hello.cu";
  request.resources = &resources;
  request.variant = variant;
  if (!make_folders(request.source.parent_path())) return state.SkipWithError("no room for the source");
  auto build = [&] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::string text = "#include <cstdio>\n__global__ void k() { printf(\"" + std::to_string(now) +
                             "\"); }\nint main() { k<<<1, 1>>>(); }\n";
    if (!write_file_atomic(request.source, text)) return false;
    const auto artifact = build_emulated(request);
    return artifact && artifact->result.ok && !artifact->result.cached;
  };
  if (!build() || !build()) return state.SkipWithError("it does not build");
  for (auto _ : state)
    if (!build()) return state.SkipWithError("it does not build");
}

void emulator(benchmark::State& state, const char* name) {
  const Resources resources = bench_resources();
  ProgramRequest request;
  request.source = CAPSTONE_SOURCES "/tests/bench/emulator_cases.cu";
  request.arguments = {name, "3"};
  for (auto _ : state) {
    auto run = run_emulated_program(request, resources);
    if (!run || !run->build.result.ok) return state.SkipWithError("it does not build");
    report(state, run->process);
  }
}

void other(benchmark::State& state, const char* name) {
  const char* program = std::getenv("CAPSTONE_BENCH_OTHER");
  if (!program) return state.SkipWithError("CAPSTONE_BENCH_OTHER names no program");
  ProcessSpec spec;
  spec.argv = {program, name, "3"};
  spec.timeout = std::chrono::minutes(2);
  for (auto _ : state) {
    auto process = run_process(spec);
    if (!process) return state.SkipWithError(process.error().what.c_str());
    report(state, *process);
  }
}

int registered = [] {
  for (const auto& [name, variant] :
       {std::pair("fast", BuildVariant::kFast), std::pair("memory", BuildVariant::kAsan),
        std::pair("races", BuildVariant::kInstrumented)})
    benchmark::RegisterBenchmark(("build_of_hello/" + std::string(name)).c_str(), build_of_hello, variant)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(5);
  for (const char* name : {"launch", "empty_threads", "barriers", "shuffles", "atomics", "sgemm_naive",
                           "sgemm_tiled", "sgemm_register_tile"}) {
    benchmark::RegisterBenchmark(("emulator/" + std::string(name)).c_str(), emulator, name)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(3);
    if (std::getenv("CAPSTONE_BENCH_OTHER"))
      benchmark::RegisterBenchmark(("other/" + std::string(name)).c_str(), other, name)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->Iterations(3);
  }
  return 0;
}();

}  // namespace
