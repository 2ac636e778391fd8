#include "harness/workflows/model_attempt.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/ascii.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/attempts.h"
#include "harness/project/reply/api_reply.h"
#include "harness/project/reply/difference.h"
#include "harness/project/reply/extract.h"
#include "harness/project/reply/feedback.h"
#include "harness/project/reply/prompt.h"
#include "harness/timing/device.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/pending_versions.h"

namespace capstone::workflows {
namespace {

void add_data_sheet(const DevicePeaks& peaks, const Problem& problem, GpuFacts& facts) {
  facts.multiprocessors = peaks.sm_count;
  facts.bandwidth = peaks.bandwidth;
  facts.peak = peak_of(peaks, problem.precision).flops;
  facts.l2_bytes = static_cast<double>(peaks.l2_bytes);
}

std::optional<GpuFacts> gpu_facts(const Workspace& workspace, const Problem& problem) {
  auto gpu = find_gpu(workspace.resources);
  if (!gpu) return std::nullopt;
  GpuFacts facts;
  facts.name = gpu->name;
  facts.arch = gpu->arch();
  facts.memory_bytes = gpu->memory_bytes;
  if (const auto peaks = find_device(gpu->name)) add_data_sheet(*peaks, problem, facts);
  return facts;
}

GpuFacts facts_of(const DevicePeaks& peaks, const Problem& problem) {
  GpuFacts facts;
  facts.name = peaks.name;
  facts.memory_bytes = peaks.memory_gb * 1e9;
  add_data_sheet(peaks, problem, facts);
  return facts;
}

// The GPU that a prompt was rendered for, where the data sheets have it.
std::string gpu_of(const std::string& prompt) {
  constexpr std::string_view kHeading = "\n## The machine\n\n";
  const std::size_t at = prompt.find(kHeading);
  if (at == prompt.npos) return {};
  const std::size_t begin = at + kHeading.size();
  const std::string name = prompt.substr(begin, prompt.find_first_of(",\n", begin) - begin);
  return find_device(name) ? name : std::string();
}

// What is known of an attempt, in the words that the student gets, too.
Result<Feedback> feedback_on(const Project& project, const LedgerView& ledger, const Measurement& m) {
  Feedback feedback;
  CAPSTONE_TRY(feedback.code, read_file(project.sources() / (m.source_sha256 + ".cu")));
  feedback.measurement = m;
  if (const Explanation* counts = ledger.explanation("llm", m.version)) feedback.counts = *counts;
  for (const Record& record : ledger.records)
    if (record.kind == "profile" && record.body.value("source_sha256", "") == m.source_sha256)
      feedback.profile = describe_profile(record.body);
  return feedback;
}

struct PromptChoice {
  const Measurement* last = nullptr;  ///< with feedback on this one
  bool with_statement = false;
  std::string gpu;  ///< see standard_prompt()
};

Result<std::string> prompt_text(const Workspace& workspace, const Project& project, const LedgerView& ledger,
                                const PromptChoice& choice) {
  CAPSTONE_TRY(PromptInput input, standard_prompt(workspace, project, choice.gpu));
  input.with_statement = choice.with_statement;
  if (choice.last) {
    CAPSTONE_TRY(input.feedback, feedback_on(project, ledger, *choice.last));
  }
  return render_prompt(input);
}

struct SentPrompt {
  std::string text;
  std::string feedback_on;  ///< the version whose verdict the nearest template gives; empty: none
  std::string difference;   ///< against that template; empty: none
};

// The prompt that was sent, and how it differs from what the nearest template gives now: the first prompt, or
// feedback on one of the last judgements.
Result<SentPrompt> sent_prompt(const AddReplyRequest& request, const Workspace& workspace,
                               const Project& project, const LedgerView& ledger) {
  constexpr std::size_t kLastJudgements = 8;
  CAPSTONE_TRY(const std::string first, prompt_text(workspace, project, ledger, {}));
  std::error_code code;
  const fs::path path =
      request.prompt.empty() ? project.root / "llm" / "prompt.md" : workspace.cwd / request.prompt;
  SentPrompt sent{first, {}, {}};
  if (!request.sent.empty()) {
    sent.text = request.sent;
  } else if (!request.prompt.empty() || fs::exists(path, code)) {
    CAPSTONE_TRY(sent.text, read_file(path, 4u << 20));
  }
  sent.difference = unified_diff(first, sent.text, {"the standard prompt", "sent"});
  // Whether this template is nearer than those before.
  const auto is_nearer = [&](const PromptChoice& choice, const std::string& name) -> Result<bool> {
    CAPSTONE_TRY(const std::string text, prompt_text(workspace, project, ledger, choice));
    std::string difference = unified_diff(text, sent.text, {name, "sent"});
    if (difference.size() >= sent.difference.size()) return false;
    sent.difference = std::move(difference);
    return true;
  };
  std::string gpu;  // empty: this machine's
  if (const std::string named = gpu_of(sent.text); !named.empty() && !sent.difference.empty()) {
    CAPSTONE_TRY(const bool nearer, is_nearer({nullptr, false, named}, "the standard prompt"));
    if (nearer) gpu = named;
  }
  const std::size_t begin = ledger.llm.size() - std::min(ledger.llm.size(), kLastJudgements);
  for (std::size_t i = ledger.llm.size(); i > begin && !sent.difference.empty(); --i) {
    const Measurement& m = ledger.llm[i - 1];
    CAPSTONE_TRY(const bool nearer,
                 is_nearer({&m, false, gpu}, "the standard prompt with feedback on " + m.version));
    if (nearer) sent.feedback_on = m.version;
  }
  return sent;
}

// Why a text is surely no model's reply, with the place that shows it; empty where it may be one.
std::string no_reply_because(const std::string& reply, const Project& project, const LedgerView& ledger) {
  const std::string_view text = trim(reply);
  const std::string start = ascii_lower(text.substr(0, 16));
  if (start.starts_with("<!doctype html") || start.starts_with("<html"))
    return "it is a web page, not the text of a reply";
  if (const auto api = read_api_reply(reply); api && !api->error.empty())
    return "the provider answered with an error: " + printable(api->error);
  for (const char* name : {"human/kernel.cu", "human/kernel.py", "llm/prompt.md", "worklog.md",
                           "problem/baseline.cu", "problem/reference.py", "problem/statement.md"})
    if (const auto own = read_file(project.root / name, 4u << 20); own && trim(*own) == text)
      return fmt::format("it is this project's {}", name);
  for (const Attempt& attempt : ledger.attempts)
    if (attempt.reply_sha256 == sha256_hex(reply))
      return fmt::format("attempt {} has the same reply already", attempt.number);
  return {};
}

Result<void> require_reply(const AddReplyRequest& request, const Project& project, const LedgerView& ledger) {
  if (trim(request.reply).empty())
    return fail("the reply is empty", {}, "save the model's whole reply in a file; nothing was recorded");
  if (request.anyway) return {};
  if (const std::string why = no_reply_because(request.reply, project, ledger); !why.empty())
    return fail("this does not look like a model's reply: " + why, {},
                "nothing was recorded. Save the model's own words, or the JSON of its interface; if this is "
                "the reply: --anyway");
  return {};
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
  attempt.feedback_on = sent.feedback_on;
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

Result<PromptInput> standard_prompt(const Workspace& workspace, const Project& project,
                                    const std::string& gpu) {
  PromptInput input;
  input.problem = &project.problem;
  input.resources = &workspace.resources;
  if (gpu.empty()) {
    input.gpu = gpu_facts(workspace, project.problem);
  } else {
    CAPSTONE_TRY(const DevicePeaks peaks, find_device_like(gpu));
    input.gpu = facts_of(peaks, project.problem);
  }
  return input;
}

Result<std::string> prompt_for_model(const PromptRequest& request, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  if (!request.feedback)
    return prompt_text(workspace, project, ledger, {nullptr, request.with_statement, request.gpu});
  if (ledger.llm.empty())
    return fail("there is no judged attempt to give feedback on", (project.root / "llm").string(),
                ledger.attempts.empty() ? "capstone llm prompt (without --feedback) first"
                                        : "capstone measure llm judges the attempt that you filed");
  return prompt_text(workspace, project, ledger, {&ledger.llm.back(), request.with_statement, request.gpu});
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
  CAPSTONE_CHECK(require_reply(request, project, ledger));
  std::optional<std::string> base;  // a reply may be a diff against the last attempt
  if (!ledger.llm.empty())
    if (auto last = read_file(project.sources() / (ledger.llm.back().source_sha256 + ".cu"))) base = *last;
  const Extraction extraction = extract_code(request.reply, base);
  CAPSTONE_TRY(AddReplyOutcome outcome, file_reply(request, workspace, project, ledger, extraction));
  const Attempt& attempt = outcome.attempt;
  if (filed) filed(outcome);
  if (attempt.no_code_because.empty() && request.judge_now) {
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

Result<fs::path> withdraw_attempt(int number, const std::string& because, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  if (trim(because).empty())
    return fail("--because is empty", {}, "say why: the report shows the withdrawal with its reason");
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  const std::string version = fmt::format("attempt-{}", number);
  if (std::none_of(ledger.attempts.begin(), ledger.attempts.end(),
                   [&](const Attempt& a) { return a.number == number; }))
    return fail(fmt::format("there is no attempt {}", number), (project.root / "llm").string(),
                "the attempts are the folders llm/attempt-N");
  add_pending_versions(project, ledger);
  if (std::any_of(ledger.llm.begin(), ledger.llm.end(),
                  [&](const Measurement& m) { return m.version == version; }))
    return fail(fmt::format("attempt {} was judged: it stays on record", number), {},
                "say in section 3 of the worklog what is wrong with it");
  CAPSTONE_TRY(const std::string machine, chain_id(workspace));
  const Withdrawal withdrawal{number, std::string(trim(because))};
  CAPSTONE_CHECK(append_record(project.ledger(), "withdrawal", Json(withdrawal), machine));
  std::error_code code;
  fs::remove_all(project.attempt(number), code);
  return project.attempt(number);
}

}  // namespace capstone::workflows
