#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <iterator>

#include "cli/output_path.h"
#include "cli/recording.h"
#include "cli/context.h"
#include "cli/show.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/timing/device.h"
#include "harness/project/attempts.h"
#include "harness/project/reply/difference.h"
#include "harness/project/reply/extract.h"
#include "harness/project/reply/prompt.h"

namespace capstone::cli {
namespace {

struct LlmArguments {
  bool feedback = false;
  std::string out, file = "-", model, settings, prompt;
  JudgeOptions judge;
};

std::optional<GpuFacts> gpu_facts(const Context& context, const Problem& problem) {
  auto gpu = find_gpu(context.resources);
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

Result<std::string> prompt_text(const Context& context, const Project& project, const LedgerView& ledger, bool feedback) {
  PromptInput input;
  input.problem = &project.problem;
  input.resources = &context.resources;
  input.gpu = gpu_facts(context, project.problem);
  if (feedback) {
    if (ledger.llm.empty())
      return fail("there is no attempt to give feedback on", (project.root / "llm").string(), "capstone llm prompt (without --feedback) first");
    const Measurement& last = ledger.llm.back();
    CAPSTONE_TRY(std::string code, read_file(project.sources() / (last.source_sha256 + ".cu")));
    input.feedback = Feedback{code, last};
  }
  return render_prompt(input);
}

Result<ExitCode> prompt(const Context& context, const LlmArguments& arguments) {
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(std::string text, prompt_text(context, project, ledger, arguments.feedback));
  if (arguments.out == "-") {
    context.terminal.out(text);
    return ExitCode::kDone;
  }
  CAPSTONE_TRY(const fs::path path, output_path(context, arguments.out.empty() ? (project.root / "llm" / "prompt.md").string() : arguments.out, Output::kPrompt));
  CAPSTONE_CHECK(write_file_atomic(path, text));
  context.terminal.out(fmt::format("{} ({} bytes)", path.string(), text.size()));
  context.terminal.out("next: give exactly this text to a model, save its whole reply, then: capstone llm add REPLY --model NAME");
  return ExitCode::kDone;
}

Result<std::string> read_reply(const Context& context, const std::string& file) {
  if (file != "-") return read_file(context.cwd / file, kMaxReplyBytes);
  if (::isatty(STDIN_FILENO)) context.terminal.say("paste the model's whole reply, then Ctrl-D:");
  std::string text;
  char buffer[1 << 16];
  while (std::cin.read(buffer, sizeof buffer) || std::cin.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > kMaxReplyBytes) return fail("the reply is longer than 4 MiB", "standard input");
  }
  return text;
}

// Which prompt was really sent, and how it differs from what the template gives now.
Result<std::pair<std::string, std::string>> sent_prompt(const Context& context, const Project& project, const LedgerView& ledger,
                                                        const LlmArguments& arguments) {
  CAPSTONE_TRY(std::string first, prompt_text(context, project, ledger, false));
  std::string with_feedback;
  if (!ledger.llm.empty()) {
    CAPSTONE_TRY(with_feedback, prompt_text(context, project, ledger, true));
  }
  std::error_code code;
  fs::path path = arguments.prompt.empty() ? project.root / "llm" / "prompt.md" : context.cwd / arguments.prompt;
  std::string sent = first;
  if (!arguments.prompt.empty() || fs::exists(path, code)) {
    CAPSTONE_TRY(sent, read_file(path, 4u << 20));
  }
  if (sent == first || (!with_feedback.empty() && sent == with_feedback)) return std::pair(sent, std::string());
  std::string plain = unified_diff(first, sent, {"template", "sent"});
  if (with_feedback.empty()) return std::pair(sent, plain);
  std::string fed = unified_diff(with_feedback, sent, {"template with feedback", "sent"});
  return std::pair(sent, fed.size() < plain.size() ? fed : plain);
}

Result<ExitCode> add(const Context& context, const LlmArguments& arguments) {
  if (trim(arguments.model).empty()) return fail("--model is empty", {}, "say which model it was, with its version: the worklog is about it");
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(std::string reply, read_reply(context, arguments.file));
  CAPSTONE_TRY(auto sent, sent_prompt(context, project, ledger, arguments));
  std::optional<std::string> base;
  if (!ledger.llm.empty())
    if (auto last = read_file(project.sources() / (ledger.llm.back().source_sha256 + ".cu"))) base = *last;
  Extraction extraction = extract_code(reply, base);

  AttemptFiles files{sent.first, reply, std::nullopt, extraction.python};
  if (extraction.why_not.empty()) files.kernel = extraction.code;
  Attempt attempt;
  attempt.model = arguments.model;
  attempt.settings = arguments.settings;
  attempt.prompt_difference = sent.second;
  attempt.extracted = extraction.how;
  for (const std::string& note : extraction.notes) attempt.extracted += (attempt.extracted.empty() ? "" : "; ") + note;
  attempt.no_code_because = extraction.why_not;
  // Filed and recorded before it is judged: whatever happens next, the attempt is on the record.
  CAPSTONE_TRY(attempt, file_attempt(project, ledger, attempt, files));
  CAPSTONE_TRY(std::string machine, chain_id(context));
  CAPSTONE_TRY(Record record, append_record(project.ledger(), "attempt", Json(attempt), machine));
  (void)record;
  const Terminal& t = context.terminal;
  t.say(fmt::format("attempt {} of {} filed in llm/attempt-{}/", attempt.number, attempt.model, attempt.number));
  if (!sent.second.empty()) t.say("note: the prompt that was sent differs from the template; the difference is kept");
  if (!attempt.no_code_because.empty()) {
    Error nothing{"no kernel could be taken out of the reply: " + attempt.no_code_because,
                  (project.attempt(attempt.number) / "reply.md").string(),
                  "that is a result, too, and is on the record. Ask again: capstone llm prompt --feedback after a first attempt with code, "
                  "or send the same prompt again", ExitCode::kGateOneFailed};
    return fail(nothing);
  }
  t.say("code: " + attempt.extracted);
  for (const std::string& library : extraction.libraries) t.say("note: the code names the library " + library);
  CandidateVersion candidate{"llm", project.attempt_kernel(attempt.number), "attempt " + std::to_string(attempt.number), {},
                      fmt::format("attempt-{}", attempt.number)};
  CAPSTONE_TRY(auto measurements, judge_and_record(project, {candidate}, arguments.judge, context));
  if (context.json) {
    t.out(Json{{"attempt", attempt}, {"measurement", measurements.front()}}.dump(2));
    return exit_code_of(measurements);
  }
  t.out(verdict_table(measurements, t));
  const Measurement& m = measurements.front();
  t.out(fmt::format("first-try facts of attempt {}: compiled: {} · correct: {} · faster: {}", attempt.number, m.build.ok ? "yes" : "no",
                    m.gate_one == GateOne::kPassed ? "yes" : "no",
                    m.gate_two == GateTwo::kNotJudged ? "not judged here" : m.gate_two == GateTwo::kFaster ? "yes" : "no"));
  if (std::string why = explain_failure(m, t, context.verbose); !why.empty()) t.out(why);
  CAPSTONE_TRY(ledger, read_ledger(project.ledger()));
  t.out("next: " + next_step(measurements, ledger));
  return exit_code_of(measurements);
}

}  // namespace

void add_llm(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("llm", "the machine's side: render the prompt, file the reply");
  command->require_subcommand(1);
  auto arguments = std::make_shared<LlmArguments>();
  auto* ask = command->add_subcommand("prompt", "write the exact prompt to llm/prompt.md");
  ask->add_flag("--feedback", arguments->feedback, "add the last attempt's code, compiler error, diagnosis and times");
  ask->add_option("--out", arguments->out, "another file, or - for standard output");
  ask->callback([&context, &action, arguments] { action = [&context, arguments] { return prompt(context, *arguments); }; });
  auto* file = command->add_subcommand("add", "file a reply as the next attempt, and judge it at once");
  file->add_option("reply", arguments->file, "the file with the whole reply; - (default) reads standard input");
  file->add_option("--model", arguments->model, "the model's name and version")->required();
  file->add_option("--settings", arguments->settings, "temperature, tools, effort … as far as known");
  file->add_option("--prompt", arguments->prompt, "the prompt that was really sent (default llm/prompt.md)");
  add_judge_options(*file, arguments->judge);
  add_format(*file, context);
  file->callback([&context, &action, arguments] { action = [&context, arguments] { return add(context, *arguments); }; });
}

}  // namespace capstone::cli
