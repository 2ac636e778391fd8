#include "harness/workflows/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"
#include "harness/workflows/measure.h"

namespace capstone::workflows {
namespace {

// The recorded case of that name; a failed one wins over a passed one.
Result<CaseResult> recorded_case(const Measurement& last, const std::string& wanted) {
  std::vector<std::string> failed, passed;
  const CaseResult* found = nullptr;
  for (const CaseResult& c : last.cases) {
    if (c.seed.empty()) continue;
    if ((c.id == wanted && (!found || !c.passed)) ||
        (wanted.empty() && (!found || (found->passed && !c.passed))))
      found = &c;
    auto& names = c.passed ? passed : failed;
    if (std::find(names.begin(), names.end(), c.id) == names.end()) names.push_back(c.id);
  }
  if (found) return *found;
  std::vector<std::string> all = failed;
  all.insert(all.end(), passed.begin(), passed.end());
  std::string hint = failed.empty() ? "it has no failed case" : "failed: " + join(failed, ", ");
  if (auto meant = nearest(wanted, all)) hint = "did you mean `" + *meant + "`?  (" + hint + ")";
  return fail(fmt::format("the last measurement of {} has no {} that can be run again", last.candidate,
                          wanted.empty() ? "case" : "case " + wanted),
              {}, hint);
}

// A verdict file holds the judgements of one submission.
Result<std::vector<Measurement>> read_verdict(const fs::path& file) {
  constexpr const char* kHint = "take the verdict.json that came with your feedback";
  CAPSTONE_TRY(std::string text, read_file(file, 64u << 20));
  const Json json = parse_recorded(text);
  const Json judged = json.is_object() ? json.value("judged", Json::array()) : Json::array();
  if (!judged.is_array() || judged.empty()) return fail("not a verdict", file.string(), kHint);
  try {
    return judged.get<std::vector<Measurement>>();
  } catch (const std::exception& problem) {
    return fail(std::string("not a verdict: ") + problem.what(), file.string(), kHint);
  }
}

// Without a name: the first that failed, else the first.
Result<Measurement> chosen_judgement(const std::vector<Measurement>& judged,
                                     const ReplayVerdictRequest& request) {
  auto chosen = std::find_if(judged.begin(), judged.end(), [&](const Measurement& m) {
    return request.candidate.empty() ? m.gate_one != GateOne::kPassed : m.candidate == request.candidate;
  });
  if (chosen != judged.end()) return *chosen;
  if (request.candidate.empty()) return judged.front();
  return fail("the verdict has no judgement of " + request.candidate, request.file.string(),
              "it has: " + judged.front().candidate);
}

}  // namespace

Result<ReplayOutcome> replay_case(const Project& project, const Measurement& last, const fs::path& source,
                                  const std::string& wanted, const JudgeOptions& options,
                                  const Workspace& workspace, const ProgressSink& progress) {
  CAPSTONE_TRY(CaseResult recorded, recorded_case(last, wanted));
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  JudgeRequest request = request_of(project.problem, options);
  CAPSTONE_TRY(request.replay, plan_of(project.problem, recorded));
  request.options.quick = recorded.build.empty();  // a failure of the plain build shows in the plain build
  request.candidates = {{last.candidate, source}};
  CAPSTONE_TRY(auto measurements, judge(request, workspace.resources, narration_to(progress)));
  return ReplayOutcome{last.version, std::move(recorded), request.replay->sizes, std::move(measurements)};
}

Result<ReplayOutcome> replay_last(const std::string& candidate, const std::string& wanted,
                                  const JudgeOptions& options, const Workspace& workspace,
                                  const ProgressSink& progress) {
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  const std::vector<Measurement>& all = ledger.of(candidate);
  if (all.empty())
    return fail(candidate + " has no measurement yet", project.root.string(),
                "capstone measure " + candidate);
  MeasureRequest request;
  request.who = candidate == "llm" ? Who::kLlm : candidate == "together" ? Who::kTogether : Who::kHuman;
  CAPSTONE_TRY(const auto candidates, candidates_of(project, ledger, request, progress));
  return replay_case(project, all.back(), candidates.front().source, wanted, options, workspace, progress);
}

Result<ReplayOutcome> replay_verdict(const ReplayVerdictRequest& request, const Workspace& workspace,
                                     const ProgressSink& progress) {
  CAPSTONE_TRY(const auto judged, read_verdict(workspace.cwd / request.file));
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(const Measurement chosen, chosen_judgement(judged, request));
  constexpr const char* kHint = "run it in the project that you handed in";
  if (chosen.problem_id != project.problem.id)
    return fail("the verdict is about " + chosen.problem_id + ", this project about " + project.problem.id,
                project.root.string(), kHint);
  if (chosen.problem_digest != project.config.problem_digest)
    report_note(progress,
                "note: the mentor used another version of the problem than this project has pinned");
  fs::path source = chosen.candidate == "together" ? project.together_kernel() : project.human_kernel();
  if (chosen.candidate == "llm") {
    CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
    auto attempt = latest_attempt(project, ledger);
    if (!attempt)
      return fail("there is no model attempt with code here", (project.root / "llm").string(), kHint);
    source = attempt->source;
  }
  return replay_case(project, chosen, source, request.wanted, request.judge, workspace, progress);
}

}  // namespace capstone::workflows
