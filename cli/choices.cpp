#include "cli/choices.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <vector>

#include "harness/base/ascii.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

template <class Value>
using Names = std::map<std::string, Value>;

const Names<Backend> kBackends{
    {"auto", Backend::kAuto}, {"cuda", Backend::kCuda}, {"emulated", Backend::kEmulated}};
const Names<Execution> kExecutions{
    {"auto", Execution::kAuto}, {"in-process", Execution::kInProcess}, {"replayed", Execution::kReplayed}};

template <class Value>
CLI::Option* add(CLI::App& command, const std::string& option, Value& value, const Names<Value>& names,
                 const std::string& help) {
  std::vector<std::string> known;
  for (const auto& [name, meaning] : names) known.push_back(name);
  auto check = [&names, known](std::string& word) -> std::string {
    const auto found = names.find(ascii_lower(word));
    if (found == names.end()) {
      const auto meant = nearest(word, known);
      return fmt::format("{} is none of {}{}", word, join(known, ", "),
                         meant ? "; did you mean " + *meant + "?" : "");
    }
    word = std::to_string(static_cast<int>(found->second));
    return {};
  };
  return command.add_option(option, value, help)
      ->transform(CLI::Validator(check, "", ""))
      ->type_name(join(known, "|"));
}

}  // namespace

CLI::Option* add_backend(CLI::App& command, Backend& backend, const std::string& help) {
  return add(command, "--backend", backend, kBackends, help);
}
CLI::Option* add_execution(CLI::App& command, Execution& execution, const std::string& help) {
  return add(command, "--execution", execution, kExecutions, help);
}

}  // namespace capstone::cli
