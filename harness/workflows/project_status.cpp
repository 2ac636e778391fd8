#include "harness/workflows/project_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/digest.h"
#include "harness/base/text.h"
#include "harness/project/hints.h"
#include "harness/project/ledger/ledger.h"
#include "rubric/review.h"

namespace capstone::workflows {
namespace {

// One step with what comes next where it is not done.
struct Assessment {
  bool done = false;
  std::string detail, next, why;
};

std::string counted(std::size_t n, const char* one) {
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

Assessment predict(const LedgerView& ledger) {
  if (ledger.predictions.empty())
    return {false, "nothing was predicted", "capstone predict memory --because \"bytes, FLOPs, peak\"",
            "guess before you measure: memory, compute or latency"};
  const Prediction& first = ledger.predictions.front();
  return {
      true,
      fmt::format("{}-bound{}", first.bottleneck, first.speedup ? ", " + format_speedup(*first.speedup) : ""),
      {},
      {}};
}

// Whether the kernel is what `init` wrote.
bool is_untouched(const LedgerView& ledger, const std::string& digest) {
  for (const Record& record : ledger.records)
    if (record.kind == "init") return record.body.value("kernel_sha256", "") == digest;
  return false;
}

Assessment measure(const Project& project, const LedgerView& ledger) {
  const std::string kernel = fs::relative(project.human_kernel(), project.root).generic_string();
  const auto digest = sha256_file(project.human_kernel());
  if (!digest)
    return {false, kernel + " is missing", "capstone check", "it names the copies that the project keeps"};
  const bool changed = std::none_of(ledger.human.begin(), ledger.human.end(),
                                    [&](const Measurement& m) { return m.source_sha256 == *digest; });
  if (ledger.human.empty() && project.config.started_from.empty() && is_untouched(ledger, *digest))
    return {false, kernel + " is as init wrote it", "capstone watch",
            "write the kernel: watch builds and checks it on every save"};
  const std::string measure = "capstone measure -m \"what you changed\" --expect 1.3x";
  if (ledger.human.empty())
    return {false, "never measured", "capstone measure -m \"first version\"", "judge the first version"};
  const Measurement& last = ledger.human.back();
  const std::string detail = fmt::format("{}, {}: {}", counted(ledger.versions("human").size(), "version"),
                                         last.version, label_of(last.gate_one));
  if (changed)
    return {false, fmt::format("{}; {} was changed since", detail, kernel), measure, "judge the change"};
  if (!ledger.best("human"))
    return {false, detail, "capstone watch", "no version is correct yet: change one thing and save"};
  return {true, detail, {}, {}};
}

Assessment model(const Project& project, const LedgerView& ledger) {
  std::error_code code;
  if (ledger.attempts.empty() && fs::exists(project.root / "llm" / "prompt.md", code))
    return {false, "the prompt is in llm/prompt.md", "capstone llm add reply.md --model \"NAME\"",
            "send the prompt to a model and save its whole reply as reply.md"};
  if (ledger.attempts.empty())
    return {false, "no model was asked", "capstone llm prompt", "ask a model for its kernel"};
  const std::string detail = counted(ledger.attempts.size(), "attempt");
  if (ledger.llm.empty() && ledger.attempts.back().no_code_because.empty())
    return {false, detail + ", never judged", "capstone measure llm", "judge the model's kernel"};
  return {true,
          ledger.llm.empty() ? detail
                             : fmt::format("{}, {}: {}", detail, ledger.llm.back().version,
                                           label_of(ledger.llm.back().gate_one)),
          {},
          {}};
}

bool newer(const fs::path& file, std::initializer_list<fs::path> than) {
  std::error_code code;
  const auto written = fs::last_write_time(file, code);
  if (code) return false;
  return std::all_of(than.begin(), than.end(), [&](const fs::path& other) {
    const auto theirs = fs::last_write_time(other, code);
    return code || theirs <= written;
  });
}

fs::path page_of(const Project& project) { return project.root / "report" / "worklog.html"; }

Assessment report(const Project& project) {
  std::error_code code;
  if (!fs::exists(page_of(project), code))
    return {false, "not rendered yet", "capstone report", "see your worklog with its numbers and plots"};
  if (report_is_due(project))
    return {false, "older than the worklog or the ledger", "capstone report", "render it again"};
  return {true, "report/worklog.html", {}, {}};
}

Assessment check(const Project& project, const LedgerView& ledger, const std::string& worklog) {
  const auto findings = review(project, ledger, parse_worklog(worklog));
  std::size_t grave = 0, unanswered = 0;
  for (const Finding& finding : findings) {
    grave += finding.severity != Severity::kAdvice;
    unanswered += finding.what.starts_with("not answered");
  }
  if (!grave) return {true, "nothing is missing", {}, {}};
  return {false,
          unanswered ? fmt::format("{} to fix, {} of them unanswered questions", grave, unanswered)
                     : fmt::format("{} to fix", grave),
          "capstone check", "it lists what is missing, with the line"};
}

Assessment submit(const Project& project, const Workspace& workspace) {
  std::error_code code;
  for (const fs::path& folder : {project.root, workspace.cwd})
    for (const auto& entry : fs::directory_iterator(folder, code)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".tar.gz") && newer(entry.path(), {project.worklog(), project.ledger()}))
        return {true, name, {}, {}};
    }
  return {false, "no archive that is newer than the worklog", "capstone submit", "pack what you hand in"};
}

}  // namespace

bool report_is_due(const Project& project) {
  return !newer(page_of(project), {project.worklog(), project.ledger()});
}

Result<ProjectStatus> project_status(const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(const std::string worklog, read_file(project.worklog(), std::size_t{64} << 20));
  ProjectStatus status{project.problem.id, project.problem.title, project.root, {}, {}, {}, 0, 0};
  if (const auto hints = hints_of(project.problem, workspace.resources))
    status.hints = static_cast<int>(hints->size());
  status.hints_taken = static_cast<int>(ledger.hints.size());
  Assessment begun{!project.problem_changed,
                   fmt::format("{}, tier {}", project.problem.id, project.problem.tier), "capstone check",
                   "it says how to restore problem/"};
  if (project.problem_changed) begun.detail = "problem/ was changed: no verdict on it would count";
  const std::pair<const char*, Assessment> all[] = {
      {"init", begun},
      {"predict", predict(ledger)},
      {"measure", measure(project, ledger)},
      {"llm", model(project, ledger)},
      {"report", report(project)},
      {"check", check(project, ledger, worklog)},
      {"submit", submit(project, workspace)},
  };
  for (const auto& [name, assessed] : all) {
    ProjectStep step{name, assessed.done ? ProjectStep::State::kDone : ProjectStep::State::kOpen,
                     assessed.detail};
    if (!assessed.done && status.next.empty()) {
      step.state = ProjectStep::State::kNext;
      status.next = assessed.next;
      status.why = assessed.why;
    }
    status.steps.push_back(std::move(step));
  }
  return status;
}

}  // namespace capstone::workflows
