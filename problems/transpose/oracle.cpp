// y[j, i] = x[i, j], exact.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const std::int64_t rows = c->sizes[0], cols = c->sizes[1];
  for (std::int64_t i = 0; i < count; ++i) {
    value[i] = x[indices[i] % rows * cols + indices[i] / rows];
    scale[i] = std::fabs(value[i]);
  }
}
