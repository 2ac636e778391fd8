// An append must not get slower with the ledger: every measurement of a course goes through it.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>

#include "harness/project/ledger/ledger.h"

namespace {

namespace fs = std::filesystem;

void append(benchmark::State& state) {
  const fs::path folder = fs::temp_directory_path() / ("capstone-bench-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const fs::path ledger = folder / "ledger.jsonl";
  const capstone::Json record{{"text", std::string(50'000, 'x')}};
  for (int i = 0; i < state.range(0); ++i) (void)capstone::append_record(ledger, "note", record, {});
  for (auto _ : state)
    if (auto appended = capstone::append_record(ledger, "note", record, {}); !appended)
      state.SkipWithError(appended.error().what.c_str());
  fs::remove_all(folder);
}
BENCHMARK(append)
    ->Name("ledger/append to records of 50 KB")
    ->Arg(1)
    ->Arg(1000)
    ->Iterations(50)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
