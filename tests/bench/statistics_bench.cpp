// What a verdict costs once the samples are there.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "harness/timing/statistics.h"

namespace capstone {
namespace {

void bootstrap_1000_samples_10000_resamples(benchmark::State& state) {
  std::vector<std::vector<double>> ratios(5, std::vector<double>(200));
  for (std::size_t r = 0; r < ratios.size(); ++r)
    for (std::size_t b = 0; b < ratios[r].size(); ++b)
      ratios[r][b] = 0.1 + 0.01 * std::sin(static_cast<double>(37 * r + 11 * b));
  std::uint64_t seed = 0;
  for (auto _ : state) benchmark::DoNotOptimize(bootstrap_ratio(ratios, 10000, ++seed));
}
BENCHMARK(bootstrap_1000_samples_10000_resamples)->Unit(benchmark::kMillisecond);

void median_of_1000(benchmark::State& state) {
  std::vector<double> samples(1000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = std::sin(static_cast<double>(i * i));
  for (auto _ : state) benchmark::DoNotOptimize(median_interval(samples));
}
BENCHMARK(median_of_1000);

}  // namespace
}  // namespace capstone
