#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/show.h"
#include "harness/base/files.h"
#include "harness/project/reply/difference.h"
#include "harness/project/reply/extract.h"
#include "harness/workflows/model_attempt.h"

namespace capstone::cli {
namespace {

struct LlmArguments {
  workflows::PromptRequest prompt;
  bool no_judge = false;
  int attempt = 0;
  std::string because;
  std::string out, file = "-";
  workflows::AddReplyRequest request;
};

Result<ExitCode> prompt(const Context& context, const LlmArguments& arguments) {
  CAPSTONE_TRY(const std::string text, workflows::prompt_for_model(arguments.prompt, context));
  if (arguments.out == "-") {
    context.terminal.out(text);
    return ExitCode::kDone;
  }
  CAPSTONE_TRY(const fs::path path, workflows::write_prompt(text, arguments.out, context));
  context.terminal.out(fmt::format("{} ({} bytes)", path.string(), text.size()));
  context.terminal.out(
      "next: give exactly this text to a model, save its whole reply, then: capstone llm add REPLY --model "
      "NAME");
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

void say_filed(const workflows::AddReplyOutcome& outcome, const Terminal& t) {
  const Attempt& attempt = outcome.attempt;
  t.say(fmt::format("attempt {} of {} filed in llm/attempt-{}/", attempt.number, attempt.model,
                    attempt.number));
  const std::string standard =
      "the standard prompt" +
      (attempt.feedback_on.value_or("").empty() ? "" : " with feedback on " + *attempt.feedback_on);
  t.say(attempt.prompt_difference.empty()
            ? fmt::format("prompt: {}, unchanged", standard)
            : fmt::format("note: the prompt differs from {} ({}); the difference is kept", standard,
                          extent_of(attempt.prompt_difference)));
  if (!attempt.no_code_because.empty()) return;
  t.say("code: " + attempt.extracted);
  for (const std::string& library : outcome.libraries) t.say("note: the code names the library " + library);
}

void print_first_try(const Attempt& attempt, const Measurement& m, const Terminal& t) {
  const bool wrong = m.judged() && m.gate_one != GateOne::kPassed;
  const char* faster = wrong                               ? "no"
                       : m.gate_two == GateTwo::kNotJudged ? "not judged here"
                       : m.gate_two == GateTwo::kFaster    ? "yes"
                                                           : "no";
  t.out(fmt::format("first-try facts of attempt {}: compiled: {} · correct: {} · faster: {}", attempt.number,
                    compiled_text(m), correct_text(m), faster));
}

Result<ExitCode> add(const Context& context, const LlmArguments& arguments) {
  workflows::AddReplyRequest request = arguments.request;
  request.judge_now = !arguments.no_judge;
  CAPSTONE_TRY(request.reply, read_reply(context, arguments.file));
  const Terminal& t = context.terminal;
  CAPSTONE_TRY(const auto outcome, workflows::add_reply(request, context, context.progress(),
                                                        [&](const auto& filed) { say_filed(filed, t); }));
  const Attempt& attempt = outcome.attempt;
  if (!attempt.no_code_because.empty())
    return fail("the reply holds no kernel: " + attempt.no_code_because,
                (outcome.folder / "reply.md").string(),
                "this is a result, too, and is on record. Ask again: capstone llm prompt --feedback after a "
                "first attempt "
                "with code, or send the same prompt again",
                ExitCode::kGateOneFailed);
  if (outcome.measurements.empty()) {
    if (context.json)
      t.out(Json{{"attempt", attempt}, {"measurement", nullptr}}.dump(2));
    else
      t.out(fmt::format(
          "next: read the code in llm/attempt-{}/ and guess its verdict, then: capstone measure llm",
          attempt.number));
    return ExitCode::kDone;
  }
  if (context.json) {
    t.out(Json{{"attempt", attempt}, {"measurement", outcome.measurements.front()}}.dump(2));
    return workflows::exit_code_of(outcome.measurements);
  }
  t.out(verdict_table(outcome.measurements, t));
  const Measurement& m = outcome.measurements.front();
  print_first_try(attempt, m, t);
  if (std::string why = explain_failure(m, t, context.verbose); !why.empty()) t.out(why);
  t.out("next: " + next_step(outcome.measurements, outcome.ledger));
  return workflows::exit_code_of(outcome.measurements);
}

Result<ExitCode> withdraw(const Context& context, const LlmArguments& arguments) {
  CAPSTONE_TRY(const fs::path folder,
               workflows::withdraw_attempt(arguments.attempt, arguments.because, context));
  context.terminal.out(fmt::format("attempt {} is withdrawn; {} was removed, the ledger keeps both records",
                                   arguments.attempt, folder.string()));
  return ExitCode::kDone;
}

}  // namespace

void add_llm(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("llm", "the model's side: render the prompt, file the reply");
  command->require_subcommand(1);
  auto a = std::make_shared<LlmArguments>();
  auto* ask = command->add_subcommand("prompt", "write the exact prompt to llm/prompt.md");
  ask->add_flag("--feedback", a->prompt.feedback,
                "add the last attempt's code, compiler error, diagnosis, counts, profile and times");
  ask->add_flag(
      "--with-statement", a->prompt.with_statement,
      "add the problem's statement with its hints: no longer the standard prompt, and the score sheet "
      "says so");
  ask->add_option("--gpu", a->prompt.gpu,
                  "the GPU that the prompt names, where the kernel is judged on another machine: h100, 4090 …");
  ask->add_option("--out", a->out, "another file, or - for standard output");
  ask->callback([&context, &action, a] { action = [&context, a] { return prompt(context, *a); }; });
  auto* file = command->add_subcommand("add", "file a reply as the next attempt, and judge it at once");
  file->add_option(
      "reply", a->file,
      "the file with the whole reply, or the JSON of the provider's interface; - (default) reads "
      "standard input");
  file->add_option("--model", a->request.model, "the model's name and version")->required();
  file->add_option("--settings", a->request.settings, "temperature, tools, effort … as far as known");
  file->add_option("--prompt", a->request.prompt, "the prompt that was sent (default llm/prompt.md)");
  file->add_flag("--no-judge", a->no_judge, "only file it: read the code first, then capstone measure llm");
  file->add_flag("--anyway", a->request.anyway, "file it although it does not look like a model's reply");
  add_judge_options(*file, a->request.judge);
  add_format(*file, context);
  file->callback([&context, &action, a] { action = [&context, a] { return add(context, *a); }; });
  auto* back = command->add_subcommand("withdraw",
                                       "take an attempt back that was filed by mistake; only while "
                                       "nothing was judged from it");
  back->add_option("attempt", a->attempt, "its number")->required();
  back->add_option("--because", a->because, "why; the report shows it")->required();
  back->callback([&context, &action, a] { action = [&context, a] { return withdraw(context, *a); }; });
}

}  // namespace capstone::cli
