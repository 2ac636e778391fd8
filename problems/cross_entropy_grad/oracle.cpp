// loss[i] = log(sum_j exp(logits[i, j])) - logits[i, target[i]] of bf16 logits, and its gradient by the
// logits, softmax - onehot, in float64. Loss and gradient of a row are 0 if its target is not a class.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Slot { kLogits, kTarget, kLoss };

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

/// Scale: rtol decides about a probability; 1e-30 lets one that fp32 cannot hold be 0. At the target 1 is
/// subtracted from it, and a loss is a difference of two numbers: there fp32 rounds in proportion to these.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const auto* logits = static_cast<const std::uint16_t*>(c->parameters[kLogits].data);
  const auto* target = static_cast<const std::int32_t*>(c->parameters[kTarget].data);
  const std::int64_t vocab = c->sizes[1];
  std::int64_t row = -1;
  double maximum = 0, lse = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t wanted = output == kLoss ? indices[i] : indices[i] / vocab;
    const std::uint16_t* of_row = logits + wanted * vocab;
    if (wanted != row) {
      row = wanted;
      double sum = 0;
      maximum = value_of(of_row[0]);
      for (std::int64_t j = 1; j < vocab; ++j) maximum = std::max<double>(maximum, value_of(of_row[j]));
      for (std::int64_t j = 0; j < vocab; ++j) sum += std::exp(value_of(of_row[j]) - maximum);
      lse = maximum + std::log(sum);
    }
    const std::int64_t chosen = target[row];
    value[i] = 0;
    scale[i] = 1e-30;
    if (chosen < 0 || chosen >= vocab) continue;
    if (output == kLoss) {
      value[i] = lse - value_of(of_row[chosen]);
      scale[i] = 1 + std::fabs(maximum) + std::fabs(static_cast<double>(value_of(of_row[chosen])));
    } else {
      const std::int64_t column = indices[i] % vocab;
      const double probability = std::exp(value_of(of_row[column]) - lse), hit = column == chosen;
      value[i] = probability - hit;
      scale[i] += hit;
    }
  }
}
