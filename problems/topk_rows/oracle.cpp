// The indices of the k largest elements of each row, in ascending order; exact.
#include "problems/oracle.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

/// What a row of the output holds: of equal elements the one with the lower index is chosen; -1 where the row
/// is short.
std::vector<std::int64_t> chosen(const float* row, std::int64_t valid, std::int64_t k) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(valid));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (valid > k) {
    const auto larger = [row](std::int64_t a, std::int64_t b) {
      return row[a] > row[b] || (row[a] == row[b] && a < b);
    };
    std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), larger);
    order.resize(static_cast<std::size_t>(k));
    std::sort(order.begin(), order.end());
  }
  order.resize(static_cast<std::size_t>(k), -1);
  return order;
}

}  // namespace

extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* x = static_cast<const float*>(c->parameters[0].data);
  const auto* length = static_cast<const std::int32_t*>(c->parameters[1].data);
  const std::int64_t n = c->sizes[1], k = c->sizes[2];
  std::int64_t row = -1;
  std::vector<std::int64_t> of_row;
  for (std::int64_t i = 0; i < count; ++i) {
    if (indices[i] / k != row) {
      row = indices[i] / k;
      of_row = chosen(x + row * n, std::clamp<std::int64_t>(length[row], 0, n), k);
    }
    value[i] = static_cast<double>(of_row[static_cast<std::size_t>(indices[i] % k)]);
    scale[i] = 1;
  }
}
