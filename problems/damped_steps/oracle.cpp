// v = damping v + drive[s mod 16], steps[c] times from x[r, c], in float64.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

/// Scale: the same recurrence over the sizes of its terms, which is what their roundings add up to at most.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* x = static_cast<const float*>(c->parameters[0].data);
  const auto* steps = static_cast<const std::int32_t*>(c->parameters[1].data);
  const auto* drive = static_cast<const float*>(c->parameters[2].data);
  const double damping = c->parameters[4].scalar;
  const std::int64_t cols = c->sizes[1];
  for (std::int64_t i = 0; i < count; ++i) {
    double v = x[indices[i]], size = std::fabs(v);
    for (std::int32_t s = 0; s < steps[indices[i] % cols]; ++s) {
      v = damping * v + drive[s % 16];
      size = damping * size + std::fabs(static_cast<double>(drive[s % 16]));
    }
    value[i] = v;
    scale[i] = size;
  }
}
