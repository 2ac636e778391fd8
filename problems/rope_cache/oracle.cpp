// q and k rotated by the angle of the token's position (halves, not interleaved), k and v written to the token's slot;
// in float64, unrounded.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

enum Slot { kQ, kK, kV, kCos, kSin, kPosition, kSlot, kQOut, kKCache, kVCache };

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

template <class T>
const T* data_of(const CapstoneCase* c, Slot slot) {
  return static_cast<const T*>(c->parameters[slot].data);
}

/// Which token wrote a slot of the cache.
std::vector<std::int64_t> token_of_slot(const CapstoneCase* c, std::int64_t tokens) {
  const auto* slot = data_of<std::int32_t>(c, kSlot);
  std::vector<std::int64_t> token(static_cast<std::size_t>(tokens), 0);
  for (std::int64_t t = 0; t < tokens; ++t)
    if (slot[t] >= 0 && slot[t] < tokens) token[static_cast<std::size_t>(slot[t])] = t;
  return token;
}

}  // namespace

/// Scale: the root of the sum of the two squared products, which is what roundings before the sum add up to; a value of v
/// is its own scale.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t tokens = c->sizes[0], hq = c->sizes[1], d = c->sizes[2], hk = c->sizes[3], half = d / 2;
  const std::int64_t heads = output == kQOut ? hq : hk;
  const auto* from = data_of<std::uint16_t>(c, output == kQOut ? kQ : output == kKCache ? kK : kV);
  const float *cosine = data_of<float>(c, kCos), *sine = data_of<float>(c, kSin);
  const auto* position = data_of<std::int32_t>(c, kPosition);
  std::vector<std::int64_t> token_of;
  if (output != kQOut) token_of = token_of_slot(c, tokens);

  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / (heads * d), within = indices[i] % (heads * d), x = within % d;
    const std::int64_t token = output == kQOut ? row : token_of[static_cast<std::size_t>(row)];
    const std::uint16_t* head = from + token * heads * d + (within - x);
    if (output == kVCache) {
      value[i] = value_of(head[x]);
      scale[i] = std::fabs(value[i]);
      continue;
    }
    const std::int64_t pair = x % half, angle = position[token] * half + pair;
    const double sign = x < half ? -1 : 1, other = value_of(head[x < half ? x + half : x - half]);
    const double own = value_of(head[x]) * cosine[angle], mixed = sign * other * sine[angle];
    value[i] = own + mixed;
    scale[i] = std::sqrt(own * own + mixed * mixed);
  }
}
