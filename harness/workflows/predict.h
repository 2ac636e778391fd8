#pragma once
// `predict`: the student's expectation, recorded before the first measurement.
#include <optional>
#include <string>

#include "harness/project/ledger/ledger.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct PredictRequest {
  std::string bottleneck;         ///< "memory", "compute" or "latency"
  std::optional<double> speedup;  ///< over the baseline
  std::string because;
};
struct PredictOutcome {
  Prediction prediction;
  Record record;
  std::string expected;  ///< what the course expects of the problem; may be empty
};
Result<PredictOutcome> predict(const PredictRequest& request, const Workspace& workspace);

}  // namespace capstone::workflows
