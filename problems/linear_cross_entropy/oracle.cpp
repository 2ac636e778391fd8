// lse[i] = log(sum_j exp(z_j)) and loss[i] = lse[i] - z_target[i], in float64, of logits
// z_j = sum_p x[i, p] w[j, p]. The loss of a row is 0 if its target is not a class.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

enum Slot { kX, kW, kTarget, kLoss, kLse };

// Sums that run beside each other, so that additions do not wait for each other. h is a multiple of it.
constexpr std::int64_t kLanes = 8;

// Rounding to bf16 changes a number by so much of it at most.
constexpr double kHalfStep = 0x1p-8;

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

struct Logit {
  double z;        ///< the sum of products
  double squares;  ///< of the products
};

Logit logit_of(const double* x, const std::uint16_t* w, std::int64_t h) {
  double sum[kLanes] = {}, squares[kLanes] = {};
  for (std::int64_t p = 0; p < h; p += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double product = x[p + lane] * value_of(w[p + lane]);
      sum[lane] += product;
      squares[lane] += product * product;
    }
  Logit result{0, 0};
  for (std::int64_t lane = 0; lane < kLanes; ++lane) result.z += sum[lane], result.squares += squares[lane];
  return result;
}

/// What a logit errs in proportion to: itself where it is rounded, and its terms where sums in fp32 are.
double condition_of(const Logit& logit) { return std::fabs(logit.z) + std::sqrt(logit.squares) / 64; }

}  // namespace

/// Scale: logits z_j that err by e_j each move lse by log(sum p_j exp(e_j)) at most. Where the e_j are half steps of
/// bf16, that is the scale times 2^-8. The rest is for sums in fp32, which err in proportion to the maximum.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data);
  const auto* w = static_cast<const std::uint16_t*>(c->parameters[kW].data);
  const auto* target = static_cast<const std::int32_t*>(c->parameters[kTarget].data);
  const std::int64_t h = c->sizes[1], v = c->sizes[2];
  std::vector<Logit> logits(static_cast<std::size_t>(v));
  std::vector<double> row(static_cast<std::size_t>(h));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t chosen = target[indices[i]];
    const bool counts = chosen >= 0 && chosen < v;
    if (output == kLoss && !counts) {
      value[i] = 0;
      scale[i] = 1;
      continue;
    }
    for (std::int64_t p = 0; p < h; ++p) row[p] = value_of(x[indices[i] * h + p]);
    double maximum = -INFINITY, sum = 0, moved = 0;
    for (std::int64_t j = 0; j < v; ++j) {
      logits[j] = logit_of(row.data(), w + j * h, h);
      maximum = std::max(maximum, logits[j].z);
    }
    for (const Logit& logit : logits) {
      const double weight = std::exp(logit.z - maximum);
      sum += weight;
      moved += weight * std::expm1(kHalfStep * condition_of(logit));
    }
    value[i] = maximum + std::log(sum);
    scale[i] = std::log1p(moved / sum) / kHalfStep + 1e-3 * (1 + std::fabs(maximum));
    if (output == kLoss) {
      const Logit& logit = logits[chosen];
      value[i] -= logit.z;
      scale[i] += condition_of(logit);
    }
  }
}
