#include "cli/show_replay.h"

#include <fmt/format.h>

#include "cli/show.h"

namespace capstone::cli {

ExitCode show_replay(const Context& context, const workflows::ReplayOutcome& outcome,
                     const std::string& again) {
  const Terminal& t = context.terminal;
  t.say(fmt::format("note: case {} of {} again, with the source as it is now; nothing is recorded",
                    outcome.recorded.id, outcome.version));
  const ExitCode code = workflows::exit_code_of(outcome.measurements);
  if (context.json) {
    t.out(Json(outcome.measurements).dump(2));
    return code;
  }
  const Measurement& m = outcome.measurements.front();
  if (std::string why = explain_failure(m, t, true); !why.empty())
    t.out(why);
  else
    t.out(fmt::format("{}: case {} ({}): {}", m.candidate, outcome.recorded.id, to_string(outcome.sizes),
                      label_of(m.gate_one)));
  for (const std::string& label : m.labels) t.out(m.candidate + ": " + label);
  t.out(m.gate_one == GateOne::kPassed ? fmt::format("next: all cases: capstone measure {}", m.candidate)
                                       : fmt::format("next: change one thing, then again: {}", again));
  return code;
}

}  // namespace capstone::cli
