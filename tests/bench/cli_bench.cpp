// How long a user waits for commands that only answer: the whole process. Each is to take less than 50 ms.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

namespace {

void answer(benchmark::State& state, const char* arguments) {
  const std::string command = std::string("'" CAPSTONE_BINARY "' ") + arguments + " > /dev/null";
  for (auto _ : state)
    if (std::system(command.c_str()) != 0) state.SkipWithError("the command failed");
}
BENCHMARK_CAPTURE(answer, help, "--help")->Name("cli/--help")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(answer, problems, "problems")
    ->Name("cli/problems")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(answer, roofline, "demo roofline")
    ->Name("cli/demo roofline")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(answer, sheet, "map L3")->Name("cli/map L3")->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
