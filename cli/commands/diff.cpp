#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "harness/base/text.h"
#include "harness/workflows/version_diff.h"

namespace capstone::cli {
namespace {

struct DiffArguments {
  std::string before, after;
};

Tone tone_of(const std::string& line) {
  if (line.starts_with("---") || line.starts_with("+++")) return Tone::kBold;
  if (line.starts_with("@@")) return Tone::kDim;
  return line.starts_with("+") ? Tone::kGood : line.starts_with("-") ? Tone::kBad : Tone::kPlain;
}

Result<ExitCode> diff(const Context& context, const DiffArguments& arguments) {
  CAPSTONE_TRY(const auto found, workflows::version_diff(arguments.before, arguments.after, context));
  const Terminal& t = context.terminal;
  if (found.text.empty()) {
    t.say(fmt::format("note: {} and {} are the same source", found.before, found.after));
    return ExitCode::kDone;
  }
  std::vector<std::string> lines = split(found.text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines) t.out(t.paint(tone_of(line), line));
  return ExitCode::kDone;
}

}  // namespace

void add_diff(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "diff", "what changed between two versions of your kernel, or from one to an attempt of the model");
  auto arguments = std::make_shared<DiffArguments>();
  command
      ->add_option("before", arguments->before,
                   "a version or an attempt: v2, attempt-1 (default: the version measured last)")
      ->type_name("VERSION");
  command->add_option("after", arguments->after, "a version or an attempt (default: the file as it is now)")
      ->type_name("VERSION");
  command->callback([&context, &action, arguments] {
    action = [&context, arguments] { return diff(context, *arguments); };
  });
}

}  // namespace capstone::cli
