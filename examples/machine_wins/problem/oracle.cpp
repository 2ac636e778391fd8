// y[i, j] = exp(x[i, j] - max_i) / sum_k exp(x[i, k] - max_i), in float64.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

struct Row {
  std::int64_t index = -1;
  double maximum = 0, sum = 0;
  std::vector<double> power;  ///< exp(x - maximum)
};

void compute_row(const float* x, std::int64_t index, std::int64_t cols, Row& row) {
  const float* in = x + index * cols;
  row.index = index;
  row.maximum = *std::max_element(in, in + cols);
  row.power.resize(static_cast<std::size_t>(cols));
  row.sum = 0;
  for (std::int64_t j = 0; j < cols; ++j)
    row.sum += row.power[static_cast<std::size_t>(j)] = std::exp(in[j] - row.maximum);
}

}  // namespace

/// Scale: exp turns an absolute error of its argument into a relative one of y, and arguments carry rounding
/// errors in proportion to |x| and |max|: y * (1 + |x| + |max|). The tiny constant admits flushing of
/// denormals to zero.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  constexpr double kFlushed = 1.0e-30;
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const std::int64_t cols = c->sizes[1];
  Row row;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t r = indices[i] / cols;
    if (r != row.index) compute_row(x, r, cols, row);
    value[i] = row.power[static_cast<std::size_t>(indices[i] % cols)] / row.sum;
    scale[i] = value[i] * (1.0 + std::fabs(x[indices[i]]) + std::fabs(row.maximum)) + kFlushed;
  }
}
