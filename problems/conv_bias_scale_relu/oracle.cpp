// y = relu((conv2d(x, weight) + bias) * scale), 3x3, stride 1, padding 1, NCHW, in float64.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

enum Slot { kX, kWeight, kBias, kScale };

// Pixels of an image row computed together.
constexpr std::int64_t kStrip = 32;

const float* floats(const CapstoneCase* c, Slot slot) {
  return static_cast<const float*>(c->parameters[slot].data);
}

/// Where an output element lies.
struct Pixel {
  std::int64_t image, channel, row, column;
};

Pixel pixel_of(std::int64_t index, std::int64_t h, std::int64_t w, std::int64_t c_out) {
  return {index / (w * h * c_out), index / (w * h) % c_out, index / w % h, index % w};
}

struct Sums {
  double value[kStrip] = {};
  double squares[kStrip] = {};
};

/// Adds one tap (a weight times one row of one input channel) to the pixels first … first+width-1.
void add_tap(const float* x_row, double weight, std::int64_t first, std::int64_t width, std::int64_t w,
             Sums& sums) {
  const std::int64_t begin = std::max<std::int64_t>(0, -first), end = std::min(width, w - first);
  for (std::int64_t i = begin; i < end; ++i) {
    const double product = weight * x_row[first + i];
    sums.value[i] += product;
    sums.squares[i] += product * product;
  }
}

void convolve(const CapstoneCase* c, const Pixel& at, std::int64_t width, Sums& sums) {
  const std::int64_t c_in = c->sizes[1], h = c->sizes[2], w = c->sizes[3];
  for (std::int64_t ci = 0; ci < c_in; ++ci) {
    const float* x = floats(c, kX) + (at.image * c_in + ci) * h * w;
    const float* weight = floats(c, kWeight) + (at.channel * c_in + ci) * 9;
    for (std::int64_t ky = 0; ky < 3; ++ky) {
      const std::int64_t y = at.row + ky - 1;
      if (y < 0 || y >= h) continue;  // the padding is zero
      for (std::int64_t kx = 0; kx < 3; ++kx)
        add_tap(x + y * w, weight[ky * 3 + kx], at.column + kx - 1, width, w, sums);
    }
  }
}

std::int64_t strip_width(const std::int64_t* indices, std::int64_t available, std::int64_t w) {
  const std::int64_t limit = std::min({available, kStrip, w - indices[0] % w});
  std::int64_t width = 1;
  while (width < limit && indices[width] == indices[0] + width) ++width;
  return width;
}

}  // namespace

/// Scale: |scale| * root of the sum of squares of all products and the bias, as in a matrix product: rounding
/// of the inputs adds up to just this. It is the same where relu cuts off, so that a sum near zero may fall
/// on either side.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t h = c->sizes[2], w = c->sizes[3], c_out = c->sizes[4];
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t width = strip_width(indices + i, count - i, w);
    const Pixel at = pixel_of(indices[i], h, w, c_out);
    Sums sums;
    convolve(c, at, width, sums);
    const double bias = floats(c, kBias)[at.channel], factor = floats(c, kScale)[at.channel];
    for (std::int64_t j = 0; j < width; ++j) {
      value[i + j] = std::max(0.0, (sums.value[j] + bias) * factor);
      scale[i + j] = std::fabs(factor) * std::sqrt(sums.squares[j] + bias * bias);
    }
    i += width;
  }
}
