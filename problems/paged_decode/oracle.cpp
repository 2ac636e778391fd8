// o[s, h, :] = sum_j softmax_j(q[s, h, :] . k_j / sqrt(d)) * v_j over the tokens j < lengths[s] of a
// sequence, whose keys and values lie in the pages of its row of the table; zeros where there is no token; in
// float64, unrounded.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

enum Slot { kQ, kK, kV, kTable, kLengths };

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

struct Case {
  const std::uint16_t *q, *k, *v;
  const std::int32_t *table, *lengths;
  std::int64_t b, hq, d, max_pages, page, hk;

  explicit Case(const CapstoneCase* c)
      : b(c->sizes[0]),
        hq(c->sizes[1]),
        d(c->sizes[2]),
        max_pages(c->sizes[3]),
        page(c->sizes[4]),
        hk(c->sizes[5]) {
    const auto data = [c](Slot slot) { return c->parameters[slot].data; };
    q = static_cast<const std::uint16_t*>(data(kQ));
    k = static_cast<const std::uint16_t*>(data(kK));
    v = static_cast<const std::uint16_t*>(data(kV));
    table = static_cast<const std::int32_t*>(data(kTable));
    lengths = static_cast<const std::int32_t*>(data(kLengths));
  }
  /// Where a token's vector begins, in either cache. A table and lengths that were made for other sizes
  /// lead to some token of the cache.
  std::int64_t place(std::int64_t sequence, std::int64_t token, std::int64_t head) const {
    const std::int64_t number =
        std::clamp<std::int64_t>(table[sequence * max_pages + token / page], 0, b * max_pages - 1);
    return ((number * page + token % page) * hk + head) * d;
  }
  std::int64_t length(std::int64_t sequence) const {
    return std::clamp<std::int64_t>(lengths[sequence], 0, max_pages * page);
  }
};

/// The weights of one head of q of one sequence.
struct Query {
  std::int64_t row = -1;  ///< s * hq + h
  std::vector<double> vector, weight;
};

void compute_weights(const Case& c, std::int64_t row, Query& query) {
  const std::int64_t sequence = row / c.hq, head = row % c.hq / (c.hq / c.hk);
  query.row = row;
  query.vector.resize(static_cast<std::size_t>(c.d));
  query.weight.resize(static_cast<std::size_t>(c.length(sequence)));
  if (query.weight.empty()) return;
  for (std::int64_t x = 0; x < c.d; ++x)
    query.vector[static_cast<std::size_t>(x)] = value_of(c.q[row * c.d + x]);
  const double factor = 1.0 / std::sqrt(static_cast<double>(c.d));
  for (std::size_t j = 0; j < query.weight.size(); ++j) {
    const std::uint16_t* key = c.k + c.place(sequence, static_cast<std::int64_t>(j), head);
    double sum = 0;
    for (std::size_t x = 0; x < query.vector.size(); ++x) sum += query.vector[x] * value_of(key[x]);
    query.weight[j] = sum * factor;
  }
  const double maximum = *std::max_element(query.weight.begin(), query.weight.end());
  double total = 0;
  for (double& weight : query.weight) total += weight = std::exp(weight - maximum);
  for (double& weight : query.weight) weight /= total;
}

}  // namespace

/// Scale: the root of the sum of squares of the terms, which is what independent roundings of weights and
/// values add up to; at least the smallest normal number.
extern "C" void capstone_oracle(const CapstoneCase* given, int, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const Case c(given);
  constexpr double kSmallestNormal = 0x1p-126;
  Query query;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / c.d, x = indices[i] % c.d;
    if (row != query.row) compute_weights(c, row, query);
    const std::int64_t sequence = row / c.hq, head = row % c.hq / (c.hq / c.hk);
    double sum = 0, squares = kSmallestNormal * kSmallestNormal;
    for (std::size_t j = 0; j < query.weight.size(); ++j) {
      const double term =
          query.weight[j] * value_of(c.v[c.place(sequence, static_cast<std::int64_t>(j), head) + x]);
      sum += term;
      squares += term * term;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
