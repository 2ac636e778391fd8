// Times a whole report: a worklog, five files and their plots. Users notice a delay of more than one second.
#include <benchmark/benchmark.h>

#include "fixture.h"
#include "templates/machine_page.h"
#include "templates/report.h"
#include "tests/templates/big_run.h"

namespace {

void render_whole_report(benchmark::State& state) {
  using namespace capstone;
  testing::Scratch scratch;
  testing::Capstone capstone = testing::make_capstone(scratch.path());
  testing::add_versions(capstone, static_cast<int>(state.range(0)));
  Resources resources = testing::test_resources();
  ReportInput input{&capstone.project, &capstone.ledger, &resources, std::nullopt, "2026-03-09T18:00:00Z"};
  for (auto _ : state) {
    Result<ReportFiles> report = render_report(input);
    if (!report) state.SkipWithError(report.error().what.c_str());
    benchmark::DoNotOptimize(report);
  }
}
// gnuplot is a separate process, so wall time is measured, not CPU time.
BENCHMARK(render_whole_report)
    ->Name("report/whole, versions")
    ->Arg(4)
    ->Arg(50)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void render_machine_page(benchmark::State& state) {
  using namespace capstone;
  testing::Scratch scratch;
  const BigRun run(scratch.path(), static_cast<int>(state.range(0)));
  const MachinePage page{&run.info(), &run.tree(), &run.archive(), "a problem", "0.0"};
  for (auto _ : state) {
    Result<std::string> html = machine_page(page, CAPSTONE_SOURCE_DIR "/templates");
    if (!html) state.SkipWithError(html.error().what.c_str());
    benchmark::DoNotOptimize(html);
  }
}
BENCHMARK(render_machine_page)
    ->Name("machine/page, nodes")
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void parse_long_worklog(benchmark::State& state) {
  using namespace capstone;
  std::string text = testing::fixture_worklog(testing::Where::kGpu);
  while (text.size() < (std::size_t{1} << 20))
    text += "\n\nA paragraph of prose about `float4` loads and **bank conflicts**.";
  for (auto _ : state) benchmark::DoNotOptimize(parse_worklog(text));
}
BENCHMARK(parse_long_worklog)->Name("report/parse 1 MiB worklog")->Unit(benchmark::kMillisecond);

}  // namespace
