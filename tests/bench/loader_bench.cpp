// How fast the catalogue answers: `capstone problems` and every command that names a problem wait for it.
#include <benchmark/benchmark.h>

#include "harness/model/problem.h"

namespace {

void load_all_problems(benchmark::State& state) {
  for (auto _ : state) {
    auto catalogue = capstone::load_catalogue(CAPSTONE_SOURCES "/problems");
    if (!catalogue) state.SkipWithError(catalogue.error().what.c_str());
    benchmark::DoNotOptimize(catalogue);
  }
}
BENCHMARK(load_all_problems)->Name("loader/catalogue")->Unit(benchmark::kMillisecond);

void load_one_problem(benchmark::State& state) {
  for (auto _ : state) {
    auto problem = capstone::load_problem(CAPSTONE_SOURCES "/problems/bias_gelu_layernorm");
    if (!problem) state.SkipWithError(problem.error().what.c_str());
    benchmark::DoNotOptimize(problem);
  }
}
BENCHMARK(load_one_problem)->Name("loader/one problem")->Unit(benchmark::kMicrosecond);

}  // namespace
