#include "harness/workflows/judge_and_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/analysis/explain/explain.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/included.h"
#include "harness/project/versions.h"
#include "harness/workflows/origin.h"
#include "harness/workflows/pending_versions.h"

namespace capstone::workflows {

JudgeRequest request_of(const Problem& problem, const JudgeOptions& options) {
  JudgeRequest request;
  request.problem = &problem;
  request.options = options;
  return request;
}

std::optional<CandidateVersion> latest_attempt(const Project& project, const LedgerView& ledger) {
  std::error_code code;
  for (auto attempt = ledger.attempts.rbegin(); attempt != ledger.attempts.rend(); ++attempt) {
    fs::path source = project.attempt_kernel(attempt->number);
    if (fs::exists(source, code))
      return CandidateVersion{"llm", source, {}, {}, fmt::format("attempt-{}", attempt->number)};
  }
  return std::nullopt;
}

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

namespace {

// Without a GPU, counts show progress. The instrumented build that found no fault gives them: it is in the
// cache, so that this takes one more run at the problem's `emulate` size.
Result<void> record_counts(const Project& project, const Measurement& m, const fs::path& source,
                           const Workspace& workspace, const std::string& machine,
                           const ProgressSink& progress) {
  ExplainRequest request{&project.problem, source, project.problem.emulate, {}};
  CAPSTONE_TRY(request.device, find_device_like("h100"));
  request.at_measured = true;
  Result<Explanation> counted = explain(request, workspace.resources, narration_to(progress));
  if (!counted) {
    if (counted.error().code == ExitCode::kInterrupted) return fail(counted.error());
    report_note(progress, fmt::format("note: {} has no counts: {}", m.version, counted.error().what));
    return {};
  }
  counted->candidate = m.candidate;
  counted->version = m.version;
  counted->source = m.source;
  counted->source_sha256 = m.source_sha256;
  CAPSTONE_CHECK(append_record(project.ledger(), "explanation", Json(*counted), machine));
  return {};
}

// Why a source gets no version and no record; empty where it does. A source that has a version keeps it.
std::string no_version_because(const LedgerView& ledger, const Measurement& m) {
  const auto same = [&](const Measurement& each) { return each.source_sha256 == m.source_sha256; };
  const auto& own = ledger.of(m.candidate);
  if (std::any_of(own.begin(), own.end(), same)) return {};
  if (m.candidate == "together")
    for (const auto* list : {&ledger.human, &ledger.llm})
      if (const auto as = std::find_if(list->begin(), list->end(), same); as != list->end())
        return fmt::format(
            "note: together/kernel.cu is still {}: it is no version of its own, and nothing was recorded",
            as->version);
  if (ledger.is_of_stub(m))
    return "note: this is still the stub that `capstone init` wrote: it is no version, and nothing was "
           "recorded";
  if (m.gate_one == GateOne::kBuildFailed)
    return "note: what does not build is no version; nothing was recorded";
  return {};
}

}  // namespace

Result<std::vector<Measurement>> judge_and_record(const Project& project,
                                                  std::vector<CandidateVersion> candidates,
                                                  const JudgeOptions& options, const Workspace& workspace,
                                                  const ProgressSink& progress,
                                                  const std::vector<std::string>& labels) {
  CAPSTONE_TRY(std::string machine, chain_id(workspace));
  CAPSTONE_TRY(const JudgeKey key, judge_key(workspace));
  JudgeRequest request = request_of(project.problem, options);
  std::vector<std::string> texts, digests;
  std::vector<std::vector<IncludedFile>> included;
  for (const CandidateVersion& candidate : candidates) {
    CAPSTONE_TRY(std::string text, read_file(candidate.source, 16u << 20));
    digests.push_back(sha256_hex(text));
    texts.push_back(std::move(text));
    CAPSTONE_TRY(auto files, included_files(project.root, candidate.source));
    included.push_back(std::move(files));
    request.candidates.push_back({candidate.name, candidate.source});
  }
  CAPSTONE_TRY(auto measurements, judge(request, workspace.resources, narration_to(progress)));
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    Measurement& m = measurements[i];
    CAPSTONE_TRY(std::string now, sha256_file(candidates[i].source));
    CAPSTONE_TRY(const auto included_now, included_files(project.root, candidates[i].source));
    if (now != digests[i] || included_now != included[i])
      return fail("the source changed while it was being judged; nothing was recorded",
                  candidates[i].source.string(), "run the command again", ExitCode::kUsage);
    std::error_code code;
    m.source = fs::relative(candidates[i].source, project.root, code).string();
    m.source_sha256 = digests[i];
    m.included = included[i];
    forget_places(m, project.root, workspace.home);
    m.labels.insert(m.labels.begin(), labels.begin(), labels.end());
    if (m.candidate == "human" && m.gate_one != GateOne::kBuildFailed)
      if (std::string similar = label_of_origin(workspace, project, candidates[i].source); !similar.empty())
        m.labels.push_back(std::move(similar));
    m.reason = candidates[i].reason;
    m.expected_speedup = candidates[i].expected_speedup;
    m.version = candidates[i].version;
    if (m.version.empty()) {
      CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
      add_pending_versions(project, ledger);
      if (const std::string why = no_version_because(ledger, m); !why.empty()) {
        report_note(progress, why);
        continue;
      }
      CAPSTONE_TRY(m.version, next_version(ledger, m.candidate, m.source_sha256));
    }
    CAPSTONE_CHECK(keep_source(project.sources(), texts[i]));
    // Without isolation a kernel can read the key and write records with it.
    const JudgeKey* signer = m.isolation.empty() || m.isolation.starts_with("none") ? nullptr : &key;
    CAPSTONE_CHECK(append_record(project.ledger(), "measurement", Json(m), machine, signer));
    if (m.backend == Backend::kEmulated && m.gate_one == GateOne::kPassed && !options.quick &&
        candidates[i].source.extension() == ".cu")
      CAPSTONE_CHECK(record_counts(project, m, candidates[i].source, workspace, machine, progress));
  }
  return measurements;
}

ExitCode exit_code_of(const std::vector<Measurement>& measurements) {
  ExitCode code = ExitCode::kDone;
  for (const Measurement& m : measurements) {
    if (m.gate_one == GateOne::kNotJudgeable || m.gate_one == GateOne::kMachineFault) {
      if (code == ExitCode::kDone) code = ExitCode::kEnvironment;
    } else if (m.gate_one != GateOne::kPassed) {
      code = ExitCode::kGateOneFailed;
    }
  }
  return code;
}

}  // namespace capstone::workflows
