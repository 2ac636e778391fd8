// `capstone bench`: every reference kernel as a case of Google Benchmark. The judge times (GPU-cold,
// verified); the benchmark library is given each sample as a repetition's manual time, so that its filter,
// its statistics and its compare.py work on what was judged.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <regex>

#include "cli/context.h"
#include "harness/analysis/ladder/ladder.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/results.h"
#include "harness/workflows/rungs.h"

namespace capstone::cli {
namespace {

constexpr std::size_t kMostRepetitions = 50;

struct BenchArguments {
  std::string filter, out, recorded;
  double budget = 1;
  bool list = false;
};

/// A rung with its times.
struct Case {
  std::string name;  ///< "sgemm/05_register_tile_2d"
  Ladder ladder;     ///< without steps
  LadderStep step;
};

std::string name_of(const std::string& problem, const Rung& rung) { return problem + "/" + rung.name; }

/// The rungs whose names the filter finds, by problem.
struct Wanted {
  std::string problem;
  std::vector<Rung> rungs;
};
Result<std::vector<Wanted>> wanted_rungs(const Context& context, const std::regex& filter) {
  std::vector<Wanted> all;
  for (const std::string& problem : ladders_of(context.resources, "")) {
    CAPSTONE_TRY(auto rungs, rungs_of(context.resources, problem));
    std::erase_if(rungs,
                  [&](const Rung& rung) { return !std::regex_search(name_of(problem, rung), filter); });
    if (!rungs.empty()) all.push_back({problem, std::move(rungs)});
  }
  return all;
}

// compare.py tells cases apart by their names: what was not measured at the problem's own size says so.
std::string size_suffix(const Context& context, const Ladder& ladder) {
  const auto problem = find_problem(context.resources.problems(), ladder.problem);
  if (problem && sizes_json(problem->measure) == ladder.sizes) return {};
  std::vector<std::string> sizes;
  for (const auto& [symbol, value] : ladder.sizes.items()) sizes.push_back(symbol + "=" + value.dump());
  return "/" + join(sizes, ",");
}

void add_cases(const Context& context, std::vector<Case>& cases, Ladder ladder, const std::regex& filter) {
  std::vector<LadderStep> steps;
  std::swap(steps, ladder.steps);
  const std::string suffix = size_suffix(context, ladder);
  for (LadderStep& step : steps)
    if (const std::string name = name_of(ladder.problem, step.rung); std::regex_search(name, filter))
      cases.push_back({name + suffix, ladder, std::move(step)});
}

Result<std::vector<Case>> measured_cases(const Context& context, const BenchArguments& arguments,
                                         const std::vector<Wanted>& wanted, const std::regex& filter) {
  std::vector<Case> cases;
  for (const Wanted& one : wanted) {
    CAPSTONE_TRY(Problem problem, find_problem(context.resources.problems(), one.problem));
    const LadderRequest request{&problem, one.rungs, Backend::kCuda, arguments.budget};
    CAPSTONE_TRY(Ladder ladder, climb(request, context.resources, [&](const std::string& text) {
                   context.terminal.progress(one.problem + ": " + text);
                 }));
    context.terminal.end_progress();
    add_cases(context, cases, std::move(ladder), filter);
  }
  return cases;
}

// One sample a repetition: each is a whole measurement of its own.
void run_case(benchmark::State& state, const Case& one, std::size_t repetition) {
  if (!one.step.timed()) {
    state.SkipWithError(
        (one.step.gate_one + (one.step.trouble.empty() ? "" : ": " + one.step.trouble)).c_str());
    return;
  }
  const std::vector<double>& samples = one.step.samples_ms;
  const double ms = samples.empty() ? one.step.ms.point : samples[repetition % samples.size()];
  for (auto _ : state) state.SetIterationTime(ms / 1e3);
  state.counters["bytes"] = one.ladder.bytes;
  state.counters["flops"] = one.ladder.flops;
  state.counters["bytes_per_second"] = one.ladder.bytes / ms * 1e3;
  state.counters["flops_per_second"] = one.ladder.flops / ms * 1e3;
  state.counters["percent_of_peak"] = one.step.percent_of_peak * one.step.ms.point / ms;
  state.counters["percent_of_library"] = 100 * one.step.of_library.point * one.step.ms.point / ms;
}

void register_case(const Case& one) {
  const std::size_t repetitions = std::clamp<std::size_t>(one.step.samples_ms.size(), 1, kMostRepetitions);
  auto repetition = std::make_shared<std::size_t>(0);
  auto* registered = benchmark::RegisterBenchmark(
      one.name.c_str(),
      [one, repetition](benchmark::State& state) { run_case(state, one, (*repetition)++); });
  registered->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond)
      ->Repetitions(static_cast<int>(repetitions));
}

Result<void> run_benchmarks(const Context& context, const BenchArguments& arguments,
                            const std::vector<Case>& cases) {
  std::vector<std::string> words{"capstone bench",
                                 context.json ? "--benchmark_format=json" : "--benchmark_format=console"};
  if (!arguments.out.empty()) {
    words.insert(words.end(), {"--benchmark_out=" + (context.cwd / arguments.out).string(),
                               "--benchmark_out_format=json"});
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  for (const Case& one : cases) register_case(one);
  benchmark::AddCustomContext("capstone", context.resources.version);
  benchmark::AddCustomContext("gpu", cases.front().ladder.device);
  benchmark::AddCustomContext("driver", cases.front().ladder.driver);
  benchmark::AddCustomContext("clock", arguments.recorded.empty()
                                           ? "GPU-cold events, fresh inputs and a comparison for each sample"
                                           : "recorded medians, not measured here");
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return {};
}

Result<ExitCode> run(const Context& context, const BenchArguments& arguments) {
  std::regex filter;
  try {
    filter = std::regex(arguments.filter);
  } catch (const std::regex_error&) {
    return fail("--filter is not a regular expression: " + arguments.filter, {},
                "for example --filter 'sgemm/0[5-9]' or --filter softmax");
  }
  CAPSTONE_TRY(const auto wanted, wanted_rungs(context, filter));
  std::vector<std::string> names;
  for (const Wanted& one : wanted)
    for (const Rung& rung : one.rungs) names.push_back(name_of(one.problem, rung));
  if (names.empty())
    return fail("no reference kernel matches " + arguments.filter,
                context.resources.reference_kernels().string(), "capstone bench --list");
  if (arguments.list) {
    for (const std::string& name : names) context.terminal.out(name);
    return ExitCode::kDone;
  }
  if (!arguments.out.empty()) {
    CAPSTONE_TRY(const fs::path out,
                 workflows::output_path(context, arguments.out, workflows::Output::kBench));
    CAPSTONE_CHECK(workflows::expect_writable(out));
  }
  std::vector<Case> cases;
  if (!arguments.recorded.empty()) {
    CAPSTONE_TRY(const fs::path file, workflows::results_file(context, arguments.recorded));
    CAPSTONE_TRY(auto results, read_results(file));
    for (Ladder& ladder : results.ladders) add_cases(context, cases, std::move(ladder), filter);
    if (cases.empty())
      return fail("none of these kernels was recorded", file.string(),
                  "capstone ladder PROBLEM --record " + file.filename().string());
  } else {
    const BackendChoice choice = choose_backend(Backend::kAuto, context.resources);
    if (choice.backend != Backend::kCuda)
      return fail(fmt::format("nothing can be timed here: {}; {} {} would be", choice.because, names.size(),
                              names.size() == 1 ? "kernel" : "kernels"),
                  {},
                  "--list names them, --recorded h200 shows what another machine measured, `capstone "
                  "explain` counts without a GPU",
                  ExitCode::kEnvironment);
    CAPSTONE_TRY(cases, measured_cases(context, arguments, wanted, filter));
  }
  CAPSTONE_CHECK(run_benchmarks(context, arguments, cases));
  const bool failed =
      std::any_of(cases.begin(), cases.end(), [](const Case& one) { return one.step.gate_one != "PASS"; });
  return failed ? ExitCode::kGateOneFailed : ExitCode::kDone;
}

}  // namespace

void add_bench(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "bench", "the reference kernels as Google Benchmark cases, timed on the GPU by the judge");
  auto arguments = std::make_shared<BenchArguments>();
  command->add_option("--filter", arguments->filter,
                      "a regular expression on PROBLEM/RUNG: sgemm/0[5-9], softmax (default: all)");
  command->add_flag("--list", arguments->list, "list the cases; runs nothing");
  command->add_option("--out", arguments->out,
                      "also write the JSON that Google Benchmark's compare.py reads to this file");
  command->add_option("--recorded", arguments->recorded,
                      "medians as recorded on a device (h200) or in a file (results.json); runs nothing");
  command->add_option("--budget", arguments->budget, "seconds of timing a kernel (default 1)")
      ->check(CLI::Range(0.1, 3600.0));
  add_format(*command, context);
  command->callback([&context, &action, arguments] {
    action = [&context, arguments] { return run(context, *arguments); };
  });
}

}  // namespace capstone::cli
