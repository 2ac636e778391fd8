// The accepted draft tokens of each sequence and one token drawn from what is left, in whole numbers, exact.
#include "problems/oracle.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

enum Slot { kDraft, kQ, kP, kU };
using Whole = std::uint64_t;

/// floor(2^31 x).
Whole weight(float x) { return static_cast<Whole>(static_cast<double>(x) * 0x1p31); }

struct Sequence {
  const std::int32_t* draft;
  const float *q, *p, *u;
  std::int64_t gamma, v;

  /// u q < p without rounding: a double holds the product of two floats.
  bool accepts(std::int64_t i) const {
    const std::int64_t token = draft[i];
    return static_cast<double>(u[i]) * static_cast<double>(q[i * v + token]) <
           static_cast<double>(p[i * v + token]);
  }
  /// The token at u[gamma] of the distribution of row i: the residual, or p if that is zero, or there is no
  /// q.
  std::int64_t drawn(std::int64_t i) const {
    const float* row = p + i * v;
    std::vector<Whole> weights(static_cast<std::size_t>(v));
    Whole all = 0;
    const auto add_up = [&](bool residual) {
      all = 0;
      for (std::int64_t j = 0; j < v; ++j) {
        const float rest = residual ? std::max(0.0f, row[j] - q[i * v + j]) : row[j];
        all += weights[static_cast<std::size_t>(j)] = weight(rest);
      }
    };
    add_up(i < gamma);
    if (all == 0) add_up(false);
    const Whole target = static_cast<Whole>(static_cast<double>(u[gamma]) * 0x1p24) * all >> 24;
    Whole before = 0;
    for (std::int64_t j = 0; j < v; ++j)
      if ((before += weights[static_cast<std::size_t>(j)]) > target) return j;
    return 0;  // a row without weight
  }
  /// All of the sequence's output.
  std::vector<std::int64_t> tokens() const {
    std::vector<std::int64_t> out;
    std::int64_t i = 0;
    for (; i < gamma && accepts(i); ++i) out.push_back(draft[i]);
    out.push_back(drawn(i));
    out.resize(static_cast<std::size_t>(gamma) + 1, -1);
    return out;
  }
};

template <class T>
const T* data_of(const CapstoneCase* c, Slot slot) {
  return static_cast<const T*>(c->parameters[slot].data);
}

}  // namespace

extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t gamma = c->sizes[1], v = c->sizes[2], width = gamma + 1;
  std::int64_t sequence = -1;
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    if (indices[i] / width != sequence) {
      sequence = indices[i] / width;
      tokens = Sequence{data_of<std::int32_t>(c, kDraft) + sequence * gamma,
                        data_of<float>(c, kQ) + sequence * gamma * v,
                        data_of<float>(c, kP) + sequence * width * v,
                        data_of<float>(c, kU) + sequence * width,
                        gamma,
                        v}
                   .tokens();
    }
    value[i] = static_cast<double>(tokens[static_cast<std::size_t>(indices[i] % width)]);
    scale[i] = 1;
  }
}
