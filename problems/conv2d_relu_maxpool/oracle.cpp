// y = maxpool(relu(conv2d(x, weight) + bias)), 3x3 windows with step 2;
// the convolution 11x11, stride 4, padding 2, NCHW, in float64.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

enum Slot { kX, kWeight, kBias };
constexpr std::int64_t kKernel = 11, kStep = 4, kPad = 2;

const float* floats(const CapstoneCase* c, Slot slot) {
  return static_cast<const float*>(c->parameters[slot].data);
}

struct Sum {
  double value, squares;
};

/// One pixel of the convolution, with the bias.
Sum convolve(const CapstoneCase* c, std::int64_t image, std::int64_t out, std::int64_t row,
             std::int64_t column) {
  const std::int64_t c_in = c->sizes[1], h = c->sizes[2], w = c->sizes[3];
  const std::int64_t row0 = row * kStep - kPad, column0 = column * kStep - kPad;
  const double bias = floats(c, kBias)[out];
  Sum sum{bias, bias * bias};
  for (std::int64_t in = 0; in < c_in; ++in)
    for (std::int64_t r = std::max<std::int64_t>(0, -row0); r < std::min(kKernel, h - row0); ++r) {
      const float* x = floats(c, kX) + ((image * c_in + in) * h + row0 + r) * w + column0;
      const float* weight = floats(c, kWeight) + ((out * c_in + in) * kKernel + r) * kKernel;
      for (std::int64_t s = std::max<std::int64_t>(0, -column0); s < std::min(kKernel, w - column0); ++s) {
        const double product = static_cast<double>(x[s]) * weight[s];
        sum.value += product;
        sum.squares += product * product;
      }
    }
  return sum;
}

constexpr std::int64_t kWindow = 3, kWindowStep = 2;

}  // namespace

/// Scale: the root of the sum of squares of all products and the bias: what rounding of the inputs adds up
/// to. The largest of the nine pixels counts. It is the same where ReLU cuts off.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t c_out = c->sizes[4];
  const std::int64_t oh = (c->sizes[2] + 2 * kPad - kKernel) / kStep + 1,
                     ow = (c->sizes[3] + 2 * kPad - kKernel) / kStep + 1;
  const std::int64_t ph = (oh - kWindow) / kWindowStep + 1, pw = (ow - kWindow) / kWindowStep + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = indices[i], column = index % pw, row = index / pw % ph;
    const std::int64_t out = index / (pw * ph) % c_out, image = index / (pw * ph * c_out);
    double most = 0, squares = 0;
    for (std::int64_t r = 0; r < kWindow; ++r)
      for (std::int64_t s = 0; s < kWindow; ++s) {
        const Sum sum = convolve(c, image, out, row * kWindowStep + r, column * kWindowStep + s);
        most = std::max(most, sum.value);
        squares = std::max(squares, sum.squares);
      }
    value[i] = most;
    scale[i] = std::sqrt(squares);
  }
}
