// y[i] = x[0] + … + x[i], in float64.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

/// Scale: the root of the sum of squares of the same elements. One pass over x, whatever the order of the indices.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  std::vector<std::int64_t> ascending(static_cast<std::size_t>(count));
  std::iota(ascending.begin(), ascending.end(), 0);
  std::sort(ascending.begin(), ascending.end(), [indices](auto a, auto b) { return indices[a] < indices[b]; });
  std::int64_t next = 0;  // elements below are in the sums
  double sum = 0, squares = 0;
  for (const std::int64_t i : ascending) {
    for (; next <= indices[i]; ++next) {
      sum += x[next];
      squares += static_cast<double>(x[next]) * x[next];
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
