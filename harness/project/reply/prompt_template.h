#pragma once
// Fills in the templates of prompts (templates/prompts).
#include <map>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/resources.h"

namespace capstone {

/// What a template's names stand for.
struct PromptValues {
  std::map<std::string, std::string> values = {};
  /// A section is written once for each element; a section that is not here is left out.
  std::map<std::string, std::vector<PromptValues>> sections = {};
};

/// @param name  of a file in templates/prompts
/// @error there is no such template, or it cannot be parsed; it uses a name that has no value: a prompt with
/// a
///   gap would be unfair.
Result<std::string> expand_prompt(const Resources& resources, const std::string& name,
                                  const PromptValues& values);

/// A text without the white space around it, UTF-8, lines ending in \n. @error missing, or longer than 1 MiB
Result<std::string> prompt_text_of(const std::filesystem::path& path);

}  // namespace capstone
