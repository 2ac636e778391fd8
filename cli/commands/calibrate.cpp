// How well this machine can tell kernels apart: kernels judged against themselves, and against a slower copy.
#include "harness/workflows/calibrate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

std::string summary(const workflows::CalibrateOutcome& o, const Terminal& t) {
  Table table({"judged", "about", "median", "pairs", "as expected", "half-width", "within 1 %"});
  for (const auto& g : o.groups)
    table.row({g.same ? "against itself" : "against 3 % more work", g.about, format_time_ms(g.median_ms),
               std::to_string(g.pairs), fmt::format("{} {}", g.expected, g.same ? "TIE" : "SLOWER"),
               fmt::format("{:.2f} %", 100 * g.median_half_width),
               fmt::format("{} of {}", g.narrow, g.pairs)});
  std::string text = table.text(t);
  if (o.against_itself > 0)
    text += fmt::format(
        "\nagainst itself, FASTER or SLOWER: {} of {} = {:.2f} % "
        "(exact 95 % interval {:.2f} % to {:.2f} %); UNRESOLVED: {}",
        o.wrong, o.against_itself, 100.0 * o.wrong / o.against_itself, 100 * o.wrong_share.low,
        100 * o.wrong_share.high, o.unresolved);
  return text;
}

Result<ExitCode> calibrate(const Context& context, const workflows::CalibrateRequest& request) {
  CAPSTONE_TRY(const auto outcome, workflows::calibrate(request, context, context.progress()));
  context.terminal.out(summary(outcome, context.terminal));
  const std::string file = outcome.file.string();
  context.terminal.out(
      outcome.left ? fmt::format("{} pairs are left; rerun to continue. Record: {}", outcome.left, file)
                   : "record: " + file);
  return ExitCode::kDone;
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "calibrate", "measure how well this GPU can tell kernels apart: judge kernels against themselves");
  auto r = std::make_shared<workflows::CalibrateRequest>();
  command
      ->add_option("--pairs", r->pairs,
                   "pairs of a kernel and itself, over three running times (default 200)")
      ->check(CLI::Range(0, 100000));
  command->add_option("--slower", r->slower, "pairs of a kernel and the same with 3 % more work (default 40)")
      ->check(CLI::Range(0, 100000));
  command->add_option("--together", r->together, "pairs judged in one run (default 8)")
      ->check(CLI::Range(1, 32));
  command->add_option("--minutes", r->minutes, "stop after this time; rerun to continue (default 8)")
      ->check(CLI::Range(0.0, 10000.0));
  command->add_option("--budget", r->budget, "seconds of timing for each run (default 10)")
      ->check(CLI::Range(1.0, 3600.0));
  command->add_option("--out", r->out,
                      "the file to which pairs are appended, one a line (default calibration.jsonl)");
  command->callback([&context, &action, r] { action = [&context, r] { return calibrate(context, *r); }; });
}

}  // namespace capstone::cli
