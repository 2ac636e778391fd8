#include "harness/base/text.h"

#include <fmt/format.h>
#include <utf8.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <initializer_list>

#include "harness/base/instant.h"

namespace capstone {
namespace {
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (;;) {
    std::size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

bool is_utf8(std::string_view bytes) { return utf8::is_valid(bytes.begin(), bytes.end()); }

std::string to_utf8(std::string_view bytes) {
  std::string text;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const auto bad = utf8::find_invalid(at, bytes.end());
    text.append(at, bad);
    if (bad != bytes.end()) text += kReplacement;
    at = bad == bytes.end() ? bad : bad + 1;
  }
  return text;
}

std::string printable(std::string_view bytes) {
  const std::string text = to_utf8(bytes);
  std::string tame;
  tame.reserve(text.size());
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = at;
    const std::uint32_t c = utf8::unchecked::next(at);
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    const bool line_end = c == '\n' || (c == '\r' && at != text.end() && *at == '\n');
    if (control && !line_end && c != '\t')
      tame += kReplacement;
    else
      tame.append(begin, at);
  }
  return tame;
}

std::string utc_now() { return utc_text(std::time(nullptr)); }

namespace {
// Three significant digits without an exponent, at most six decimals.
std::string three(double v) {
  const double magnitude = std::fabs(v);
  if (magnitude == 0) return "0";
  int decimals = 2 - static_cast<int>(std::floor(std::log10(magnitude)));
  // 9.996 has two decimals, but rounds to 10.0, which has one.
  if (magnitude * std::pow(10, decimals) >= 999.5) --decimals;
  return fmt::format("{:.{}f}", v, std::clamp(decimals, 0, 6));
}

struct Scale {
  double least;  // from which value on, rounding included
  double unit;
  const char* name;
};

// The value in the largest unit that leaves it at 1 or more; the last one serves whatever is smaller.
std::string scaled(double v, std::initializer_list<Scale> scales) {
  if (!std::isfinite(v)) return "n/a";
  for (const Scale& scale : scales)
    if (v >= scale.least) return three(v / scale.unit) + scale.name;
  const Scale& last = *(scales.end() - 1);
  return three(v / last.unit) + last.name;
}
}  // namespace

std::string format_time_ms(double ms) {
  return scaled(ms, {{999.5, 1e3, " s"}, {0.9995, 1, " ms"}, {0, 1e-3, " µs"}});
}
std::string format_speedup(double ratio) { return std::isfinite(ratio) ? three(ratio) + "x" : "n/a"; }
std::string format_bandwidth(double v) {
  return scaled(v, {{0.9995e12, 1e12, " TB/s"}, {0.9995e9, 1e9, " GB/s"}, {0, 1e6, " MB/s"}});
}
std::string format_flops(double v) {
  return scaled(v, {{0.9995e12, 1e12, " TFLOP/s"}, {0.9995e9, 1e9, " GFLOP/s"}, {0, 1e6, " MFLOP/s"}});
}
std::string format_bytes(double v) {
  if (!std::isfinite(v)) return "n/a";
  constexpr double kKi = 1024;
  if (v < kKi) return fmt::format("{:.0f} B", v);
  return scaled(
      v, {{kKi * kKi * kKi, kKi * kKi * kKi, " GiB"}, {kKi * kKi, kKi * kKi, " MiB"}, {0, kKi, " KiB"}});
}

}  // namespace capstone
