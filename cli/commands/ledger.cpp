#include "harness/project/ledger/ledger.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "cli/context.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

std::string line_of(const Record& record, const Terminal& t) {
  std::string text = fmt::format("{:>4}  {}  {:<11}", record.seq, record.time, record.kind);
  const Json& b = record.body;
  if (record.kind == "measurement") {
    Measurement m = b.get<Measurement>();
    text +=
        fmt::format("  {} {}  {}  {}", m.candidate, m.version, label_of(m.gate_one), label_of(m.gate_two));
    if (m.measured && m.measured->speedup && m.gate_two != GateTwo::kNotJudged)
      text += "  " + format_speedup(m.measured->speedup->point);
    if (!m.reason.empty()) text += t.paint(Tone::kDim, "  " + m.reason);
  } else if (record.kind == "explanation" || record.kind == "profile") {
    text += fmt::format("  {} {}", text_at(b, "candidate"), text_at(b, "version"));
  } else if (record.kind == "prediction") {
    text += "  " + b.get<Prediction>().bottleneck;
  } else if (record.kind == "checkin") {
    text += "  " + text_at(b, "stuck");
  } else if (record.kind == "hint") {
    const auto hint = b.get<TakenHint>();
    text += fmt::format("  {} of {}", hint.level, hint.of);
  } else if (record.kind == "search") {
    text += fmt::format("  {}: {}", text_at(b, "run"), text_at(b, "ended"));
  } else if (record.kind == "attempt") {
    const auto attempt = b.get<Attempt>();
    text += fmt::format("  {} by {}", attempt.number, attempt.model);
  }
  return one_line(text);
}

Result<ExitCode> show(const Context& context) {
  CAPSTONE_TRY(Project project, workflows::project_here(context));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  if (context.json) {
    context.terminal.out(Json(ledger.records).dump(2));
    return ExitCode::kDone;
  }
  for (const Record& record : ledger.records) context.terminal.out(line_of(record, context.terminal));
  for (const std::string& damage : ledger.damage) context.terminal.say("damaged: " + damage);
  return ExitCode::kDone;
}

Result<ExitCode> verify(const Context& context) {
  CAPSTONE_TRY(Project project, workflows::project_here(context));
  CAPSTONE_TRY(auto problems, verify_ledger(project.ledger(), project.sources()));
  if (project.problem_changed) problems.push_back("problem/: the pinned copy is not what `init` wrote");
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  std::map<std::string, std::string> names;
  if (const auto key = workflows::judge_key(context)) names.emplace(key->public_key(), "this machine");
  if (problems.empty()) context.terminal.out("the chain is intact and every source is what was measured");
  if (const auto vouchers = ledger.vouchers(); !vouchers.empty())
    context.terminal.out("measurements: " + text_of(vouchers, names));
  if (problems.empty()) {
    context.terminal.out(
        "(the chain shows accidents, a signature which machine measured; only judging again proves a "
        "result)");
    return ExitCode::kDone;
  }
  for (const std::string& problem : problems) context.terminal.out(problem);
  return fail(fmt::format("the ledger has {} {}", problems.size(), problems.size() == 1 ? "fault" : "faults"),
              project.ledger().string(),
              "the ledger is never rewritten: hand it in as it is and explain in the worklog what happened");
}

Result<ExitCode> import(const Context& context, const std::string& file) {
  CAPSTONE_TRY(Project project, workflows::project_here(context));
  CAPSTONE_TRY(FileLock lock, workflows::lock_project(project));
  CAPSTONE_TRY(int added, import_records(project.ledger(), context.cwd / file,
                                         {project.config.problem_id, project.config.problem_digest}));
  context.terminal.out(added ? fmt::format("{} {} added", added, added == 1 ? "record" : "records")
                             : std::string("nothing new: these records are here already"));
  return ExitCode::kDone;
}

}  // namespace

void add_ledger(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("ledger", "show everything that was recorded");
  auto verified = std::make_shared<bool>(false);
  command->add_flag("--verify", *verified, "check the hash chain, every source and every signature");
  add_format(*command, context);
  command->callback([&context, &action, verified] {
    if (!action) action = [&context, verified] { return *verified ? verify(context) : show(context); };
  });
  auto* bring = command->add_subcommand("import", "merge records made on another machine");
  auto file = std::make_shared<std::string>();
  bring->add_option("result", *file, "the .result.jsonl of `measure --from-bundle`, or another ledger")
      ->required();
  bring->callback(
      [&context, &action, file] { action = [&context, file] { return import(context, *file); }; });
}

}  // namespace capstone::cli
