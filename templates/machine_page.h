#pragma once
// A run of the machine as a page: its tree, and at each node the prompt, the reply, the code and the verdict.
#include <filesystem>
#include <functional>
#include <string>

#include "harness/machine/archive.h"
#include "harness/machine/node.h"

namespace capstone {

struct MachinePage {
  const machine::RunInfo* run = nullptr;
  const machine::Tree* tree = nullptr;
  const machine::Archive* archive = nullptr;
  std::string title;  ///< of the problem
  std::string tool;   ///< version of capstone
};

/// A self-contained page. The texts are in it once each, compressed; the browser unpacks them.
/// @error a template cannot be read; a text of the archive was changed
Result<std::string> machine_page(const MachinePage& page, const std::filesystem::path& templates);

}  // namespace capstone
