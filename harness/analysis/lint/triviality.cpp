#include "harness/analysis/lint/triviality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>

#include "harness/correctness/cases.h"
#include "harness/correctness/compare.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone {
namespace {

/// A trick's values for one output of one case; empty if it has none there.
using Answer = std::vector<double>;

struct Imitation {
  std::string name, what;
  std::function<Result<Answer>(const PreparedCase&, std::size_t output)> answer;
};

/// A precision class by the number of stored significand bits.
struct LowerClass {
  const char* name;
  int bits;
};

std::optional<LowerClass> next_lower(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return LowerClass{"tf32 or f16", 10};
    case Precision::kTf32:
    case Precision::kFp16:
      return LowerClass{"bf16", 7};
    case Precision::kBf16:
      return LowerClass{"fp8", 3};
    case Precision::kFp8:
      return LowerClass{"fp4", 1};
    case Precision::kFp4:
      return std::nullopt;
  }
  return std::nullopt;
}

// Rounds to nearest, ties to even, in the significand only: scale factors can take care of the range.
double keep_bits(double value, int bits) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1): the first bit is the implicit one
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits + 1)), exponent - bits - 1);
}

const TensorSlot& slot_of(const PreparedCase& prepared, std::size_t output) {
  return prepared.layout.tensors[static_cast<std::size_t>(prepared.outputs[output].slot)];
}

std::span<const std::byte> bytes_of(const PreparedCase& prepared, const TensorSlot& slot) {
  return std::span<const std::byte>(prepared.image).subspan(slot.offset, slot.bytes);
}

Imitation same_everywhere(std::string name, std::string what,
                          std::function<double(const std::vector<double>&)> value) {
  return {std::move(name), std::move(what),
          [value](const PreparedCase& prepared, std::size_t output) -> Result<Answer> {
            const std::vector<double>& expected = prepared.outputs[output].expected;
            return Answer(expected.size(), value(expected));
          }};
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The input repeated from its start, or each of its elements repeated several times.
Imitation copy_of(const Parameter& input, int parameter, bool stretched) {
  return {"copy", fmt::format("a copy of {}{}", input.name, stretched ? ", each element repeated" : ""),
          [parameter, stretched, type = input.dtype](const PreparedCase& prepared,
                                                     std::size_t output) -> Result<Answer> {
            const TensorSlot& from = *prepared.layout.find(parameter);
            const std::int64_t n = slot_of(prepared, output).elements;
            const std::int64_t repeats = n / std::max<std::int64_t>(from.elements, 1);
            if (stretched && (repeats < 2 || n % from.elements != 0)) return Answer{};
            const auto bytes = bytes_of(prepared, from);
            Answer answer(static_cast<std::size_t>(n));
            for (std::int64_t i = 0; i < n; ++i)
              answer[static_cast<std::size_t>(i)] =
                  load_as_double(type, bytes.data(), stretched ? i / repeats : i % from.elements);
            return answer;
          }};
}

Result<Answer> all_but_the_last_rows(const PreparedCase& prepared, std::size_t output) {
  Answer answer = prepared.outputs[output].expected;
  const TensorSlot& slot = slot_of(prepared, output);
  const std::int64_t row = slot.shape.empty() ? 1 : slot.shape.back(),
                     rows = slot.elements / std::max<std::int64_t>(row, 1);
  const std::int64_t missing = std::max<std::int64_t>(1, rows / 100) * row;
  std::fill(answer.end() - std::min<std::int64_t>(missing, slot.elements), answer.end(), 0.0);
  return answer;
}

/// The oracle's values for operands with fewer bits.
Imitation rounded_operands(const Problem& problem, const Oracle& oracle, const LowerClass& lower) {
  return {"lower_precision", fmt::format("operands rounded to {}", lower.name),
          [&problem, &oracle, bits = lower.bits](const PreparedCase& prepared,
                                                 std::size_t output) -> Result<Answer> {
            std::vector<std::byte> image = prepared.image;
            std::vector<std::span<const std::byte>> tensors;
            for (const TensorSlot& slot : prepared.layout.tensors) {
              const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
              if (parameter.role == Role::kOutput) {
                tensors.emplace_back();
                continue;
              }
              std::byte* data = image.data() + slot.offset;
              if (is_float(parameter.dtype))
                for (std::int64_t i = 0; i < slot.elements; ++i)
                  store_rounded(parameter.dtype, data, i,
                                keep_bits(load_as_double(parameter.dtype, data, i), bits));
              tensors.emplace_back(data, slot.bytes);
            }
            Answer answer(prepared.outputs[output].expected.size()), scale(answer.size());
            CAPSTONE_CHECK(oracle.evaluate_all(problem, prepared.plan.sizes, tensors,
                                               prepared.outputs[output].parameter, answer, scale));
            return answer;
          }};
}

std::vector<Imitation> imitations_of(const Problem& problem, const Oracle& oracle) {
  std::vector<Imitation> imitations;
  imitations.push_back(same_everywhere("zeros", "all zeros", [](const auto&) { return 0.0; }));
  int most_bits = 0;  // of an operand's significand
  for (std::size_t i = 0; i < problem.signature.size(); ++i) {
    const Parameter& parameter = problem.signature[i];
    if (parameter.is_scalar() || parameter.role == Role::kOutput) continue;
    most_bits = std::max(most_bits, significand_bits(parameter.dtype));
    for (const bool stretched : {false, true})
      imitations.push_back(copy_of(parameter, static_cast<int>(i), stretched));
  }
  imitations.push_back(same_everywhere("mean", "the mean of the expected values", mean_of));
  imitations.push_back(same_everywhere("constant", "the median of the expected values", median_of));
  imitations.push_back(same_everywhere("constant", "the first expected value everywhere",
                                       [](const auto& e) { return e.front(); }));
  imitations.push_back(same_everywhere("constant", "ones", [](const auto&) { return 1.0; }));
  imitations.push_back({"most_rows", "99 % of the rows right, the rest zero", all_but_the_last_rows});
  if (const auto lower = next_lower(problem.precision); lower && most_bits > lower->bits)
    imitations.push_back(rounded_operands(problem, oracle, *lower));
  return imitations;
}

/// Whether the answer, stored in the output's type, fails the comparison.
bool fails(const Problem& problem, const PreparedCase& prepared, std::size_t output, const Answer& answer) {
  const PreparedCase::Output& right = prepared.outputs[output];
  const DType type = problem.signature[static_cast<std::size_t>(right.parameter)].dtype;
  std::vector<std::byte> stored(capstone::bytes_of(type, answer.size()));
  for (std::size_t i = 0; i < answer.size(); ++i)
    store_rounded(type, stored.data(), static_cast<std::int64_t>(i), answer[i]);
  return !compare(type, stored, right.expected, right.scale, problem.tolerance).passed;
}

Result<std::vector<PreparedCase>> audited_cases(const Problem& problem, const Oracle& oracle) {
  std::vector<PreparedCase> cases;
  std::uint64_t seed = 1;
  for (const Battery battery : kBatteries) {
    if (battery != Battery::kPlain && !battery_applies(problem, battery)) continue;
    // If each case runs a module in float64 on the CPU, other values at the same sizes add nothing.
    const bool one_size = battery != Battery::kPlain && problem.oracle_is_reference;
    for (const Sizes& sizes : std::span(problem.check).first(one_size ? 1 : problem.check.size())) {
      CasePlan plan{std::string(name_of(battery)), sizes, seed++, battery};
      CAPSTONE_TRY(PreparedCase prepared, prepare_case(problem, plan, oracle, 0));
      cases.push_back(std::move(prepared));
    }
  }
  return cases;
}

}  // namespace

Result<std::vector<Trick>> audit_triviality(const Problem& problem, const Oracle& oracle) {
  CAPSTONE_TRY(const auto cases, audited_cases(problem, oracle));
  const auto imitations = imitations_of(problem, oracle);
  std::vector<Trick> tricks;
  for (std::size_t output = 0; !cases.empty() && output < cases.front().outputs.size(); ++output) {
    const Parameter& target =
        problem.signature[static_cast<std::size_t>(cases.front().outputs[output].parameter)];
    for (const Imitation& imitation : imitations) {
      Trick trick{imitation.name, target.name + " = " + imitation.what, false, {}};
      bool offered = false;
      for (const PreparedCase& prepared : cases) {
        CAPSTONE_TRY(const Answer answer, imitation.answer(prepared, output));
        if (answer.empty()) continue;
        offered = true;
        trick.caught = fails(problem, prepared, output, answer);
        if (trick.caught) break;
      }
      if (!offered) continue;
      if (const auto reason = problem.because.find(imitation.name); reason != problem.because.end())
        trick.because = reason->second;
      tricks.push_back(std::move(trick));
    }
  }
  return tricks;
}

}  // namespace capstone
