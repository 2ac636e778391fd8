#include "cli/machine_provider.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace capstone::cli {
namespace {

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

fs::path models_file(const ProviderArguments& arguments, const Context& context) {
  if (!arguments.models.empty()) return context.cwd / arguments.models;
  if (const std::string named = environment("CAPSTONE_MODELS"); !named.empty()) return context.cwd / named;
  if (const std::string base = environment("XDG_CONFIG_HOME"); !base.empty())
    return fs::path(base) / "capstone" / "models.yaml";
  return context.home.empty() ? fs::path() : fs::path(context.home) / ".config" / "capstone" / "models.yaml";
}

Result<machine::Endpoint> endpoint_from(const ProviderArguments& arguments, const Context& context) {
  machine::Endpoint endpoint;
  endpoint.url = environment("CAPSTONE_MODEL_URL");
  if (!endpoint.url.empty() && arguments.models.empty()) {
    endpoint.model = arguments.model.empty() ? environment("CAPSTONE_MODEL") : arguments.model;
    endpoint.key = environment("CAPSTONE_MODEL_KEY");
    if (endpoint.model.empty())
      return fail("CAPSTONE_MODEL_URL is set, but no model is named", {},
                  "set CAPSTONE_MODEL, or give --model NAME");
    return endpoint;
  }
  const fs::path file = models_file(arguments, context);
  std::error_code code;
  if (arguments.models.empty() && (file.empty() || !fs::exists(file, code)))
    return fail("no language model is configured", file.string(),
                "set CAPSTONE_MODEL_URL, CAPSTONE_MODEL and CAPSTONE_MODEL_KEY, write this file, or use "
                "--command PROGRAM, --folder DIR or --recorded DIR (docs: how-to/search-with-a-model.md)",
                ExitCode::kUsage);
  return machine::read_endpoint(file, arguments.model, environment);
}

}  // namespace

void add_provider_options(CLI::App& command, ProviderArguments& a) {
  auto* model = command.add_option(
      "--model", a.model, "a model of the file of endpoints; with CAPSTONE_MODEL_URL its name there");
  command.add_option("--models", a.models, "the file of endpoints (default ~/.config/capstone/models.yaml)");
  auto* program = command.add_option(
      "--command", a.command, "ask this program: prompt on its standard input, reply on its standard output");
  auto* folder = command.add_option(
      "--folder", a.folder,
      "write NAME.prompt.md into this folder and wait for NAME.reply.md: for a chat window");
  auto* recorded =
      command.add_option("--recorded", a.recorded, "replay the replies of such a folder; never waits");
  command
      .add_option("--answer-timeout", a.timeout_seconds, "seconds that a --command may take (default 900)")
      ->check(CLI::Range(1.0, 86400.0));
  program->excludes(folder, recorded, model);
  folder->excludes(recorded, model);
  recorded->excludes(model);
}

Result<std::unique_ptr<machine::Provider>> provider_from(const ProviderArguments& arguments,
                                                         const Context& context) {
  if (!arguments.command.empty())
    return machine::command_provider(arguments.command, arguments.timeout_seconds);
  if (!arguments.folder.empty()) return machine::folder_provider(context.cwd / arguments.folder);
  if (!arguments.recorded.empty()) return machine::recorded_provider(context.cwd / arguments.recorded);
  CAPSTONE_TRY(const machine::Endpoint endpoint, endpoint_from(arguments, context));
  return machine::http_provider(endpoint);
}

}  // namespace capstone::cli
