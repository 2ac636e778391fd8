// r = x + proj(attention(qkv(LayerNorm(x)))), y = r + down(gelu(up(LayerNorm(r)))), in float64, for any tokens: keys and values are never made, because
// q . k_j = (w_k^T q) . n_j + q . b_k and sum_j p_j v_j = w_v (sum_j p_j n_j) + b_v.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

enum Slot { kX, kGamma1, kBeta1, kWQkv, kBQkv, kWProj, kBProj, kGamma2, kBeta2, kWUp, kBUp, kWDown, kBDown, kY, kEps };
using Vector = std::vector<double>;

const float* floats(const CapstoneCase* c, Slot slot) { return static_cast<const float*>(c->parameters[slot].data); }

struct Sizes {
  std::int64_t tokens, heads, depth, channels;
  explicit Sizes(const CapstoneCase* c) : tokens(c->sizes[1]), heads(c->sizes[2]), depth(c->sizes[3]), channels(heads * depth) {}
};

double dot(const double* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// LayerNorm of one row, in place.
void normalise(double* row, const float* gamma, const float* beta, double eps, std::int64_t n) {
  double mean = 0, variance = 0;
  for (std::int64_t i = 0; i < n; ++i) mean += row[i];
  mean /= static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) variance += (row[i] - mean) * (row[i] - mean);
  const double inverse = 1 / std::sqrt(variance / static_cast<double>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) row[i] = (row[i] - mean) * inverse * gamma[i] + beta[i];
}

/// All rows of one image after the first LayerNorm.
struct Image {
  std::int64_t index = -1;
  Vector rows;
};
void look_at(const CapstoneCase* c, const Sizes& s, std::int64_t index, Image& image) {
  const float* x = floats(c, kX) + index * s.tokens * s.channels;
  image.index = index;
  image.rows.assign(x, x + s.tokens * s.channels);
  for (std::int64_t j = 0; j < s.tokens; ++j)
    normalise(image.rows.data() + j * s.channels, floats(c, kGamma1), floats(c, kBeta1), c->parameters[kEps].scalar, s.channels);
}

/// One token: the residual stream after attention, what GELU leaves of it, and the sizes of what they are made of.
struct Token {
  std::int64_t row = -1;
  Vector residual, size, hidden;
};

/// What attention makes of token `i`, heads side by side; `size`: of the values of each head.
void attend(const CapstoneCase* c, const Sizes& s, const Image& image, std::int64_t i, Vector& attended, Vector& size) {
  const float *w = floats(c, kWQkv), *bias = floats(c, kBQkv);
  const double* own = image.rows.data() + i * s.channels;
  Vector through(static_cast<std::size_t>(s.channels)), mean(through.size()), weight(static_cast<std::size_t>(s.tokens));
  for (std::int64_t head = 0; head < s.heads; ++head) {
    std::fill(through.begin(), through.end(), 0);
    double constant = 0;
    for (std::int64_t r = 0; r < s.depth; ++r) {
      const std::int64_t q_row = head * s.depth + r, k_row = s.channels + q_row;
      const double q = dot(own, w + q_row * s.channels, s.channels) + bias[q_row];
      for (std::int64_t j = 0; j < s.channels; ++j) through[static_cast<std::size_t>(j)] += q * w[k_row * s.channels + j];
      constant += q * bias[k_row];
    }
    double most = -HUGE_VAL, total = 0;
    for (std::int64_t j = 0; j < s.tokens; ++j) {
      double sum = constant;
      for (std::int64_t k = 0; k < s.channels; ++k) sum += through[static_cast<std::size_t>(k)] * image.rows[static_cast<std::size_t>(j * s.channels + k)];
      weight[static_cast<std::size_t>(j)] = sum / std::sqrt(static_cast<double>(s.depth));
      most = std::max(most, weight[static_cast<std::size_t>(j)]);
    }
    for (double& p : weight) total += p = std::exp(p - most);
    std::fill(mean.begin(), mean.end(), 0);
    double squares = 0;
    for (std::int64_t j = 0; j < s.tokens; ++j)
      for (std::int64_t k = 0; k < s.channels; ++k) {
        const double p = weight[static_cast<std::size_t>(j)] / total, v = image.rows[static_cast<std::size_t>(j * s.channels + k)];
        mean[static_cast<std::size_t>(k)] += p * v;
        squares += p * v * v;
      }
    double norm = 0, offset = 0;
    for (std::int64_t r = 0; r < s.depth; ++r) {
      const std::int64_t out = head * s.depth + r, v_row = 2 * s.channels + out;
      attended[static_cast<std::size_t>(out)] = dot(mean.data(), w + v_row * s.channels, s.channels) + bias[v_row];
      for (std::int64_t k = 0; k < s.channels; ++k) norm += static_cast<double>(w[v_row * s.channels + k]) * w[v_row * s.channels + k];
      offset += static_cast<double>(bias[v_row]) * bias[v_row];
    }
    // What a value is on average, if inputs and weights are as random as they look.
    size[static_cast<std::size_t>(head)] = std::sqrt(squares * norm / static_cast<double>(s.depth * s.channels) + offset / static_cast<double>(s.depth));
  }
}

void compute(const CapstoneCase* c, const Sizes& s, std::int64_t row, Image& image, Token& token) {
  if (row / s.tokens != image.index) look_at(c, s, row / s.tokens, image);
  token.row = row;
  const auto channels = static_cast<std::size_t>(s.channels);
  Vector attended(channels), values(static_cast<std::size_t>(s.heads));
  attend(c, s, image, row % s.tokens, attended, values);
  token.residual.resize(channels);
  token.size.resize(channels);
  for (std::int64_t o = 0; o < s.channels; ++o) {
    const float* w = floats(c, kWProj) + o * s.channels;
    const double x = floats(c, kX)[row * s.channels + o];
    double squares = 0;
    for (std::int64_t k = 0; k < s.channels; ++k) squares += std::pow(w[k] * values[static_cast<std::size_t>(k / s.depth)], 2);
    token.residual[static_cast<std::size_t>(o)] = x + dot(attended.data(), w, s.channels) + floats(c, kBProj)[o];
    token.size[static_cast<std::size_t>(o)] = std::fabs(x) + std::sqrt(squares);
  }
  Vector normal = token.residual;
  normalise(normal.data(), floats(c, kGamma2), floats(c, kBeta2), c->parameters[kEps].scalar, s.channels);
  token.hidden.resize(4 * channels);
  for (std::int64_t o = 0; o < 4 * s.channels; ++o) {
    const double v = dot(normal.data(), floats(c, kWUp) + o * s.channels, s.channels) + floats(c, kBUp)[o];
    token.hidden[static_cast<std::size_t>(o)] = 0.5 * v * (1 + std::erf(v * 0.70710678118654752440));
  }
}

}  // namespace

/// Scale: |x| and the roots of the sums of squares of the terms of both products.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const Sizes s(c);
  Image image;
  Token token;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / s.channels, out = indices[i] % s.channels;
    if (row != token.row) compute(c, s, row, image, token);
    const float* w = floats(c, kWDown) + out * 4 * s.channels;
    double squares = 0;
    for (std::int64_t k = 0; k < 4 * s.channels; ++k) squares += std::pow(w[k] * token.hidden[static_cast<std::size_t>(k)], 2);
    value[i] = token.residual[static_cast<std::size_t>(out)] + dot(token.hidden.data(), w, 4 * s.channels) + floats(c, kBDown)[out];
    scale[i] = token.size[static_cast<std::size_t>(out)] + std::sqrt(squares);
  }
}
