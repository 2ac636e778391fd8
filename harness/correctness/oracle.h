#pragma once
// A problem's oracle: exact values in float64 for any subset of an output's elements.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/base/error.h"
#include "harness/model/problem.h"

namespace capstone {

/// What computes expected values. The judge starts it in the sandbox: load_oracle()
/// (harness/judge/reference_oracle.h).
class Oracle {
 public:
  /// The process that computes them; see evaluate() for the arguments, which were checked.
  class Source {
   public:
    virtual ~Source() = default;
    virtual Result<void> evaluate(const Problem& problem, const Sizes& sizes,
                                  const std::vector<std::span<const std::byte>>& tensors,
                                  int output_parameter, std::span<const std::int64_t> indices,
                                  std::span<double> value, std::span<double> scale) = 0;
  };
  explicit Oracle(std::shared_ptr<Source> source) : source_(std::move(source)) {}

  /// Computes elements of one output, on all hardware threads.
  ///
  /// @param tensors  bytes of each tensor in signature order, without scalars; outputs empty, inouts before
  ///   the run
  /// @param output_parameter  index in problem.signature
  /// @param indices  [n] flat, row-major; neighbours together are cheapest
  /// @param value, scale  [n] see problems/oracle.h
  /// @error tensors that do not fit the signature, an index out of range, an exception in the oracle.
  Result<void> evaluate(const Problem& problem, const Sizes& sizes,
                        const std::vector<std::span<const std::byte>>& tensors, int output_parameter,
                        std::span<const std::int64_t> indices, std::span<double> value,
                        std::span<double> scale) const;

  /// All elements of one output; value and scale: [elements].
  Result<void> evaluate_all(const Problem& problem, const Sizes& sizes,
                            const std::vector<std::span<const std::byte>>& tensors, int output_parameter,
                            std::span<double> value, std::span<double> scale) const;

 private:
  std::shared_ptr<Source> source_;
};

}  // namespace capstone
