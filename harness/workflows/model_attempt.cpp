#include "harness/workflows/model_attempt.h"

#include <fmt/format.h>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/attempts.h"
#include "harness/project/reply/difference.h"
#include "harness/project/reply/extract.h"
#include "harness/project/reply/prompt.h"
#include "harness/timing/device.h"
#include "harness/workflows/output_path.h"

namespace capstone::workflows {
namespace {

std::optional<GpuFacts> gpu_facts(const Workspace& workspace, const Problem& problem) {
  auto gpu = find_gpu(workspace.resources);
  if (!gpu) return std::nullopt;
  GpuFacts facts;
  facts.name = gpu->name;
  facts.arch = gpu->arch();
  facts.memory_bytes = gpu->memory_bytes;
  if (auto peaks = find_device(gpu->name)) {
    facts.multiprocessors = peaks->sm_count;
    facts.bandwidth = peaks->bandwidth;
    facts.peak = peak_of(*peaks, problem.precision).flops;
    facts.l2_bytes = static_cast<double>(peaks->l2_bytes);
  }
  return facts;
}

Result<std::string> prompt_text(const Workspace& workspace, const Project& project, const LedgerView& ledger,
                                bool feedback) {
  PromptInput input;
  input.problem = &project.problem;
  input.resources = &workspace.resources;
  input.gpu = gpu_facts(workspace, project.problem);
  if (feedback) {
    if (ledger.llm.empty())
      return fail("there is no attempt to give feedback on", (project.root / "llm").string(),
                  "capstone llm prompt (without --feedback) first");
    const Measurement& last = ledger.llm.back();
    CAPSTONE_TRY(std::string code, read_file(project.sources() / (last.source_sha256 + ".cu")));
    input.feedback = Feedback{code, last};
  }
  return render_prompt(input);
}

struct SentPrompt {
  std::string text;
  std::string difference;  ///< against the template; empty: none
};

// The prompt that was sent, and how it differs from what the template gives now.
Result<SentPrompt> sent_prompt(const AddReplyRequest& request, const Workspace& workspace,
                               const Project& project, const LedgerView& ledger) {
  CAPSTONE_TRY(const std::string first, prompt_text(workspace, project, ledger, false));
  std::string with_feedback;
  if (!ledger.llm.empty()) {
    CAPSTONE_TRY(with_feedback, prompt_text(workspace, project, ledger, true));
  }
  std::error_code code;
  const fs::path path =
      request.prompt.empty() ? project.root / "llm" / "prompt.md" : workspace.cwd / request.prompt;
  std::string sent = first;
  if (!request.prompt.empty() || fs::exists(path, code)) {
    CAPSTONE_TRY(sent, read_file(path, 4u << 20));
  }
  if (sent == first || (!with_feedback.empty() && sent == with_feedback)) return SentPrompt{sent, {}};
  std::string plain = unified_diff(first, sent, {"template", "sent"});
  if (with_feedback.empty()) return SentPrompt{sent, plain};
  std::string fed = unified_diff(with_feedback, sent, {"template with feedback", "sent"});
  return SentPrompt{sent, fed.size() < plain.size() ? fed : plain};
}

// Files and records the attempt before it is judged: whatever happens next, it is on record.
Result<AddReplyOutcome> file_reply(const AddReplyRequest& request, const Workspace& workspace,
                                   const Project& project, const LedgerView& ledger,
                                   const Extraction& extraction) {
  CAPSTONE_TRY(const SentPrompt sent, sent_prompt(request, workspace, project, ledger));
  AttemptFiles files{sent.text, request.reply, std::nullopt, extraction.python};
  if (extraction.why_not.empty()) files.kernel = extraction.code;
  AddReplyOutcome outcome;
  Attempt& attempt = outcome.attempt;
  attempt.model = request.model;
  attempt.settings = request.settings;
  attempt.prompt_difference = sent.difference;
  attempt.extracted = extraction.how;
  for (const std::string& note : extraction.notes)
    attempt.extracted += (attempt.extracted.empty() ? "" : "; ") + note;
  attempt.no_code_because = extraction.why_not;
  CAPSTONE_TRY(attempt, file_attempt(project, ledger, attempt, files));
  CAPSTONE_TRY(const std::string machine, chain_id(workspace));
  CAPSTONE_CHECK(append_record(project.ledger(), "attempt", Json(attempt), machine));
  outcome.libraries = extraction.libraries;
  outcome.folder = project.attempt(attempt.number);
  return outcome;
}

}  // namespace

Result<std::string> prompt_for_model(bool feedback, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  return prompt_text(workspace, project, ledger, feedback);
}

Result<fs::path> write_prompt(const std::string& text, const std::string& out, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  const std::string name = out.empty() ? (project.root / "llm" / "prompt.md").string() : out;
  CAPSTONE_TRY(const fs::path path, output_path(workspace, name, Output::kPrompt));
  CAPSTONE_CHECK(write_file_atomic(path, text));
  return path;
}

Result<AddReplyOutcome> add_reply(const AddReplyRequest& request, const Workspace& workspace,
                                  const ProgressSink& progress,
                                  const std::function<void(const AddReplyOutcome&)>& filed) {
  if (trim(request.model).empty())
    return fail("--model is empty", {}, "give the model's name and version: the worklog is about it");
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  std::optional<std::string> base;  // a reply may be a diff against the last attempt
  if (!ledger.llm.empty())
    if (auto last = read_file(project.sources() / (ledger.llm.back().source_sha256 + ".cu"))) base = *last;
  const Extraction extraction = extract_code(request.reply, base);
  CAPSTONE_TRY(AddReplyOutcome outcome, file_reply(request, workspace, project, ledger, extraction));
  const Attempt& attempt = outcome.attempt;
  if (filed) filed(outcome);
  if (attempt.no_code_because.empty()) {
    CandidateVersion candidate{"llm",
                               project.attempt_kernel(attempt.number),
                               "attempt " + std::to_string(attempt.number),
                               {},
                               fmt::format("attempt-{}", attempt.number)};
    CAPSTONE_TRY(outcome.measurements,
                 judge_and_record(project, {candidate}, request.judge, workspace, progress));
  }
  CAPSTONE_TRY(outcome.ledger, read_ledger(project.ledger()));
  return outcome;
}

}  // namespace capstone::workflows
