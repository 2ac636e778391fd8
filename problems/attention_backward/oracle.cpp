// The gradients of softmax attention from its logsumexp, of bf16 operands, in float64. With
// s = q . k / sqrt(d):
//   p[i, j] = exp(s[i, j] - lse[i])                         the weights
//   g[i, j] = p[i, j] * (dout[i] . v[j] - dout[i] . o[i])   the gradients of the scores
//   dv[j] = sum_i p[i, j] dout[i]
//   dk[j] = sum_i g[i, j] q[i] / sqrt(d)
//   dq[i] = sum_j g[i, j] k[j] / sqrt(d)
// h / hk heads of q share a head of k and v. They lie one after the other, so that i counts the queries of
// all of them.
#include "problems/oracle.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

enum Slot { kQ, kK, kV, kO, kDout, kLse, kDq, kDk, kDv };

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

struct Inputs {
  const CapstoneCase* c;
  std::int64_t n, d, queries;  ///< queries: rows of q for each head of k

  const std::uint16_t* row(Slot slot, std::int64_t at) const {
    return static_cast<const std::uint16_t*>(c->parameters[slot].data) + at * d;
  }
  /// The first row that a row of a gradient adds up: a key of the query's head, or a query of the key's.
  std::int64_t first_term(int output, std::int64_t at) const {
    return output == kDq ? at / queries * n : at / n * queries;
  }
  double lse(std::int64_t at) const { return static_cast<const float*>(c->parameters[kLse].data)[at]; }

  /// Of two rows, and the root of the sum of its terms' squares.
  double dot(const std::uint16_t* a, const std::uint16_t* b, double& spread) const {
    double sum = 0, squares = 0;
    for (std::int64_t x = 0; x < d; ++x) {
      const double term = value_of(a[x]) * value_of(b[x]);
      sum += term;
      squares += term * term;
    }
    spread = std::sqrt(squares);
    return sum;
  }
};

/// The coefficients with which one row of a gradient adds up the rows of another tensor.
struct Row {
  int output = -1;
  std::int64_t at = -1;
  std::vector<double> coefficient,
      spread;  ///< a term each; spread: how far rounding may move the coefficient

  void compute(const Inputs& in, int which, std::int64_t where) {
    output = which;
    at = where;
    const bool of_query = which == kDq;
    const std::int64_t terms = of_query ? in.n : in.queries, first = in.first_term(which, at);
    coefficient.resize(static_cast<std::size_t>(terms));
    spread.resize(static_cast<std::size_t>(terms));
    const double factor = 1 / std::sqrt(static_cast<double>(in.d));
    // fp32 sums of the products; seen from a coefficient that is rounded to bf16, 2^-12 of their terms.
    constexpr double kFloatSums = 0x1p-12;
    for (std::int64_t other = 0; other < terms; ++other) {
      const std::int64_t query = of_query ? at : first + other, key = of_query ? first + other : at;
      double ignored, spread_v, spread_o;
      const double score = factor * in.dot(in.row(kQ, query), in.row(kK, key), ignored);
      const double weight = std::exp(score - in.lse(query));
      const auto i = static_cast<std::size_t>(other);
      if (which == kDv) {
        coefficient[i] = spread[i] = weight;
        continue;
      }
      const double dp = in.dot(in.row(kDout, query), in.row(kV, key), spread_v);
      const double delta = in.dot(in.row(kDout, query), in.row(kO, query), spread_o);
      coefficient[i] = factor * weight * (dp - delta);
      spread[i] = factor * weight * (std::fabs(dp - delta) + kFloatSums * (spread_v + spread_o));
    }
  }
};

}  // namespace

/// Scale: the root of the sum of squares of the terms: what independent roundings of the coefficients add
/// up to.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const std::int64_t n = c->sizes[1];
  const Inputs in{c, n, c->sizes[2], c->sizes[0] / c->sizes[3] * n};
  const Slot summed = output == kDq ? kK : output == kDk ? kQ : kDout;
  Row row;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = indices[i] / in.d, x = indices[i] % in.d;
    if (at != row.at || output != row.output) row.compute(in, output, at);
    const std::uint16_t* tensor = in.row(summed, in.first_term(output, at)) + x;
    double sum = 0, squares = 0;
    for (std::size_t j = 0; j < row.coefficient.size(); ++j) {
      const double factor = value_of(tensor[static_cast<std::int64_t>(j) * in.d]);
      sum += row.coefficient[j] * factor;
      const double term = row.spread[j] * factor;
      squares += term * term;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
