#include <fmt/format.h>

#include "cli/workshop_demos.h"
#include "harness/analysis/explain/timeline.h"
#include "harness/base/text.h"
#include "harness/workflows/rungs.h"

namespace capstone::cli {
namespace {

constexpr const char* kHopperProduct = "gemm_bf16";
constexpr const char* kTakingTurns = "04_wgmma";
constexpr const char* kAtOnce = "05_producer_consumer";
const Sizes kOneTile{{"m", 128}, {"k", 512}, {"n", 128}};  // of C: one block, eight steps along k
constexpr int kCells = 4;                                  // of a unit of time

Result<Timeline> timeline_of(const Context& context, const char* rung) {
  CAPSTONE_TRY(const Problem problem, find_problem(context.resources.problems(), kHopperProduct));
  CAPSTONE_TRY(const std::filesystem::path source,
               workflows::find_rung(context, kHopperProduct, rung, "capstone explain {0} --problem {1}"));
  auto line = timeline({&problem, source, kOneTile, {}}, {}, context.resources, [&](const std::string& text) {
    context.terminal.progress(fmt::format("{}: {}", rung, text));
  });
  context.terminal.end_progress();
  return line;
}

// "11112222....": the tile's last digit, and a point where the engine waits.
std::string engine_row(const std::vector<EngineUse>& uses, double end) {
  std::string row(static_cast<std::size_t>(end * kCells), '.');
  for (const EngineUse& use : uses)
    for (auto at = static_cast<std::size_t>(use.begin * kCells);
         at < static_cast<std::size_t>(use.end * kCells); ++at)
      row[at] = static_cast<char>('0' + use.number % 10);
  return row;
}

void draw_timeline(const Context& context, const char* rung, const Timeline& line) {
  const double busy = double(line.products.size()) / line.end();
  tell(context, fmt::format("\n{}: {:g} units; the tensor cores work in {:.0f} % of them; {} of {} products "
                            "run while a tile is copied",
                            context.terminal.paint(Tone::kBold, rung), line.end(), 100 * busy,
                            line.overlapping(), line.products.size()));
  context.terminal.out("  copies    " + engine_row(line.copies, line.end()));
  context.terminal.out("  products  " + engine_row(line.products, line.end()));
}

}  // namespace

Result<void> timelines_demo(const Context& context, const DemoInputs&) {
  tell(context,
       "one tile of C, 128 × 128, in eight steps along k. Who waits for whom is recorded by the emulator; "
       "that a copy takes as long as the products of its tile, one unit, is assumed.");
  for (const char* rung : {kTakingTurns, kAtOnce}) {
    CAPSTONE_TRY(const Timeline line, timeline_of(context, rung));
    draw_timeline(context, rung, line);
  }
  CAPSTONE_TRY(const Problem problem, find_problem(context.resources.problems(), kHopperProduct));
  CAPSTONE_TRY(const auto ladder, recorded_ladder(context.resources, kHopperProduct, problem.measure));
  if (!ladder) return {};
  std::vector<std::string> times;
  for (const LadderStep& step : ladder->steps)
    if ((step.rung.name == kTakingTurns || step.rung.name == kAtOnce) && step.timed())
      times.push_back(fmt::format("{} in {}", step.rung.name, format_time_ms(step.ms.point)));
  tell(context, fmt::format("\n{}, {}: {}. The first has three blocks on a multiprocessor: while one waits, "
                            "another one multiplies. The second has one block and needs no other.",
                            as_recorded(*ladder), to_string(problem.measure), join(times, ", ")));
  return {};
}

}  // namespace capstone::cli
