// o[s, t, h, :] = sum_j softmax_j(q[s, t, h, :] . c_j / 24) * c_j[0:512] over the tokens of a list, which lie
// in a cache in e4m3 with a scale for 128 numbers; zeros where the list is empty; in float64, unrounded.
#include "problems/oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

enum Slot { kQ, kCache, kIndices };

constexpr std::int64_t kKey = 576, kValue = 512, kToken = 656, kBlock = 128;
constexpr std::int64_t kScales = kValue, kPosition = kValue + 16;  // [B] where they begin in a token

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// The value of each code of e4m3.
const std::array<double, 256>& codes() {
  static const auto values = [] {
    std::array<double, 256> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = capstone_types::e4m3_value(static_cast<std::uint8_t>(i));
    return all;
  }();
  return values;
}

struct Case {
  const std::uint16_t* q;
  const std::uint8_t* cache;
  const std::int32_t* indices;
  std::int64_t h, tokens, topk;

  explicit Case(const CapstoneCase* c) : h(c->sizes[2]), tokens(c->sizes[3]), topk(c->sizes[4]) {
    const auto data = [c](Slot slot) { return c->parameters[slot].data; };
    q = static_cast<const std::uint16_t*>(data(kQ));
    cache = static_cast<const std::uint8_t*>(data(kCache));
    indices = static_cast<const std::int32_t*>(data(kIndices));
  }
};

/// The tokens of one list, [count, 576]. An index that was made for another cache leads to its last token.
struct List {
  std::int64_t number = -1;
  std::vector<double> token;

  std::int64_t count() const { return static_cast<std::int64_t>(token.size()) / kKey; }
  const double* at(std::int64_t j) const { return token.data() + j * kKey; }

  void read(const Case& c, std::int64_t which) {
    number = which;
    token.clear();
    for (std::int64_t j = 0; j < c.topk; ++j) {
      const std::int64_t index = c.indices[which * c.topk + j];
      if (index < 0) continue;
      const std::uint8_t* from = c.cache + std::min(index, c.tokens - 1) * kToken;
      float scale[kValue / kBlock];
      std::uint16_t position[kKey - kValue];
      std::memcpy(scale, from + kScales, sizeof scale);
      std::memcpy(position, from + kPosition, sizeof position);
      for (std::int64_t x = 0; x < kValue; ++x)
        token.push_back(codes()[from[x]] * static_cast<double>(scale[x / kBlock]));
      for (const std::uint16_t bits : position) token.push_back(value_of(bits));
    }
  }
};

/// The weights of one head of one new token.
struct Query {
  std::int64_t row = -1;
  std::vector<double> weight;
};

void compute_weights(const Case& c, std::int64_t row, const List& list, Query& query) {
  query.row = row;
  query.weight.assign(static_cast<std::size_t>(list.count()), 0);
  if (query.weight.empty()) return;
  double vector[kKey];
  for (std::int64_t x = 0; x < kKey; ++x) vector[x] = value_of(c.q[row * kKey + x]);
  const double factor = 1.0 / std::sqrt(static_cast<double>(kKey));
  for (std::size_t j = 0; j < query.weight.size(); ++j) {
    const double* key = list.at(static_cast<std::int64_t>(j));
    double sums[8] = {};  // eight at once: a single one would wait for each addition
    for (std::int64_t x = 0; x < kKey; x += 8)
      for (std::int64_t i = 0; i < 8; ++i) sums[i] += vector[x + i] * key[x + i];
    query.weight[j] = std::accumulate(sums, sums + 8, 0.0) * factor;
  }
  const double maximum = *std::max_element(query.weight.begin(), query.weight.end());
  double total = 0;
  for (double& weight : query.weight) total += weight = std::exp(weight - maximum);
  for (double& weight : query.weight) weight /= total;
}

/// Sums of terms and of their squares for `count` columns from `first` on.
void add_up(const List& list, const Query& query, std::int64_t first, std::int64_t count, double* sum,
            double* squares) {
  std::fill_n(sum, count, 0.0);
  std::fill_n(squares, count, 0.0);
  for (std::size_t j = 0; j < query.weight.size(); ++j) {
    const double* from = list.at(static_cast<std::int64_t>(j)) + first;
    const double weight = query.weight[j];
    for (std::int64_t x = 0; x < count; ++x) {
      const double term = weight * from[x];
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
  List list;
  Query query;
  double sum[kValue], squares[kValue];
  for (std::int64_t i = 0, run; i < count; i += run) {
    const std::int64_t row = indices[i] / kValue, x = indices[i] % kValue;
    if (row / c.h != list.number) list.read(c, row / c.h);
    if (row != query.row) compute_weights(c, row, list, query);
    for (run = 1; i + run < count && x + run < kValue && indices[i + run] == indices[i] + run;) ++run;
    add_up(list, query, x, run, sum, squares);
    for (std::int64_t k = 0; k < run; ++k) {
      value[i + k] = sum[k];
      scale[i + k] = std::sqrt(squares[k] + kSmallestNormal * kSmallestNormal);
    }
  }
}
