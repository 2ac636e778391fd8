// lse[i] = log(sum_j exp(logits[i, j])) and loss[i] = lse[i] - logits[i, target[i]] of bf16 logits, in float64.
// The loss of a row is 0 if its target is not a class.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Slot { kLogits, kTarget, kLoss, kLse };

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

/// Scale: an error in the argument of exp moves lse by as much, and arguments carry rounding errors in proportion to
/// the maximum. The loss is a difference, and carries the rounding errors of both numbers.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* logits = static_cast<const std::uint16_t*>(c->parameters[kLogits].data);
  const auto* target = static_cast<const std::int32_t*>(c->parameters[kTarget].data);
  const std::int64_t vocab = c->sizes[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t* row = logits + indices[i] * vocab;
    const std::int64_t chosen = target[indices[i]];
    const bool counts = chosen >= 0 && chosen < vocab;
    if (output == kLoss && !counts) {
      value[i] = 0;
      scale[i] = 1;
      continue;
    }
    double maximum = value_of(row[0]), sum = 0;
    for (std::int64_t j = 1; j < vocab; ++j) maximum = std::max<double>(maximum, value_of(row[j]));
    for (std::int64_t j = 0; j < vocab; ++j) sum += std::exp(value_of(row[j]) - maximum);
    value[i] = maximum + std::log(sum);
    scale[i] = 1 + std::fabs(maximum);
    if (output == kLoss) {
      value[i] -= value_of(row[chosen]);
      scale[i] += std::fabs(static_cast<double>(value_of(row[chosen])));
    }
  }
}
