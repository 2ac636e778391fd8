#pragma once
// What every command is given: where files are, who the user is, how to talk to the terminal. Only cli/ reads
// the environment or prints.
#include <functional>
#include <string>

#include "cli/terminal.h"
#include "harness/workflows/browser.h"
#include "harness/workflows/workspace.h"

namespace CLI {
class App;
}

namespace capstone::cli {

struct Context : workflows::Workspace {
  std::string editor;  ///< VISUAL, else EDITOR; empty: neither is set
  workflows::Desktop desktop;
  Terminal terminal;
  bool json = false;  ///< --format json
  bool verbose = false;

  /// Shows a workflow's steps and notes on the terminal. Valid as long as the context.
  workflows::ProgressSink progress() const;
};

/// The context of this process. @error CAPSTONE_ISOLATION is not a known value; the current folder no longer
/// exists.
Result<Context> make_context();

/// What a parsed command line does: run after parsing, so that parsing alone never does anything.
using Action = std::function<Result<ExitCode>()>;

/// A `--format text|json` option.
void add_format(CLI::App& command, Context& context);

}  // namespace capstone::cli
