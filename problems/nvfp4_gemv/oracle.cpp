// y[l, i] = sum_j a[l, i, j] sfa[l, i, j / 16] x[l, j] sfx[l, j / 16] in float64; unrounded. Every product is
// exact: codes have two significant bits, scales four.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

namespace {

enum Slot { kA, kSfa, kX, kSfx };
constexpr std::int64_t kBlock = 16;

}  // namespace

/// Scale: the root of the sum of squared products, which is what independent roundings of the operands add up
/// to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const void *a = c->parameters[kA].data, *x = c->parameters[kX].data;
  const auto* sfa = static_cast<const std::uint8_t*>(c->parameters[kSfa].data);
  const auto* sfx = static_cast<const std::uint8_t*>(c->parameters[kSfx].data);
  const std::int64_t m = c->sizes[1], k = c->sizes[2];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i], vector = row / m;
    double sum = 0, squares = 0;
    for (std::int64_t j = 0; j < k; ++j) {
      const double product = capstone_types::e2m1_at(a, row * k + j) *
                             capstone_types::e4m3_value(sfa[(row * k + j) / kBlock]) *
                             capstone_types::e2m1_at(x, vector * k + j) *
                             capstone_types::e4m3_value(sfx[(vector * k + j) / kBlock]);
      sum += product;
      squares += product * product;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
