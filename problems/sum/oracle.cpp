// total = sum of x, in float64.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

/// Scale: the root of the sum of squares, which is what independent roundings of the elements add up to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t*, std::int64_t count, double* value,
                                double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const std::int64_t n = c->sizes[0];
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += x[i];
    squares += static_cast<double>(x[i]) * x[i];
  }
  for (std::int64_t i = 0; i < count; ++i) value[i] = sum, scale[i] = std::sqrt(squares);
}
