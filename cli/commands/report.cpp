#include "templates/report.h"

#include <fmt/format.h>

#include "cli/output_path.h"
#include "cli/recording.h"
#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/timing/device.h"

namespace capstone::cli {
namespace {

// The roofs of the device on which the ledger's newest GPU measurement was made.
std::optional<Roof> roof_of(const LedgerView& ledger, const Problem& problem) {
  const Measurement* newest = nullptr;
  for (const auto* list : {&ledger.human, &ledger.llm})
    for (const Measurement& m : *list)
      if (m.backend == Backend::kCuda) newest = &m;
  if (!newest) return std::nullopt;
  auto peaks = find_device(newest->environment.value("device", ""), newest->environment.value("sm_count", 0));
  if (!peaks) return std::nullopt;
  ComputePeak peak = peak_of(*peaks, problem.precision);
  return Roof{peaks->bandwidth, peak.flops, peaks->name + ", " + peak.units};
}

Result<ExitCode> report(const Context& context, const std::string& out) {
  CAPSTONE_TRY(Project project, project_here(context));
  fs::path folder = project.root / "report";
  if (!out.empty()) { CAPSTONE_TRY(folder, report_folder(context, out)); }
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  ReportInput input;
  input.project = &project;
  input.ledger = &ledger;
  input.resources = &context.resources;
  input.roof = roof_of(ledger, project.problem);
  input.generated = utc_now();
  CAPSTONE_TRY(ReportFiles files, render_report(input));
  CAPSTONE_CHECK(write_report(files, folder));
  for (const ReportFile& file : files.files) context.terminal.out((folder / file.name).string());
  int missing = 0, contradictions = 0;
  for (const Finding& finding : files.findings) {
    missing += finding.severity == Severity::kMissing;
    contradictions += finding.severity == Severity::kContradiction;
  }
  if (missing || contradictions)
    context.terminal.say(fmt::format("{} missing, {} contradictory: capstone check lists them", missing, contradictions));
  else
    context.terminal.say("next: capstone check, then: capstone submit");
  return ExitCode::kDone;
}

}  // namespace

void add_report(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("report", "render the worklog and the score sheet into report/");
  auto out = std::make_shared<std::string>();
  command->add_option("--out", *out, "another folder");
  command->callback([&context, &action, out] { action = [&context, out] { return report(context, *out); }; });
}

}  // namespace capstone::cli
