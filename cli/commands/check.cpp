#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/context.h"
#include "harness/workflows/project_status.h"
#include "harness/workflows/report.h"
#include "rubric/worklog.h"

namespace capstone::cli {
namespace {

Result<ExitCode> check(const Context& context) {
  CAPSTONE_TRY(const auto findings, workflows::review_here(context));
  CAPSTONE_TRY(const Project project, workflows::project_here(context));
  const Terminal& t = context.terminal;
  const auto grave = std::count_if(findings.begin(), findings.end(),
                                   [](const Finding& f) { return f.severity != Severity::kAdvice; });
  const ExitCode code = grave ? ExitCode::kGateOneFailed
                              : ExitCode::kDone;  // `check && submit` stops where something is missing
  if (context.json) {
    Json all = Json::array();
    for (const Finding& f : findings)
      all.push_back({{"section", f.section},
                     {"severity", name_of(f.severity)},
                     {"what", f.what},
                     {"where", f.where},
                     {"hint", f.hint}});
    t.out(all.dump(2));
    return code;
  }
  int section = -1;
  for (const Finding& f : findings) {
    if (f.section != section) {
      section = f.section;
      t.out(t.paint(Tone::kBold,
                    section ? fmt::format("{}. {}", section,
                                          worklog_sections()[static_cast<std::size_t>(section - 1)].title)
                            : std::string("The project as a whole")));
    }
    Tone tone = f.severity == Severity::kAdvice    ? Tone::kDim
                : f.severity == Severity::kMissing ? Tone::kWarn
                                                   : Tone::kBad;
    t.out(fmt::format("  {}: {}{}", t.paint(tone, name_of(f.severity)), f.what,
                      f.where.empty() ? "" : "  (" + f.where + ")"));
    if (!f.hint.empty()) t.out("      " + t.paint(Tone::kDim, f.hint));
  }
  if (!grave)
    t.out(fmt::format("{} is missing. next: {}capstone submit",
                      findings.empty() ? "nothing" : "nothing that is graded",
                      workflows::report_is_due(project) ? "capstone report, then " : ""));
  else
    t.out(fmt::format("{} to fix before handing in", grave));
  return code;
}

}  // namespace

void add_check(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("check",
                                     "list what is missing or contradictory before handing in; exit code 1 "
                                     "if anything is, 0 if only advice is left");
  add_format(*command, context);
  command->callback([&context, &action] { action = [&context] { return check(context); }; });
}

}  // namespace capstone::cli
