// How fast the catalogue answers: `capstone problems` and every command that names a problem wait for it.
#include <benchmark/benchmark.h>

#include "harness/base/files.h"
#include "harness/model/problem.h"
#include "harness/model/yaml.h"

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

// The strict reader alone, without what the loader makes of the tree.
void parse_one_definition(benchmark::State& state) {
  const std::string file = CAPSTONE_SOURCES "/problems/bias_gelu_layernorm/problem.yaml";
  const auto text = capstone::read_file(file);
  if (!text) return state.SkipWithError(text.error().what.c_str());
  for (auto _ : state) {
    auto tree = capstone::parse_yaml(*text, file);
    if (!tree) state.SkipWithError(tree.error().what.c_str());
    benchmark::DoNotOptimize(tree);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text->size()));
}
BENCHMARK(parse_one_definition)->Name("loader/one problem.yaml")->Unit(benchmark::kMicrosecond);

}  // namespace
