#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/choices.h"
#include "cli/context.h"
#include "harness/base/text.h"
#include "harness/workflows/selftest_run.h"

namespace capstone::cli {
namespace {

Tone tone_of(RowState state) {
  return state == RowState::kOk ? Tone::kGood : state == RowState::kNotRun ? Tone::kDim : Tone::kBad;
}

void print_table(const std::vector<RowResult>& rows, const Terminal& t) {
  Table table({"row", "case", "expected", "got", "", "why"});
  for (const RowResult& row : rows) {
    std::string why = row.why.substr(0, row.why.find('\n'));
    if (display_width(why) > 90) why = to_utf8(why.substr(0, 87)) + "…";
    table.row({row.row ? std::to_string(row.row) : "honest", row.name, row.expected, row.got,
               t.paint(tone_of(row.state), label_of(row.state)), why});
  }
  t.out(table.text(t));
}

std::string rate_text(const Rate& rate) {
  auto share = [](int part, int all) {
    return all ? fmt::format("{} of {} ({:.3g} %)", part, all, 100.0 * part / all) : "none ran";
  };
  std::string text =
      fmt::format("tricks caught: {}; honest kernels passed: {}; not run here: {}",
                  share(rate.caught, rate.tricks), share(rate.passed, rate.honest), rate.not_run);
  if (rate.replayed + rate.in_process)
    text += "; honest kernels that can be replayed: " + share(rate.replayed, rate.replayed + rate.in_process);
  return text;
}

Result<ExitCode> selftest(const Context& context, const workflows::SelftestRun& run) {
  CAPSTONE_TRY(const auto outcome, workflows::run_selftest(run, context, context.progress()));
  if (context.json) {
    context.terminal.out(outcome.record.dump(2));
  } else {
    print_table(outcome.rows, context.terminal);
    if (!outcome.because.empty()) context.terminal.out("judged on the emulated backend: " + outcome.because);
    context.terminal.out(rate_text(outcome.rate));
  }
  return outcome.rate.good() ? ExitCode::kDone : ExitCode::kGateOneFailed;
}

}  // namespace

void add_selftest(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "selftest", "verify the judge yourself: run it on every known trick and many honest kernels");
  auto r = std::make_shared<workflows::SelftestRun>();
  add_backend(*command, r->backend, "auto (default): a GPU if there is one, else emulated on the CPU");
  add_execution(*command, r->execution, "on a GPU (default auto)");
  command->add_option("--budget", r->budget_seconds, "seconds of GPU timing for each kernel (default 3)")
      ->check(CLI::Range(1.0, 3600.0));
  command->add_option("--only", r->only, "only these cases; names or patterns: 'honest_*'");
  command->add_option("--record", r->record,
                      "write the record to this file as JSON, also if interrupted; rows of an "
                      "earlier run of the same machine and version stay");
  command->add_option("-j,--jobs", r->jobs, "cases at a time (default 1)")->check(CLI::Range(1, 64));
  add_format(*command, context);
  command->callback([r, &context, &action] { action = [r, &context] { return selftest(context, *r); }; });
}

}  // namespace capstone::cli
