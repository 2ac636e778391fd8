// z[i] = x[i] + y[i], in float64.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

/// Scale: |z|, for the rounding of the result is all that may differ.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const float* y = static_cast<const float*>(c->parameters[1].data);
  for (std::int64_t i = 0; i < count; ++i) {
    value[i] = static_cast<double>(x[indices[i]]) + y[indices[i]];
    scale[i] = std::fabs(value[i]);
  }
}
