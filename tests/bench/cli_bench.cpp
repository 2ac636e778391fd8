// How long a user waits for commands that only answer: the whole process.
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

}  // namespace
