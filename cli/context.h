#pragma once
// What every command is given: where files are, who the user is, how to talk to the terminal. Only cli/ reads the
// environment or prints.
#include <filesystem>
#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/terminal.h"
#include "harness/base/error.h"
#include "harness/base/resources.h"
#include "harness/project/project.h"

namespace capstone::cli {

struct Context {
  Resources resources;
  std::filesystem::path state;     ///< per-user state: the machine's chain id
  std::filesystem::path cwd;
  std::filesystem::path program;   ///< this very program: a batch starts it once a submission
  std::string home, user, host;    ///< for masking in submissions
  std::string editor;              ///< VISUAL, else EDITOR; empty: neither is set
  Terminal terminal;
  bool json = false;               ///< --format json
  bool verbose = false;
};

/// What a parsed command line comes to: run after parsing, so that parsing alone never does anything.
using Action = std::function<Result<ExitCode>()>;

/// A `--format text|json` option.
void add_format(CLI::App& command, Context& context);

/// The project at or above the current folder (or --project DIR).
Result<Project> project_here(const Context& context);

void add_problems(CLI::App& app, Context& context, Action& action);
void add_init(CLI::App& app, Context& context, Action& action);
void add_predict(CLI::App& app, Context& context, Action& action);
void add_measure(CLI::App& app, Context& context, Action& action);
void add_explain(CLI::App& app, Context& context, Action& action);
void add_bench(CLI::App& app, Context& context, Action& action);
void add_profile(CLI::App& app, Context& context, Action& action);
void add_ladder(CLI::App& app, Context& context, Action& action);
void add_llm(CLI::App& app, Context& context, Action& action);
void add_report(CLI::App& app, Context& context, Action& action);
void add_check(CLI::App& app, Context& context, Action& action);
void add_checkin(CLI::App& app, Context& context, Action& action);
void add_run(CLI::App& app, Context& context, Action& action);
void add_submit(CLI::App& app, Context& context, Action& action);
void add_ledger(CLI::App& app, Context& context, Action& action);
void add_doctor(CLI::App& app, Context& context, Action& action);
void add_grade(CLI::App& app, Context& context, Action& action);
void add_mark(CLI::App& app, Context& context, Action& action);
void add_gradebook(CLI::App& app, Context& context, Action& action);
void add_calibrate(CLI::App& app, Context& context, Action& action);
void add_selftest(CLI::App& app, Context& context, Action& action);
void add_fast_p(CLI::App& app, Context& context, Action& action);
void add_demo(CLI::App& app, Context& context, Action& action);
void add_syllabus(CLI::App& app, Context& context, Action& action);
void add_completion(CLI::App& app, Context& context, Action& action);

}  // namespace capstone::cli
