#include "harness/correctness/oracle.h"

#include <fmt/format.h>

#include <numeric>

namespace capstone {
namespace {

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// One for each tensor of the signature, in its size; outputs have none.
Result<void> check_tensors(const Problem& problem, const Sizes& sizes,
                           const std::vector<std::span<const std::byte>>& tensors) {
  std::size_t next = 0;
  for (const Parameter& parameter : problem.signature) {
    if (parameter.is_scalar()) continue;
    if (next >= tensors.size())
      return fail("the oracle was given too few tensors", problem.id, {}, ExitCode::kInternal);
    const std::size_t got = tensors[next++].size();
    if (parameter.role == Role::kOutput) continue;
    CAPSTONE_TRY(const auto shape, shape_at(parameter, sizes));
    const std::size_t needed = bytes_of(parameter.dtype, static_cast<std::size_t>(elements_of(shape)));
    if (got != needed)
      return fail(fmt::format("the oracle needs {} bytes of {}, but got {}", needed, parameter.name, got), {},
                  {}, ExitCode::kInternal);
  }
  if (next != tensors.size())
    return fail("the oracle was given too many tensors", problem.id, {}, ExitCode::kInternal);
  return {};
}

}  // namespace

Result<void> Oracle::evaluate(const Problem& problem, const Sizes& sizes,
                              const std::vector<std::span<const std::byte>>& tensors, int output_parameter,
                              std::span<const std::int64_t> indices, std::span<double> value,
                              std::span<double> scale) const {
  CAPSTONE_CHECK(check_tensors(problem, sizes, tensors));
  if (output_parameter < 0 || output_parameter >= static_cast<int>(problem.signature.size()) ||
      !problem.signature[static_cast<std::size_t>(output_parameter)].is_written())
    return fail(fmt::format("parameter {} of {} is not an output", output_parameter, problem.id), {}, {},
                ExitCode::kInternal);
  if (value.size() != indices.size() || scale.size() != indices.size())
    return fail("value and scale must be as long as the indices", problem.id, {}, ExitCode::kInternal);
  CAPSTONE_TRY(const auto shape,
               shape_at(problem.signature[static_cast<std::size_t>(output_parameter)], sizes));
  const std::int64_t elements = elements_of(shape);
  for (const std::int64_t index : indices)
    if (index < 0 || index >= elements)
      return fail(fmt::format("element {} of {} was requested", index, elements), problem.id, {},
                  ExitCode::kInternal);
  return source_->evaluate(problem, sizes, tensors, output_parameter, indices, value, scale);
}

Result<void> Oracle::evaluate_all(const Problem& problem, const Sizes& sizes,
                                  const std::vector<std::span<const std::byte>>& tensors,
                                  int output_parameter, std::span<double> value,
                                  std::span<double> scale) const {
  std::vector<std::int64_t> indices(value.size());
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return evaluate(problem, sizes, tensors, output_parameter, indices, value, scale);
}

}  // namespace capstone
