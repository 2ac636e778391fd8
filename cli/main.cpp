// capstone: the command line. Parses, calls a workflow, prints; everything else is in the libraries.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/help.h"
#include "cli/parse_errors.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/base/version.h"

namespace capstone::cli {

// Every command, in the order of `capstone --help`. A new one is its file in commands/, which defines
// add_NAME(), and a line here.
#define CAPSTONE_COMMANDS(COMMAND) \
  COMMAND(problems)                \
  COMMAND(lab)                     \
  COMMAND(init)                    \
  COMMAND(status)                  \
  COMMAND(predict)                 \
  COMMAND(try)                     \
  COMMAND(watch)                   \
  COMMAND(measure)                 \
  COMMAND(diff)                    \
  COMMAND(hint)                    \
  COMMAND(explain)                 \
  COMMAND(bench)                   \
  COMMAND(profile)                 \
  COMMAND(ladder)                  \
  COMMAND(fast_p)                  \
  COMMAND(kernelbench)             \
  COMMAND(demo)                    \
  COMMAND(syllabus)                \
  COMMAND(book)                    \
  COMMAND(llm)                     \
  COMMAND(machine)                 \
  COMMAND(together)                \
  COMMAND(scorecard)               \
  COMMAND(report)                  \
  COMMAND(open)                    \
  COMMAND(check)                   \
  COMMAND(checkin)                 \
  COMMAND(submit)                  \
  COMMAND(ledger)                  \
  COMMAND(run)                     \
  COMMAND(doctor)                  \
  COMMAND(grade)                   \
  COMMAND(mark)                    \
  COMMAND(grader)                  \
  COMMAND(gradebook)               \
  COMMAND(serve)                   \
  COMMAND(appeal)                  \
  COMMAND(class_views)             \
  COMMAND(export)                  \
  COMMAND(replay)                  \
  COMMAND(calibrate)               \
  COMMAND(selftest)                \
  COMMAND(help)                    \
  COMMAND(completion)

#define CAPSTONE_DECLARE(name) void add_##name(CLI::App& app, Context& context, Action& action);
CAPSTONE_COMMANDS(CAPSTONE_DECLARE)
#undef CAPSTONE_DECLARE

namespace {

void add_commands(CLI::App& app, Context& context, Action& action) {
#define CAPSTONE_ADD(name) add_##name(app, context, action);
  CAPSTONE_COMMANDS(CAPSTONE_ADD)
#undef CAPSTONE_ADD
}

void on_interrupt(int) { request_interrupt(); }

void handle_signals() {
  struct sigaction handler {};
  handler.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &handler, nullptr);
  ::sigaction(SIGTERM, &handler, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is reported like a full disk
}

// A cache or state folder that cannot be used is an environment error, in every command; so is a full disk.
void blame_own_folders(Error& error, const Context& context) {
  auto lies_in = [&](const std::filesystem::path& folder) {
    return !folder.empty() && (error.where + "/").starts_with(folder.string() + "/");
  };
  const bool cache = lies_in(context.resources.cache), state = lies_in(context.state);
  for (const char* reason : {"No space left on device", "Disk quota exceeded"})
    if (error.what.find(reason) != std::string::npos) {
      error.code = ExitCode::kEnvironment;
      if (cache) error.hint = "make room there, or set CAPSTONE_CACHE to a folder on another disk";
      if (error.hint.empty()) error.hint = "make room on this disk and run the command again";
    }
  if (error.code != ExitCode::kUsage || (!cache && !state)) return;
  error.code = ExitCode::kEnvironment;
  error.hint = cache ? "this is the cache folder: set CAPSTONE_CACHE to a folder that you can write to"
                     : "this is the state folder: set XDG_STATE_HOME to a folder that you can write to";
}

int show_error(Error error, const Context& context) {
  blame_own_folders(error, context);
  std::string text = render(error);
  text.pop_back();
  if (!error.trace.empty())
    text += context.verbose ? "\n" + error.trace : "\n  hint: --verbose shows the whole traceback";
  context.terminal.say(text);
  return static_cast<int>(error.code);
}

int run_action(const Action& action, const Context& context) {
  handle_signals();
  auto result = action();
  context.terminal.end_progress();
  if (interrupted()) {
    context.terminal.say("interrupted: no half-written file was kept");
    return static_cast<int>(ExitCode::kInterrupted);
  }
  return result ? static_cast<int>(*result) : show_error(result.error(), context);
}

int run(int argc, char** argv) {
  auto made = make_context();
  if (!made) {
    std::cerr << render(made.error());
    return static_cast<int>(made.error().code);
  }
  Context context = std::move(*made);
  Action action;
  CLI::App app{
      "You vs the machine: judge a hand-written CUDA kernel against a model's, and keep the worklog of it.\n"
      "The steps of a project: problems -> init -> predict -> measure -> llm -> report -> check -> submit."};
  app.name("capstone");
  app.set_version_flag("--version", std::string("capstone ") + kToolVersion);
  app.require_subcommand(0, 1);
  app.add_flag("-v,--verbose", context.verbose, "show compiler logs, commands and tracebacks");
  app.fallthrough();
  app.footer(
      "Exit codes: 0 done, 1 gate one failed (`check`: something is missing), 2 usage or bad input, "
      "3 environment or not judgeable here, 4 batch partly ungraded, 70 internal, 130 interrupted.");
  add_commands(app, context, action);
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    if (const auto unknown = unknown_command(app, words)) return show_error(*unknown, context);
    if (success.get_name() != "CallForHelp") return app.exit(success);
    context.terminal.out(fold_help(app.help(), context.terminal));
    return 0;
  } catch (const CLI::ParseError& problem) {
    return show_error(explain_parse_error(app, problem, words), context);
  }
  if (!action) {
    context.terminal.out(fold_help(app.help(), context.terminal));
    return words.empty() ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  return run_action(action, context);
}

}  // namespace

void add_format(CLI::App& command, Context& context) {
  command
      .add_option_function<std::string>(
          "--format", [&context](const std::string& format) { context.json = format == "json"; },
          "text (default) or json")
      ->check(CLI::IsMember({"text", "json"}));
}

}  // namespace capstone::cli

int main(int argc, char** argv) {
  try {
    return capstone::cli::run(argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << capstone::render({"internal error: " + capstone::printable(problem.what()),
                                   {},
                                   "this is a defect of capstone; please report it with the command line",
                                   capstone::ExitCode::kInternal});
    return static_cast<int>(capstone::ExitCode::kInternal);
  }
}
