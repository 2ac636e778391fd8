#pragma once
// `calibrate`: how well this GPU can tell kernels apart. Kernels are judged against themselves (A/A pairs)
// and against the same kernel with 3 % more work.
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/timing/statistics.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct CalibrateRequest {
  int pairs = 200;     ///< of a kernel and itself, over three running times
  int slower = 40;     ///< of a kernel and its slower copy
  int together = 8;    ///< pairs judged in one run
  double minutes = 8;  ///< stop after this time
  double budget = 10;  ///< seconds of timing, a run
  std::string out = "calibration.jsonl";
};

/// The pairs of one kind and running time.
struct CalibrationGroup {
  bool same = true;   ///< against itself; false: against 3 % more work
  std::string about;  ///< "20 us"
  int pairs = 0;
  int expected = 0;  ///< verdicts as they should be: TIE against itself, else SLOWER
  int narrow = 0;    ///< half-width of the interval at most 1 %
  double median_ms = 0, median_half_width = 0;
};

struct CalibrateOutcome {
  std::vector<CalibrationGroup> groups;
  int against_itself = 0;  ///< pairs of a kernel and itself; among them:
  int wrong = 0;           ///< FASTER or SLOWER
  int unresolved = 0;      ///< the interval stayed too wide in the time: no claim
  Interval wrong_share;    ///< exact 95 % interval
  int left = 0;            ///< pairs that were not judged in the time
  std::filesystem::path file;
};

/// Judges pairs until all are done or the time is up, and appends a line for each to the file. Repeated calls
/// continue.
/// @error no GPU; the file holds pairs of another GPU.
Result<CalibrateOutcome> calibrate(const CalibrateRequest& request, const Workspace& workspace,
                                   const ProgressSink& progress);

/// Groups and counts the lines of a calibration file.
CalibrateOutcome summarize_calibration(const std::vector<Json>& lines);

}  // namespace capstone::workflows
