// capstone: the command line. Parses, calls, prints; everything else is in the libraries.
#include <pwd.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <regex>

#include "cli/mentor_commands.h"
#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/base/version.h"

namespace capstone::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void on_interrupt(int) { request_interrupt(); }

Result<Context> make_context() {
  std::error_code code;
  Context context;
  fs::path executable = fs::read_symlink("/proc/self/exe", code);
  context.program = executable;
  context.home = environment("HOME");
  context.user = environment("USER");
  if (context.user.empty())   // cron, containers, `env -i`
    if (const passwd* entry = ::getpwuid(::getuid())) context.user = entry->pw_name;
  context.editor = environment("VISUAL");
  if (context.editor.empty()) context.editor = environment("EDITOR");
  fs::path cache = environment("CAPSTONE_CACHE");
  if (cache.empty()) {
    fs::path base = environment("XDG_CACHE_HOME");
    if (base.empty()) base = context.home.empty() ? fs::temp_directory_path(code) : fs::path(context.home) / ".cache";
    cache = base / "capstone";
  }
  cache = fs::absolute(cache, code);
  context.state = cache / "state";
  if (std::string state = environment("XDG_STATE_HOME"); !state.empty()) context.state = fs::path(state) / "capstone";
  std::string path = environment("PATH");
  CAPSTONE_TRY(context.resources, locate_resources(executable, cache, path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path));
  context.resources.ignore_toolkit = !environment("CAPSTONE_IGNORE_TOOLKIT").empty();
  context.resources.isolation = environment("CAPSTONE_ISOLATION");
  if (const std::string& isolation = context.resources.isolation;
      !isolation.empty() && isolation != "bubblewrap" && isolation != "landlock" && isolation != "none")
    return fail("CAPSTONE_ISOLATION is " + isolation, {}, "bubblewrap, landlock or none; unset it for the best that works",
                ExitCode::kUsage);
  context.resources.visible_devices = environment("CUDA_VISIBLE_DEVICES");
  context.cwd = fs::current_path(code);
  if (code) return fail("the current folder no longer exists", {}, "cd to a folder that does", ExitCode::kUsage);
  utsname system{};
  ::uname(&system);
  context.host = system.nodename;
  context.terminal = Terminal::detect(!environment("NO_COLOR").empty());
  return context;
}

// The names a user could have meant at this point of the command line.
std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* s) { return !s->get_name().empty(); }))
    names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The subcommand that the words chose, as deep as they go.
const CLI::App* chosen(const CLI::App* app, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; }))
      if (sub->get_name() == word) next = sub;
    if (next) app = next;
  }
  return app;
}

// What CLI11 says of a value, in words: its limits are printed with all their digits, and no text is ever called no number.
std::string plain(const std::string& what) {
  std::smatch m;
  static const std::regex range(R"(^(\S+): Value (.*) not in range (\S+) to (\S+)$)"), conversion(R"(^Could not convert: (\S+) = (.*)$)");
  if (std::regex_match(what, m, conversion)) return fmt::format("{} takes a number, not \"{}\"", m[1].str(), m[2].str());
  if (!std::regex_match(what, m, range)) return what;
  char* end = nullptr;
  const std::string value = m[2];
  const double low = std::strtod(m[3].str().c_str(), nullptr), high = std::strtod(m[4].str().c_str(), nullptr);
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end) return fmt::format("{} takes a number, not \"{}\"", m[1].str(), value);
  if (high > 1e18 && number <= 0) return fmt::format("{} must {}, not {}", m[1].str(), number < 0 ? "not be negative" : "be greater than 0", value);
  if (high > 1e18) return fmt::format("{}: {} cannot be used", m[1].str(), value);
  return fmt::format("{}: {} is not in range {:.12g} to {:.12g}", m[1].str(), value, low, high);
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& problem, const std::vector<std::string>& words) {
  const CLI::App* at = chosen(&app, words);
  Error error{problem.what(), {}, {}, ExitCode::kUsage};
  error.what = plain(replace_all(error.what, "\n", " "));
  std::string command = at->get_parent() ? "capstone " + (at->get_parent()->get_parent() ? at->get_parent()->get_name() + " " : "") + at->get_name() : "capstone";
  error.hint = "run: " + command + " --help";
  // A word that is neither a command, an option nor taken by anything: what was meant? A value that is wrong, or an option
  // that another one needs, has been said already.
  for (const std::string& word : app.remaining(true)) {
    bool flag = word.starts_with("--");
    std::string bare = flag ? word.substr(0, word.find('=')) : word;
    auto names = flag ? option_names(*at) : subcommand_names(*at);
    if (names.empty() || std::find(names.begin(), names.end(), bare) != names.end()) continue;
    bool is_chosen = false;
    for (const CLI::App* a = at; a; a = a->get_parent()) is_chosen |= a->get_name() == bare;
    if (is_chosen) continue;
    bool known_elsewhere = false;
    for (const CLI::App* a = at->get_parent(); flag && a; a = a->get_parent()) {
      auto more = option_names(*a);
      known_elsewhere |= std::find(more.begin(), more.end(), bare) != more.end();
    }
    if (known_elsewhere || (!flag && word.starts_with("-"))) continue;
    error.what = flag ? "unknown option " + bare + " for `" + command + "`" : "unknown command " + bare;
    if (auto meant = nearest(bare, names)) error.hint = "did you mean `" + *meant + "`?  (" + error.hint + ")";
    else if (!flag && std::find(names.begin(), names.end(), "show") != names.end()) error.hint = "did you mean `" + command + " show " + bare + "`?  (" + error.hint + ")";
    break;
  }
  std::cerr << render(error);
  return static_cast<int>(ExitCode::kUsage);
}

// A cache or state folder that cannot be used is a fault of the surroundings, whichever command came upon it.
void blame_own_folders(Error& error, const Context& context) {
  auto lies_in = [&](const fs::path& folder) { return !folder.empty() && (error.where + "/").starts_with(folder.string() + "/"); };
  const bool cache = lies_in(context.resources.cache), state = lies_in(context.state);
  if (error.code != ExitCode::kUsage || (!cache && !state)) return;
  error.code = ExitCode::kEnvironment;
  error.hint = cache ? "it lies in the cache folder: set CAPSTONE_CACHE to a folder that you may write to"
                     : "it lies in the state folder: set XDG_STATE_HOME to a folder that you may write to";
}

int run(int argc, char** argv) {
  auto made = make_context();
  if (!made) {
    std::cerr << render(made.error());
    return static_cast<int>(made.error().code);
  }
  Context context = std::move(*made);
  Action action;
  CLI::App app{"You vs the machine: judge a hand-written CUDA kernel against a model's, and keep the worklog of it.\n"
               "A project goes: problems -> init -> predict -> measure -> llm -> report -> check -> submit."};
  app.name("capstone");
  app.set_version_flag("--version", std::string("capstone ") + kToolVersion);
  app.require_subcommand(0, 1);
  app.add_flag("-v,--verbose", context.verbose, "show compiler logs, commands and tracebacks");
  app.fallthrough();
  app.footer("Exit codes: 0 done, 1 gate one failed (`check`: something is missing), 2 usage or bad input, 3 environment or not judgeable here, 4 batch partly "
             "ungraded, 70 internal, 130 interrupted.");
  add_problems(app, context, action);
  add_init(app, context, action);
  add_predict(app, context, action);
  add_measure(app, context, action);
  add_explain(app, context, action);
  add_bench(app, context, action);
  add_profile(app, context, action);
  add_ladder(app, context, action);
  add_fast_p(app, context, action);
  add_kernelbench(app, context, action);
  add_demo(app, context, action);
  add_syllabus(app, context, action);
  add_llm(app, context, action);
  add_report(app, context, action);
  add_check(app, context, action);
  add_checkin(app, context, action);
  add_submit(app, context, action);
  add_ledger(app, context, action);
  add_run(app, context, action);
  add_doctor(app, context, action);
  add_grade(app, context, action);
  add_mark(app, context, action);
  add_gradebook(app, context, action);
  add_appeal(app, context, action);
  add_class_views(app, context, action);
  add_export(app, context, action);
  add_replay(app, context, action);
  add_calibrate(app, context, action);
  add_selftest(app, context, action);
  add_completion(app, context, action);

  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& problem) {
    return report_parse_error(app, problem, words);
  }
  if (!action) {
    std::cout << app.help();
    return words.empty() ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  struct sigaction handler {};
  handler.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &handler, nullptr);
  ::sigaction(SIGTERM, &handler, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is reported like a full disk
  auto result = action();
  context.terminal.end_progress();
  if (interrupted()) {
    context.terminal.say("interrupted: nothing half-written was kept");
    return static_cast<int>(ExitCode::kInterrupted);
  }
  if (!result) {
    blame_own_folders(result.error(), context);
    std::string text = render(result.error());
    text.pop_back();
    if (const std::string& trace = result.error().trace; !trace.empty()) text += context.verbose ? "\n" + trace : "\n  hint: --verbose shows the whole traceback";
    context.terminal.say(text);
    return static_cast<int>(result.error().code);
  }
  return static_cast<int>(*result);
}

}  // namespace

void add_format(CLI::App& command, Context& context) {
  command.add_option_function<std::string>(
             "--format", [&context](const std::string& format) { context.json = format == "json"; },
             "text (default) or json")
      ->check(CLI::IsMember({"text", "json"}));
}

Result<Project> project_here(const Context& context) { return open_project(context.cwd); }

}  // namespace capstone::cli

int main(int argc, char** argv) {
  try {
    return capstone::cli::run(argc, argv);
  } catch (const std::exception& problem) {
    std::cerr << capstone::render({std::string("internal error: ") + problem.what(), {},
                                   "this is a defect of capstone; please report it with the command line",
                                   capstone::ExitCode::kInternal});
    return static_cast<int>(capstone::ExitCode::kInternal);
  }
}
