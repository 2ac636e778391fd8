#include "templates/plot.h"

#include <fmt/format.h>
#include <stdlib.h>  // mkdtemp

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "rubric/numbers.h"

namespace capstone {

namespace {

// gnuplot draws in these colours. Afterwards each colour is replaced by a CSS variable, so that the plots
// follow the page's light or dark scheme. The exact values do not matter, as long as they are distinct.
struct Ink {
  const char* name;
  const char* rgb;
  const char* css;
};
constexpr std::array<Ink, 7> kInks{{
    {"ink", "#111213", "var(--plot-ink)"},
    {"grid", "#212223", "var(--plot-grid)"},
    {"human", "#313233", "var(--human)"},
    {"llm", "#414243", "var(--llm)"},
    {"base", "#515253", "var(--base)"},
    {"bad", "#616263", "var(--bad)"},
    {"muted", "#717273", "var(--muted)"},
}};
std::string ink(std::string_view name) {
  for (const Ink& i : kInks)
    if (name == i.name) return fmt::format("lc rgb '{}'", i.rgb);
  return {};
}

constexpr int kWidth = 720;

// A plot clause that draws intervals as bars with end strokes. The file's third and fourth columns are the
// bounds.
std::string interval_bars(const char* file, const std::string& color) {
  return fmt::format("'{}' using 1:3:(0):($4-$3) with vectors heads size graph 0.008,90 lw 1.8 {} notitle",
                     file, color);
}

// Reduces a label to characters that gnuplot, SVG and a shell treat as plain text, before it goes into a data
// file.
std::string safe_label(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                 std::string_view(" .+-_/:,()%").find(c) != std::string_view::npos;
    if (plain) out += c;
    if (out.size() == 28) break;
  }
  return out.empty() ? "?" : out;
}

bool drawable(double v) { return std::isfinite(v) && v > 0; }

bool is_judged(const Measurement& m) {
  return m.measured && m.measured->speedup && !is_emulated(m) && drawable(m.measured->speedup->point);
}

// A plot before it is drawn: its gnuplot commands and its data files.
struct Draft {
  Plot plot;
  int height = 360;
  std::string commands;
  std::vector<std::pair<std::string, std::string>> data;  // file name, tab-separated rows
};

std::string axes(const std::string& x, const std::string& y) {
  return fmt::format("set xlabel \"{}\" textcolor rgb '{}'\nset ylabel \"{}\" textcolor rgb '{}'\n", x,
                     kInks[0].rgb, y, kInks[0].rgb);
}

// ---- from version to version ------------------------------------------------------------------------------

struct ClimbRow {
  int at;
  std::string label;
  Interval value;
  bool failed;
};

std::vector<ClimbRow> climb_rows(const std::vector<const Measurement*>& versions, bool emulated) {
  std::vector<ClimbRow> rows;
  int at = 0;
  for (const Measurement* m : versions) {
    ClimbRow row{++at, safe_label(m->version), {}, m->gate_one != GateOne::kPassed};
    const Arm* arm = candidate_arm(*m);
    if (!row.failed && !emulated && is_judged(*m)) row.value = *m->measured->speedup;
    if (!row.failed && emulated && arm != nullptr) row.value = arm->median_ms;
    rows.push_back(row);
  }
  return rows;
}

std::string climb_story(const std::vector<ClimbRow>& rows, bool emulated) {
  std::vector<std::string> parts;
  for (const ClimbRow& row : rows)
    parts.push_back(row.label + (row.failed                   ? ": failed gate one"
                                 : !drawable(row.value.point) ? ": passed gate one, not timed"
                                 : emulated ? ": " + format_time_ms(row.value.point) + " emulated"
                                            : ": " + format_speedup(row.value.point)));
  return join(parts, "; ");
}

std::optional<Draft> draft_climb(const LedgerView& ledger, bool emulated) {
  std::vector<const Measurement*> versions = ledger.versions("human");
  if (versions.empty()) return std::nullopt;
  std::vector<ClimbRow> rows = climb_rows(versions, emulated);
  const Measurement* rival = emulated ? nullptr : ledger.best("llm");
  if (rival != nullptr && !is_judged(*rival)) rival = nullptr;

  Draft d;
  d.plot = {"climb",
            emulated ? "Emulated time of each version (says nothing about speed)"
                     : "Speedup of each version over the baseline",
            climb_story(rows, emulated),
            {},
            {}};
  std::string good, bad, tics;
  double top = emulated ? 0 : 1.2;
  for (const ClimbRow& row : rows) {
    tics += fmt::format("{}\t0\t{}\n", row.at, row.label);
    if (drawable(row.value.point)) {
      good += fmt::format("{}\t{}\t{}\t{}\n", row.at, row.value.point, row.value.low, row.value.high);
      top = std::max({top, row.value.point, row.value.high});
    } else if (row.failed) {
      bad += fmt::format("{}\t0\n", row.at);
    }
  }
  if (rival != nullptr) top = std::max(top, rival->measured->speedup->point);
  if (!drawable(top)) top = 1;
  d.data = {{"climb.dat", good}, {"climb_bad.dat", bad}, {"climb_tics.dat", tics}};
  d.commands =
      axes("", emulated ? "emulated CPU time [ms]" : "speedup over the baseline") +
      fmt::format("set xrange [0.5:{}.5]\nset yrange [0:{}]\nset key below\n", rows.size(), top * 1.22);
  d.commands += fmt::format("plot 'climb_tics.dat' using 1:2:xtic(3) with points pt -1 notitle");
  if (!emulated) d.commands += fmt::format(", 1 with lines dt 2 lw 1.5 {} title 'the baseline'", ink("base"));
  if (rival != nullptr)
    d.commands += fmt::format(", {} with lines dt 4 lw 1.5 {} title 'best kernel of the model'",
                              rival->measured->speedup->point, ink("llm"));
  std::string own = ink(emulated ? "muted" : "human");
  if (!good.empty())
    d.commands += fmt::format(
        ", 'climb.dat' using 1:2 with lines lw 2 {0} notitle, '' using 1:2 with points pt 7 ps 0.8 {0} title "
        "'{1}', {2}",
        own, emulated ? "by hand (emulated)" : "by hand, 95 % interval", interval_bars("climb.dat", own));
  if (!bad.empty())
    d.commands += fmt::format(
        ", 'climb_bad.dat' using 1:2 with points pt 2 ps 1.1 lw 2 {} title 'failed gate one'", ink("bad"));
  d.commands += "\n";
  return d;
}

// ---- the roofline
// ----------------------------------------------------------------------------------------------

struct RoofPoint {
  std::string label;
  bool human;
  double intensity, flops;
};

std::vector<RoofPoint> roof_points(const LedgerView& ledger) {
  std::vector<RoofPoint> points;
  for (const char* candidate : {"human", "llm"})
    for (const Measurement* m : ledger.versions(candidate)) {
      const Arm* arm = candidate_arm(*m);
      if (arm == nullptr || is_emulated(*m) || m->gate_one != GateOne::kPassed) continue;
      double seconds = arm->median_ms.point / 1e3, intensity = m->measured->flops / m->measured->bytes;
      if (!drawable(seconds) || !drawable(intensity)) continue;
      points.push_back({safe_label(m->version), candidate == std::string_view("human"), intensity,
                        m->measured->flops / seconds});
    }
  return points;
}

// Derives the peak from a measurement: bytes per second, divided by the percentage of the memory peak. The
// same holds for compute.
Roof derived_roof(const LedgerView& ledger) {
  Roof roof;
  for (const auto* list : {&ledger.human, &ledger.llm})
    for (const Measurement& m : *list) {
      const Arm* arm = candidate_arm(m);
      if (arm == nullptr || is_emulated(m) || !drawable(m.measured->percent_of_peak) ||
          !drawable(arm->median_ms.point))
        continue;
      double scale = 1e3 / arm->median_ms.point / (m.measured->percent_of_peak / 100);
      if (m.measured->bound_by == "memory") roof.bytes_per_second = m.measured->bytes * scale;
      if (m.measured->bound_by == "compute") roof.flops_per_second = m.measured->flops * scale;
    }
  return roof;
}

// Moves labels up, starting with the slowest point, so that labels at the same intensity do not overlap.
std::string label_rows(std::vector<RoofPoint> points, double decades) {
  std::sort(points.begin(), points.end(),
            [](const RoofPoint& a, const RoofPoint& b) { return a.flops < b.flops; });
  std::string rows;
  double least = decades * 0.055, last = -1e300;
  for (const RoofPoint& p : points) {
    double at = std::max(std::log10(p.flops), last + least);
    last = at;
    rows += fmt::format("{}\t{}\t{}\n", p.intensity, std::pow(10.0, at), p.label);
  }
  return rows;
}

std::optional<Draft> draft_roofline(const LedgerView& ledger, const std::optional<Roof>& given) {
  std::vector<RoofPoint> points = roof_points(ledger);
  if (points.empty()) return std::nullopt;
  Roof roof = given.value_or(Roof{}), derived = derived_roof(ledger);
  if (!drawable(roof.bytes_per_second)) roof.bytes_per_second = derived.bytes_per_second;
  if (!drawable(roof.flops_per_second)) roof.flops_per_second = derived.flops_per_second;

  double x = points.front().intensity, low = 1e300, high = 0;
  std::string human, llm;
  for (const RoofPoint& p : points) {
    low = std::min(low, p.flops);
    high = std::max(high, p.flops);
    (p.human ? human : llm) += fmt::format("{}\t{}\n", p.intensity, p.flops);
  }
  std::string ceiling =
      drawable(roof.bytes_per_second) && drawable(roof.flops_per_second)
          ? fmt::format("x*{0} < {1} ? x*{0} : {1}", roof.bytes_per_second, roof.flops_per_second)
      : drawable(roof.bytes_per_second) ? fmt::format("x*{}", roof.bytes_per_second)
      : drawable(roof.flops_per_second) ? fmt::format("{}", roof.flops_per_second)
                                        : "";
  double left = x / 16, right = x * 16;
  if (drawable(roof.bytes_per_second) && drawable(roof.flops_per_second))
    right = std::max(right, 4 * roof.flops_per_second / roof.bytes_per_second);
  if (drawable(roof.bytes_per_second)) high = std::max(high, roof.bytes_per_second * x);
  double bottom = std::min(low / 3, drawable(roof.bytes_per_second) ? roof.bytes_per_second * left : low / 3),
         top = high * 6;
  if (drawable(roof.flops_per_second)) top = std::max(top, roof.flops_per_second * 2.5);

  Draft d;
  std::vector<std::string> story;
  for (const RoofPoint& p : points) story.push_back(fmt::format("{}: {}", p.label, format_flops(p.flops)));
  d.plot = {"roofline",
            "Each version compared with the limits of the hardware",
            fmt::format("Arithmetic intensity {:.3g} FLOP/B. {}", x, join(story, "; ")),
            {},
            {}};
  d.height = 400;
  d.data = {{"roof_human.dat", human},
            {"roof_llm.dat", llm},
            {"roof_labels.dat", label_rows(points, std::log10(top / bottom))}};
  d.commands = axes("arithmetic intensity [FLOP/B]", "performance [FLOP/s]") +
               fmt::format(
                   "set logscale xy\nset xrange [{}:{}]\nset yrange [{}:{}]\nset format y '%.0s%c'\nset "
                   "format x '%g'\nset key below\nset samples 600\n",
                   left, right, bottom, top);
  std::vector<std::string> parts;
  if (!ceiling.empty())
    parts.push_back(fmt::format("{} with lines lw 2 {} title 'the roof'", ceiling, ink("base")));
  if (!human.empty())
    parts.push_back(
        fmt::format("'roof_human.dat' using 1:2 with points pt 7 ps 1 {} title 'by hand'", ink("human")));
  if (!llm.empty())
    parts.push_back(
        fmt::format("'roof_llm.dat' using 1:2 with points pt 5 ps 1 {} title 'the model'", ink("llm")));
  parts.push_back(
      fmt::format("'roof_labels.dat' using 1:2:3 with labels left offset 1.2,0 textcolor rgb '{}' notitle",
                  kInks[0].rgb));
  d.commands += "plot " + join(parts, ", ") + "\nunset logscale\nset format x '% h'\nset format y '% h'\n";
  return d;
}

// ---- the samples
// -----------------------------------------------------------------------------------------------

struct ArmRow {
  std::string label, color;
  const Arm* arm;
};

std::vector<ArmRow> arm_rows(const LedgerView& ledger, bool emulated) {
  std::vector<ArmRow> rows;
  const Measurement* human = ledger.best("human");
  const Measurement* llm = ledger.best("llm");
  const Measurement* stage = human != nullptr ? human : llm;
  if (stage == nullptr || !stage->measured) return rows;
  for (const Arm& arm : stage->measured->arms)
    if (&arm != candidate_arm(*stage))
      rows.push_back({safe_label(arm.name), emulated ? "muted" : "base", &arm});
  if (human != nullptr && candidate_arm(*human) != nullptr)
    rows.push_back(
        {safe_label("by hand: " + human->version), emulated ? "muted" : "human", candidate_arm(*human)});
  if (llm != nullptr && candidate_arm(*llm) != nullptr && is_emulated(*llm) == emulated)
    rows.push_back({safe_label("model: " + llm->version), emulated ? "muted" : "llm", candidate_arm(*llm)});
  return rows;
}

// At most `limit` samples, evenly spaced: a strip of 200 dots shows as much as one of 20,000.
std::vector<double> thinned(const Arm& arm, std::size_t limit) {
  std::vector<double> all, some;
  for (const std::vector<double>& restart : arm.samples_ms)
    for (double v : restart)
      if (drawable(v)) all.push_back(v);
  std::size_t step = std::max<std::size_t>(1, (all.size() + limit - 1) / limit);
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

std::optional<Draft> draft_samples(const LedgerView& ledger, bool emulated) {
  std::vector<ArmRow> rows = arm_rows(ledger, emulated);
  Draft d;
  std::string tics, plots;
  double low = 1e300, high = 0;
  int row = 0;
  std::vector<std::string> story;
  for (const ArmRow& r : rows) {
    std::vector<double> samples = thinned(*r.arm, 180);
    if (samples.empty()) continue;
    ++row;
    std::string data;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      // The golden ratio spreads the dots evenly without randomness, so that the page is the same every time.
      double spread = std::fmod(static_cast<double>(i) * 0.61803398875, 1.0) - 0.5;
      data += fmt::format("{}\t{:.4f}\n", samples[i], row + 0.5 * spread);
      low = std::min(low, samples[i]);
      high = std::max(high, samples[i]);
    }
    std::string file = fmt::format("samples_{}.dat", row);
    d.data.emplace_back(file, data);
    d.data.emplace_back(fmt::format("median_{}.dat", row),
                        fmt::format("{0}\t{1}\n{0}\t{2}\n", r.arm->median_ms.point, row - 0.38, row + 0.38));
    tics += fmt::format("0\t{}\t{}\n", row, r.label);
    plots += fmt::format(
        ", '{}' using 1:2 with points pt 7 ps 0.28 {} notitle, 'median_{}.dat' using 1:2 with lines lw 2.5 "
        "{} notitle",
        file, ink(r.color), row, ink("ink"));
    story.push_back(fmt::format("{}: median {}", r.label, format_time_ms(r.arm->median_ms.point)));
  }
  if (row == 0) return std::nullopt;
  d.plot = {
      "samples",
      emulated ? "Emulated samples (they say nothing about speed)" : "Samples of each arm, and their median",
      join(story, "; "),
      {},
      {}};
  d.height = 110 + 58 * row;
  d.data.emplace_back("samples_tics.dat", tics);
  double margin = std::max((high - low) * 0.06, high * 0.01);
  d.commands = axes(emulated ? "emulated CPU time [ms]" : "time of one launch [ms], GPU-cold", "") +
               fmt::format("set xrange [{}:{}]\nset yrange [{}.5:0.5]\nset key off\nset grid noytics\n",
                           std::max(0.0, low - margin), high + margin, row);
  d.commands +=
      "plot 'samples_tics.dat' using 1:2:ytic(3) with points pt -1 notitle" + plots + "\nset grid ytics\n";
  return d;
}

// ---- head to head
// ----------------------------------------------------------------------------------------------

struct BarRow {
  std::string label, color;
  Interval value;
  double percent;
};

std::vector<BarRow> bar_rows(const LedgerView& ledger, bool emulated) {
  std::vector<BarRow> rows;
  auto add = [&](const Measurement& m, const std::string& label, const char* color) {
    const Arm* arm = candidate_arm(m);
    if (!emulated && is_judged(m))
      rows.push_back({label, color, *m.measured->speedup, m.measured->percent_of_peak});
    if (emulated && arm != nullptr && drawable(arm->median_ms.point))
      rows.push_back({label, "muted", arm->median_ms, 0});
  };
  if (!emulated) rows.push_back({"reference", "base", {1, 1, 1}, 0});
  if (const Measurement* best = ledger.best("human")) add(*best, safe_label(best->version), "human");
  for (const Measurement* m : ledger.versions("llm"))
    if (m->gate_one == GateOne::kPassed && is_emulated(*m) == emulated)
      add(*m, safe_label(m->version), "llm");
  return rows;
}

std::string bar_panel(const std::vector<BarRow>& rows, const char* file, double top) {
  std::string plot = fmt::format(
      "set xrange [0.4:{}.6]\nset yrange [0:{}]\nset key off\nplot '{}' using 1:(0):xtic(6) with points pt "
      "-1 notitle",
      rows.size(), top, file);
  for (std::size_t i = 0; i < rows.size(); ++i)
    plot += fmt::format(", '{}' using 1:2 every ::{}::{} with boxes fs solid 0.85 noborder {} notitle", file,
                        i, i, ink(rows[i].color));
  return plot;
}

std::optional<Draft> draft_head_to_head(const LedgerView& ledger, bool emulated) {
  std::vector<BarRow> rows = bar_rows(ledger, emulated);
  if (rows.size() < (emulated ? 1u : 2u)) return std::nullopt;
  std::string data;
  double top = 0, top_percent = 100;
  bool percents = false;
  std::vector<std::string> story;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const BarRow& r = rows[i];
    data += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", i + 1, r.value.point, r.value.low, r.value.high,
                        r.percent, r.label);
    top = std::max({top, r.value.point, r.value.high});
    percents |= r.percent > 0;
    top_percent = std::max(top_percent, r.percent * 1.1);  // a value above 100 % must not be cut off
    story.push_back(r.label + ": " +
                    (emulated ? format_time_ms(r.value.point) + " emulated" : format_speedup(r.value.point)) +
                    (r.percent > 0 ? fmt::format(", {:.0f} % of peak", r.percent) : ""));
  }
  Draft d;
  d.plot = {"head-to-head",
            emulated ? "Emulated times side by side (they say nothing about speed)"
                     : "Speedup with its interval, and percent of peak",
            join(story, "; "),
            {},
            {}};
  d.data = {{"bars.dat", data}};
  d.commands =
      fmt::format("set boxwidth 0.55\n{}", rows.size() > 3 ? "set xtics rotate by -25 nomirror\n" : "");
  if (percents) d.commands += "set multiplot layout 1,2\n";
  d.commands += axes("", emulated ? "emulated CPU time [ms]" : "speedup over the baseline") +
                bar_panel(rows, "bars.dat", top * 1.15) + ", " + interval_bars("bars.dat", ink("ink")) + "\n";
  if (percents)
    d.commands +=
        axes("", "percent of peak [%]") +
        replace_all(bar_panel(rows, "bars.dat", top_percent), "using 1:2 every", "using 1:5 every") +
        (top_percent > 100 ? ", 100 with lines dt 2 " + ink("ink") + " notitle" : "") + "\nunset multiplot\n";
  d.commands += "set xtics norotate\n";
  return d;
}

// ---- gnuplot
// ---------------------------------------------------------------------------------------------------

constexpr const char* kPreamble =
    "set encoding utf8\n"
    "set datafile separator tab\n"
    "set border 3 lw 0.8 {ink}\n"
    "set tics nomirror scale 0.5 textcolor rgb '{rgb}'\n"
    "set key textcolor rgb '{rgb}' samplen 2 spacing 1.2\n"
    "set grid ytics {grid} lw 0.7 dt 1\n"
    "set pointintervalbox 0\n";

std::string script_of(const std::vector<Draft>& drafts) {
  std::string script;
  for (const Draft& d : drafts) {
    script += "reset\n" + fmt::format(fmt::runtime(kPreamble), fmt::arg("ink", ink("ink")),
                                      fmt::arg("grid", ink("grid")), fmt::arg("rgb", kInks[0].rgb));
    script += fmt::format(
        "set terminal svg size {},{} dynamic noenhanced font 'sans-serif,13'\nset output '{}.svg'\n", kWidth,
        d.height, d.plot.name);
    script += d.commands + "unset output\n";
  }
  return script;
}

std::string escape_xml(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// gnuplot writes a colour as "rgb( 17,  18,  19)" or "rgb(17,18,19)", and its default colours by name.
void recolour(std::string& svg) {
  for (const Ink& i : kInks) {
    auto channel = [&](int at) { return std::stoi(std::string(i.rgb + at, 2), nullptr, 16); };
    int red = channel(1), green = channel(3), blue = channel(5);
    svg = replace_all(svg, fmt::format("rgb({:3d}, {:3d}, {:3d})", red, green, blue), i.css);
    svg = replace_all(svg, fmt::format("rgb({},{},{})", red, green, blue), i.css);
  }
  // The remaining colours are defaults of gnuplot.
  for (std::size_t at = 0; (at = svg.find("rgb(", at)) != std::string::npos;)
    if (std::size_t close = svg.find(')', at); close != std::string::npos)
      svg.replace(at, close + 1 - at, "var(--plot-ink)");
    else
      break;
  for (auto [name, css] :
       {std::pair{"black", "var(--plot-ink)"}, {"gray", "var(--plot-ink)"}, {"white", "var(--paper)"}})
    for (char quote : {'\'', '"'})
      svg = replace_all(svg, fmt::format("{0}{1}{0}", quote, name), fmt::format("{0}{1}{0}", quote, css));
}

// Turns gnuplot's file into an element for the page: one <svg> with a name, a description, unique ids, and
// the page's colours.
std::string to_inline(std::string svg, const Plot& plot, int height) {
  std::size_t begin = svg.find("<svg"), open_end = begin == std::string::npos ? begin : svg.find('>', begin),
              end = svg.rfind("</svg>");
  if (open_end == std::string::npos || end == std::string::npos || end < open_end) return {};
  std::string body = svg.substr(open_end + 1, end - open_end - 1);
  // Remove gnuplot's titles and descriptions ("Gnuplot", "gnuplot_plot_2"): a browser would show them as
  // tooltips.
  for (std::string tag : {"title", "desc"})
    for (std::size_t from; (from = body.find("<" + tag + ">")) != std::string::npos;) {
      std::size_t to = body.find("</" + tag + ">", from);
      if (to == std::string::npos) return {};
      body.erase(from, to + tag.size() + 3 - from);
    }
  // Inline plots share one id space, so each plot's ids get a prefix.
  std::string prefix = replace_all(plot.name, "-", "_") + "_";
  recolour(body);
  for (const char* name : {"id='", "id=\"", "href='#", "href=\"#", "url(#"})
    body = replace_all(body, name, name + prefix);
  return fmt::format(
      "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {} {}\" aria-labelledby=\"{}title {}desc\" "
      "xmlns=\"http://www.w3.org/2000/svg\" "
      "xmlns:xlink=\"http://www.w3.org/1999/xlink\"><title id=\"{}title\">{}</title><desc "
      "id=\"{}desc\">{}</desc>{}</svg>",
      kWidth, height, prefix, prefix, prefix, escape_xml(plot.title), prefix, escape_xml(plot.description),
      body);
}

// RAII temporary folder.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "capstone-plot-XXXXXX").string();
    if (!error && mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Result<void> run_gnuplot(std::vector<Draft>& drafts, const Resources& resources) {
  std::optional<fs::path> program = find_program("gnuplot", resources.path_variable);
  if (!program)
    return fail("install gnuplot to see the plots", "gnuplot", "the tables have the same numbers",
                ExitCode::kEnvironment);
  TemporaryFolder folder;
  if (folder.path().empty())
    return fail("cannot create a temporary folder for the plots", "", "check TMPDIR and the free disk space",
                ExitCode::kEnvironment);
  for (const Draft& d : drafts)
    for (const auto& [name, bytes] : d.data) CAPSTONE_CHECK(write_new_file(folder.path() / name, bytes));
  CAPSTONE_CHECK(write_new_file(folder.path() / "plots.gp", script_of(drafts)));
  ProcessSpec spec;
  spec.argv = {program->string(), "-d", "plots.gp"};
  spec.cwd = folder.path();
  spec.timeout = std::chrono::seconds(20);
  CAPSTONE_TRY(ProcessResult run, run_process(spec));
  if (!run.ok())
    return fail("gnuplot failed: " + std::string(trim(split(std::string(trim(run.err)), '\n').front())),
                "gnuplot", "", ExitCode::kEnvironment);
  for (Draft& d : drafts) {
    Result<std::string> svg = read_file(folder.path() / (d.plot.name + ".svg"), std::size_t{8} << 20);
    if (svg) d.plot.svg = to_inline(*svg, d.plot, d.height);
    if (d.plot.svg.empty()) d.plot.note = "gnuplot drew nothing for this plot";
  }
  return {};
}

bool only_emulated(const LedgerView& ledger) {
  for (const auto* list : {&ledger.human, &ledger.llm})
    for (const Measurement& m : *list)
      if (!is_emulated(m)) return false;
  return true;
}

}  // namespace

std::vector<Plot> draw_plots(const LedgerView& ledger, const std::optional<Roof>& roof,
                             const Resources& resources) {
  bool emulated = only_emulated(ledger);
  std::vector<Draft> drafts;
  for (std::optional<Draft>& d :
       std::array{draft_climb(ledger, emulated), draft_roofline(ledger, roof),
                  draft_samples(ledger, emulated), draft_head_to_head(ledger, emulated)})
    if (d) drafts.push_back(std::move(*d));
  if (drafts.empty()) return {};
  Result<void> drawn = run_gnuplot(drafts, resources);
  std::vector<Plot> plots;
  for (Draft& d : drafts) {
    if (!drawn) d.plot.note = drawn.error().what;
    plots.push_back(std::move(d.plot));
  }
  return plots;
}

}  // namespace capstone
