// z[i] = x[i] + y[i] in float64; minus infinity where y[i] < 0.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <limits>

/// Scale: |z|, for the rounding of the result is all that may differ; of an infinite result 0.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const float* y = static_cast<const float*>(c->parameters[1].data);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool masked = y[indices[i]] < 0;
    const double sum = static_cast<double>(x[indices[i]]) + y[indices[i]];
    value[i] = masked ? -std::numeric_limits<double>::infinity() : sum;
    scale[i] = masked ? 0 : std::fabs(sum);
  }
}
