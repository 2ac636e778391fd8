#include "harness/model/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "harness/base/text.h"

namespace capstone {

std::int64_t size_of(const Sizes& sizes, const std::string& symbol) {
  for (const auto& [name, value] : sizes)
    if (name == symbol) return value;
  throw std::out_of_range("no size symbol `" + symbol + "` in " + to_string(sizes));
}

std::string to_string(const Sizes& sizes) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : sizes) parts.push_back(fmt::format("{}={}", name, value));
  return join(parts, ", ");
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::kInput:
      return "input";
    case Role::kParameter:
      return "parameter";
    case Role::kInout:
      return "inout";
    case Role::kOutput:
      return "output";
    case Role::kScalar:
      return "scalar";
  }
  return "?";
}

std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kFp16:
      return "f16";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp8:
      return "fp8";
    case Precision::kFp4:
      return "fp4";
  }
  return "?";
}

const Parameter* Problem::find(const std::string& name) const {
  for (const Parameter& parameter : signature)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

Result<Cost> cost_at(const Problem& problem, const Sizes& sizes) {
  Cost cost;
  CAPSTONE_TRY(cost.flops, problem.flops.evaluate(sizes));
  CAPSTONE_TRY(cost.bytes, problem.bytes.evaluate(sizes));
  return cost;
}

Result<std::vector<std::int64_t>> shape_at(const Parameter& parameter, const Sizes& sizes) {
  std::vector<std::int64_t> shape;
  for (const Expression& dimension : parameter.shape) {
    CAPSTONE_TRY(std::int64_t extent, dimension.evaluate_integer(sizes));
    shape.push_back(extent);
  }
  return shape;
}

Result<bool> has_whole_rows(const Parameter& parameter, const Sizes& sizes) {
  if (!is_packed(parameter.dtype)) return true;
  CAPSTONE_TRY(const std::int64_t columns, parameter.shape.back().evaluate_integer(sizes));
  return columns % elements_per_unit(parameter.dtype) == 0;
}

Result<std::int64_t> elements_at(const Parameter& parameter, const Sizes& sizes) {
  CAPSTONE_TRY(const auto shape, shape_at(parameter, sizes));
  std::int64_t elements = 1;
  for (std::int64_t extent : shape) {
    if (extent > 0 && elements > std::numeric_limits<std::int64_t>::max() / 16 / extent)
      return fail(fmt::format("tensor `{}` has too many elements at {}", parameter.name, to_string(sizes)));
    elements *= extent;
  }
  return elements;
}

Result<std::int64_t> tensor_bytes_at(const Problem& problem, const Sizes& sizes) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : problem.signature) {
    if (parameter.is_scalar()) continue;
    CAPSTONE_TRY(const std::int64_t elements, elements_at(parameter, sizes));
    bytes += static_cast<std::int64_t>(bytes_of(parameter.dtype, static_cast<std::size_t>(elements)));
  }
  return bytes;
}

Result<bool> admissible(const Problem& problem, const Sizes& sizes) {
  for (const Parameter& parameter : problem.signature) {
    CAPSTONE_TRY(const bool whole, has_whole_rows(parameter, sizes));
    if (!whole) return false;
  }
  for (const Expression& relation : problem.where) {
    CAPSTONE_TRY(const double holds, relation.evaluate(sizes));
    if (holds == 0) return false;
  }
  return true;
}

namespace {

std::int64_t draw_one(const Vary& vary, const std::function<std::uint64_t()>& random) {
  if (!vary.one_of.empty()) return vary.one_of[random() % vary.one_of.size()];
  const std::int64_t first = (vary.low + vary.multiple_of - 1) / vary.multiple_of;
  std::int64_t last = vary.high / vary.multiple_of;
  // Half of the draws are small, because off-by-one errors show at sizes such as 1, 2, 31 and 33.
  if (random() & 1) last = std::min(last, first + 70 / vary.multiple_of);
  const auto choices = static_cast<std::uint64_t>(last - first + 1);
  return (first + static_cast<std::int64_t>(random() % choices)) * vary.multiple_of;
}

Result<bool> affordable(const Problem& problem, const Sizes& sizes, const Cost& cap) {
  CAPSTONE_TRY(const Cost cost, cost_at(problem, sizes));
  return cost.flops <= cap.flops && cost.bytes <= cap.bytes;
}

}  // namespace

Result<Sizes> draw_sizes(const Problem& problem, const std::function<std::uint64_t()>& random,
                         const Cost& cap) {
  constexpr int kAttempts = 10000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Sizes sizes;
    for (const std::string& symbol : problem.symbols)
      sizes.emplace_back(symbol, draw_one(problem.vary.at(symbol), random));
    CAPSTONE_TRY(const bool fits, admissible(problem, sizes));
    if (!fits) continue;
    CAPSTONE_TRY(const bool cheap, affordable(problem, sizes, cap));
    if (cheap) return sizes;
  }
  return fail(fmt::format("no sizes of `{}` under {:.3g} FLOP and {:.3g} bytes in {} draws", problem.id,
                          cap.flops, cap.bytes, kAttempts),
              (problem.folder / "problem.yaml").string(), "widen `vary`, or relax `where`");
}

}  // namespace capstone
