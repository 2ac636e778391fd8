// y = (x - mean) / sqrt(variance + eps) * gamma + beta over each sample of c * h * w elements, in float64;
// the variance is the biased one.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

namespace {

enum Slot { kX, kGamma, kBeta, kY, kEps };

const float* floats(const CapstoneCase* c, Slot slot) {
  return static_cast<const float*>(c->parameters[slot].data);
}

/// What normalises one sample.
struct Sample {
  std::int64_t index = -1;
  double mean = 0, inverse_deviation = 0, root_mean_square = 0;
};

Sample sample_at(const CapstoneCase* c, std::int64_t index, std::int64_t length) {
  const float* x = floats(c, kX) + index * length;
  double sum = 0, squares = 0, variance = 0;
  for (std::int64_t j = 0; j < length; ++j) {
    sum += x[j];
    squares += static_cast<double>(x[j]) * x[j];
  }
  const double count = static_cast<double>(length), mean = sum / count;
  for (std::int64_t j = 0; j < length; ++j)
    variance += (x[j] - mean) * (x[j] - mean);  // second pass: no cancellation
  return {index, mean, 1.0 / std::sqrt(variance / count + c->parameters[kEps].scalar),
          std::sqrt(squares / count)};
}

}  // namespace

/// Scale: a relative error e in the sample's values moves y_j by about e * |gamma_j| / deviation * (|x_j| +
/// rms(x) * (1 + |z_j|)): the element's own rounding, then the mean's, then the deviation's.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t length = c->sizes[1] * c->sizes[2] * c->sizes[3];
  const float *x = floats(c, kX), *gamma = floats(c, kGamma), *beta = floats(c, kBeta);
  Sample sample;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t j = indices[i] % length;
    if (indices[i] / length != sample.index) sample = sample_at(c, indices[i] / length, length);
    const double own = x[indices[i]], z = (own - sample.mean) * sample.inverse_deviation;
    value[i] = z * gamma[j] + beta[j];
    scale[i] = std::fabs(gamma[j]) * sample.inverse_deviation *
                   (std::fabs(own) + sample.root_mean_square * (1.0 + std::fabs(z))) +
               std::fabs(beta[j]);
  }
}
