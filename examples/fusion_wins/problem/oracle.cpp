// y = LayerNorm(residual + gelu(x + bias)) * gamma + beta over each row, in float64.
// gelu(t) = t/2 * (1 + erf(t / sqrt(2))), the exact form; variance is the biased one (divided by cols).
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

enum Slot { kX, kResidual, kBias, kGamma, kBeta, kY, kEps };

const float* floats(const CapstoneCase* c, Slot slot) {
  return static_cast<const float*>(c->parameters[slot].data);
}

double gelu(double t) { return 0.5 * t * (1.0 + std::erf(t * 0.70710678118654752440)); }

/// The row before normalisation, and what normalises it.
struct Row {
  std::int64_t index = -1;
  std::vector<double> value;
  double mean = 0, inverse_deviation = 0, root_mean_square = 0;
};

void compute_row(const CapstoneCase* c, std::int64_t index, std::int64_t cols, Row& row) {
  const float* x = floats(c, kX) + index * cols;
  const float* residual = floats(c, kResidual) + index * cols;
  const float* bias = floats(c, kBias);
  row.index = index;
  row.value.resize(static_cast<std::size_t>(cols));
  double sum = 0, squares = 0;
  for (std::int64_t j = 0; j < cols; ++j) {
    const double v = residual[j] + gelu(static_cast<double>(x[j]) + bias[j]);
    row.value[static_cast<std::size_t>(j)] = v;
    sum += v;
    squares += v * v;
  }
  row.mean = sum / static_cast<double>(cols);
  row.root_mean_square = std::sqrt(squares / static_cast<double>(cols));
  double variance = 0;  // second pass: no cancellation
  for (double v : row.value) variance += (v - row.mean) * (v - row.mean);
  variance /= static_cast<double>(cols);
  row.inverse_deviation = 1.0 / std::sqrt(variance + c->parameters[kEps].scalar);
}

}  // namespace

/// Scale: a relative error e in the row's values moves y_j by about e * |gamma_j| / deviation * (|terms of
/// v_j| + rms(v) * (1 + |z_j|)): the first part is the element's own rounding, then the mean's, then the
/// deviation's.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t cols = c->sizes[1];
  const float *x = floats(c, kX), *residual = floats(c, kResidual), *bias = floats(c, kBias);
  const float *gamma = floats(c, kGamma), *beta = floats(c, kBeta);
  Row row;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t r = indices[i] / cols, j = indices[i] % cols;
    if (r != row.index) compute_row(c, r, cols, row);
    const double z = (row.value[static_cast<std::size_t>(j)] - row.mean) * row.inverse_deviation;
    value[i] = z * gamma[j] + beta[j];
    const double terms =
        std::fabs(residual[indices[i]]) + std::fabs(static_cast<double>(x[indices[i]]) + bias[j]);
    const double spread = terms + row.root_mean_square * (1.0 + std::fabs(z));
    scale[i] = std::fabs(gamma[j]) * row.inverse_deviation * spread + std::fabs(beta[j]);
  }
}
