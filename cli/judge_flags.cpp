#include "cli/judge_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "harness/base/text.h"

namespace capstone::cli {
namespace {

// What the help shows for the value.
std::string type_name_of(const JudgeOption& option) {
  switch (option.kind) {
    case JudgeOption::Kind::kChoice:
      return join(option.choices, "|");
    case JudgeOption::Kind::kChoices:
      return "TEXT:{" + join(option.choices, ",") + "} ...";
    case JudgeOption::Kind::kInteger:
      return fmt::format("INT in [{:g} - {:g}]", option.low, option.high);
    case JudgeOption::Kind::kNumber:
      return fmt::format("FLOAT in [{:g} - {:g}]", option.low, option.high);
    case JudgeOption::Kind::kText:
      return std::string(option.value_name);
    case JudgeOption::Kind::kFlag:
      break;
  }
  return {};
}

}  // namespace

void add_judge_options(CLI::App& command, JudgeOptions& options, const std::vector<std::string_view>& keys) {
  for (const JudgeOption& each : judge_options()) {
    if (!keys.empty() && std::find(keys.begin(), keys.end(), each.key) == keys.end()) continue;
    CLI::Option* option = nullptr;
    if (each.kind == JudgeOption::Kind::kFlag) {
      option = command.add_flag_function(
          each.flag(), [&each, &options](std::int64_t) { (void)each.set(options, "true"); }, each.help);
    } else {
      option = command.add_option_function<std::vector<std::string>>(
          each.flag(),
          [&each, &options](const std::vector<std::string>& words) {
            if (auto ok = each.set(options, join(words, ",")); !ok)
              throw CLI::ValidationError(ok.error().what);
          },
          each.help);
      option->expected(1)->type_name(type_name_of(each));
      if (each.kind == JudgeOption::Kind::kChoices) option->expected(1, -1)->delimiter(',');
    }
    if (!each.excludes.empty()) option->excludes(command.get_option("--" + std::string(each.excludes)));
  }
}

void add_gate_one_options(CLI::App& command, JudgeOptions& options) {
  add_judge_options(command, options, {"backend", "timeout", "hidden", "python", "quick"});
}

void add_memory_option(CLI::App& command, double& gigabytes) {
  command
      .add_option("--memory", gigabytes,
                  "GPU memory that an imported problem must fit in (default: this GPU's; without a GPU 8)")
      ->type_name("GB")
      ->check(CLI::Range(1.0, 1000.0));
}

void add_cohort_option(CLI::App& command, std::string& cohort) {
  command.add_option("--cohort", cohort, "the folder that `grade --out` made (default graded/)");
}

}  // namespace capstone::cli
