// Making, poisoning, comparing and diagnosing tensors: bytes a second on one core.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "harness/correctness/compare.h"
#include "harness/correctness/diagnose.h"
#include "harness/correctness/dtype_convert.h"
#include "harness/correctness/inputs.h"

namespace capstone {
namespace {

constexpr std::int64_t kElements = 1 << 22;

Problem problem_of(DType type, Init init) {
  Problem problem;
  problem.id = "bench";
  problem.symbols = {"n"};
  Parameter x;
  x.name = "x";
  x.dtype = type;
  x.shape = {Expression{"n"}};
  x.init = std::move(init);
  problem.signature = {x};
  return problem;
}

void fill(benchmark::State& state, DType type, Init init, Battery battery) {
  const Problem problem = problem_of(type, std::move(init));
  std::vector<std::byte> bytes(bytes_of(type, kElements));
  std::uint64_t seed = 0;
  for (auto _ : state) {
    if (!fill_tensor(problem, 0, {{"n", kElements}}, ++seed, battery, bytes))
      state.SkipWithError("fill_tensor failed");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}
BENCHMARK_CAPTURE(fill, normal_f32, DType::kF32, InitNormal{}, Battery::kPlain);
BENCHMARK_CAPTURE(fill, normal_f32_heavy_tails, DType::kF32, InitNormal{}, Battery::kHeavyTails);
BENCHMARK_CAPTURE(fill, normal_bf16, DType::kBF16, InitNormal{}, Battery::kPlain);
BENCHMARK_CAPTURE(fill, normal_f16, DType::kF16, InitNormal{}, Battery::kPlain);
BENCHMARK_CAPTURE(fill, normal_e4m3, DType::kE4M3, InitNormal{}, Battery::kPlain);
BENCHMARK_CAPTURE(fill, uniform_f32, DType::kF32, InitUniform{}, Battery::kPlain);
BENCHMARK_CAPTURE(fill, integer_i32, DType::kI32, (InitInteger{0, 1000}), Battery::kPlain);

void poison_f32(benchmark::State& state) {
  std::vector<std::byte> bytes(kElements * 4);
  std::uint64_t seed = 0;
  for (auto _ : state) poison(bytes, DType::kF32, ++seed);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}
BENCHMARK(poison_f32);

void guard_check(benchmark::State& state) {
  std::vector<std::byte> band(1 << 20);
  poison_bytes(band, 1);
  for (auto _ : state) benchmark::DoNotOptimize(first_overwritten(band, 1));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * band.size()));
}
BENCHMARK(guard_check);

void fingerprints(benchmark::State& state) {
  std::vector<std::byte> bytes(kElements * 4);
  poison_bytes(bytes, 1);
  for (auto _ : state) benchmark::DoNotOptimize(fingerprint(bytes));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}
BENCHMARK(fingerprints);

/// A right output, and one whose last rows are wrong.
struct Outputs {
  std::vector<double> expected, scale;
  std::vector<std::byte> right, wrong;
  std::vector<std::int64_t> shape = {kElements / 1024, 1024};

  explicit Outputs(DType type) : expected(kElements), scale(kElements), right(bytes_of(type, kElements)) {
    for (std::int64_t i = 0; i < kElements; ++i) {
      expected[static_cast<std::size_t>(i)] = std::sin(0.001 * static_cast<double>(i)) + 2;
      scale[static_cast<std::size_t>(i)] = expected[static_cast<std::size_t>(i)];
    }
    store_all(type, expected, right);
    wrong = right;
    for (std::int64_t i = kElements / 2; i < kElements; ++i)
      store_rounded(type, wrong.data(), i, 3.0 + 0.5 * static_cast<double>(i % 7));
  }
};

// Bytes of all three streams: the output, its expected values and their scale.
void compare_right(benchmark::State& state, DType type) {
  const Outputs outputs(type);
  for (auto _ : state)
    if (!compare(type, outputs.right, outputs.expected, outputs.scale, {1e-2, 1e-2}).passed)
      state.SkipWithError("must pass");
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * kElements *
                          static_cast<std::int64_t>(16 + unit_bytes(type)));
}
BENCHMARK_CAPTURE(compare_right, f32, DType::kF32);
BENCHMARK_CAPTURE(compare_right, bf16, DType::kBF16);

void compare_wrong(benchmark::State& state) {
  const Outputs outputs(DType::kF32);
  for (auto _ : state)
    if (compare(DType::kF32, outputs.wrong, outputs.expected, outputs.scale, {1e-4, 1e-5}).passed)
      state.SkipWithError("must fail");
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * kElements * 20);
}
BENCHMARK(compare_wrong);

void compare_floats(benchmark::State& state) {
  const std::vector<float> expected(kElements, 1.5f);
  for (auto _ : state)
    if (!compare_f32(expected, expected, {1e-4, 1e-5}).passed) state.SkipWithError("must pass");
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * kElements * 8);
}
BENCHMARK(compare_floats);

void diagnose_half_wrong(benchmark::State& state) {
  const Outputs outputs(DType::kF32);
  for (auto _ : state)
    benchmark::DoNotOptimize(diagnose("y", DType::kF32, outputs.shape, outputs.wrong, outputs.expected,
                                      outputs.scale, {1e-4, 1e-5}, 1));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kElements);
}
BENCHMARK(diagnose_half_wrong)->Unit(benchmark::kMillisecond);

void diagnose_unwritten(benchmark::State& state) {
  const Outputs outputs(DType::kF32);
  std::vector<std::byte> untouched(outputs.right.size());
  poison(untouched, DType::kF32, 1);
  for (auto _ : state)
    benchmark::DoNotOptimize(diagnose("y", DType::kF32, outputs.shape, untouched, outputs.expected,
                                      outputs.scale, {1e-4, 1e-5}, 1));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kElements);
}
BENCHMARK(diagnose_unwritten)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace capstone
