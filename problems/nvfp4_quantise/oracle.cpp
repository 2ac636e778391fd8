// Blocks of 16 numbers of a row: scale = max |x| / 6, rounded to e4m3; code = x / scale, rounded to e2m1.
// Both to nearest, ties to even, saturating; where the scale is 0, codes are 0. In float64 every tie is
// exact: x has 8 significant bits, and a scale times the middle of two codes has at most 7.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Slot { kX, kCodes, kScales };
constexpr std::int64_t kBlock = 16;
constexpr double kLargest = 6;  // of e2m1

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

double scale_of(const std::uint16_t* block) {
  double largest = 0;
  for (std::int64_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(value_of(block[i])));
  return capstone_types::nearest_e4m3(largest / kLargest);
}

}  // namespace

/// Values are rounded already, so nothing depends on a condition: the scale of each element is its size.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data);
  std::int64_t known = -1;  // cols is a multiple of 16, so blocks are counted through all rows
  double of_block = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t block = output == kScales ? indices[i] : indices[i] / kBlock;
    if (block != known) of_block = scale_of(x + block * kBlock), known = block;
    if (output == kScales)
      value[i] = of_block;
    else
      value[i] = of_block == 0 ? 0 : capstone_types::nearest_e2m1(value_of(x[indices[i]]) / of_block);
    scale[i] = std::fabs(value[i]);
  }
}
