// Mamba-2's scan in float64: state[t] = exp(dt a) state[t - 1] + dt x (outer) into, y[t] = state[t] . out_of, as sums
// over all earlier steps.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

enum Slot { kX, kDt, kA, kInto, kOutOf, kY, kState };

constexpr std::int64_t kChannels = 64, kStates = 128;

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

struct Scan {
  const std::uint16_t *x, *into, *out_of;
  const float *dt, *a;
  std::int64_t l, h, g;

  /// dt[s] times the decay from step s to step `last`, for all s up to it.
  void weigh(std::int64_t batch, std::int64_t head, std::int64_t last, std::vector<double>& weight) const {
    weight.resize(static_cast<std::size_t>(last + 1));
    double passed = 0;
    for (std::int64_t s = last; s >= 0; --s) {
      const double step = dt[(batch * l + s) * h + head];
      weight[s] = step * std::exp(passed * a[head]);
      passed += step;
    }
  }
  double channel(std::int64_t batch, std::int64_t s, std::int64_t head, std::int64_t p) const {
    return value_of(x[((batch * l + s) * h + head) * kChannels + p]);
  }
  const std::uint16_t* row(const std::uint16_t* of, std::int64_t batch, std::int64_t s,
                           std::int64_t group) const {
    return of + ((batch * l + s) * g + group) * kStates;
  }
};

/// Products of a row of out_of with rows of into.
struct Score {
  double sum, squares;  ///< of the products
};

}  // namespace

/// Scale: the root of the sum of squares of what every earlier step adds, where a score counts with its
/// terms.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const auto data = [&](int slot) { return c->parameters[slot].data; };
  const Scan scan{static_cast<const std::uint16_t*>(data(kX)),
                  static_cast<const std::uint16_t*>(data(kInto)),
                  static_cast<const std::uint16_t*>(data(kOutOf)),
                  static_cast<const float*>(data(kDt)),
                  static_cast<const float*>(data(kA)),
                  c->sizes[1],
                  c->sizes[2],
                  c->sizes[3]};
  const std::int64_t l = scan.l, h = scan.h, per_group = h / scan.g;
  std::vector<double> weight;
  std::vector<Score> scores;
  std::int64_t weighed = -1, scored = -1;  // whose they are
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0, squares = 0;
    if (output == kState) {
      const std::int64_t n = indices[i] % kStates, p = indices[i] / kStates % kChannels,
                         row = indices[i] / (kStates * kChannels), batch = row / h, head = row % h;
      if (weighed != row) scan.weigh(batch, head, l - 1, weight);
      weighed = row;
      for (std::int64_t s = 0; s < l; ++s) {
        const double term = weight[s] * scan.channel(batch, s, head, p) *
                            value_of(scan.row(scan.into, batch, s, head / per_group)[n]);
        sum += term, squares += term * term;
      }
    } else {
      const std::int64_t p = indices[i] % kChannels, row = indices[i] / kChannels, head = row % h,
                         t = row / h % l, batch = row / h / l, group = head / per_group;
      if (weighed != row) scan.weigh(batch, head, t, weight);
      weighed = row;
      if (const std::int64_t key = (batch * l + t) * scan.g + group; scored != key) {
        scored = key;
        scores.assign(static_cast<std::size_t>(t + 1), {0, 0});
        const std::uint16_t* const reads = scan.row(scan.out_of, batch, t, group);
        for (std::int64_t s = 0; s <= t; ++s) {
          const std::uint16_t* const writes = scan.row(scan.into, batch, s, group);
          for (std::int64_t n = 0; n < kStates; ++n) {
            const double product = static_cast<double>(value_of(reads[n])) * value_of(writes[n]);
            scores[s].sum += product, scores[s].squares += product * product;
          }
        }
      }
      for (std::int64_t s = 0; s <= t; ++s) {
        const double added = weight[s] * scan.channel(batch, s, head, p);
        sum += added * scores[s].sum;
        squares += added * added * (scores[s].sum * scores[s].sum + scores[s].squares);
      }
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
