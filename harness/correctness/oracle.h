#pragma once
// A problem's oracle: exact values in float64 for any subset of an output's elements.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/resources.h"
#include "harness/model/problem.h"
#include "problems/oracle.h"

namespace capstone {

class Oracle {
 public:
  /// Another source of expected values than an oracle.cpp; see evaluate() for the arguments.
  class Source {
   public:
    virtual ~Source() = default;
    virtual Result<void> evaluate(const Problem& problem, const Sizes& sizes,
                                  const std::vector<std::span<const std::byte>>& tensors,
                                  int output_parameter, std::span<const std::int64_t> indices,
                                  std::span<double> value, std::span<double> scale) = 0;
  };
  explicit Oracle(std::shared_ptr<Source> source) : source_(std::move(source)) {}

  /// For problems with an oracle.cpp; load_oracle() (harness/runtime/python) serves every problem. Loads the
  /// oracle that was built with capstone if the problem's oracle.cpp is byte-identical to the shipped one.
  /// Else compiles the problem's own oracle once and stores it in the cache under the digest of source and
  /// compiler.
  ///
  /// This runs code of the problem's author in the caller's process. To grade, load the problem from your own
  /// catalogue, never the copy that came with a submission.
  /// @error no oracle.cpp, no g++, the first error of the compiler, no capstone_oracle() inside.
  static Result<Oracle> load(const Problem& problem, const Resources& resources);

  /// Computes elements of one output on `threads` threads.
  ///
  /// @param tensors  bytes of each tensor in signature order, without scalars; outputs empty, inouts before
  ///   the run
  /// @param output_parameter  index in problem.signature
  /// @param indices  [n] flat, row-major; neighbours together are cheapest
  /// @param value, scale  [n] see problems/oracle.h
  /// @param threads  0: the number of hardware threads
  /// @error tensors that do not fit the signature, an index out of range, an exception in the oracle.
  Result<void> evaluate(const Problem& problem, const Sizes& sizes,
                        const std::vector<std::span<const std::byte>>& tensors, int output_parameter,
                        std::span<const std::int64_t> indices, std::span<double> value,
                        std::span<double> scale, int threads = 0) const;

  /// All elements of one output; value and scale: [elements].
  Result<void> evaluate_all(const Problem& problem, const Sizes& sizes,
                            const std::vector<std::span<const std::byte>>& tensors, int output_parameter,
                            std::span<double> value, std::span<double> scale, int threads = 0) const;

 private:
  using Function = decltype(&capstone_oracle);
  Oracle(std::shared_ptr<void> library, Function function)
      : library_(std::move(library)), function_(function) {}
  static Result<Oracle> open(const std::filesystem::path& library);

  std::shared_ptr<Source> source_;  ///< null: use function_ from library_
  std::shared_ptr<void> library_;
  Function function_ = nullptr;
};

}  // namespace capstone
