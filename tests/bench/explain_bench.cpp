// What a student waits for after the build: the observed run of a tiled sgemm at 128 x 128 x 128, worker
// start and words included.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "harness/analysis/explain/explain.h"

namespace {

void explain_tiled_sgemm(benchmark::State& state) {
  using namespace capstone;
  namespace fs = std::filesystem;
  const fs::path sources = CAPSTONE_SOURCES;
  Resources resources;
  resources.share = CAPSTONE_BENCH_SHARE;
  resources.libexec = CAPSTONE_BENCH_LIBEXEC;
  resources.cache = CAPSTONE_BENCH_CACHE;
  const char* path = std::getenv("PATH");
  resources.path_variable = path ? path : "";
  const auto problem = load_problem(sources / "problems" / "sgemm");
  if (!problem) return state.SkipWithError(problem.error().what.c_str());
  const ExplainRequest request{&*problem,
                               sources / "reference_kernels/L4_gemm_ladder_one/sgemm/03_shared_tile.cu",
                               {{"m", 128}, {"k", 128}, {"n", 128}},
                               std::nullopt};
  const Sandbox sandbox = Sandbox::detect(resources);
  const auto program = build_observed(request, resources, sandbox);
  if (!program) return state.SkipWithError(program.error().what.c_str());
  for (auto _ : state)
    if (auto e = explain_run(*program, request, sandbox); !e)
      return state.SkipWithError(e.error().what.c_str());
}
// Most of it happens in the worker's process: wall time.
BENCHMARK(explain_tiled_sgemm)->Name("explain/tiled sgemm 128")->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
