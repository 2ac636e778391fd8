#pragma once
// The texts of an imported problem's definition. Private to harness/kernelbench.
#include <map>
#include <string>

#include "harness/base/json.h"
#include "harness/kernelbench/import.h"

namespace capstone {

/// What a definition excuses, each with its reason: names of variations of the inputs; names of tricks that pass.
struct DefinitionExceptions {
  std::map<std::string, std::string> outside_domain, because;
};

/// problem.yaml from what examine.py found.
/// @error what was found is not in the form that examine.py writes.
Result<std::string> definition_yaml(const KernelBenchFile& file, const Json& found, const DefinitionExceptions& exceptions);
/// statement.md: what a student reads first.
std::string definition_statement(const KernelBenchFile& file, const Json& found, const std::vector<std::string>& notes);

}  // namespace capstone
