#include "harness/workflows/browser.h"

#include <unistd.h>

#include "harness/base/detached.h"
#include "harness/base/subprocess.h"

namespace capstone::workflows {

Result<void> open_in_browser(const std::string& target, const Desktop& desktop, const Workspace& workspace) {
  const std::string by_hand = "open this in a browser: " + target;
  std::optional<fs::path> program;
  if (desktop.browser.find('/') != std::string::npos && ::access(desktop.browser.c_str(), X_OK) == 0)
    program = desktop.browser;
  else if (!desktop.browser.empty())
    program = find_program(desktop.browser, workspace.resources.path_variable);
  if (!program && desktop.display) program = find_program("xdg-open", workspace.resources.path_variable);
  if (!program)
    return fail(
        desktop.display ? "no browser: xdg-open is not installed" : "no browser: there is no display here",
        {}, by_hand, ExitCode::kEnvironment);
  auto opened = start_detached({program->string(), target}, std::chrono::milliseconds(1000));
  if (!opened) opened.error().hint = by_hand;
  return opened;
}

}  // namespace capstone::workflows
