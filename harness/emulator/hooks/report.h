#pragma once
// What the worker answers about a run: findings, and counts by kernel and line
// (harness/runtime/worker/protocol.md).
#include <string>

#include "hooks/findings.h"
#include "runtime/json.h"

namespace capstone_emu::hooks {

/// Adds the counts of the launch that ends to those of its kernel.
void add_launch(const LaunchConfig& config);

/// Forgets findings and counts: a run begins.
/// @param counts  false: findings only, which is quicker
void begin_report(bool counts);

struct Report {
  Json json;                    ///< the whole report
  std::vector<Failure> errors;  ///< the findings that are errors
  std::string early_read;       ///< what may explain a wrong output; empty: nothing
};
Report make_report();

}  // namespace capstone_emu::hooks
