// o[t, h, :] = sum_j softmax_j(q[t, h, :] . k[j, g, :] / sqrt(d)) * v[j, g, :] with g = h / (hq / hk), over
// the tokens j of t's sequence up to t itself; of bf16 operands, in float64.
#include "problems/oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

enum Slot { kQ, kK, kV, kOffsets, kO };

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// The weights of one query: which rows of v it takes, and how much of each.
struct Query {
  std::int64_t row = -1;                  ///< t * hq + h
  const std::uint16_t* values = nullptr;  ///< the first row of v that it takes
  std::vector<double> weight;
};

void compute_weights(const CapstoneCase* c, std::int64_t row, Query& query) {
  const std::int64_t hq = c->sizes[1], d = c->sizes[2], hk = c->sizes[3], segments = c->sizes[4];
  const std::int64_t token = row / hq, head = row % hq / (hq / hk);
  const auto* offsets = static_cast<const std::int32_t*>(c->parameters[kOffsets].data);
  const std::int64_t first =
      *(std::upper_bound(offsets, offsets + segments + 1, token) - 1);  // empty ones are passed over
  const auto* q = static_cast<const std::uint16_t*>(c->parameters[kQ].data) + row * d;
  const auto* k = static_cast<const std::uint16_t*>(c->parameters[kK].data) + (first * hk + head) * d;
  query.row = row;
  query.values = static_cast<const std::uint16_t*>(c->parameters[kV].data) + (first * hk + head) * d;
  query.weight.assign(static_cast<std::size_t>(token - first + 1), 0);
  const double factor = 1.0 / std::sqrt(static_cast<double>(d));
  for (std::size_t j = 0; j < query.weight.size(); ++j) {
    for (std::int64_t x = 0; x < d; ++x)
      query.weight[j] += value_of(q[x]) * value_of(k[static_cast<std::int64_t>(j) * hk * d + x]);
    query.weight[j] *= factor;
  }
  const double maximum = *std::max_element(query.weight.begin(), query.weight.end());
  double sum = 0;
  for (double& weight : query.weight) sum += weight = std::exp(weight - maximum);
  for (double& weight : query.weight) weight /= sum;
}

}  // namespace

/// Scale: the root of the sum of squares of the terms, which is what independent roundings of weights and
/// values add up to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t d = c->sizes[2], hk = c->sizes[3];
  Query query;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / d, x = indices[i] % d;
    if (row != query.row) compute_weights(c, row, query);
    double sum = 0, squares = 0;
    for (std::size_t j = 0; j < query.weight.size(); ++j) {
      const double term = query.weight[j] * value_of(query.values[static_cast<std::int64_t>(j) * hk * d + x]);
      sum += term;
      squares += term * term;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
