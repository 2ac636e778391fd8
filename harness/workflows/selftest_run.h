#pragma once
// `selftest`: runs the judge on the exploit corpus and on honest kernels, and compares its verdicts with the
// expected ones.
#include <string>
#include <vector>

#include "harness/analysis/selftest/selftest.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct SelftestRun {
  Backend backend = Backend::kAuto;
  Execution execution = Execution::kAuto;
  double budget_seconds = 3;      ///< of timing, a kernel
  std::vector<std::string> only;  ///< names or patterns; empty: all
  std::string record;             ///< a file for the whole record; empty: none
  int jobs = 1;                   ///< cases at a time
};

struct SelftestOutcome {
  std::vector<RowResult> rows;
  Rate rate;
  Json record;
  std::string because;  ///< why the emulated backend was chosen; empty: a GPU
};

/// The sink is called from several threads, one at a time.
/// @error no case matches; no GPU or toolkit where one was requested; interrupted (the record keeps the
/// finished cases).
Result<SelftestOutcome> run_selftest(const SelftestRun& run, const Workspace& workspace,
                                     const ProgressSink& progress);

}  // namespace capstone::workflows
