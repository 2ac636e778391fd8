#pragma once
// A problem's oracle on small inputs, without the other parts of the harness.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/model/problem.h"

namespace capstone::testing {

/// A problem with inputs; tensors in signature order (scalars: one element). Values are floats that the
/// tensor's dtype holds.
class OracleCase {
 public:
  /// Inputs follow the problem's `init`, drawn from a fixed generator.
  OracleCase(const std::string& id, Sizes sizes, std::uint64_t seed);

  const Problem& problem() const { return problem_; }
  std::int64_t size(const std::string& symbol) const { return size_of(sizes_, symbol); }
  std::vector<float>& tensor(const std::string& name);
  /// Number of elements of the output.
  std::int64_t output_elements() const;
  /// Applies `change` to every element of every input and parameter.
  void for_each_input(const std::function<float(float)>& change);
  /// Recomputes expected values and scales of the whole output: the first one, or the one named.
  void judge(const std::string& output = {});
  /// Expected values and scales of only these elements.
  void evaluate(const std::vector<std::int64_t>& indices, std::vector<double>& value,
                std::vector<double>& scale) const;
  /// max over elements of |got - expected| / (atol * scale + rtol * |expected|); above 1 fails; infinite for
  /// NaN.
  double badness(const std::vector<float>& got) const;

  std::vector<double> expected, scale;

 private:
  std::size_t index_of(const std::string& name) const;
  std::size_t output_index() const;

  Problem problem_;
  Sizes sizes_;
  std::string output_;  ///< of the last judge(); empty: the first
  std::vector<std::vector<float>> tensors_;
  std::vector<std::vector<std::int64_t>> shapes_;
};

}  // namespace capstone::testing
