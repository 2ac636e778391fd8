#include "harness/project/init.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/shell_word.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/kernelbench/import.h"
#include "harness/project/stub.h"
#include "harness/workflows/editor_files.h"
#include "harness/workflows/kernelbench_run.h"
#include "harness/workflows/rungs.h"
#include "rubric/worklog.h"

namespace capstone::cli {
namespace {

struct InitArguments {
  std::string problem, directory, rung, language;
  std::string kernelbench, python = "auto";  ///< a file in KernelBench's form, and whose PyTorch runs it
  int level = 0;
  double memory_gb = 0;
  std::vector<std::string> members;
};

// "Ada Lovelace <ada@example.org> (id 1815)": e-mail and id may be missing.
Result<Person> parse_member(const std::string& text) {
  Person person;
  std::string rest = text;
  auto take = [&rest](char open, char close) {
    std::size_t a = rest.find(open), b = rest.find(close, a == std::string::npos ? 0 : a);
    if (a == std::string::npos || b == std::string::npos) return std::string();
    std::string inside(trim(rest.substr(a + 1, b - a - 1)));
    rest.erase(a, b - a + 1);
    return inside;
  };
  person.email = take('<', '>');
  person.id = take('(', ')');
  if (person.id.starts_with("id ")) person.id = person.id.substr(3);
  person.name = trim(rest);
  auto refuse = [&](const std::string& why) {
    return fail("--member " + Json(text).dump(-1, ' ', false, Json::error_handler_t::replace) + ": " + why,
                {}, "--member \"Ada Lovelace <ada@example.org> (id 1815)\"; e-mail and id may be left out");
  };
  if (person.name.empty()) return refuse("there is no name");
  if (person.name.find_first_of("<>()") != std::string::npos)
    return refuse("a bracket is not closed, or there are two of a kind");
  const std::size_t at = person.email.find('@');
  if (text.find('<') != std::string::npos &&
      (at == std::string::npos || at == 0 || at + 1 == person.email.size() ||
       person.email.find_first_of(" \t") != std::string::npos))
    return refuse("the text in < > is not an e-mail address");
  return person;
}

Result<ExitCode> make_project(const Context& context, const InitArguments& arguments, const Problem& problem,
                              const std::vector<std::string>& notes);

Result<std::vector<Person>> members_of(const InitArguments& arguments) {
  std::vector<Person> members;
  for (const std::string& text : arguments.members) {
    CAPSTONE_TRY(Person member, parse_member(text));
    members.push_back(std::move(member));
  }
  return members;
}

Result<ExitCode> init(const Context& context, const InitArguments& arguments) {
  CAPSTONE_CHECK(members_of(arguments));  // before an import that takes a minute
  if (arguments.kernelbench.empty()) {
    if (arguments.problem.empty())
      return fail("init needs a problem: it makes a project folder for it", {},
                  "capstone problems lists them; a good first one: capstone init bias_gelu_layernorm");
    CAPSTONE_TRY(Problem problem, find_problem(context.resources.problems(), arguments.problem));
    return make_project(context, arguments, problem, {});
  }
  // With --kernelbench the first word is the folder.
  InitArguments imported = arguments;
  if (!arguments.directory.empty())
    return fail("too many words: with --kernelbench FILE there is only a folder", {},
                "capstone init --kernelbench FILE.py DIR");
  imported.directory = arguments.problem;
  const ScratchFolder scratch(context.resources.cache / "kernelbench");
  CAPSTONE_TRY(const double memory,
               workflows::memory_for(arguments.memory_gb, Backend::kAuto, context.resources));
  ImportRequest request{kernelbench_file(context.cwd / arguments.kernelbench, arguments.level),
                        scratch.path() / "problem", arguments.python, memory};
  CAPSTONE_TRY(const ImportedProblem found,
               import_kernelbench(request, context.resources,
                                  [&](const std::string& text) { context.terminal.progress(text); }));
  context.terminal.end_progress();
  return make_project(context, imported, found.problem, found.notes);
}

Result<ExitCode> make_project(const Context& context, const InitArguments& arguments, const Problem& problem,
                              const std::vector<std::string>& notes) {
  InitOptions options;
  options.problem = problem;
  options.directory = context.cwd / (arguments.directory.empty() ? problem.id : arguments.directory);
  CAPSTONE_TRY(options.members, members_of(arguments));
  if (!arguments.rung.empty()) {
    CAPSTONE_TRY(options.from_rung,
                 workflows::find_rung(context, problem.id, arguments.rung, "capstone init {1} --from {0}"));
  }
  options.language = arguments.language;
  options.worklog_text = worklog_scaffold(problem);
  options.state = context.state;
  CAPSTONE_TRY(InitReport report, init_project(options, context.resources));
  const Terminal& t = context.terminal;
  t.out(fmt::format("{} ({}, tier {}) in {}", t.paint(Tone::kBold, problem.title), problem.id, problem.tier,
                    report.root.string()));
  std::size_t width = 0;
  for (const CreatedFile& file : report.files) width = std::max(width, file.path.size());
  for (const CreatedFile& file : report.files)
    t.out(fmt::format("  {:<{}}  {}", file.path, width, t.paint(Tone::kDim, file.purpose)));
  if (const auto editor = workflows::write_editor_files(report.root, context.resources))
    t.out(fmt::format("  {:<{}}  {}", "compile_commands.json", width,
                      t.paint(Tone::kDim, "for clangd; .vscode/tasks.json is for VS Code")));
  if (!notes.empty()) t.out("\nnotes on this import:");
  for (const std::string& note : notes) t.out("  - " + note);
  t.out();
  if (options.members.empty())
    t.out("no authors yet: name them in capstone.yaml, or with init --member \"NAME\"");
  t.out(fmt::format("next: cd {} && capstone predict memory|compute|latency --because \"…\"",
                    shell_word(fs::proximate(report.root, context.cwd).string())));
  return ExitCode::kDone;
}

}  // namespace

void add_init(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("init", "create a project: capstone init PROBLEM DIR");
  auto arguments = std::make_shared<InitArguments>();
  command->add_option("problem", arguments->problem, "problem id, or the folder of your own problem");
  command->add_option("dir", arguments->directory, "project directory (default: the problem's id)");
  auto* from = command->add_option(
      "--from", arguments->rung, "start from a reference kernel (number, name or path) instead of the stub");
  command
      ->add_option("--language", arguments->language,
                   "begin human/kernel.py, in this language, instead of human/kernel.cu")
      ->check(CLI::IsMember(python_languages()))
      ->excludes(from);
  command
      ->add_option("--kernelbench", arguments->kernelbench,
                   "import a problem from a KernelBench file: capstone init --kernelbench FILE.py DIR")
      ->type_name("FILE")
      ->excludes(from);
  command
      ->add_option("--level", arguments->level,
                   "with --kernelbench: its level (default: from the folder's name)")
      ->check(CLI::Range(1, 3));
  command
      ->add_option("--python", arguments->python,
                   "with --kernelbench: a python3 with PyTorch (default: the first on PATH)")
      ->type_name("PATH");
  add_memory_option(*command, arguments->memory_gb);
  command->add_option("--member", arguments->members, "an author; repeat for each: \"Name <e-mail> (id)\"")
      ->type_name("WHO");
  command->callback([&context, &action, arguments] {
    action = [&context, arguments] { return init(context, *arguments); };
  });
}

}  // namespace capstone::cli
