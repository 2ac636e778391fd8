#pragma once
// What is right, by whichever oracle a problem has.
#include <memory>
#include <string>

#include "harness/correctness/oracle.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

/// reference.py in float64, and how exact it is in its own precision.
class ReferenceOracle : public Oracle::Source {
 public:
  /// How far the reference is from itself in float64, at most, on the inputs that were asked about last; in
  /// units of the problem's tolerance without the allowance that evaluate()'s scale makes for that.
  virtual double rounding() const = 0;
};
/// @error as load_oracle()
Result<std::shared_ptr<ReferenceOracle>> load_reference_oracle(const Problem& problem,
                                                               const Resources& resources,
                                                               const std::string& python = "auto");

/// The problem's oracle.cpp in a sandboxed process (start_oracle()); or, where the problem says
/// `oracle: reference.py`, the reference itself: a sandboxed Python worker runs it in float64 on the CPU, all
/// outputs at once. The scale of an element is then the largest of its magnitude, the root mean square of its
/// tensor and a multiple of the rounding errors that the reference makes in its own precision.
/// @param python   a program, or "auto" and "none": the first python3 on PATH that has PyTorch
/// @param sandbox  for oracle.cpp; null: the strongest that works here, which takes a moment to find
/// @error no such oracle; no PyTorch (kEnvironment); reference.py does not load
Result<Oracle> load_oracle(const Problem& problem, const Resources& resources,
                           const std::string& python = "auto", const Sandbox* sandbox = nullptr);

}  // namespace capstone
