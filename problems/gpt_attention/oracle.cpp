// y = proj(causal attention(qkv(x))), in float64, for any tokens: keys and values are never made, because q . k_j = (w_k^T q) . x_j + q . b_k
// and sum_j p_j v_j = w_v (sum_j p_j x_j) + b_v.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

enum Slot { kX, kWQkv, kBQkv, kWProj, kBProj };

const float* floats(const CapstoneCase* c, Slot slot) { return static_cast<const float*>(c->parameters[slot].data); }

struct Sizes {
  std::int64_t tokens, heads, depth, channels;
  explicit Sizes(const CapstoneCase* c) : tokens(c->sizes[1]), heads(c->sizes[2]), depth(c->sizes[3]), channels(heads * depth) {}
};

/// What attention makes of one token, and for each head the size of the values it is made of.
struct Token {
  std::int64_t row = -1;  ///< b * t + i
  std::vector<double> attended, size;
};

double dot(const double* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void attend(const CapstoneCase* c, const Sizes& s, std::int64_t row, Token& token) {
  const float *w = floats(c, kWQkv), *bias = floats(c, kBQkv), *x = floats(c, kX) + row / s.tokens * s.tokens * s.channels;
  const std::int64_t keys = row % s.tokens + 1;
  const std::vector<double> own(x + (keys - 1) * s.channels, x + keys * s.channels);
  token.row = row;
  token.attended.assign(static_cast<std::size_t>(s.channels), 0);
  token.size.assign(static_cast<std::size_t>(s.heads), 0);
  std::vector<double> through(static_cast<std::size_t>(s.channels)), mean(through.size()), weight(static_cast<std::size_t>(keys));
  for (std::int64_t head = 0; head < s.heads; ++head) {
    std::fill(through.begin(), through.end(), 0);
    double constant = 0;
    for (std::int64_t i = 0; i < s.depth; ++i) {
      const std::int64_t q_row = head * s.depth + i, k_row = s.channels + q_row;
      const double q = dot(own.data(), w + q_row * s.channels, s.channels) + bias[q_row];
      for (std::int64_t j = 0; j < s.channels; ++j) through[static_cast<std::size_t>(j)] += q * w[k_row * s.channels + j];
      constant += q * bias[k_row];
    }
    double most = -HUGE_VAL, total = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      double& score = weight[static_cast<std::size_t>(j)];
      score = (dot(through.data(), x + j * s.channels, s.channels) + constant) / std::sqrt(static_cast<double>(s.depth));
      most = std::max(most, score);
    }
    for (double& p : weight) total += p = std::exp(p - most);
    std::fill(mean.begin(), mean.end(), 0);
    double squares = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      const double p = weight[static_cast<std::size_t>(j)] / total;
      if (p == 0) continue;
      for (std::int64_t k = 0; k < s.channels; ++k) {
        const double v = x[j * s.channels + k];
        mean[static_cast<std::size_t>(k)] += p * v;
        squares += p * v * v;
      }
    }
    double norm = 0, offset = 0;
    for (std::int64_t i = 0; i < s.depth; ++i) {
      const std::int64_t out = head * s.depth + i, v_row = 2 * s.channels + out;
      const float* row_of = w + v_row * s.channels;
      token.attended[static_cast<std::size_t>(out)] = dot(mean.data(), row_of, s.channels) + bias[v_row];
      for (std::int64_t k = 0; k < s.channels; ++k) norm += static_cast<double>(row_of[k]) * row_of[k];
      offset += static_cast<double>(bias[v_row]) * bias[v_row];
    }
    // What a value is on average, if inputs and weights are as random as they look.
    token.size[static_cast<std::size_t>(head)] = std::sqrt(squares * norm / static_cast<double>(s.depth * s.channels) + offset / static_cast<double>(s.depth));
  }
}

}  // namespace

/// Scale: the root of the sum of squares of w_proj's row times the sizes of the values.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const Sizes s(c);
  const float *w = floats(c, kWProj), *bias = floats(c, kBProj);
  Token token;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / s.channels, out = indices[i] % s.channels;
    if (row != token.row) attend(c, s, row, token);
    double squares = static_cast<double>(bias[out]) * bias[out];
    for (std::int64_t k = 0; k < s.channels; ++k) {
      const double term = w[out * s.channels + k] * token.size[static_cast<std::size_t>(k / s.depth)];
      squares += term * term;
    }
    value[i] = dot(token.attended.data(), w + out * s.channels, s.channels) + bias[out];
    scale[i] = std::sqrt(squares);
  }
}
