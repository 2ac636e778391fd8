// Depthwise causal convolution, selective scan over 16 states, skip and gate, in float64.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

enum Slot { kU, kZ, kDt, kInto, kOutOf, kConv, kBias, kLogA, kSkip, kDtBias };
constexpr int kStates = 16, kTaps = 4;

const float* floats(const CapstoneCase* c, Slot slot) { return static_cast<const float*>(c->parameters[slot].data); }

double silu(double x) { return x / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

/// A channel's states after step `t`, with the same sums over the sizes of their terms.
struct Channel {
  std::int64_t t = -1;
  double v = 0, v_size = 0;
  double h[kStates] = {}, size[kStates] = {};
};

/// One step on.
void advance(const CapstoneCase* c, std::int64_t b, std::int64_t e, Channel& channel) {
  const std::int64_t steps = c->sizes[1], channels = c->sizes[2], t = ++channel.t;
  double x = floats(c, kBias)[e], x_size = std::fabs(x);
  for (int k = 0; k < kTaps; ++k) {
    const std::int64_t at = t - (kTaps - 1) + k;
    if (at < 0) continue;
    const double term = static_cast<double>(floats(c, kConv)[e * kTaps + k]) * floats(c, kU)[(b * steps + at) * channels + e];
    x += term;
    x_size += std::fabs(term);
  }
  channel.v = silu(x);
  channel.v_size = std::fabs(channel.v) + x_size;  // silu is nowhere steeper than 1.1
  const double step = softplus(static_cast<double>(floats(c, kDt)[(b * steps + t) * channels + e]) + floats(c, kDtBias)[e]);
  const float* into = floats(c, kInto) + (b * steps + t) * kStates;
  for (int n = 0; n < kStates; ++n) {
    const double decay = std::exp(-step * std::exp(static_cast<double>(floats(c, kLogA)[e * kStates + n])));
    channel.h[n] = decay * channel.h[n] + step * into[n] * channel.v;
    channel.size[n] = decay * channel.size[n] + step * std::fabs(into[n]) * channel.v_size;
  }
}

}  // namespace

/// Elements come in ascending order: the states of every channel are kept and taken on from step to step.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t steps = c->sizes[1], channels = c->sizes[2];
  std::vector<Channel> kept;
  std::int64_t batch = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t e = indices[i] % channels, t = indices[i] / channels % steps, b = indices[i] / channels / steps;
    if (b != batch) {
      kept.assign(static_cast<std::size_t>(channels), {});
      batch = b;
    }
    Channel& channel = kept[static_cast<std::size_t>(e)];
    if (channel.t > t) channel = {};
    while (channel.t < t) advance(c, b, e, channel);
    const float* out_of = floats(c, kOutOf) + (b * steps + t) * kStates;
    const double skip = floats(c, kSkip)[e], gate = silu(floats(c, kZ)[indices[i]]);
    double sum = skip * channel.v, size = std::fabs(skip) * channel.v_size;
    for (int n = 0; n < kStates; ++n) {
      sum += out_of[n] * channel.h[n];
      size += std::fabs(out_of[n]) * channel.size[n];
    }
    value[i] = sum * gate;
    scale[i] = size * (std::fabs(gate) + 1e-20);  // far out the gate is no float any more, and may be 0
  }
}
