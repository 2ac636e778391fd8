// y[i] = x[i].
#include "problems/oracle.h"

#include <cstdint>

/// Scale: 0, for nothing is rounded.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  for (std::int64_t i = 0; i < count; ++i) {
    value[i] = x[indices[i]];
    scale[i] = 0;
  }
}
