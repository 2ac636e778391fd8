// y[r] = sum_c (x[r, c] - mean of row r), in float64: nothing but its own rounding. Scale: the sum of |x|.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const std::int64_t cols = c->parameters[0].shape[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = x + indices[i] * cols;
    double mean = 0, sum = 0, magnitude = 0;
    for (std::int64_t k = 0; k < cols; ++k) {
      mean += row[k];
      magnitude += std::fabs(row[k]);
    }
    mean /= double(cols);
    for (std::int64_t k = 0; k < cols; ++k) sum += row[k] - mean;
    value[i] = sum;
    scale[i] = magnitude;
  }
}
