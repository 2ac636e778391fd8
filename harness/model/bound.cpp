#include "harness/model/bound.h"

#include <fmt/format.h>

namespace capstone {
namespace {

Result<BoundTensor> bound_tensor(const Problem& problem, int parameter, const Sizes& sizes) {
  const Parameter& definition = problem.signature[static_cast<std::size_t>(parameter)];
  BoundTensor tensor;
  tensor.parameter = parameter;
  CAPSTONE_TRY(tensor.shape, shape_at(definition, sizes));
  CAPSTONE_TRY(const bool whole, has_whole_rows(definition, sizes));
  if (!whole)
    return fail(fmt::format("the rows of {} end within a byte: their length is {}", definition.name,
                            tensor.shape.back()),
                to_string(sizes), fmt::format("{} holds two elements a byte", name_of(definition.dtype)));
  std::size_t widest = unit_bytes(definition.dtype);
  tensor.elements = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0 || (extent > 0 && widest > kMostBytes / static_cast<std::size_t>(extent)))
      return too_large(definition.name, sizes);
    widest *= static_cast<std::size_t>(extent);
    tensor.elements *= extent;
  }
  tensor.bytes = bytes_of(definition.dtype, static_cast<std::size_t>(tensor.elements));
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
