#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/bundling.h"
#include "cli/output_path.h"
#include "cli/remote.h"
#include "cli/replaying.h"
#include "cli/context.h"
#include "cli/show.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

struct MeasureArguments {
  std::string who = "human", reason, bundle, from_bundle, out, replay, on, program = "capstone", gres = "gpu:1";
  std::string expected;
  bool trust_problem = false;
  JudgeOptions judge;
};

// "1.4", "1.4x", "1.4×"
Result<std::optional<double>> parse_factor(const std::string& text) {
  if (text.empty()) return std::optional<double>();
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  std::string rest = end;
  if (!(value > 0) || (rest != "" && rest != "x" && rest != "X" && rest != "×"))
    return fail("--expect takes a factor, not \"" + text + "\"", {}, "for example --expect 1.4x");
  return std::optional<double>(value);
}

Result<std::vector<CandidateVersion>> candidates_of(const Context& context, const Project& project, const LedgerView& ledger,
                                             const MeasureArguments& arguments) {
  std::vector<CandidateVersion> candidates;
  CAPSTONE_TRY(auto expected, parse_factor(arguments.expected));
  if (arguments.who != "llm") candidates.push_back({"human", project.human_kernel(), arguments.reason, expected, {}});
  if (arguments.who != "human") {
    if (auto attempt = latest_attempt(project, ledger)) {
      candidates.push_back(*attempt);
    } else if (arguments.who == "llm") {
      return fail("there is no model attempt with code yet", (project.root / "llm").string(),
                  "capstone llm prompt, give the prompt to a model, then: capstone llm add REPLY --model NAME");
    } else {
      context.terminal.say("note: no model attempt yet, only the human kernel is measured");
    }
  }
  return candidates;
}

Result<ExitCode> finish(const Context& context, const Project& project, const std::vector<Measurement>& measurements) {
  const Terminal& t = context.terminal;
  if (context.json) {
    t.out(Json(measurements).dump(2));
    return exit_code_of(measurements);
  }
  t.out(verdict_table(measurements, t));
  for (const Measurement& m : measurements)
    if (std::string why = explain_failure(m, t, context.verbose); !why.empty()) t.out(why);
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  t.out("next: " + next_step(measurements, ledger));
  return exit_code_of(measurements);
}

Result<ExitCode> measure(const Context& context, const MeasureArguments& arguments) {
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  for (const std::string& damage : ledger.damage) context.terminal.say("warning: the ledger is damaged: " + damage);
  if (ledger.predictions.empty())
    context.terminal.say("note: no prediction yet. First guess, then measure: capstone predict memory|compute|latency --because \"…\"");
  CAPSTONE_TRY(auto candidates, candidates_of(context, project, ledger, arguments));
  CAPSTONE_TRY(auto measurements, judge_and_record(project, std::move(candidates), arguments.judge, context));
  return finish(context, project, measurements);
}

// One case of the last measurement again.
Result<ExitCode> replay(const Context& context, const MeasureArguments& arguments) {
  if (arguments.who == "all") return fail("--replay takes one candidate", {}, "capstone measure human --replay CASE");
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  const std::vector<Measurement>& all = arguments.who == "llm" ? ledger.llm : ledger.human;
  if (all.empty())
    return fail("nothing of " + arguments.who + " was measured yet", project.root.string(), "capstone measure " + arguments.who);
  CAPSTONE_TRY(auto candidates, candidates_of(context, project, ledger, arguments));
  return replay_case(context, project, all.back(), candidates.front().source, arguments.replay, arguments.judge,
                     fmt::format("capstone measure {} --replay {}", arguments.who, arguments.replay));
}

Result<ExitCode> pack(const Context& context, const MeasureArguments& arguments) {
  CAPSTONE_TRY(const fs::path out, output_path(context, arguments.bundle, Output::kBundle));
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(auto candidates, candidates_of(context, project, ledger, arguments));
  CAPSTONE_TRY(BundleReceipt receipt, pack_candidates(context, project, candidates, out));
  context.terminal.out(fmt::format("{} ({} bytes)", receipt.file.string(), receipt.bytes));
  context.terminal.out(fmt::format("next: on the machine with the GPU: capstone measure --from-bundle {0}; bring {0}.result.jsonl home; "
                                   "then: capstone ledger import {0}.result.jsonl", receipt.file.filename().string()));
  return ExitCode::kDone;
}

Result<ExitCode> judge_here(const Context& context, const MeasureArguments& arguments) {
  CAPSTONE_TRY(const fs::path out, output_path(context, arguments.out.empty() ? arguments.from_bundle + ".result.jsonl" : arguments.out, Output::kRecords));
  CAPSTONE_TRY(JudgedBundle judged, judge_bundle(context, context.cwd / arguments.from_bundle, out, arguments.judge, arguments.trust_problem));
  context.terminal.out(verdict_table(judged.measurements, context.terminal));
  for (const Measurement& m : judged.measurements)
    if (std::string why = explain_failure(m, context.terminal, context.verbose); !why.empty()) context.terminal.out(why);
  context.terminal.out(fmt::format("result: {}\nnext: in the project at home: capstone ledger import {}", judged.result.string(), judged.result.filename().string()));
  return exit_code_of(judged.measurements);
}

// The task of this very project, options and destination: one that was begun before is found again by its id.
Result<RemoteTask> make_task(const Context& context, const Project& project, const MeasureArguments& arguments) {
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  add_pending_versions(project, ledger);
  CAPSTONE_TRY(auto candidates, candidates_of(context, project, ledger, arguments));
  JudgeOptions options = arguments.judge;
  if (options.backend == Backend::kAuto) options.backend = Backend::kCuda;   // a machine without a GPU was not meant
  RemoteTask task;
  task.options = words_of(options);
  const fs::path all = project.root / ".capstone" / "remote", packed = all / "packed", named = all / "named";
  CAPSTONE_CHECK(make_folders(all));
  CAPSTONE_CHECK(name_versions(named, ledger, candidates));
  CAPSTONE_TRY(BundleReceipt receipt, pack_candidates(context, project, candidates, packed));
  task.id = sha256_hex(receipt.sha256 + arguments.on + join(task.options, " ")).substr(0, 16);
  task.folder = all / task.id;
  CAPSTONE_CHECK(make_folders(task.folder));
  std::error_code code;
  fs::rename(packed, task.folder / "bundle", code);
  if (!code) fs::rename(named, task.folder / "versions.json", code);
  if (code) return fail("cannot keep the bundle: " + code.message(), task.folder.string(), "is the disk full?", ExitCode::kEnvironment);
  return task;
}

// What Slurm's jobs of earlier versions left, which nobody waited for.
Result<int> bring_earlier(const Project& project, const fs::path& present) {
  std::error_code code;
  int added = 0;
  for (const auto& task : fs::directory_iterator(present.parent_path(), code)) {
    if (task.path() == present || !fs::exists(task.path() / "result.jsonl", code)) continue;
    CAPSTONE_TRY(int records, import_records(project.ledger(), task.path() / "result.jsonl", {project.config.problem_id, project.config.problem_digest}));
    added += records;
    fs::remove_all(task.path(), code);
  }
  return added;
}

Result<ExitCode> measure_elsewhere(const Context& context, const MeasureArguments& arguments) {
  CAPSTONE_TRY(Destination destination, parse_destination(arguments.on));
  destination.program = arguments.program;
  destination.gres = arguments.gres == "none" ? "" : arguments.gres;
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(RemoteTask task, make_task(context, project, arguments));
  const bool by_ssh = destination.kind == Destination::Kind::kSsh;
  const fs::path home = task.folder / "result.jsonl";
  std::error_code code;
  if (!fs::exists(home, code)) {   // else an earlier run brought it this far
    CAPSTONE_TRY(std::string result, by_ssh ? judge_by_ssh(context, destination, task) : judge_by_slurm(context, destination, task));
    CAPSTONE_CHECK(write_file_atomic(home, result));
  }
  CAPSTONE_TRY(LedgerView judged, read_ledger(home));
  {
    CAPSTONE_TRY(FileLock lock, FileLock::acquire(project.root / ".capstone" / "working.lock", true));
    CAPSTONE_TRY(int earlier, bring_earlier(project, task.folder));
    if (earlier) context.terminal.say(fmt::format("{} of earlier versions, which nobody had waited for, added to the ledger", earlier));
    CAPSTONE_TRY(int added, import_records(project.ledger(), home, {project.config.problem_id, project.config.problem_digest}));
    context.terminal.say(fmt::format("{} {} from {} added to the ledger", added, added == 1 ? "record" : "records", arguments.on));
  }
  if (by_ssh) forget_over_ssh(context, destination, task);
  fs::remove_all(task.folder, code);
  std::vector<Measurement> measurements = std::move(judged.human);
  measurements.insert(measurements.end(), judged.llm.begin(), judged.llm.end());
  return finish(context, project, measurements);
}

}  // namespace

void add_measure(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("measure", "judge the kernel: correct? faster than the reference?");
  auto arguments = std::make_shared<MeasureArguments>();
  command->add_option("who", arguments->who, "human (default), llm, or all")->check(CLI::IsMember({"human", "llm", "all"}));
  command->add_option("-m,--message", arguments->reason, "why this version");
  command->add_option("--expect", arguments->expected, "the speedup that you expect of this version: 1.4x");
  auto* bundle = command->add_option("--bundle", arguments->bundle, "pack what another machine needs to judge this project into FILE");
  auto* from = command->add_option("--from-bundle", arguments->from_bundle, "judge a packed project here");
  bundle->excludes(from);
  command->add_option("--out", arguments->out, "with --from-bundle: where the result goes (default FILE.result.jsonl)")->needs(from);
  command->add_flag("--trust-problem", arguments->trust_problem, "with --from-bundle: judge by the bundle's own definition where it is not the catalogue's: "
                                                                 "this runs the bundle's oracle on this machine, outside the sandbox")->needs(from);
  auto* on = command->add_option("--on", arguments->on, "judge it where the GPU is and bring the result home: ssh:HOST, or slurm:PARTITION from a login node; "
                                                        "killed or cut off, the same command takes it up")->type_name("PLACE")->excludes(bundle)->excludes(from);
  command->add_option("--program", arguments->program, "with --on ssh: capstone over there (default: capstone, on its PATH)")->needs(on);
  command->add_option("--gres", arguments->gres, "with --on slurm: what the job needs (default gpu:1; none: nothing)")->needs(on);
  command->add_option("--replay", arguments->replay, "run one case of the last measurement again (check-0, hidden-1, x10 …); nothing is recorded")
      ->type_name("CASE")->excludes(bundle)->excludes(from)->excludes(on);
  add_judge_options(*command, arguments->judge);
  add_format(*command, context);
  command->callback([&context, &action, arguments] {
    action = [&context, arguments] {
      if (!arguments->replay.empty()) return replay(context, *arguments);
      if (!arguments->bundle.empty()) return pack(context, *arguments);
      if (!arguments->from_bundle.empty()) return judge_here(context, *arguments);
      if (!arguments->on.empty()) return measure_elsewhere(context, *arguments);
      return measure(context, *arguments);
    };
  });
}

}  // namespace capstone::cli
