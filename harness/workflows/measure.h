#pragma once
// `measure`: judges the project's candidates here, packs them for another machine, or judges them there.
#include <optional>
#include <string>
#include <vector>

#include "harness/workflows/bundle.h"
#include "harness/workflows/judge_and_record.h"
#include "harness/workflows/remote.h"

namespace capstone::workflows {

enum class Who { kHuman, kLlm, kTogether, kAll };  // kAll: those that are there

struct MeasureRequest {
  Who who = Who::kHuman;
  std::string reason;                      ///< why this version
  std::optional<double> expected_speedup;  ///< of the version that the reason is about
  JudgeOptions judge;
};

struct MeasureOutcome {
  std::vector<Measurement> measurements;
  LedgerView ledger;  ///< as it is afterwards
};

/// Judges the candidates of the project in the current folder, and records them.
/// @error no project; another command works in it; the pinned problem was changed; no attempt with code
/// (Who::kLlm).
Result<MeasureOutcome> measure(const MeasureRequest& request, const Workspace& workspace,
                               const ProgressSink& progress);

/// The candidates that `measure` would judge, with what the student said about them.
Result<std::vector<CandidateVersion>> candidates_of(const Project& project, const LedgerView& ledger,
                                                    const MeasureRequest& request,
                                                    const ProgressSink& progress);

/// Packs the candidates of the project in the current folder into `out`.
Result<BundleReceipt> pack_project(const MeasureRequest& request, const std::filesystem::path& out,
                                   const Workspace& workspace, const ProgressSink& progress);

/// Judges the candidates on another machine and records the result here. An interrupted call can be repeated:
/// it resumes.
/// @param destination  where; `name` is what the user called it
Result<MeasureOutcome> measure_remotely(const MeasureRequest& request, const Destination& destination,
                                        const std::string& name, const Workspace& workspace,
                                        const ProgressSink& progress);

}  // namespace capstone::workflows
