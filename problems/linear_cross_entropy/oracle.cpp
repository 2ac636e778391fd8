// lse[i] = log(sum_j exp(z_j)) and loss[i] = lse[i] - z_target[i], in float64, of logits
// z_j = sum_p x[i, p] w[j, p]. The loss of a row is 0 if its target is not a class.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

enum Slot { kX, kW, kTarget, kLoss, kLse };

// Sums that run beside each other, so that additions do not wait for each other. h is a multiple of it.
constexpr std::int64_t kLanes = 8;

// Rows whose logits are computed together: a row of w is converted once for all of them.
constexpr std::int64_t kTogether = 8;

// Products of a request that are worth more than one thread.
constexpr std::int64_t kWorthThreads = std::int64_t{1} << 30;

// Rounding to bf16 changes a number by so much of it at most.
constexpr double kHalfStep = 0x1p-8;

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// 2048 probes of each output at the measured size are 10^12 products: worth wider vectors where the CPU has
// them.
#if defined(__x86_64__)
#define FOR_WIDE_REGISTERS __attribute__((target_clones("arch=haswell", "default")))
#else
#define FOR_WIDE_REGISTERS
#endif
FOR_WIDE_REGISTERS double dot(const double* x, const double* w, std::int64_t h) {
  double sum[kLanes] = {}, result = 0;
  for (std::int64_t p = 0; p < h; p += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sum[lane] += x[p + lane] * w[p + lane];
  for (const double part : sum) result += part;
  return result;
}

double length_of(const double* x, std::int64_t h) { return std::sqrt(dot(x, x, h)); }

/// What a logit errs in proportion to: itself where it is rounded, and its terms where sums in fp32 are.
/// `terms` estimates the root of the sum of their squares.
double condition_of(double z, double terms) { return std::fabs(z) + terms / 64; }

}  // namespace

/// Scale: logits z_j that err by e_j each move lse by log(sum p_j exp(e_j)) at most. Where the e_j are half
/// steps of bf16, that is the scale times 2^-8. The rest is for sums in fp32, which err in proportion to the
/// maximum.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data);
  const auto* w = static_cast<const std::uint16_t*>(c->parameters[kW].data);
  const auto* target = static_cast<const std::int32_t*>(c->parameters[kTarget].data);
  const std::int64_t h = c->sizes[1], v = c->sizes[2];
  std::vector<double> lengths(static_cast<std::size_t>(v));
  const auto convert = [&](std::int64_t j, std::vector<double>& to) {
    for (std::int64_t p = 0; p < h; ++p) to[p] = value_of(w[j * h + p]);
  };
  std::vector<double> row_of_w(static_cast<std::size_t>(h));
  for (std::int64_t j = 0; j < v; ++j) convert(j, row_of_w), lengths[j] = length_of(row_of_w.data(), h);

  const auto compute = [&](std::int64_t first, std::int64_t end) {
    std::vector<double> rows(static_cast<std::size_t>(kTogether * h)), of_w(static_cast<std::size_t>(h));
    std::vector<double> logits(static_cast<std::size_t>(kTogether * v));
    for (; first < end; first += kTogether) {
      const std::int64_t together = std::min(kTogether, end - first);
      for (std::int64_t r = 0; r < together; ++r)
        for (std::int64_t p = 0; p < h; ++p) rows[r * h + p] = value_of(x[indices[first + r] * h + p]);
      for (std::int64_t j = 0; j < v; ++j) {
        convert(j, of_w);
        for (std::int64_t r = 0; r < together; ++r) logits[r * v + j] = dot(&rows[r * h], of_w.data(), h);
      }
      for (std::int64_t r = 0; r < together; ++r) {
        const double* const z = &logits[r * v];
        const double maximum = *std::max_element(z, z + v);
        const double per_length = length_of(&rows[r * h], h) / std::sqrt(static_cast<double>(h));
        double sum = 0, moved = 0;
        for (std::int64_t j = 0; j < v; ++j) {
          const double weight = std::exp(z[j] - maximum);
          sum += weight;
          moved += weight * std::expm1(kHalfStep * condition_of(z[j], per_length * lengths[j]));
        }
        const std::int64_t i = first + r, chosen = target[indices[i]];
        value[i] = maximum + std::log(sum);
        scale[i] = std::log1p(moved / sum) / kHalfStep + 1e-3 * (1 + std::fabs(maximum));
        if (output != kLoss) continue;
        if (chosen >= 0 && chosen < v) {
          value[i] -= z[chosen];
          scale[i] += condition_of(z[chosen], per_length * lengths[chosen]);
        } else {
          value[i] = 0, scale[i] = 1;
        }
      }
    }
  };

  // An element is a whole row of logits. What the judge takes for few elements, and gives to one thread, is
  // minutes of products here: large requests are divided once more.
  const std::int64_t blocks = (count + kTogether - 1) / kTogether;
  const std::int64_t most = count * v * h < kWorthThreads ? 1 : std::thread::hardware_concurrency();
  const std::int64_t workers = std::max<std::int64_t>(1, std::min(blocks, most));
  std::vector<std::thread> others;
  const auto begin_of = [&](std::int64_t worker) { return blocks * worker / workers * kTogether; };
  for (std::int64_t k = 1; k < workers; ++k)
    others.emplace_back(compute, begin_of(k), std::min(count, begin_of(k + 1)));
  compute(0, std::min(count, begin_of(1)));
  for (std::thread& other : others) other.join();
}
