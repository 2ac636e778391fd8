#include "cli/show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "harness/base/text.h"
#include "harness/correctness/diagnose.h"
#include "harness/correctness/inputs.h"
#include "harness/runtime/python/runner.h"

namespace capstone::cli {
namespace {

std::string with_interval(const Interval& ms) {
  return fmt::format("{} [{}, {}]", format_time_ms(ms.point), format_time_ms(ms.low),
                     format_time_ms(ms.high));
}

Tone tone_of(GateTwo verdict) {
  switch (verdict) {
    case GateTwo::kFaster:
      return Tone::kGood;
    case GateTwo::kSlower:
      return Tone::kWarn;
    default:
      return Tone::kPlain;
  }
}

bool judged(const Measurement& m) {
  return m.gate_one == GateOne::kPassed && m.gate_two != GateTwo::kNotJudged && m.measured;
}

// Messages of a compiler that are shown without --verbose: the first ones explain the others.
constexpr std::size_t kMessages = 3, kMessageLines = 24;

// A message of g++, nvcc or ptxas: "kernel.cu:30:96: error: …", "kernel.cu(5): error: …".
bool begins_error(const std::string& line) {
  return line.find(": error: ") != std::string::npos || line.find(": fatal error: ") != std::string::npos ||
         line.find(": error #") != std::string::npos;
}

// The first errors with their source lines and carets.
std::string error_excerpt(const std::string& log, const Terminal& terminal) {
  std::string text;
  std::size_t messages = 0, shown = 0;
  for (const std::string& line : split(log, '\n')) {
    if (begins_error(line)) ++messages;
    if (messages == 0 || messages > kMessages || trim(line).empty() || ++shown > kMessageLines) continue;
    const bool heading = begins_error(line);
    text += "\n    " + (heading ? terminal.paint(Tone::kBold, line) : line);
  }
  if (messages > kMessages)
    text += fmt::format("\n  and {} more: --verbose shows the whole output", messages - kMessages);
  return text;
}

}  // namespace

std::string cases_text(const Measurement& m) {
  if (!m.judged()) return {};
  std::set<std::string> all, bad;
  for (const CaseResult& c : m.cases) {
    all.insert(c.id);
    if (!c.passed) bad.insert(c.id);
  }
  if (all.empty()) return {};
  std::string text = fmt::format(" ({}/{} cases", all.size() - bad.size(), all.size());
  if (!bad.empty() && bad.size() < all.size()) {
    std::vector<std::string> names(
        bad.begin(),
        std::next(bad.begin(), static_cast<std::ptrdiff_t>(std::min<std::size_t>(bad.size(), 3))));
    text += fmt::format("; not {}{}", join(names, ", "), bad.size() > names.size() ? " …" : "");
  }
  return text + ")";
}

namespace {

// "H200, replayed execution", "four schedules": how the kernel was run.
std::string way_of(const Measurement& m) {
  if (m.backend == Backend::kEmulated && m.execution == Execution::kInProcess)
    return m.environment.contains("triton") ? "Triton interpreted on a CPU" : "PyTorch on the CPU";
  if (m.backend == Backend::kEmulated) return "four schedules";
  return fmt::format("{}, {}", m.environment.value("device", ""), recorded_name(m.execution));
}

std::string index_text(const std::vector<std::int64_t>& index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

// The first wrong elements one by one.
std::string mismatch_table(const Diagnosis& d, const Terminal& terminal) {
  Table table({d.output, "got", "expected", "allowed error"});
  for (const Mismatch& m : d.mismatches)
    table.row({index_text(m.index), m.unwritten ? "never written" : number_text(m.got),
               number_text(m.expected), number_text(m.allowed, 3)});
  return table.text(terminal);
}

std::string time_of(const Measurement& m) {
  if (!m.measured || m.measured->arms.empty()) return "-";
  const Arm& arm = m.measured->arms.back();
  if (m.backend == Backend::kEmulated) return format_time_ms(arm.median_ms.point) + " emulated";
  return with_interval(arm.median_ms);
}

// What the table has no column for: the same with a dirty cache, and on a warm chip.
std::vector<std::string> other_conditions(const Measurement& m) {
  std::vector<std::string> lines;
  if (!m.measured || m.measured->arms.empty()) return lines;
  const std::vector<Arm>& arms = m.measured->arms;
  if (m.measured->dirty_speedup && arms.back().dirty_ms) {
    const Interval& s = *m.measured->dirty_speedup;
    lines.push_back(fmt::format("with a dirty cache {}, {:.3f}x [{:.3f}, {:.3f}]",
                                format_time_ms(arms.back().dirty_ms->point), s.point, s.low, s.high));
  }
  for (const Arm* arm : {&arms.front(), &arms.back()})
    if (arm->sustained_ms)
      lines.push_back(fmt::format("{} back to back on a warm chip: {} at {:.0f} W and {:.0f} MHz", arm->name,
                                  format_time_ms(arm->sustained_ms->point), arm->sustained_watts,
                                  arm->sustained_sm_mhz));
  return lines;
}

// Of a kernel in Python, whose compiler runs in its first call. Of nvcc's time the progress tells.
std::string compilation(const Measurement& m) {
  if (!m.source.ends_with(".py") || m.build.compile_seconds <= 0) return {};
  return fmt::format(
      "its longest first call, which compiles, took {:.2f} s; the limit is {} s, and no clock of a gate runs",
      m.build.compile_seconds, kCompileLimit.count());
}

std::string printed_text(const CaseResult& c, const Terminal& terminal) {
  std::string text = terminal.paint(Tone::kDim, fmt::format("  printed in case {}:", c.id));
  for (const std::string& line : split(c.printed, '\n')) text += "\n    " + line;
  return text;
}

// "PASS", "FAIL: CRASH"; a judge that could not judge is no failure of the kernel.
std::string outcome_of(GateOne verdict) {
  const bool failed =
      verdict != GateOne::kPassed && verdict != GateOne::kNotJudgeable && verdict != GateOne::kMachineFault;
  return (failed ? "FAIL: " : "") + std::string(label_of(verdict));
}

std::string shown_name(const Measurement& m) {
  return m.version.empty() ? m.candidate : m.candidate + " " + m.version;
}

}  // namespace

std::string verdict_table(const std::vector<Measurement>& measurements, const Terminal& terminal) {
  const bool cuda =
      std::any_of(measurements.begin(), measurements.end(), [](const Measurement& m) { return judged(m); });
  std::vector<std::string> header{"candidate", "gate one", "median"};
  if (cuda) header.push_back("speedup");
  header.push_back("gate two");
  Table table(header);
  std::string notes;  // what would make the table wider than a terminal
  if (cuda) {
    auto first = std::find_if(measurements.begin(), measurements.end(), judged);
    // The first is the reference; the second is the same again, and the last the candidate.
    const std::vector<Arm>& arms = first->measured->arms;
    const auto add_arm = [&](const Arm& arm, const std::string& speedup) {
      table.row({arm.name, "-", with_interval(arm.median_ms), speedup, ""});
      if (!arm.label.empty() && arm.label != arm.name) notes += fmt::format("\n{}: {}", arm.name, arm.label);
    };
    add_arm(arms.front(), "1x (the reference)");
    for (std::size_t i = 2; i + 1 < arms.size(); ++i)
      add_arm(arms[i], format_speedup(arms.front().median_ms.point / arms[i].median_ms.point));
  }
  for (const Measurement& m : measurements) {
    bool passed = m.gate_one == GateOne::kPassed;
    std::vector<std::string> row{
        terminal.paint(Tone::kBold, shown_name(m)),
        terminal.paint(passed ? Tone::kGood : Tone::kBad, outcome_of(m.gate_one)) + cases_text(m),
        time_of(m)};
    if (cuda) {
      if (judged(m) && m.measured->speedup) {
        const Interval& s = *m.measured->speedup;
        row.push_back(fmt::format("{:.3f}x [{:.3f}, {:.3f}]", s.point, s.low, s.high));
        if (m.measured->percent_of_peak > 0)
          notes += fmt::format("\n{}: {:.1f} % of {}; bound by {}", shown_name(m),
                               m.measured->percent_of_peak, m.measured->peak, m.measured->bound_by);
      } else {
        row.push_back("-");
      }
    }
    row.push_back(terminal.paint(tone_of(m.gate_two), label_of(m.gate_two)));
    table.row(std::move(row));
  }
  std::string text = table.text(terminal) + notes;
  for (const Measurement& m : measurements)
    for (const std::string& label : m.labels)
      text += "\n" + terminal.paint(Tone::kWarn, shown_name(m) + ": " + label);
  for (const Measurement& m : measurements)
    if (const std::string line = compilation(m); !line.empty())
      text += "\n" + terminal.paint(Tone::kDim, shown_name(m) + ": " + line);
  for (const Measurement& m : measurements)
    for (const std::string& line : other_conditions(m))
      text += "\n" + terminal.paint(Tone::kDim, shown_name(m) + ": " + line);
  const Measurement& any = measurements.front();
  if (any.backend == Backend::kEmulated)
    text +=
        "\n" +
        terminal.paint(
            Tone::kDim,
            fmt::format("gate two: not judged here ({}). Emulated times are CPU times: they are not graded.",
                        any.gate_two_reason));
  else
    for (const Measurement& m : measurements)
      if (m.gate_one == GateOne::kPassed && !m.gate_two_reason.empty())
        text += "\n" + terminal.paint(Tone::kDim, shown_name(m) + ": " + std::string(label_of(m.gate_two)) +
                                                      ": " + m.gate_two_reason);
  if (judged(any) && any.environment.contains("native_because"))
    text += "\n" + terminal.paint(Tone::kDim, fmt::format("the reference is the native baseline: {}",
                                                          any.environment.value("native_because", "")));
  for (const Measurement& m : measurements)
    if (!m.execution_reason.empty())
      text += "\n" + terminal.paint(Tone::kDim, fmt::format("{}: {}: {}", shown_name(m),
                                                            recorded_name(m.execution), m.execution_reason));
  text += "\n" +
          terminal.paint(
              Tone::kDim,
              fmt::format(
                  "backend {} · {} · isolation: {}{}", recorded_name(any.backend), way_of(any), any.isolation,
                  judged(any) ? fmt::format(" · verdict floor {:.1f} %", any.measured->floor * 100) : ""));
  return text;
}

std::string explain_failure(const Measurement& m, const Terminal& terminal, bool verbose) {
  if (m.gate_one == GateOne::kPassed)
    return m.cases.empty() || m.cases.front().printed.empty() ? "" : printed_text(m.cases.front(), terminal);
  std::string text;
  auto line = [&](const std::string& s) { text += (text.empty() ? "" : "\n") + s; };
  if (m.gate_one == GateOne::kBuildFailed) {
    const auto& error = m.build.first_error;
    line(terminal.paint(Tone::kBad, fmt::format("{} does not {}: {}", m.candidate,
                                                m.source.ends_with(".py") ? "load" : "compile",
                                                error ? error->text : "no error line")));
    if (error)
      line(fmt::format("  --> {}{}", error->file.empty() ? m.source : error->file,
                       error->line ? fmt::format(":{}{}", error->line,
                                                 error->column ? fmt::format(":{}", error->column) : "")
                                   : ""));
    if (verbose)
      line("  the whole output:\n" + m.build.log);
    else if (const std::string excerpt = error_excerpt(m.build.log, terminal); !excerpt.empty())
      text += excerpt;
    else
      line("  hint: --verbose shows the whole output");
    return text;
  }
  const CaseResult* bad = m.first_failure();
  if (!bad) return text;
  line(
      terminal.paint(Tone::kBad, fmt::format("{}: {}: {}", m.candidate, label_of(m.gate_one), bad->problem)));
  std::string where = bad->where;
  if (!bad->sizes.empty()) {
    std::string sizes;
    for (auto it = bad->sizes.begin(); it != bad->sizes.end(); ++it)
      sizes += (sizes.empty() ? "" : ", ") + it.key() + "=" + it->dump();
    where += (where.empty() ? "" : ", ") + fmt::format("case {} ({})", bad->id, sizes);
    if (auto battery = battery_named(bad->battery))
      where += fmt::format(", inputs {}", description_of(*battery));
  }
  if (!bad->schedule.empty()) where += ", schedule " + bad->schedule;
  if (!bad->build.empty()) where += ", " + bad->build + " build";
  if (!where.empty()) line("  --> " + where);
  if (bad->diagnosis) {
    const Diagnosis& d = *bad->diagnosis;
    line(fmt::format(
        "  {} of {} elements of {} are wrong; first at {}: expected {}, {}; worst at {}: expected {}, {}",
        d.wrong, d.total, d.output, index_text(d.first), number_text(d.first_expected),
        got_text(d.first_got, d.first_unwritten), index_text(d.worst), number_text(d.worst_expected),
        got_text(d.worst_got, d.worst_unwritten)));
    if (!d.pattern.empty() && bad->problem.find(d.pattern) == std::string::npos)
      line("  in the outputs: " + d.pattern);
    if (verbose && !d.mismatches.empty()) line(mismatch_table(d, terminal));
  }
  if (!bad->printed.empty()) line(printed_text(*bad, terminal));
  if (!bad->hint.empty()) line("  hint: " + bad->hint);
  if (!bad->traceback.empty()) line(verbose ? bad->traceback : "  hint: --verbose shows the whole traceback");
  if (bad->diagnosis && !bad->diagnosis->map.empty()) {  // last: it is long
    line(terminal.paint(Tone::kDim, fmt::format("  {}: {}", bad->diagnosis->map_of, kMapKey)));
    for (const std::string& row : bad->diagnosis->map) line("    " + row);
  }
  return text;
}

std::string next_step(const std::vector<Measurement>& measurements, const LedgerView& ledger) {
  for (const Measurement& m : measurements) {
    if (m.candidate != "human") continue;
    if (m.gate_one == GateOne::kBuildFailed)
      return fmt::format("fix the {}first error, then: capstone measure human",
                         m.source.ends_with(".py") ? "" : "compiler's ");
    const CaseResult* why = m.first_failure();
    if (m.gate_one == GateOne::kNotJudgeable && why && !why->hint.empty() &&
        why->hint.find("--bundle") == std::string::npos)
      return "do what the hint says, then: capstone measure human";
    if (m.gate_one == GateOne::kNotJudgeable)
      return "judge it on a GPU: capstone measure --bundle project.bundle, there: capstone measure "
             "--from-bundle project.bundle";
    if (m.gate_one != GateOne::kPassed) {
      const CaseResult* bad = m.first_failure();
      const bool again =
          bad && !bad->seed.empty() && !m.version.empty();  // what has no version has no record
      return fmt::format(
          "fix the first failing case above{}, then: capstone measure human -m \"what you changed\"",
          again ? fmt::format(" (that case alone: capstone measure --replay {})", bad->id) : "");
    }
  }
  bool predicted = !ledger.predictions.empty();
  if (!predicted)
    return "write down what you expect: capstone predict memory|compute|latency --because \"…\"";
  if (ledger.attempts.empty()) return "ask the machine: capstone llm prompt";
  for (const Measurement& m : measurements)
    if (m.candidate == "llm" && m.gate_one != GateOne::kPassed)
      return "give the model its feedback: capstone llm prompt --feedback";
  if (ledger.human.size() < 2)
    return "change one thing, predict its gain, measure again: capstone measure human -m \"why\" --expect "
           "1.3x";
  return "write the worklog, then: capstone report";
}

void print_verdict(const std::vector<Measurement>& measurements, const std::string& next,
                   const Terminal& terminal, bool verbose) {
  terminal.out(terminal.fold(verdict_table(measurements, terminal), 2));
  for (const Measurement& m : measurements)
    if (std::string why = explain_failure(m, terminal, verbose); !why.empty()) terminal.out(why);
  if (!next.empty()) terminal.out("next: " + next);
}

std::string verdict_line(const Measurement& m) {
  std::string text(label_of(m.gate_one));
  if (m.gate_two == GateTwo::kNotJudged) return text;
  text += fmt::format(", {}", label_of(m.gate_two));
  if (m.measured && m.measured->speedup) {
    const Interval& s = *m.measured->speedup;
    text +=
        fmt::format(" {} [{}, {}]", format_speedup(s.point), format_speedup(s.low), format_speedup(s.high));
  }
  return text;
}

}  // namespace capstone::cli
