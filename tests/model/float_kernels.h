#pragma once
// Plain float versions of the shipped problems, as a first CUDA kernel would compute them: one accumulator
// per element, sums in index order. This is the accuracy of correct single precision, and no better.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/model/oracle_case.h"

namespace capstone::testing {

inline float gelu_erf(float t) { return 0.5f * t * (1.0f + std::erf(t * 0.70710678f)); }
inline float gelu_tanh(float t) {
  return 0.5f * t * (1.0f + std::tanh(0.79788456f * (t + 0.044715f * t * t * t)));
}

enum class Variance { kTwoPass, kWelford };

/// y = LayerNorm(residual + gelu(x + bias)) * gamma + beta.
template <class Gelu>
std::vector<float> bias_gelu_layernorm(OracleCase& c, Gelu gelu, Variance how = Variance::kTwoPass) {
  const auto rows = c.size("rows"), cols = c.size("cols");
  const auto &x = c.tensor("x"), &residual = c.tensor("residual"), &bias = c.tensor("bias"),
             &gamma = c.tensor("gamma"), &beta = c.tensor("beta");
  const float eps = c.tensor("eps")[0];
  std::vector<float> y(x.size()), t(static_cast<std::size_t>(cols));
  for (std::int64_t r = 0; r < rows; ++r) {
    float mean = 0, squares = 0;
    for (std::int64_t j = 0; j < cols; ++j) {
      t[j] = residual[r * cols + j] + gelu(x[r * cols + j] + bias[j]);
      if (how == Variance::kWelford) {
        const float delta = t[j] - mean;
        mean += delta / static_cast<float>(j + 1);
        squares += delta * (t[j] - mean);
      } else {
        mean += t[j];
      }
    }
    if (how == Variance::kTwoPass) {
      mean /= static_cast<float>(cols);
      for (float v : t) squares += (v - mean) * (v - mean);
    }
    const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(cols) + eps);
    for (std::int64_t j = 0; j < cols; ++j) y[r * cols + j] = (t[j] - mean) * inverse * gamma[j] + beta[j];
  }
  return y;
}

/// Row-wise softmax; `exponential(x, max)` stands for exp(x - max).
template <class Exponential>
std::vector<float> softmax(OracleCase& c, Exponential exponential) {
  const auto rows = c.size("rows"), cols = c.size("cols");
  const auto& x = c.tensor("x");
  std::vector<float> y(x.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = x.data() + r * cols;
    float* out = y.data() + r * cols;
    const float maximum = *std::max_element(in, in + cols);
    float sum = 0;
    for (std::int64_t j = 0; j < cols; ++j) sum += out[j] = exponential(in[j], maximum);
    for (std::int64_t j = 0; j < cols; ++j) out[j] /= sum;
  }
  return y;
}

inline float exp_plain(float x, float maximum) { return std::exp(x - maximum); }
/// The form that fast kernels use: one multiply-add, then a power of two.
inline float exp_by_power_of_two(float x, float maximum) {
  constexpr float kLog2E = 1.44269504f;
  return std::exp2(std::fma(x, kLog2E, -(maximum * kLog2E)));
}

/// c = a b.
inline std::vector<float> sgemm(OracleCase& c) {
  const auto m = c.size("m"), k = c.size("k"), n = c.size("n");
  const auto &a = c.tensor("a"), &b = c.tensor("b");
  std::vector<float> out(static_cast<std::size_t>(m * n), 0.0f);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) out[i * n + j] += a[i * k + p] * b[p * n + j];
  return out;
}

/// y = relu((conv3x3(x) + bias) * scale).
inline std::vector<float> conv_bias_scale_relu(OracleCase& c) {
  const auto n = c.size("n"), c_in = c.size("c_in"), h = c.size("h"), w = c.size("w"),
             c_out = c.size("c_out");
  const auto &x = c.tensor("x"), &weight = c.tensor("weight"), &bias = c.tensor("bias"),
             &scale = c.tensor("scale");
  std::vector<float> y;
  y.reserve(static_cast<std::size_t>(n * c_out * h * w));
  for (std::int64_t image = 0; image < n; ++image)
    for (std::int64_t o = 0; o < c_out; ++o)
      for (std::int64_t row = 0; row < h; ++row)
        for (std::int64_t column = 0; column < w; ++column) {
          float sum = 0;
          for (std::int64_t i = 0; i < c_in; ++i)
            for (std::int64_t ky = 0; ky < 3; ++ky)
              for (std::int64_t kx = 0; kx < 3; ++kx) {
                const std::int64_t yy = row + ky - 1, xx = column + kx - 1;
                if (yy < 0 || yy >= h || xx < 0 || xx >= w) continue;
                sum += x[((image * c_in + i) * h + yy) * w + xx] * weight[((o * c_in + i) * 3 + ky) * 3 + kx];
              }
          y.push_back(std::max(0.0f, (sum + bias[o]) * scale[o]));
        }
  return y;
}

/// y = conv2d(x, weight) + bias, 11x11, stride 4, padding 2; or with ReLU and the pool behind it.
inline std::vector<float> conv2d(OracleCase& c, bool pooled) {
  const auto n = c.size("n"), c_in = c.size("c_in"), h = c.size("h"), w = c.size("w"),
             c_out = c.size("c_out");
  const auto oh = (h - 7) / 4 + 1, ow = (w - 7) / 4 + 1;
  const auto &x = c.tensor("x"), &weight = c.tensor("weight"), &bias = c.tensor("bias");
  const auto pixel = [&](std::int64_t image, std::int64_t o, std::int64_t row, std::int64_t column) {
    float sum = 0;
    for (std::int64_t i = 0; i < c_in; ++i)
      for (std::int64_t r = 0; r < 11; ++r)
        for (std::int64_t s = 0; s < 11; ++s) {
          const std::int64_t y = row * 4 - 2 + r, z = column * 4 - 2 + s;
          if (y < 0 || y >= h || z < 0 || z >= w) continue;
          sum += x[((image * c_in + i) * h + y) * w + z] * weight[((o * c_in + i) * 11 + r) * 11 + s];
        }
    return sum + bias[o];
  };
  std::vector<float> result;
  const std::int64_t rows = pooled ? (oh - 3) / 2 + 1 : oh, columns = pooled ? (ow - 3) / 2 + 1 : ow;
  for (std::int64_t image = 0; image < n; ++image)
    for (std::int64_t o = 0; o < c_out; ++o)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column) {
          if (!pooled) {
            result.push_back(pixel(image, o, row, column));
            continue;
          }
          float most = 0;
          for (std::int64_t k = 0; k < 9; ++k)
            most = std::max(most, pixel(image, o, row * 2 + k / 3, column * 2 + k % 3));
          result.push_back(most);
        }
  return result;
}

/// y = LayerNorm(x) over c, h and w, in two passes; sums as by 256 threads.
inline std::vector<float> layernorm(OracleCase& c) {
  constexpr std::int64_t kThreads = 256;
  const auto n = c.size("n"), length = c.size("c") * c.size("h") * c.size("w");
  const auto &x = c.tensor("x"), &gamma = c.tensor("gamma"), &beta = c.tensor("beta");
  const auto mean_of = [&](auto value) {
    float partial[kThreads] = {}, total = 0;
    for (std::int64_t j = 0; j < length; ++j) partial[j % kThreads] += value(j);
    for (const float p : partial) total += p;
    return total / static_cast<float>(length);
  };
  std::vector<float> y(x.size());
  for (std::int64_t s = 0; s < n; ++s) {
    const float* in = x.data() + s * length;
    const float mean = mean_of([&](std::int64_t j) { return in[j]; });
    const float variance = mean_of([&](std::int64_t j) { return (in[j] - mean) * (in[j] - mean); });
    const float inverse = 1.0f / std::sqrt(variance + c.tensor("eps")[0]);
    for (std::int64_t j = 0; j < length; ++j)
      y[s * length + j] = (in[j] - mean) * inverse * gamma[j] + beta[j];
  }
  return y;
}

/// z = x + y.
inline std::vector<float> vector_add(OracleCase& c) {
  const auto &x = c.tensor("x"), &y = c.tensor("y");
  std::vector<float> z(x.size());
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = x[i] + y[i];
  return z;
}

/// y = x.
inline std::vector<float> copy(OracleCase& c) { return c.tensor("x"); }

/// a = b + s c.
inline std::vector<float> triad(OracleCase& k) {
  const auto &b = k.tensor("b"), &c = k.tensor("c");
  std::vector<float> a(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] + k.tensor("s")[0] * c[i];
  return a;
}

/// y = the sum of c_k t^k, t = radius x / (1 + |x|), by Horner's rule.
inline std::vector<float> fma_peak(OracleCase& k) {
  const auto &x = k.tensor("x"), &c = k.tensor("c");
  std::vector<float> y(x.size(), 0.0f);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float t = k.tensor("radius")[0] * x[i] / (1 + std::fabs(x[i]));
    for (std::size_t term = c.size(); term-- > 0;) y[i] = y[i] * t + c[term];
  }
  return y;
}

/// y = the transpose of x.
inline std::vector<float> transpose(OracleCase& c) {
  const auto rows = c.size("rows"), cols = c.size("cols");
  const auto& x = c.tensor("x");
  std::vector<float> y(x.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) y[j * rows + i] = x[i * cols + j];
  return y;
}

/// total = sum of x by 256 threads, each with every 256th element; then the threads' sums in order.
inline std::vector<float> sum(OracleCase& c) {
  constexpr std::size_t kThreads = 256;
  const auto& x = c.tensor("x");
  float partial[kThreads] = {}, total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) partial[i % kThreads] += x[i];
  for (const float p : partial) total += p;
  return {total};
}

/// y[i] = x[0] + … + x[i] in order: the largest error of a correct kernel.
inline std::vector<float> scan(OracleCase& c) {
  std::vector<float> y = c.tensor("x");
  for (std::size_t i = 1; i < y.size(); ++i) y[i] += y[i - 1];
  return y;
}

/// y = GroupNorm(swish(x weight^T + linear_bias) + bias), groups of 32 channels.
inline std::vector<float> matmul_swish_sum_groupnorm(OracleCase& c) {
  constexpr std::int64_t kGroup = 32;
  const auto rows = c.size("rows"), k = c.size("k"), channels = c.size("channels");
  const auto &x = c.tensor("x"), &weight = c.tensor("weight"), &linear_bias = c.tensor("linear_bias"),
             &bias = c.tensor("bias"), &gamma = c.tensor("gamma"), &beta = c.tensor("beta");
  std::vector<float> y(static_cast<std::size_t>(rows * channels));
  for (std::int64_t first = 0; first < rows * channels; first += kGroup) {
    const std::int64_t row = first / channels, channel0 = first % channels;
    float t[kGroup], mean = 0, squares = 0;
    for (std::int64_t j = 0; j < kGroup; ++j) {
      float z = 0;
      for (std::int64_t p = 0; p < k; ++p) z += x[row * k + p] * weight[(channel0 + j) * k + p];
      z += linear_bias[channel0 + j];
      t[j] = z / (1.0f + std::exp(-z)) + bias[channel0 + j];
      mean += t[j] / kGroup;
    }
    for (const float v : t) squares += (v - mean) * (v - mean);
    const float inverse = 1.0f / std::sqrt(squares / kGroup + c.tensor("eps")[0]);
    for (std::int64_t j = 0; j < kGroup; ++j)
      y[first + j] = (t[j] - mean) * inverse * gamma[channel0 + j] + beta[channel0 + j];
  }
  return y;
}

/// Any of the problems in single precision.
inline std::vector<float> float_kernel(OracleCase& c) {
  if (c.problem().id == "bias_gelu_layernorm") return bias_gelu_layernorm(c, gelu_erf);
  if (c.problem().id == "softmax") return softmax(c, exp_plain);
  if (c.problem().id == "sgemm") return sgemm(c);
  if (c.problem().id == "vector_add") return vector_add(c);
  if (c.problem().id == "matmul_swish_sum_groupnorm") return matmul_swish_sum_groupnorm(c);
  if (c.problem().id == "copy" || c.problem().id == "empty_launch") return copy(c);
  if (c.problem().id == "triad") return triad(c);
  if (c.problem().id == "fma_peak") return fma_peak(c);
  if (c.problem().id == "transpose") return transpose(c);
  if (c.problem().id == "sum") return sum(c);
  if (c.problem().id == "scan") return scan(c);
  if (c.problem().id == "layernorm") return layernorm(c);
  if (c.problem().id == "conv2d") return conv2d(c, false);
  if (c.problem().id == "conv2d_relu_maxpool") return conv2d(c, true);
  return conv_bias_scale_relu(c);
}

}  // namespace capstone::testing
