#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/recording.h"
#include "cli/replaying.h"
#include "cli/session.h"
#include "cli/show.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/versions.h"
#include "harness/submit/bundle.h"

namespace capstone::cli {
namespace {

struct MeasureArguments {
  std::string who = "human", reason, bundle, from_bundle, out, replay;
  std::string expected;
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

Result<std::vector<Candidate>> candidates_of(const Session& session, const Project& project, const LedgerView& ledger,
                                             const MeasureArguments& arguments) {
  std::vector<Candidate> candidates;
  CAPSTONE_TRY(auto expected, parse_factor(arguments.expected));
  if (arguments.who != "llm") candidates.push_back({"human", project.human_kernel(), arguments.reason, expected, {}});
  if (arguments.who != "human") {
    if (auto attempt = latest_attempt(project, ledger)) {
      candidates.push_back(*attempt);
    } else if (arguments.who == "llm") {
      return fail("there is no model attempt with code yet", (project.root / "llm").string(),
                  "capstone llm prompt, give the prompt to a model, then: capstone llm add REPLY --model NAME");
    } else {
      session.terminal.say("note: no model attempt yet, only the human kernel is measured");
    }
  }
  return candidates;
}

Result<ExitCode> finish(const Session& session, const Project& project, const std::vector<Measurement>& measurements) {
  const Terminal& t = session.terminal;
  if (session.json) {
    t.out(Json(measurements).dump(2));
    return exit_code_of(measurements);
  }
  t.out(verdict_table(measurements, t));
  for (const Measurement& m : measurements)
    if (std::string why = explain_failure(m, t, session.verbose); !why.empty()) t.out(why);
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  t.out("next: " + next_step(measurements, ledger));
  return exit_code_of(measurements);
}

Result<ExitCode> measure(const Session& session, const MeasureArguments& arguments) {
  CAPSTONE_TRY(Project project, project_here(session));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  for (const std::string& damage : ledger.damage) session.terminal.say("warning: the ledger is damaged: " + damage);
  if (ledger.predictions.empty())
    session.terminal.say("note: no prediction yet. First guess, then measure: capstone predict memory|compute|latency --because \"…\"");
  CAPSTONE_TRY(auto candidates, candidates_of(session, project, ledger, arguments));
  CAPSTONE_TRY(auto measurements, judge_and_record(project, std::move(candidates), arguments.judge, session));
  return finish(session, project, measurements);
}

// One case of the last measurement again.
Result<ExitCode> replay(const Session& session, const MeasureArguments& arguments) {
  if (arguments.who == "all") return fail("--replay takes one contestant", {}, "capstone measure human --replay CASE");
  CAPSTONE_TRY(Project project, project_here(session));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  const std::vector<Measurement>& all = arguments.who == "llm" ? ledger.llm : ledger.human;
  if (all.empty())
    return fail("nothing of " + arguments.who + " was measured yet", project.root.string(), "capstone measure " + arguments.who);
  CAPSTONE_TRY(auto candidates, candidates_of(session, project, ledger, arguments));
  return replay_case(session, project, all.back(), candidates.front().source, arguments.replay, arguments.judge,
                     fmt::format("capstone measure {} --replay {}", arguments.who, arguments.replay));
}

// Packs what another machine needs. The version names travel along, so that the record fits when it comes home.
Result<ExitCode> pack(const Session& session, const MeasureArguments& arguments) {
  CAPSTONE_TRY(Project project, project_here(session));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(auto candidates, candidates_of(session, project, ledger, arguments));
  BundleRequest request;
  request.tool = session.resources.version;
  request.contestants.clear();
  request.options["candidates"] = Json::array();
  for (const Candidate& candidate : candidates) {
    CAPSTONE_TRY(std::string text, read_file(candidate.source, 16u << 20));
    CAPSTONE_TRY(std::string digest, keep_source(project.sources(), text));
    std::string version = candidate.version;
    if (version.empty()) {
      CAPSTONE_TRY(version, next_version(ledger, candidate.contestant, digest));
    }
    std::error_code code;
    request.contestants.push_back(candidate.contestant == "llm" ? version : candidate.contestant);
    Json entry{{"contestant", candidate.contestant}, {"source", fs::relative(candidate.source, project.root, code).string()},
               {"version", version}, {"reason", candidate.reason}};
    if (candidate.expected_speedup) entry["expected_speedup"] = *candidate.expected_speedup;
    request.options["candidates"].push_back(std::move(entry));
  }
  CAPSTONE_TRY(Receipt receipt, pack_bundle(project, request, session.cwd / arguments.bundle));
  session.terminal.out(fmt::format("{} ({} bytes)", receipt.file.string(), receipt.bytes));
  session.terminal.out(fmt::format("next: on the machine with the GPU: capstone measure --from-bundle {0}; bring {0}.result.jsonl home; "
                                   "then: capstone ledger import {0}.result.jsonl", receipt.file.filename().string()));
  return ExitCode::kDone;
}

Result<ExitCode> judge_bundle(const Session& session, const MeasureArguments& arguments) {
  fs::path file = session.cwd / arguments.from_bundle;
  fs::path place = session.resources.cache / "bundles" / fmt::format("{}-{}", file.stem().string(), ::getpid());
  std::error_code code;
  fs::remove_all(place, code);
  CAPSTONE_CHECK(make_folders(place.parent_path()));
  CAPSTONE_TRY(Bundle bundle, unpack_bundle(file, place));
  CAPSTONE_TRY(Project project, open_project(bundle.root));
  std::vector<Candidate> candidates;
  for (const Json& entry : bundle.options.value("candidates", Json::array())) {
    fs::path source = project.root / fs::path(entry.value("source", "")).lexically_normal();
    if (!fs::exists(source, code)) return fail("the bundle lacks " + entry.value("source", ""), file.string(), "pack it again");
    std::optional<double> expected;
    if (entry.contains("expected_speedup")) expected = entry["expected_speedup"].get<double>();
    candidates.push_back({entry.value("contestant", "human"), source, entry.value("reason", ""), expected, entry.value("version", "")});
  }
  if (candidates.empty()) return fail("the bundle names no contestant", file.string(), "pack it again with this version of capstone");
  CAPSTONE_TRY(auto measurements, judge_and_record(project, std::move(candidates), arguments.judge, session));
  fs::path out = arguments.out.empty() ? fs::path(file.string() + ".result.jsonl") : session.cwd / arguments.out;
  CAPSTONE_TRY(std::string ledger, read_file(project.ledger()));
  CAPSTONE_CHECK(write_file_atomic(out, ledger));
  fs::remove_all(place, code);
  session.terminal.out(verdict_table(measurements, session.terminal));
  for (const Measurement& m : measurements)
    if (std::string why = explain_failure(m, session.terminal, session.verbose); !why.empty()) session.terminal.out(why);
  session.terminal.out(fmt::format("result: {}\nnext: in the project at home: capstone ledger import {}", out.string(), out.filename().string()));
  return exit_code_of(measurements);
}

}  // namespace

void add_measure(CLI::App& app, Session& session, Action& action) {
  auto* command = app.add_subcommand("measure", "judge the kernel: correct? faster than the reference?");
  auto arguments = std::make_shared<MeasureArguments>();
  command->add_option("who", arguments->who, "human (default), llm, or all")->check(CLI::IsMember({"human", "llm", "all"}));
  command->add_option("-m,--message", arguments->reason, "why this version");
  command->add_option("--expect", arguments->expected, "the speedup that you expect of this version: 1.4x");
  auto* bundle = command->add_option("--bundle", arguments->bundle, "pack what another machine needs to judge this project into FILE");
  auto* from = command->add_option("--from-bundle", arguments->from_bundle, "judge a packed project here");
  bundle->excludes(from);
  command->add_option("--out", arguments->out, "with --from-bundle: where the result goes (default FILE.result.jsonl)")->needs(from);
  command->add_option("--replay", arguments->replay, "run one case of the last measurement again (check-0, hidden-1, x10 …); nothing is recorded")
      ->type_name("CASE")->excludes(bundle)->excludes(from);
  add_judge_options(*command, arguments->judge);
  add_format(*command, session);
  command->callback([&session, &action, arguments] {
    action = [&session, arguments] {
      if (!arguments->replay.empty()) return replay(session, *arguments);
      if (!arguments->bundle.empty()) return pack(session, *arguments);
      if (!arguments->from_bundle.empty()) return judge_bundle(session, *arguments);
      return measure(session, *arguments);
    };
  });
}

}  // namespace capstone::cli
