#pragma once
// `kernelbench run`: a folder of candidates against a folder of KernelBench's problems. Resumable: a
// candidate that was judged before is not judged again.
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/options.h"
#include "harness/kernelbench/suite.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct KernelBenchRequest {
  std::string problems;                     ///< folder
  std::string solutions;                    ///< folder; unused with `self`
  std::string out = "kernelbench-results";  ///< folder for definitions, records and results
  bool self = false;                        ///< judge each problem's own reference instead
  bool again = false;                       ///< also what was judged before
  int level = 0;                            ///< 0: all
  double memory_gb = 0;                     ///< that an imported problem may take; 0: see memory_for()
  JudgeOptions judge;
};

/// What is known about one sample.
struct JudgedSample {
  std::string key;  ///< problem, sample, digests of source and definition
  std::optional<Measurement> measurement;
  std::string refused;  ///< why there is no measurement
  bool before = false;  ///< judged by an earlier run
};

struct KernelBenchOutcome {
  Suite suite;
  std::vector<JudgedSample> judged;  ///< in the order of suite.samples
  int compiled = 0, correct = 0, timed = 0, refused = 0;
  std::vector<FastPoint> fast;    ///< at p = 0, 1, 2
  std::filesystem::path records;  ///< one line for each judgement
  std::filesystem::path results;  ///< the folder with eval_results.json
};

struct KernelBenchEvents {
  ProgressSink progress;
  std::function<void(std::size_t number, std::size_t all, const SuiteSample&, const JudgedSample&)> judged;
};

/// @error no problems or candidates; PyTorch does not work; interrupted (everything judged so far is kept).
Result<KernelBenchOutcome> run_kernelbench(const KernelBenchRequest& request, const Workspace& workspace,
                                           const KernelBenchEvents& events);

/// [B] GPU memory for imported problems: `gigabytes` if given; else what the GPU here has; else 8 GB.
Result<double> memory_for(double gigabytes, Backend backend, const Resources& resources);

}  // namespace capstone::workflows
