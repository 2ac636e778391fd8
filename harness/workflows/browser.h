#pragma once
// The user's browser.
#include <string>

#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// How pages are opened for this user.
struct Desktop {
  std::string browser;   ///< BROWSER: a program that takes a file or a URL; may be empty
  bool display = false;  ///< there is a screen, so xdg-open can find a browser
};

/// Opens a file or a URL in the browser, which outlives this process.
/// @error there is none, or it did not start; the hint says what to open by hand.
Result<void> open_in_browser(const std::string& target, const Desktop& desktop, const Workspace& workspace);

}  // namespace capstone::workflows
