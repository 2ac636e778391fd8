#pragma once
#include <filesystem>
#include <string>

#include "harness/base/error.h"

namespace capstone {

/// The id under which this machine writes its chain: 16 random hexadecimal digits, created on first use and
/// stored in `state_folder`/machine-id. It reveals nothing about the host or its user.
/// @error the folder cannot be written; no randomness available.
Result<std::string> machine_id(const std::filesystem::path& state_folder);

}  // namespace capstone
