#pragma once
// Which language model `capstone machine` asks, from the command line and the environment.
#include <memory>
#include <string>

#include "cli/context.h"
#include "harness/machine/provider.h"

namespace capstone::cli {

struct ProviderArguments {
  std::string model, models;              ///< an endpoint of a file of endpoints
  std::string command, folder, recorded;  ///< other providers; at most one is named
  double timeout_seconds = 900;           ///< of a command
};

/// Adds the options that choose a provider.
void add_provider_options(CLI::App& command, ProviderArguments& arguments);

/// @error no provider is named and none configured; says what can be given
Result<std::unique_ptr<machine::Provider>> provider_from(const ProviderArguments& arguments,
                                                         const Context& context);

}  // namespace capstone::cli
