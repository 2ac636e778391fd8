// o[h, i, :] = sum_j softmax_j(q[h, i, :] . k[h, j, :] / sqrt(d)) * v[h, j, :] of fp16 operands, in float64.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

/// IEEE half: 1 sign bit, 5 of exponent, 10 of significand.
double value_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, significand = bits & 1023;
  double magnitude;
  if (exponent == 31) magnitude = significand ? NAN : INFINITY;
  else if (exponent == 0) magnitude = std::ldexp(significand, -24);
  else magnitude = std::ldexp(1024 + significand, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// The weights of one query: which rows of v it takes, and how much of each.
struct Query {
  std::int64_t row = -1;  ///< h * n + i
  std::vector<double> vector, weight;
};

void compute_weights(const CapstoneCase* c, std::int64_t row, std::int64_t n, std::int64_t d, Query& query) {
  const auto* q = static_cast<const std::uint16_t*>(c->parameters[0].data) + row * d;
  const auto* k = static_cast<const std::uint16_t*>(c->parameters[1].data) + row / n * n * d;
  const std::int64_t keys = n;
  query.row = row;
  query.vector.resize(static_cast<std::size_t>(d));
  query.weight.resize(static_cast<std::size_t>(keys));
  for (std::int64_t x = 0; x < d; ++x) query.vector[static_cast<std::size_t>(x)] = value_of(q[x]);
  const double factor = 1.0 / std::sqrt(static_cast<double>(d));
  for (std::int64_t j = 0; j < keys; ++j) {
    double sum = 0;
    for (std::int64_t x = 0; x < d; ++x) sum += query.vector[static_cast<std::size_t>(x)] * value_of(k[j * d + x]);
    query.weight[static_cast<std::size_t>(j)] = sum * factor;
  }
  const double maximum = *std::max_element(query.weight.begin(), query.weight.end());
  double total = 0;
  for (double& weight : query.weight) total += weight = std::exp(weight - maximum);
  for (double& weight : query.weight) weight /= total;
}

}  // namespace

/// Scale: the root of the sum of squares of the terms, which is what independent roundings of weights and values add up to. Weights,
/// and the result, below 2^-14 are subnormal halves, rounded as coarsely as 2^-14 is.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t n = c->sizes[1], d = c->sizes[2];
  Query query;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / d, x = indices[i] % d;
    if (row != query.row) compute_weights(c, row, n, d, query);
    const auto* v = static_cast<const std::uint16_t*>(c->parameters[2].data) + row / n * n * d + x;
    constexpr double kSmallestNormal = 0x1p-14;
    double sum = 0, squares = kSmallestNormal * kSmallestNormal;
    for (std::size_t j = 0; j < query.weight.size(); ++j) {
      const double factor = value_of(v[static_cast<std::int64_t>(j) * d]), coarse = std::max(query.weight[j], kSmallestNormal) * factor;
      sum += query.weight[j] * factor;
      squares += coarse * coarse;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
