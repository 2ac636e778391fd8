#include "cli/show_try.h"

#include <fmt/format.h>

#include "cli/show.h"

namespace capstone::cli {

void show_try(const Context& context, const workflows::TryOutcome& outcome) {
  const Terminal& t = context.terminal;
  const Measurement& m = outcome.measurement;
  const bool passed = m.gate_one == GateOne::kPassed;
  t.out(fmt::format("{}: {}{}", t.paint(Tone::kBold, outcome.shown),
                    t.paint(passed ? Tone::kGood : Tone::kBad, label_of(m.gate_one)), cases_text(m)));
  t.out(t.paint(Tone::kDim,
                fmt::format("build {:.1f} s · check {:.1f} s · backend {} · nothing recorded",
                            outcome.build_seconds, outcome.check_seconds, recorded_name(m.backend))));
  if (outcome.is_stub)
    t.out(t.paint(Tone::kWarn, "this is still the stub that `capstone init` wrote: it computes nothing yet"));
  for (const std::string& label : m.labels) t.out(t.paint(Tone::kWarn, label));
  if (const std::string why = explain_failure(m, t, context.verbose); !why.empty()) t.out(why);
}

}  // namespace capstone::cli
