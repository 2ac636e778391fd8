#pragma once
// What a live demo printed, as a page.
#include <filesystem>
#include <string>

#include "harness/base/error.h"

namespace capstone {

struct DemoPage {
  std::string name, session, what;  ///< "traffic", "W1", one line on what it shows
  std::string text;                 ///< as printed, without colours
  std::string line;                 ///< to say at the board
  std::string time;                 ///< UTC
};

/// @error the template is missing or does not parse.
Result<std::string> demo_page(const DemoPage& demo, const std::filesystem::path& templates);

}  // namespace capstone
