#include "cli/formats_demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cli/show.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone::cli {
namespace {

constexpr std::size_t kRows = 256, kColumns = 4096, kOutlierEvery = 64;
constexpr double kOutlier = 30;
constexpr double kShownElements = 8192.0 * 8192;  // of the tensor whose bytes are shown

// Normal numbers, in which every 64th column is thirty times as large: the activations of language models
// have such channels (Dettmers et al., LLM.int8(), 2022). The same numbers each time.
std::vector<double> activations() {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> x(kRows * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = rounded_to(DType::kF32, normal(random) * (i % kOutlierEvery == kOutlierEvery / 2 ? kOutlier : 1));
  return x;
}

double largest(const double* first, std::size_t count) {
  double most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::fabs(first[i]));
  return most;
}

enum class Scales {
  kNone,
  kFloat,  ///< fp32
  kE4M3,   ///< NVFP4: e4m3, and one fp32 for the tensor, which moves them into e4m3's range
  kE8M0,   ///< MX: a power of two
};

struct Format {
  const char* name;
  DType type;
  double top;  ///< the largest number of the type
  Scales scales = Scales::kNone;
  std::size_t block = 0;  ///< elements that share a scale; 0: all

  double bits() const {
    const double element = 4.0 * static_cast<double>(bytes_of(type, 2));
    return element + (block ? (scales == Scales::kFloat ? 32.0 : 8.0) / static_cast<double>(block) : 0);
  }
};

// The scale of a block whose largest magnitude is `most`. The formats' rules: NVFP4 divides by the largest
// code and rounds to e4m3; OCP's MX takes the exponent of the largest element less that of the largest code.
double scale_of(const Format& format, double most, double most_of_all) {
  const double exact = most / format.top, tensor = most_of_all / (448 * format.top);
  switch (format.scales) {
    case Scales::kNone:
      return 1;
    case Scales::kFloat:
      return rounded_to(DType::kF32, exact);
    case Scales::kE4M3:
      return rounded_to(DType::kE4M3, exact / tensor) * tensor;
    case Scales::kE8M0:
      return most > 0 ? std::exp2(std::floor(std::log2(most)) - std::floor(std::log2(format.top))) : 1;
  }
  return 1;
}

std::vector<double> through(const Format& format, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  const double all = largest(x.data(), x.size());
  const std::size_t block = format.block ? format.block : x.size();
  for (std::size_t first = 0; first < x.size(); first += block) {
    const double scale = scale_of(format, largest(&x[first], block), all);
    for (std::size_t i = first; i < first + block; ++i)
      y[i] = scale > 0 ? rounded_to(format.type, x[i] / scale) * scale : 0;
  }
  return y;
}

struct Damage {
  double rms, median, zeros;  ///< [1]: of the tensor's root mean square; of the element; share
};

Damage damage(const std::vector<double>& x, const std::vector<double>& y) {
  double squares = 0, errors = 0;
  std::size_t zeros = 0;
  std::vector<double> relative;
  for (std::size_t i = 0; i < x.size(); ++i) {
    squares += x[i] * x[i];
    errors += (y[i] - x[i]) * (y[i] - x[i]);
    if (x[i] == 0) continue;
    zeros += y[i] == 0;
    relative.push_back(std::fabs((y[i] - x[i]) / x[i]));
  }
  const auto middle = relative.begin() + static_cast<std::ptrdiff_t>(relative.size() / 2);
  std::nth_element(relative.begin(), middle, relative.end());
  return {std::sqrt(errors / squares), *middle,
          static_cast<double>(zeros) / static_cast<double>(relative.size())};
}

std::string percent(double share) {
  if (share <= 0) return "0";
  return share < 0.1 ? fmt::format("{:.2g} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

}  // namespace

Result<void> formats_demo(const Context& context, const DemoInputs&) {
  const std::vector<Format> formats{
      {"fp32", DType::kF32, 0},
      {"bf16", DType::kBF16, 0},
      {"e4m3", DType::kE4M3, 448},
      {"e4m3, one scale", DType::kE4M3, 448, Scales::kFloat},
      {"e4m3, a scale for 128", DType::kE4M3, 448, Scales::kFloat, 128},
      {"e2m1", DType::kE2M1x2, 6},
      {"e2m1, one scale", DType::kE2M1x2, 6, Scales::kFloat},
      {"MXFP4: e8m0 for 32", DType::kE2M1x2, 6, Scales::kE8M0, 32},
      {"NVFP4: e4m3 for 16", DType::kE2M1x2, 6, Scales::kE4M3, 16},
  };
  const std::vector<double> x = activations();
  tell(context,
       fmt::format("{} × {} numbers, normal, every {}th column {:g} times as large, as activations of "
                   "language models have it. Each format rounds them once, in the formats' own "
                   "arithmetic; nothing is multiplied.\n",
                   kRows, kColumns, kOutlierEvery, kOutlier));
  Table table({"format", "bits", "8192²", "RMS error", "median error", "became 0"});
  for (const Format& format : formats) {
    const Damage d = damage(x, through(format, x));
    table.row({format.name, fmt::format("{:g}", format.bits()),
               fmt::format("{:.0f} MB", kShownElements * format.bits() / 8 / 1e6), percent(d.rms),
               percent(d.median), percent(d.zeros)});
  }
  tell(context, table.text(context.terminal));
  tell(context,
       "\nRMS error: of the tensor's root mean square, which the large columns rule. Median error: of the "
       "element itself. Scales count in the bits.\n");
  tell(context, "ask the room: which column of this table would a loss curve feel first?");
  return {};
}

}  // namespace capstone::cli
