// One token for each row: the kept prefix of the descending order, then the inverse of its distribution in
// the order of the tokens; in whole numbers, exact.
#include "problems/oracle.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using Whole = std::uint64_t;

/// floor(2^31 p); the sum over a row stays below 2^32.
Whole weight(float p) { return static_cast<Whole>(static_cast<double>(p) * 0x1p31); }
/// floor(2^24 x), for x from 0 to 1.
Whole part_of(float x) { return static_cast<Whole>(static_cast<double>(x) * 0x1p24); }

/// The tokens that are kept. Tokens without weight are left out: they add nothing and are never drawn.
std::vector<std::int64_t> kept(const float* row, std::int64_t v, float top_p, std::int32_t top_k) {
  std::vector<std::int64_t> order;
  Whole all = 0;
  for (std::int64_t i = 0; i < v; ++i) {
    if (weight(row[i]) > 0) order.push_back(i);
    all += weight(row[i]);
  }
  std::sort(order.begin(), order.end(),
            [row](std::int64_t a, std::int64_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
  Whole mass = 0;
  std::size_t count = 0;
  while (count < order.size() && count < static_cast<std::size_t>(top_k)) {
    mass += weight(row[order[count++]]);
    if (mass << 24 >= part_of(top_p) * all) break;
  }
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

std::int64_t sample(const float* row, std::int64_t v, float top_p, std::int32_t top_k, float u) {
  const std::vector<std::int64_t> tokens = kept(row, v, top_p, top_k);
  Whole mass = 0, before = 0;
  for (const std::int64_t i : tokens) mass += weight(row[i]);
  const Whole target = part_of(u) * mass >> 24;
  for (const std::int64_t i : tokens) {
    before += weight(row[i]);
    if (before > target) return i;
  }
  return 0;  // a row without weight
}

}  // namespace

extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* probs = static_cast<const float*>(c->parameters[0].data);
  const auto* top_p = static_cast<const float*>(c->parameters[1].data);
  const auto* top_k = static_cast<const std::int32_t*>(c->parameters[2].data);
  const auto* u = static_cast<const float*>(c->parameters[3].data);
  const std::int64_t v = c->sizes[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i];
    value[i] = static_cast<double>(sample(probs + row * v, v, top_p[row], top_k[row], u[row]));
    scale[i] = 1;
  }
}
