#include "harness/model/bound.h"

#include <fmt/format.h>

namespace capstone {
namespace {

Result<BoundTensor> bound_tensor(const Problem& problem, int parameter, const Sizes& sizes) {
  const Parameter& definition = problem.signature[static_cast<std::size_t>(parameter)];
  BoundTensor tensor;
  tensor.parameter = parameter;
  CAPSTONE_TRY(tensor.shape, shape_at(definition, sizes));
  tensor.bytes = size_of(definition.dtype);
  tensor.elements = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0 || (extent > 0 && tensor.bytes > kMostBytes / static_cast<std::size_t>(extent)))
      return too_large(definition.name, sizes);
    tensor.bytes *= static_cast<std::size_t>(extent);
    tensor.elements *= extent;
  }
  return tensor;
}

}  // namespace

tl::unexpected<Error> too_large(const std::string& name, const Sizes& sizes) {
  return fail(fmt::format("{} does not fit: more than {} TiB", name, kMostBytes >> 40), to_string(sizes),
              "check the shape and workspace_bytes() at these sizes");
}

Result<BoundProblem> bound_at(const Problem& problem, const Sizes& sizes) {
  BoundProblem bound;
  bound.problem = &problem;
  bound.sizes = sizes;
  for (int i = 0; i < static_cast<int>(problem.signature.size()); ++i) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(i)];
    if (parameter.is_scalar()) {
      CAPSTONE_TRY(const double value, parameter.value->evaluate(sizes));
      bound.scalars.push_back(value);
    } else {
      CAPSTONE_TRY(BoundTensor tensor, bound_tensor(problem, i, sizes));
      bound.tensors.push_back(std::move(tensor));
    }
  }
  return bound;
}

}  // namespace capstone
