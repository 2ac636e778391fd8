// A transformer layer over a prompt, in float64 and unrounded, for any elements of k, v and y: RMSNorm,
// queries, keys and values, rotation, causal attention with shared keys, projection and residual, RMSNorm,
// SwiGLU, projection and residual.
//
// An element of y needs the keys and values of all tokens in front and the whole layer of its own token. At
// the measured size that is some 1e11 multiply-adds, so the products use the widest registers of the CPU, and
// threads.
#include "problems/oracle.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_WIDE_REGISTERS __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define FOR_WIDE_REGISTERS
#endif

namespace capstone_layer_prefill {

enum Slot { kX, kG1, kWqkv, kWo, kG2, kWgu, kWdown, kY, kK, kV, kEps, kTheta };
constexpr std::int64_t kDim = 128, kTogether = 32;  // of a head; tokens that a thread takes together
using Vector = std::vector<double>;
using Bf16 = std::uint16_t;
typedef double Wide __attribute__((vector_size(64)));
constexpr std::int64_t kLanes = 8;

/// bf16 is the upper half of a float.
inline double value_of(Bf16 bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
double squared(double x) { return x * x; }

/// to[r][j] = a[r] . w[j] for so many rows of a and of w; k is a multiple of 128.
FOR_WIDE_REGISTERS
void multiply(const double* a, std::int64_t rows, const Bf16* w, std::int64_t columns, std::int64_t k,
              double* to) {
  std::vector<double> wide(static_cast<std::size_t>(k));
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < k; ++i) wide[static_cast<std::size_t>(i)] = value_of(w[j * k + i]);
    for (std::int64_t r = 0; r < rows; r += 4) {
      const double* row[4];
      for (std::int64_t s = 0; s < 4; ++s) row[s] = a + std::min(r + s, rows - 1) * k;
      Wide sum[4] = {};
      for (std::int64_t i = 0; i < k; i += kLanes) {
        Wide x, y[4];
        std::memcpy(&x, wide.data() + i, sizeof x);
        for (int s = 0; s < 4; ++s) std::memcpy(&y[s], row[s] + i, sizeof x), sum[s] += x * y[s];
      }
      for (std::int64_t s = 0; s < 4 && r + s < rows; ++s) {
        double total = 0;
        for (int lane = 0; lane < kLanes; ++lane) total += sum[s][lane];
        to[(r + s) * columns + j] = total;
      }
    }
  }
}

/// One query over `keys` keys and values, `pitch` apart: o, and the mean square of what roundings add up to.
FOR_WIDE_REGISTERS
double attend(const double* q, const double* k, const double* v, std::int64_t pitch, std::int64_t keys,
              double* o) {
  std::vector<double> weight(static_cast<std::size_t>(keys));
  double most = -HUGE_VAL, total = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    Wide sum = {};
    for (std::int64_t i = 0; i < kDim; i += kLanes) {
      Wide x, y;
      std::memcpy(&x, q + i, sizeof x), std::memcpy(&y, k + j * pitch + i, sizeof y);
      sum += x * y;
    }
    double score = 0;
    for (int lane = 0; lane < kLanes; ++lane) score += sum[lane];
    weight[static_cast<std::size_t>(j)] = score / std::sqrt(static_cast<double>(kDim));
    most = std::max(most, weight[static_cast<std::size_t>(j)]);
  }
  for (double& x : weight) total += x = std::exp(x - most);
  double square = 0;
  std::fill(o, o + kDim, 0);
  for (std::int64_t j = 0; j < keys; ++j) {
    const double p = weight[static_cast<std::size_t>(j)] / total;
    double terms = 0;
    for (std::int64_t i = 0; i < kDim; ++i) {
      const double term = p * v[j * pitch + i];
      o[i] += term, terms += term * term;
    }
    square += terms;
  }
  for (std::int64_t i = 0; i < kDim; ++i) square += o[i] * o[i];
  return square / static_cast<double>(kDim);
}

struct Layer {
  const CapstoneCase* c;
  std::int64_t tokens, hq, hk, f, hidden;
  double eps, theta;

  explicit Layer(const CapstoneCase* of)
      : c(of),
        tokens(of->sizes[0]),
        hq(of->sizes[1]),
        hk(of->sizes[2]),
        f(of->sizes[3]),
        hidden(hq * kDim),
        eps(of->parameters[kEps].scalar),
        theta(of->parameters[kTheta].scalar) {}

  const Bf16* at(Slot slot) const { return static_cast<const Bf16*>(c->parameters[slot].data); }

  /// The first norm of a token.
  void normalised(std::int64_t token, double* to) const {
    const Bf16* x = at(kX) + token * hidden;
    double squares = 0;
    for (std::int64_t i = 0; i < hidden; ++i) squares += squared(value_of(x[i]));
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(hidden) + eps);
    for (std::int64_t i = 0; i < hidden; ++i) to[i] = value_of(x[i]) * inverse * value_of(at(kG1)[i]);
  }
  double angle(std::int64_t position, std::int64_t pair) const {
    return static_cast<double>(position) * std::pow(theta, -2.0 * static_cast<double>(pair) / kDim);
  }
  void rotate(double* head, std::int64_t position) const {
    for (std::int64_t i = 0; i < kDim / 2; ++i) {
      const double c0 = std::cos(angle(position, i)), s0 = std::sin(angle(position, i)), a = head[i],
                   b = head[i + kDim / 2];
      head[i] = a * c0 - b * s0, head[i + kDim / 2] = b * c0 + a * s0;
    }
  }
};

/// Tasks 0 … tasks - 1, by several threads where the work [multiply-adds] is worth it.
void share(std::int64_t tasks, double work, const std::function<void(std::int64_t)>& task) {
  const std::int64_t most = work > 2e9 ? std::max(1u, std::thread::hardware_concurrency()) : 1;
  std::atomic<std::int64_t> next{0};
  const auto run = [&] {
    for (std::int64_t i; (i = next++) < tasks;) task(i);
  };
  std::vector<std::thread> others;
  for (std::int64_t i = 1; i < std::min(most, tasks); ++i) others.emplace_back(run);
  run();
  for (auto& other : others) other.join();
}

/// The mean square of each row of a matrix, times its length.
Vector squares_of_rows(const Bf16* w, std::int64_t rows, std::int64_t columns) {
  Vector squares(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) sum += squared(value_of(w[r * columns + i]));
    squares[static_cast<std::size_t>(r)] = sum;
  }
  return squares;
}

/// Of one token: the residual stream after attention, SwiGLU, and how far roundings move both.
struct Token {
  Vector r, r_size, h, h_size;
};

/// From o (rows of queries' results, one mean square of roundings for each token) to the end of SwiGLU.
void finish(const Layer& l, const std::int64_t* token, std::int64_t count, const Vector& o,
            const Vector& o_square, const Vector& squares_o, const Vector& squares_gu, Token* to) {
  const auto hidden = static_cast<std::size_t>(l.hidden);
  Vector r(static_cast<std::size_t>(count) * hidden), a(r.size()),
      gu(static_cast<std::size_t>(count * 2 * l.f));
  Vector a_square(static_cast<std::size_t>(count));
  multiply(o.data(), count, l.at(kWo), l.hidden, l.hidden, r.data());
  for (std::int64_t n = 0; n < count; ++n) {
    Token& own = to[n];
    own.r.resize(hidden), own.r_size.resize(hidden);
    double squares = 0, sizes = 0;
    for (std::size_t i = 0; i < hidden; ++i) {
      const double x = value_of(l.at(kX)[token[n] * l.hidden + static_cast<std::int64_t>(i)]);
      own.r[i] = r[static_cast<std::size_t>(n) * hidden + i] + x;
      own.r_size[i] = std::sqrt(x * x + o_square[static_cast<std::size_t>(n)] * squares_o[i]);
      squares += squared(own.r[i]);
    }
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(l.hidden) + l.eps);
    for (std::size_t i = 0; i < hidden; ++i) {
      const double factor = inverse * value_of(l.at(kG2)[i]);
      a[static_cast<std::size_t>(n) * hidden + i] = own.r[i] * factor;
      sizes += squared(own.r_size[i] * factor);
    }
    a_square[static_cast<std::size_t>(n)] = sizes / static_cast<double>(l.hidden);
  }
  multiply(a.data(), count, l.at(kWgu), 2 * l.f, l.hidden, gu.data());
  for (std::int64_t n = 0; n < count; ++n) {
    Token& own = to[n];
    own.h.resize(static_cast<std::size_t>(l.f)), own.h_size.resize(own.h.size());
    for (std::int64_t j = 0; j < l.f; ++j) {
      const double g = gu[static_cast<std::size_t>(n * 2 * l.f + j)],
                   u = gu[static_cast<std::size_t>(n * 2 * l.f + l.f + j)];
      const double sigmoid = 1 / (1 + std::exp(-g)), slope = sigmoid * (1 + g * (1 - sigmoid));
      const double g_size =
          std::sqrt(a_square[static_cast<std::size_t>(n)] * squares_gu[static_cast<std::size_t>(j)]);
      const double u_size =
          std::sqrt(a_square[static_cast<std::size_t>(n)] * squares_gu[static_cast<std::size_t>(l.f + j)]);
      own.h[static_cast<std::size_t>(j)] = g * sigmoid * u;
      own.h_size[static_cast<std::size_t>(j)] =
          std::sqrt(squared(slope * u * g_size) + squared(g * sigmoid * u_size) + squared(g * sigmoid * u));
    }
  }
}

/// Keys (rotated) and values of the tokens up to the last one, side by side.
Vector keys_and_values(const Layer& l, std::int64_t tokens) {
  const std::int64_t wide = 2 * l.hk * kDim;
  Vector to(static_cast<std::size_t>(tokens * wide));
  share((tokens + kTogether - 1) / kTogether,
        static_cast<double>(tokens * wide) * static_cast<double>(l.hidden), [&](std::int64_t block) {
          const std::int64_t first = block * kTogether, count = std::min(kTogether, tokens - first);
          Vector a(static_cast<std::size_t>(count * l.hidden));
          for (std::int64_t n = 0; n < count; ++n) l.normalised(first + n, a.data() + n * l.hidden);
          multiply(a.data(), count, l.at(kWqkv) + l.hidden * l.hidden, wide, l.hidden,
                   to.data() + first * wide);
          for (std::int64_t n = 0; n < count; ++n)
            for (std::int64_t head = 0; head < l.hk; ++head)
              l.rotate(to.data() + (first + n) * wide + head * kDim, first + n);
        });
  return to;
}

void hidden_states(const Layer& l, const std::int64_t* indices, std::int64_t count, double* value,
                   double* scale) {
  std::vector<std::int64_t> token;
  for (std::int64_t i = 0; i < count; ++i) token.push_back(indices[i] / l.hidden);
  std::sort(token.begin(), token.end());
  token.erase(std::unique(token.begin(), token.end()), token.end());
  const auto needed = static_cast<std::int64_t>(token.size());
  const Vector kv = keys_and_values(l, token.back() + 1);
  const Vector squares_o = squares_of_rows(l.at(kWo), l.hidden, l.hidden),
               squares_gu = squares_of_rows(l.at(kWgu), 2 * l.f, l.hidden);
  std::vector<Token> tokens(token.size());
  const double work = static_cast<double>(needed) * static_cast<double>(l.hidden * 2 * (l.hidden + l.f));
  share((needed + kTogether - 1) / kTogether, work, [&](std::int64_t block) {
    const std::int64_t first = block * kTogether, many = std::min(kTogether, needed - first),
                       wide = 2 * l.hk * kDim;
    Vector a(static_cast<std::size_t>(many * l.hidden)), q(a.size()), o(a.size()),
        o_square(static_cast<std::size_t>(many));
    for (std::int64_t n = 0; n < many; ++n)
      l.normalised(token[static_cast<std::size_t>(first + n)], a.data() + n * l.hidden);
    multiply(a.data(), many, l.at(kWqkv), l.hidden, l.hidden, q.data());
    for (std::int64_t n = 0; n < many; ++n)
      for (std::int64_t head = 0; head < l.hq; ++head) {
        const std::int64_t position = token[static_cast<std::size_t>(first + n)], of = head / (l.hq / l.hk);
        double* const query = q.data() + n * l.hidden + head * kDim;
        l.rotate(query, position);
        o_square[static_cast<std::size_t>(n)] +=
            attend(query, kv.data() + of * kDim, kv.data() + (l.hk + of) * kDim, wide, position + 1,
                   o.data() + n * l.hidden + head * kDim) /
            static_cast<double>(l.hq);
      }
    finish(l, token.data() + first, many, o, o_square, squares_o, squares_gu, tokens.data() + first);
  });
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t column = indices[i] % l.hidden;
    const Token& own = tokens[static_cast<std::size_t>(
        std::lower_bound(token.begin(), token.end(), indices[i] / l.hidden) - token.begin())];
    const Bf16* w = l.at(kWdown) + column * l.f;
    double sum = own.r[static_cast<std::size_t>(column)],
           square = squared(own.r_size[static_cast<std::size_t>(column)]);
    for (std::int64_t j = 0; j < l.f; ++j) {
      sum += value_of(w[j]) * own.h[static_cast<std::size_t>(j)];
      square += squared(value_of(w[j]) * own.h_size[static_cast<std::size_t>(j)]);
    }
    value[i] = sum, scale[i] = std::sqrt(square);
  }
}

/// Elements of k or v, each from its own rows of the weights.
void cache_rows(const Layer& l, bool keys, const std::int64_t* indices, std::int64_t count, double* value,
                double* scale) {
  Vector a(static_cast<std::size_t>(l.hidden));
  std::int64_t before = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t token = indices[i] / (l.hk * kDim), within = indices[i] % (l.hk * kDim),
                       x = within % kDim, half = kDim / 2;
    if (token != before) l.normalised(before = token, a.data());
    const auto product = [&](std::int64_t row, double& square) {
      const Bf16* w = l.at(kWqkv) + (l.hidden + (keys ? 0 : l.hk * kDim) + row) * l.hidden;
      double sum = 0;
      square = 0;
      for (std::int64_t j = 0; j < l.hidden; ++j) {
        const double term = a[static_cast<std::size_t>(j)] * value_of(w[j]);
        sum += term, square += term * term;
      }
      return sum;
    };
    double square = 0, other_square = 0;
    const double own = product(within, square);
    if (!keys) {
      value[i] = own, scale[i] = std::sqrt(square);
      continue;
    }
    const double other = product(x < half ? within + half : within - half, other_square),
                 angle = l.angle(token, x % half);
    const double c0 = std::cos(angle), s0 = std::sin(angle);
    value[i] = own * c0 + (x < half ? -other : other) * s0;
    scale[i] = std::sqrt(square * c0 * c0 + other_square * s0 * s0);
  }
}

}  // namespace capstone_layer_prefill

/// Scale of k and v: the root of the sum of squared products. Of y: what relative errors of the residual
/// stream, of the gates, the ups and their products add up to; norms of rows of weights stand for sums over
/// them.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  using namespace capstone_layer_prefill;
  if (count == 0) return;
  const Layer l(c);
  if (output == kY)
    hidden_states(l, indices, count, value, scale);
  else
    cache_rows(l, output == kK, indices, count, value, scale);
}
