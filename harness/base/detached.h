#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

/// Starts a program that outlives this process: in a session of its own, so that Ctrl-C does not reach it,
/// with no input, and with its output thrown away. Waits `patience` for it to fail.
/// @param argv  argv[0] is a path
/// @error it cannot be started, or it ended within that time with an exit code other than 0.
Result<void> start_detached(const std::vector<std::string>& argv, std::chrono::milliseconds patience);

}  // namespace capstone
