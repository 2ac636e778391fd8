// y[r, o] = sum_i x[r, i] * w[o, i], in float64. Scale: the root of the sum of squared products, as in sgemm.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const float* w = static_cast<const float*>(c->parameters[1].data);
  const std::int64_t ins = c->parameters[0].shape[1], outs = c->parameters[1].shape[0];
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = x + indices[i] / outs * ins;
    const float* weights = w + indices[i] % outs * ins;
    double sum = 0, squares = 0;
    for (std::int64_t k = 0; k < ins; ++k) {
      const double product = double(row[k]) * weights[k];
      sum += product;
      squares += product * product;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
