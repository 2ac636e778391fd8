#pragma once
// A problem at given sizes: every expression of its signature evaluated once.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/base/error.h"
#include "harness/model/problem.h"

namespace capstone {

struct BoundTensor {
  int parameter = 0;  ///< index in problem.signature
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  std::size_t bytes = 0;
};

struct BoundProblem {
  const Problem* problem = nullptr;
  Sizes sizes;
  std::vector<BoundTensor> tensors;  ///< in signature order, without scalars
  std::vector<double> scalars;       ///< in signature order, without tensors
};

/// Maximum size of one tensor or one arena: far above any GPU's memory, far below where sizes and offsets
/// could overflow.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 46;

/// @error a shape or a scalar that cannot be evaluated; a tensor of more than kMostBytes
Result<BoundProblem> bound_at(const Problem& problem, const Sizes& sizes);

/// The error for sizes above kMostBytes.
tl::unexpected<Error> too_large(const std::string& name, const Sizes& sizes);

}  // namespace capstone
