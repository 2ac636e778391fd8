#pragma once
// The published set of kernels that a language model wrote, beside what was measured here: one row for each
// problem and class of precision.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/resources.h"

namespace capstone {

/// A ratio that was measured here.
struct ScoredRatio {
  double ratio = 0;     ///< time of the other arm divided by the kernel's
  std::string against;  ///< "eager", "compile", "native"
};

/// One kernel that was measured at the published sizes.
struct ScoredKernel {
  std::string kernel, device;  ///< "reference kernel 06_next_row", "NVIDIA H200"
  std::vector<ScoredRatio> ratios;
};

/// One published problem in one class.
struct ScoreRow {
  std::string name;      ///< "Conv2D"
  std::string sizes;     ///< as published
  std::string problem;   ///< the id here
  std::string judged;    ///< the class: "fp32", "1e-2"
  double published = 0;  ///< the ratio to PyTorch eager that was published; it was judged at 1e-2
  /// Measured here, one for each device; empty: not measured.
  std::vector<ScoredKernel> here;
  std::string remark;  ///< what becomes of the published claim in this class
};

/// @source the ratios: A. Ouyang, A. Mirhoseini, P. Liang, "Surprisingly fast AI-generated kernels we didn't
///   mean to publish (yet)", Stanford CRFM, 2025; measured on an L40S against PyTorch eager in fp32.
/// What was measured here comes from the results of ladders (against the native baseline) and from records
/// with PyTorch's arms (against eager and compile), at the published sizes alone.
/// @error a results file is damaged.
Result<std::vector<ScoreRow>> scorecard(const Resources& resources);

}  // namespace capstone
