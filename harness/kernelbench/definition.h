#pragma once
// The texts of an imported problem's definition. Private to harness/kernelbench.
#include <map>
#include <string>

#include "harness/base/json.h"
#include "harness/kernelbench/import.h"

namespace capstone {

/// The exceptions of a definition, each with its reason: names of variations of the inputs; names of tricks
/// that pass.
struct DefinitionExceptions {
  std::map<std::string, std::string> outside_domain, because;
};

/// Writes problem.yaml from the results of examine.py.
/// @error the results do not have the form that examine.py writes.
Result<std::string> definition_yaml(const KernelBenchFile& file, const Json& found,
                                    const DefinitionExceptions& exceptions);
/// Writes statement.md, which a student reads first.
std::string definition_statement(const KernelBenchFile& file, const Json& found,
                                 const std::vector<std::string>& notes);

}  // namespace capstone
