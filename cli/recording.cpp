#include "cli/recording.h"

#include <fmt/format.h>

#include "cli/remote.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/machine.h"
#include "harness/project/versions.h"

namespace capstone::cli {
namespace {

// What the help shows for the value.
std::string type_name_of(const JudgeOption& option) {
  switch (option.kind) {
    case JudgeOption::Kind::kChoice: return join(option.choices, "|");
    case JudgeOption::Kind::kChoices: return "TEXT:{" + join(option.choices, ",") + "} ...";
    case JudgeOption::Kind::kInteger: return fmt::format("INT in [{:g} - {:g}]", option.low, option.high);
    case JudgeOption::Kind::kNumber: return fmt::format("FLOAT in [{:g} - {:g}]", option.low, option.high);
    case JudgeOption::Kind::kText: return std::string(option.value_name);
    case JudgeOption::Kind::kFlag: break;
  }
  return {};
}

}  // namespace

void add_judge_options(CLI::App& command, JudgeOptions& options) {
  for (const JudgeOption& each : judge_options()) {
    CLI::Option* option = nullptr;
    if (each.kind == JudgeOption::Kind::kFlag) {
      option = command.add_flag_function(each.flag(), [&each, &options](std::int64_t) { (void)each.set(options, "true"); }, each.help);
    } else {
      option = command.add_option_function<std::vector<std::string>>(
          each.flag(),
          [&each, &options](const std::vector<std::string>& words) {
            if (auto ok = each.set(options, join(words, ",")); !ok) throw CLI::ValidationError(ok.error().what);
          },
          each.help);
      option->expected(1)->type_name(type_name_of(each));
      if (each.kind == JudgeOption::Kind::kChoices) option->expected(1, -1)->delimiter(',');
    }
    if (!each.excludes.empty()) option->excludes(command.get_option("--" + std::string(each.excludes)));
  }
}

JudgeRequest request_of(const Problem& problem, const JudgeOptions& options) {
  JudgeRequest request;
  request.problem = &problem;
  request.options = options;
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
