// y[i] = the sum of c_k t^k with t = radius x[i] / (1 + |x[i]|), in float64.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

/// Scale: |t p'(t)|, what an error of t does to the sum; the sum of |c_k t^k|, what roundings of partial sums do; and an eighth of the root of
/// the sum of (k c_k t^k)^2, what powers that are not all computed from one another in the same way do.
extern "C" void capstone_oracle(const CapstoneCase* k, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(k->parameters[0].data);
  const float* c = static_cast<const float*>(k->parameters[1].data);
  const double radius = k->parameters[3].scalar;
  const std::int64_t terms = k->sizes[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const double xi = x[indices[i]], t = radius * xi / (1 + std::fabs(xi));
    double sum = 0, slope = 0, size = 0, squares = 0, power = 1;
    for (std::int64_t term = terms - 1; term >= 0; --term) sum = sum * t + c[term];
    for (std::int64_t term = 0; term < terms; ++term, power *= t) {
      const double part = c[term] * power, times = static_cast<double>(term) * part;
      slope += times, size += std::fabs(part), squares += times * times;
    }
    value[i] = sum;
    scale[i] = std::fabs(slope) + size + std::sqrt(squares) / 8;
  }
}
