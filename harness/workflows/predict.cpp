#include "harness/workflows/predict.h"

#include <algorithm>

namespace capstone::workflows {

Result<PredictOutcome> predict(const PredictRequest& request, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  Prediction prediction;
  prediction.bottleneck = request.bottleneck;
  prediction.speedup = request.speedup;
  prediction.because = request.because;
  prediction.before_first_measurement =
      ledger.llm.empty() && std::all_of(ledger.human.begin(), ledger.human.end(),
                                        [&](const Measurement& m) { return ledger.is_of_stub(m); });
  CAPSTONE_TRY(const std::string machine, chain_id(workspace));
  CAPSTONE_TRY(Record record, append_record(project.ledger(), "prediction", Json(prediction), machine));
  return PredictOutcome{std::move(prediction), std::move(record), project.problem.expect};
}

}  // namespace capstone::workflows
