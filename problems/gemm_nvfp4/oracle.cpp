// c[i, j] = sum_p a[i, p] sa[i, p / 16] b[j, p] sb[j, p / 16] in float64; unrounded. Every product is exact:
// codes have two significant bits, scales four.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>

namespace {

enum Slot { kA, kSfa, kB, kSfb };
constexpr std::int64_t kBlock = 16;

}  // namespace

/// Scale: the root of the sum of squared products, which is what independent roundings of the operands add up
/// to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const void *a = c->parameters[kA].data, *b = c->parameters[kB].data;
  const auto* sfa = static_cast<const std::uint8_t*>(c->parameters[kSfa].data);
  const auto* sfb = static_cast<const std::uint8_t*>(c->parameters[kSfb].data);
  const std::int64_t k = c->sizes[1], n = c->sizes[2], blocks = k / kBlock;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / n, column = indices[i] % n;
    double sum = 0, squares = 0;
    for (std::int64_t block = 0; block < blocks; ++block) {
      const double scales =
          capstone_types::e4m3_value(sfa[capstone_types::swizzled_scale_index(row, block, blocks)]) *
          capstone_types::e4m3_value(sfb[capstone_types::swizzled_scale_index(column, block, blocks)]);
      for (std::int64_t p = block * kBlock; p < (block + 1) * kBlock; ++p) {
        const double product =
            capstone_types::e2m1_at(a, row * k + p) * capstone_types::e2m1_at(b, column * k + p) * scales;
        sum += product;
        squares += product * product;
      }
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
