// y = GroupNorm(swish(x weight^T + linear_bias) + bias) with groups of 32 channels of one row, in float64.
// swish(z) = z / (1 + exp(-z)); variance is the biased one.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

namespace {

enum Slot { kX, kWeight, kLinearBias, kBias, kGamma, kBeta, kY, kEps };
constexpr std::int64_t kGroup = 32;

const float* floats(const CapstoneCase* c, Slot slot) {
  return static_cast<const float*>(c->parameters[slot].data);
}

/// One group before normalisation, what normalises it, and what an error of its products does.
struct Group {
  std::int64_t index = -1;  ///< row * groups + group
  double value[kGroup], error[kGroup];
  double mean = 0, inverse_deviation = 0, error_rms = 0;
};

void compute_group(const CapstoneCase* c, std::int64_t index, std::int64_t k, std::int64_t channels, Group& group) {
  const std::int64_t row = index * kGroup / channels, first = index * kGroup % channels;
  const float *x = floats(c, kX) + row * k, *weight = floats(c, kWeight) + first * k;
  group.index = index;
  double sum = 0, errors = 0;
  for (std::int64_t j = 0; j < kGroup; ++j) {
    double z = floats(c, kLinearBias)[first + j], squares = z * z;
    for (std::int64_t p = 0; p < k; ++p) {
      const double product = static_cast<double>(x[p]) * weight[j * k + p];
      z += product;
      squares += product * product;
    }
    group.value[j] = z / (1.0 + std::exp(-z)) + floats(c, kBias)[first + j];
    group.error[j] = 1.1 * std::sqrt(squares) + 0.05 * std::fabs(group.value[j]);  // the slope of swish is at most 1.1
    sum += group.value[j];
    errors += group.error[j] * group.error[j];
  }
  group.mean = sum / kGroup;
  group.error_rms = std::sqrt(errors / kGroup);
  double variance = 0;  // second pass: no cancellation
  for (double v : group.value) variance += (v - group.mean) * (v - group.mean);
  group.inverse_deviation = 1.0 / std::sqrt(variance / kGroup + c->parameters[kEps].scalar);
}

}  // namespace

/// Scale: independent errors in the group's products move y_j by gamma_j / deviation times its own error, and times a
/// root-of-32nd of their root mean square for the mean, and again for the deviation.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t k = c->sizes[1], channels = c->sizes[2];
  const float *gamma = floats(c, kGamma), *beta = floats(c, kBeta);
  Group group;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = indices[i] / kGroup, j = indices[i] % kGroup, channel = indices[i] % channels;
    if (index != group.index) compute_group(c, index, k, channels, group);
    const double z = (group.value[j] - group.mean) * group.inverse_deviation;
    value[i] = z * gamma[channel] + beta[channel];
    const double others = group.error_rms * (1.0 + std::fabs(z)) / std::sqrt(static_cast<double>(kGroup));
    scale[i] = std::fabs(gamma[channel]) * group.inverse_deviation * (group.error[j] + others) + 0.05 * std::fabs(beta[channel]);
  }
}
