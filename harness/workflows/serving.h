#pragma once
// The small server of `capstone demo serving`: builds it with an attention kernel and runs it.
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct ServingRequest {
  std::filesystem::path attention;   ///< a kernel for the problem paged_decode; empty: the ladder's last rung
  Backend backend = Backend::kAuto;  ///< emulated: a toy model, whose times mean nothing
};

/// How one way of batching went.
struct ServingPhase {
  std::string name;  ///< "attention"
  double ms = 0;     ///< of the timed steps
  double bytes = 0;  ///< that the timed steps have to move
};
struct ServingBatch {
  std::string batching;  ///< "static" or "continuous"
  double seconds = 0;
  std::int64_t steps = 0, tokens = 0, rows = 0, answer_rows = 0, wasted_rows = 0, timed_steps = 0;
  std::vector<ServingPhase> phases;
  double step_ms() const;  ///< mean of the timed steps
};

struct ServingRun {
  std::string time, tool, device, kernel;  ///< kernel: the file's name
  bool emulated = false;
  int requests = 0, places = 0;
  double attention_error = 0;  ///< the largest, against a plain fp32 kernel; infinite: NaN came out
  std::string model;           ///< "8 layers, hidden 2048 …"
  std::vector<ServingBatch> batches;
};
Json serving_json(const ServingRun& run);
/// @error a field is missing or has another type.
Result<ServingRun> read_serving(const Json& json);

/// The runs that are kept beside the program's source, by device.
std::vector<ServingRun> recorded_serving(const Resources& resources);

/// @error the kernel does not build or does not have the problem's launch(); the program ends early.
Result<ServingRun> run_serving(const ServingRequest& request, const Workspace& workspace,
                               const ProgressSink& progress);

}  // namespace capstone::workflows
