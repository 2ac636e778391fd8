// y[i] = the sum of c_k t^k with t = radius x[i] / (1 + |x[i]|), in float64.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

/// Scale: the sum of (1 + k) |c_k| |t|^k: what an error of t, and the roundings of k steps, do to each term.
extern "C" void capstone_oracle(const CapstoneCase* k, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(k->parameters[0].data);
  const float* c = static_cast<const float*>(k->parameters[1].data);
  const double radius = k->parameters[3].scalar;
  const std::int64_t terms = k->sizes[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const double xi = x[indices[i]], t = radius * xi / (1 + std::fabs(xi));
    double sum = 0, size = 0, power = 1;
    for (std::int64_t term = terms - 1; term >= 0; --term) sum = sum * t + c[term];
    for (std::int64_t term = 0; term < terms; ++term, power *= std::fabs(t))
      size += static_cast<double>(1 + term) * std::fabs(static_cast<double>(c[term])) * power;
    value[i] = sum;
    scale[i] = size;
  }
}
