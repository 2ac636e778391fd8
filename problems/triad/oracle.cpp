// a[i] = b[i] + s c[i], in float64.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

/// Scale: |b| + |s c|, the sizes of what is rounded.
extern "C" void capstone_oracle(const CapstoneCase* k, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* b = static_cast<const float*>(k->parameters[0].data);
  const float* c = static_cast<const float*>(k->parameters[1].data);
  const double s = k->parameters[3].scalar;
  for (std::int64_t i = 0; i < count; ++i) {
    const double product = s * c[indices[i]];
    value[i] = b[indices[i]] + product;
    scale[i] = std::fabs(static_cast<double>(b[indices[i]])) + std::fabs(product);
  }
}
