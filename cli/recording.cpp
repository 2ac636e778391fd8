#include "cli/recording.h"

#include <fmt/format.h>

#include "cli/choices.h"
#include "cli/remote.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/machine.h"
#include "harness/project/versions.h"
#include "harness/runtime/python/arms.h"

namespace capstone::cli {

void add_judge_options(CLI::App& command, JudgeOptions& options) {
  add_backend(command, options.backend, "auto (default): a GPU where there is one, else emulated on the CPU");
  add_execution(command, options.execution, "on a GPU: auto (default): replayed where the launch can be recorded, else host");
  command.add_option("--budget", options.budget_seconds, "seconds of GPU timing a candidate (default 10)")->check(CLI::Range(1.0, 3600.0));
  command.add_option("--timeout", options.timeout_seconds, "seconds that one run may take (default 10)")->check(CLI::Range(0.1, 3600.0));
  command.add_option("--hidden", options.hidden_cases, "hidden sizes drawn for gate one (default 3)")->check(CLI::Range(0, 100));
  command.add_option("--python", options.python, "the python3 whose PyTorch runs candidates in Python and, on a GPU, the reference: auto (default: the first on PATH that has it), "
                                                 "a program, or none (the native baseline is the reference)")->type_name("PATH");
  command.add_option("--baselines", options.baselines, "on a GPU: arms of PyTorch to be timed against; the first is gate two's: " + join(python_arms(), ","))
      ->delimiter(',')->check(CLI::IsMember(python_arms()));
  auto* quick = command.add_flag("--quick", options.quick, "on the CPU: outputs alone, without the builds that look for bad accesses and races");
  command.add_flag("--check-races", options.check_races, "on a GPU: also run the instrumented builds on the CPU, which find bad accesses and races")
      ->excludes(quick);
}

std::vector<std::string> words_of(const JudgeOptions& options) {
  std::vector<std::string> words{"--backend", name_of(options.backend), "--execution", name_of(options.execution),
                                 "--budget", fmt::format("{}", options.budget_seconds), "--timeout", fmt::format("{}", options.timeout_seconds),
                                 "--hidden", std::to_string(options.hidden_cases), "--python", options.python};
  if (!options.baselines.empty()) words.insert(words.end(), {"--baselines", join(options.baselines, ",")});
  if (options.quick) words.push_back("--quick");
  if (options.check_races) words.push_back("--check-races");
  return words;
}

JudgeRequest request_of(const Problem& problem, const JudgeOptions& options) {
  JudgeRequest request;
  request.problem = &problem;
  request.backend = options.backend;
  request.execution = options.execution;
  request.budget_seconds = options.budget_seconds;
  request.run_timeout_seconds = options.timeout_seconds;
  request.hidden_cases = options.hidden_cases;
  request.instrumented = !options.quick;
  request.check_races = options.check_races;
  request.python = options.python;
  request.python_arms = options.baselines;
  return request;
}

Result<FileLock> lock_project(const Project& project) {
  return FileLock::acquire(project.root / ".capstone" / "working.lock", false);
}

std::optional<CandidateVersion> latest_attempt(const Project& project, const LedgerView& ledger) {
  std::error_code code;
  for (auto attempt = ledger.attempts.rbegin(); attempt != ledger.attempts.rend(); ++attempt) {
    fs::path source = project.attempt_kernel(attempt->number);
    if (fs::exists(source, code)) return CandidateVersion{"llm", source, {}, {}, fmt::format("attempt-{}", attempt->number)};
  }
  return std::nullopt;
}

Result<std::string> chain_id(const Context& context) { return machine_id(context.state); }

namespace {

// The ledger is handed in as it is, so it must not say where on this machine the project lies or who the user is.
void forget_places(Measurement& m, const fs::path& root, const std::string& home) {
  auto forget = [&](std::string& text) {
    text = replace_all(text, root.string() + "/", "");
    if (home.size() > 1) text = replace_all(text, home + "/", "~/");
  };
  forget(m.build.command);
  forget(m.build.log);
  if (m.build.first_error) {
    forget(m.build.first_error->file);
    forget(m.build.first_error->text);
  }
  for (CaseResult& c : m.cases) {
    forget(c.where);
    forget(c.problem);
    forget(c.traceback);
  }
  if (m.measured)
    for (Arm& arm : m.measured->arms) forget(arm.label);
}

}  // namespace

Result<std::vector<Measurement>> judge_and_record(const Project& project, std::vector<CandidateVersion> candidates,
                                                  const JudgeOptions& options, const Context& context,
                                                  const std::vector<std::string>& labels) {
  CAPSTONE_TRY(std::string machine, chain_id(context));
  JudgeRequest request = request_of(project.problem, options);
  std::vector<std::string> digests;
  for (const CandidateVersion& candidate : candidates) {
    CAPSTONE_TRY(std::string text, read_file(candidate.source, 16u << 20));
    CAPSTONE_TRY(std::string digest, keep_source(project.sources(), text));
    digests.push_back(digest);
    request.candidates.push_back({candidate.name, candidate.source});
  }
  CAPSTONE_TRY(auto measurements, judge(request, context.resources, [&](const std::string& text) { context.terminal.progress(text); }));
  context.terminal.end_progress();
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    Measurement& m = measurements[i];
    CAPSTONE_TRY(std::string now, sha256_file(candidates[i].source));
    if (now != digests[i])
      return fail("the source changed while it was being judged; nothing was recorded", candidates[i].source.string(),
                  "run the command again", ExitCode::kUsage);
    std::error_code code;
    m.source = fs::relative(candidates[i].source, project.root, code).string();
    m.source_sha256 = digests[i];
    forget_places(m, project.root, context.home);
    m.labels.insert(m.labels.begin(), labels.begin(), labels.end());
    m.reason = candidates[i].reason;
    m.expected_speedup = candidates[i].expected_speedup;
    m.version = candidates[i].version;
    if (m.version.empty()) {
      CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
      add_pending_versions(project, ledger);
      CAPSTONE_TRY(m.version, next_version(ledger, m.candidate, m.source_sha256));
    }
    CAPSTONE_TRY(Record record, append_record(project.ledger(), "measurement", Json(m), machine));
    (void)record;
  }
  return measurements;
}

}  // namespace capstone::cli
