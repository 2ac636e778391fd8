#pragma once
// fast_p: the share of problems solved correctly and more than p times as fast as the baseline; and pass@k.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/timing/statistics.h"

namespace capstone {

/// The result of one sample (one of several kernels for its problem).
struct Solution {
  std::string problem;
  bool correct = false;
  std::optional<Interval> speedup;  ///< low = high = point where no interval is known; absent: not timed
};

/// One point of the curve.
struct FastPoint {
  double p = 0;
  int hits = 0, problems = 0;
  Interval share;    ///< hits / problems with its exact 95 % interval; all 0 without problems
  int resolved = 0;  ///< problems whose whole interval lies above p
};
/// The best sample of each problem counts; wrong and untimed ones count as problems. Strictly faster than p;
/// p = 0 means "correct".
/// @source Ouyang et al., "KernelBench: Can LLMs Write Efficient GPU Kernels?", 2025.
FastPoint fast_p(const std::vector<Solution>& solutions, double p);

/// The probability that at least one of k samples is correct if c of n were: 1 - C(n-c, k) / C(n, k); empty
/// for k > n.
/// @source Chen et al., "Evaluating Large Language Models Trained on Code", 2021, equation 1 (the unbiased
///   estimator).
std::optional<double> pass_at_k(int n, int c, int k);

struct PassAtK {
  int k = 0, problems = 0;  ///< problems with at least k samples
  double unbiased = 0;      ///< mean of pass_at_k over them
  double board = 0;         ///< mean of 1 - (1 - c/n)^k, the simple textbook estimate; too low for
                            ///< small n
};
PassAtK pass_at_k(const std::vector<Solution>& solutions, int k);

/// Reads KernelBench's eval_results.json: {"ID": [{"sample_id", "compiled", "correctness", "runtime" [ms]
/// …}]}. `baseline` holds the times of the reference, {"ID": ms}, {"ID": {"mean": ms}}, or the same one level
/// deeper ("level1": {"1_Name.py": {"mean": ms}}). An ID is matched by its leading number.
/// @error the files do not have that form.
Result<std::vector<Solution>> read_eval_results(const Json& results, const Json& baseline);

}  // namespace capstone
