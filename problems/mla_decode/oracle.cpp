// o[s, t, h, :] = sum_j softmax_j(q[s, t, h, :] . c_j / 24) * c_j[0:512] over the tokens that new token t of
// a sequence sees, whose vectors lie in the pages of its row of the table; zeros where there is no token; in
// float64, unrounded.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

enum Slot { kQ, kCache, kTable, kLengths };

constexpr std::int64_t kPage = 64, kKey = 576, kValue = 512;

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

struct Case {
  const std::uint16_t *q, *cache;
  const std::int32_t *table, *lengths;
  std::int64_t b, s_q, h, max_pages;

  explicit Case(const CapstoneCase* c)
      : b(c->sizes[0]), s_q(c->sizes[1]), h(c->sizes[2]), max_pages(c->sizes[3]) {
    const auto data = [c](Slot slot) { return c->parameters[slot].data; };
    q = static_cast<const std::uint16_t*>(data(kQ));
    cache = static_cast<const std::uint16_t*>(data(kCache));
    table = static_cast<const std::int32_t*>(data(kTable));
    lengths = static_cast<const std::int32_t*>(data(kLengths));
  }
  /// Where a token's vector begins. A table and lengths that were made for other sizes lead to some token of
  /// the cache.
  std::int64_t place(std::int64_t sequence, std::int64_t token) const {
    const std::int64_t number =
        std::clamp<std::int64_t>(table[sequence * max_pages + token / kPage], 0, b * max_pages - 1);
    return (number * kPage + token % kPage) * kKey;
  }
  /// How many tokens a row of q, (s * s_q + t) * h + head, sees.
  std::int64_t seen(std::int64_t row) const {
    const std::int64_t sequence = row / h / s_q, later = s_q - 1 - row / h % s_q;
    return std::clamp<std::int64_t>(lengths[sequence] - later, 0, max_pages * kPage);
  }
};

/// The weights of one head of one new token, and where the vectors lie that they belong to.
struct Query {
  std::int64_t row = -1;
  std::vector<double> vector, weight;
  std::vector<const std::uint16_t*> token;
};

void compute_weights(const Case& c, std::int64_t row, Query& query) {
  const std::int64_t sequence = row / c.h / c.s_q;
  query.row = row;
  query.vector.resize(kKey);
  query.weight.resize(static_cast<std::size_t>(c.seen(row)));
  query.token.resize(query.weight.size());
  if (query.weight.empty()) return;
  for (std::int64_t x = 0; x < kKey; ++x)
    query.vector[static_cast<std::size_t>(x)] = value_of(c.q[row * kKey + x]);
  const double factor = 1.0 / std::sqrt(static_cast<double>(kKey));
  for (std::size_t j = 0; j < query.weight.size(); ++j) {
    const std::uint16_t* key = query.token[j] = c.cache + c.place(sequence, static_cast<std::int64_t>(j));
    double sums[8] = {};  // eight at once: a single one would wait for each addition
    for (std::size_t x = 0; x < query.vector.size(); x += 8)
      for (std::size_t i = 0; i < 8; ++i) sums[i] += query.vector[x + i] * value_of(key[x + i]);
    query.weight[j] = std::accumulate(sums, sums + 8, 0.0) * factor;
  }
  const double maximum = *std::max_element(query.weight.begin(), query.weight.end());
  double total = 0;
  for (double& weight : query.weight) total += weight = std::exp(weight - maximum);
  for (double& weight : query.weight) weight /= total;
}

/// Sums of terms and of their squares for `count` columns from `first` on.
void add_up(const Query& query, std::int64_t first, std::int64_t count, double* sum, double* squares) {
  std::fill_n(sum, count, 0.0);
  std::fill_n(squares, count, 0.0);
  for (std::size_t j = 0; j < query.weight.size(); ++j) {
    const std::uint16_t* from = query.token[j] + first;
    const double weight = query.weight[j];
    for (std::int64_t x = 0; x < count; ++x) {
      const double term = weight * value_of(from[x]);
      sum[x] += term;
      squares[x] += term * term;
    }
  }
}

}  // namespace

/// Scale: the root of the sum of squares of the terms, which is what independent roundings of weights and
/// values add up to; at least the smallest normal number.
extern "C" void capstone_oracle(const CapstoneCase* given, int, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const Case c(given);
  constexpr double kSmallestNormal = 0x1p-126;
  Query query;
  double sum[kValue], squares[kValue];
  for (std::int64_t i = 0, run; i < count; i += run) {
    const std::int64_t row = indices[i] / kValue, x = indices[i] % kValue;
    if (row != query.row) compute_weights(c, row, query);
    for (run = 1; i + run < count && x + run < kValue && indices[i + run] == indices[i] + run;) ++run;
    add_up(query, x, run, sum, squares);
    for (std::int64_t k = 0; k < run; ++k) {
      value[i + k] = sum[k];
      scale[i + k] = std::sqrt(squares[k] + kSmallestNormal * kSmallestNormal);
    }
  }
}
