#include "cli/live_ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "cli/ladder_view.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

using Glyph = std::array<const char*, 5>;
const std::map<char, Glyph>& glyphs() {
  static const std::map<char, Glyph> all{{'0', {"###", "# #", "# #", "# #", "###"}},
                                         {'1', {" # ", "## ", " # ", " # ", "###"}},
                                         {'2', {"###", "  #", "###", "#  ", "###"}},
                                         {'3', {"###", "  #", " ##", "  #", "###"}},
                                         {'4', {"# #", "# #", "###", "  #", "  #"}},
                                         {'5', {"###", "#  ", "###", "  #", "###"}},
                                         {'6', {"###", "#  ", "###", "# #", "###"}},
                                         {'7', {"###", "  #", " # ", " # ", " # "}},
                                         {'8', {"###", "# #", "###", "# #", "###"}},
                                         {'9', {"###", "# #", "###", "  #", "###"}},
                                         {'.', {" ", " ", " ", " ", "#"}},
                                         {'x', {"   ", "# #", " # ", "# #", "   "}},
                                         {'%', {"#  #", "  # ", " #  ", "#  #", "    "}},
                                         {' ', {"  ", "  ", "  ", "  ", "  "}}};
  return all;
}

// "2.5", "2,5", "x2.5", "2.5x"
std::optional<double> guess_of(std::string line) {
  line = replace_all(replace_all(line, ",", "."), "x", "");
  const std::string text(trim(line));
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

std::string verdict_on(double guess, double gain) {
  const double off = std::max(guess / gain, gain / guess);
  const char* how = off <= 1.1     ? "spot on"
                    : off <= 1.5   ? "close"
                    : guess > gain ? "too hopeful"
                                   : "too modest";
  return fmt::format("the room said {:.3g}x: {}", guess, how);
}

}  // namespace

std::string large_type(const std::string& text) {
  std::string all;
  for (std::size_t row = 0; row < 5; ++row) {
    std::string line;
    for (char c : text) {
      const auto glyph = glyphs().find(c);
      if (glyph == glyphs().end()) continue;
      for (const char* p = glyph->second[row]; *p; ++p) line += *p == '#' ? "██" : "  ";
      line += "  ";
    }
    while (line.ends_with(' ')) line.pop_back();
    all += line + "\n";
  }
  return all;
}

Result<void> live_ladder(const Ladder& ladder, bool recorded, const Terminal& t, std::istream& room) {
  double slowest = 0, fastest = 1e300;
  std::size_t timed = 0;
  for (const LadderStep& s : ladder.steps)
    if (s.timed()) slowest = std::max(slowest, s.ms.point), fastest = std::min(fastest, s.ms.point), ++timed;
  if (timed == 0)
    return fail("no rung of " + ladder.problem + " has a time", {},
                "capstone ladder " + ladder.problem + " says why");
  const std::string mark =
      recorded ? "RECORDED on " + ladder.device + ", not measured here" : "measured now on " + ladder.device;
  std::string climbed;
  double worst_guess = 1;
  int guesses = 0;
  for (std::size_t i = 0, shown = 0; i < ladder.steps.size(); ++i) {
    const LadderStep& s = ladder.steps[i];
    if (!s.timed()) continue;
    ++shown;
    const auto gain = ladder.gain(i);
    t.clear();
    t.out(t.paint(Tone::kBold, t.fold(ladder_heading(ladder))) + "\n" +
          t.paint(recorded ? Tone::kWarn : Tone::kDim, mark) + "\n" + climbed);
    t.out(t.fold(fmt::format("rung {} of {}: {}", shown, timed, t.paint(Tone::kBold, s.rung.title))));
    if (!s.rung.changed.empty() && gain) t.out(t.fold("  " + s.rung.changed));
    std::optional<double> guess;
    if (gain) {
      t.out("\nhow many times faster than the rung below? (a number, or just Enter)");
      for (std::string line; !guess;) {
        if (!std::getline(room, line)) return {};
        if (trim(line).empty()) break;
        if (guess = guess_of(line); !guess)
          t.out("that is no number: 2.5, 3x, or just Enter");  // a slip of the finger must not give it away
      }
    }
    t.out("\n" + t.paint(gain && *gain < 1 ? Tone::kWarn : Tone::kGood,
                         large_type(gain ? fmt::format("{:.2f}x", *gain)
                                         : fmt::format("{:.1f} %", 100 * s.of_library.point))));
    t.out(fmt::format("{}   {} {}   {}{:.1f} % of the library", format_time_ms(s.ms.point), figure(ladder, s),
                      ladder.compute_bound() ? "TFLOP/s" : "GB/s",
                      s.percent_of_peak > 0 ? fmt::format("{:.1f} % of peak   ", s.percent_of_peak) : "",
                      100 * s.of_library.point));
    if (guess) {
      t.out(verdict_on(*guess, *gain));
      worst_guess = std::max({worst_guess, *guess / *gain, *gain / *guess});
      ++guesses;
    }
    climbed += fmt::format("  {:<28} {:>9}  {}\n", s.rung.name, format_time_ms(s.ms.point),
                           time_dot(s.ms.point, slowest, fastest));
    t.out("\n(Enter: on)");
    std::string line;
    if (!std::getline(room, line)) return {};
  }
  t.clear();
  t.out(ladder_text(ladder, t, recorded));
  if (guesses > 0)
    t.out(fmt::format("\n{} {} of the room; the farthest was off by {:.3g}x", guesses,
                      guesses == 1 ? "guess" : "guesses", worst_guess));
  return {};
}

}  // namespace capstone::cli
