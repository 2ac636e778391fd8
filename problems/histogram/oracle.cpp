// counts[b] = how many elements of data are b, exact.
#include "problems/oracle.h"

#include <cstdint>

extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::uint8_t* data = static_cast<const std::uint8_t*>(c->parameters[0].data);
  const std::int64_t n = c->sizes[0];
  std::int64_t counts[256] = {};
  for (std::int64_t i = 0; i < n; ++i) ++counts[data[i]];
  for (std::int64_t i = 0; i < count; ++i) scale[i] = value[i] = static_cast<double>(counts[indices[i]]);
}
