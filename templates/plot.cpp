#include "templates/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "harness/base/text.h"
#include "rubric/numbers.h"
#include "templates/counts.h"
#include "templates/gnuplot.h"

namespace capstone {

namespace {

constexpr std::size_t kMostBars = 12;  // of the head-to-head; the table has the others

std::string safe_label(std::string_view text) { return plain_text(text, 28); }

bool drawable(double v) { return std::isfinite(v) && v > 0; }

bool is_judged(const Measurement& m) {
  return m.measured && m.measured->speedup && !is_emulated(m) && drawable(m.measured->speedup->point);
}

std::string axes(const std::string& x, const std::string& y) {
  return fmt::format("set xlabel \"{0}\" {2}\nset ylabel \"{1}\" {2}\n", x, y, text_ink("ink"));
}

// A label at a point, on one side of it.
struct PointLabel {
  double x, y;
  std::string text;
  enum class Side { kLeft, kRight, kAbove } side;
};

// The clauses that write the labels; empty without labels.
std::string label_clauses(const Canvas& canvas, Drawing& drawing, const std::string& name,
                          const std::vector<PointLabel>& labels) {
  struct Group {
    PointLabel::Side side;
    const char *name, *where;
  };
  std::string clauses;
  for (const Group& group : {Group{PointLabel::Side::kLeft, "left", "right offset -1,0"},
                             Group{PointLabel::Side::kRight, "right", "left offset 1,0"},
                             Group{PointLabel::Side::kAbove, "above", "center offset 0,0.8"}}) {
    std::string rows;
    for (const PointLabel& label : labels)
      if (label.side == group.side) rows += fmt::format("{}\t{}\t{}\n", label.x, label.y, label.text);
    if (!rows.empty())
      clauses +=
          fmt::format(", {} using 1:2:3 with labels {} {} notitle",
                      drawing.data(canvas, name + "_" + group.name, rows), group.where, text_ink("ink"));
  }
  return clauses;
}

// Names of versions below an axis: as many as fit, at round numbers. Returns the clause that sets them.
std::string version_tics(const Canvas& canvas, Drawing& drawing, const std::string& name,
                         const std::vector<std::string>& versions) {
  std::size_t longest = 1, step = 1;
  for (const std::string& version : versions) longest = std::max(longest, version.size());
  const double room = 0.85 * canvas.width / (0.6 * canvas.font * static_cast<double>(longest + 2));
  for (std::size_t wider : {2, 5, 10, 20, 50, 100, 200, 500, 1000})
    if (static_cast<double>(versions.size()) / static_cast<double>(step) > room) step = wider;
  std::string rows;
  for (std::size_t i = 0; i < versions.size(); ++i)
    if (i == 0 || (step <= 2 ? i % step == 0 : (i + 1) % step == 0))
      rows += fmt::format("{}\t0\t{}\n", i + 1, versions[i]);
  return drawing.data(canvas, name, rows) + " using 1:2:xtic(3) with points pt -1 notitle";
}

// ---- from version to version ------------------------------------------------------------------------------

// What one version is in a tooltip and in a table: "v2", "1.62x [1.60, 1.64]", "PASS", "FASTER".
std::vector<std::string> judged_row(const Measurement& m) {
  return {m.version, speedup_text(m), std::string(label_of(m.gate_one)), std::string(label_of(m.gate_two))};
}

std::string judged_text(const Measurement& m) {
  const std::string name = safe_label(m.version) + ": ";
  if (m.gate_one != GateOne::kPassed) return name + std::string(label_of(m.gate_one));
  if (!is_judged(m)) return name + "passed gate one, not timed";
  return name + speedup_text(m) + ", " + std::string(label_of(m.gate_two)) +
         (m.measured->percent_of_peak > 0 ? ", " + percent_text(m) + " of peak" : "");
}

// Labels of the versions in a row: all where there is room, otherwise the best one.
std::vector<PointLabel> climb_labels(const Canvas& canvas, const std::vector<const Measurement*>& versions) {
  const std::size_t room = canvas.narrow ? 5 : 12;
  const Measurement* best = nullptr;
  for (const Measurement* m : versions)
    if (is_judged(*m) && (!best || m->measured->speedup->point > best->measured->speedup->point)) best = m;
  std::vector<PointLabel> labels;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const Measurement& m = *versions[i];
    if (!is_judged(m) || (versions.size() > room && &m != best)) continue;
    const std::string value = format_speedup(m.measured->speedup->point);
    const std::string text = versions.size() <= room ? value : safe_label(m.version) + ": " + value;
    // A label near an edge moves inwards.
    const double all = static_cast<double>(versions.size());
    const double half = 0.35 * canvas.font * static_cast<double>(text.size()) / canvas.width * all;
    const double x = std::max(0.5 + half, std::min(static_cast<double>(i + 1), all + 0.5 - half));
    labels.push_back(
        {x, std::max(m.measured->speedup->point, m.measured->speedup->high), text, PointLabel::Side::kAbove});
  }
  return labels;
}

void draw_climb(const std::vector<const Measurement*>& versions, const Measurement* rival,
                const Canvas& canvas, Drawing& drawing) {
  std::string good, bad, tips;
  std::vector<std::string> names;
  double top = rival ? std::max(1.2, rival->measured->speedup->point) : 1.2;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const Measurement& m = *versions[i];
    names.push_back(safe_label(m.version));
    double y = 0;
    if (is_judged(m) && m.gate_one == GateOne::kPassed) {
      const Interval& s = *m.measured->speedup;
      good += fmt::format("{}\t{}\t{}\t{}\n", i + 1, s.point, s.low, s.high);
      top = std::max({top, s.point, s.high});
      y = s.point;
    } else if (m.gate_one != GateOne::kPassed) {
      bad += fmt::format("{}\t0\n", i + 1);
    } else {
      continue;
    }
    tips += fmt::format("{}\t{}\t{}\n", i + 1, y, judged_text(m));
  }
  drawing.height = canvas.narrow ? 300 : 400;
  drawing.commands =
      axes("", "speedup over the baseline") +
      fmt::format(
          "set xrange [0.5:{}.5]\nset yrange [0:{}]\nplot {}, 1 with lines dt 2 lw 1.5 {} title "
          "'baseline'",
          versions.size(), top * 1.15, version_tics(canvas, drawing, "climb_tics", names), ink("base"));
  if (rival)
    drawing.commands += fmt::format(", {} with lines dt 4 lw 1.5 {} title 'best of the model'",
                                    rival->measured->speedup->point, ink("llm"));
  if (!good.empty()) {
    const std::string file = drawing.data(canvas, "climb", good);
    drawing.commands += fmt::format(
        ", {0} using 1:2 with lines lw 2 {1} notitle, {0} using 1:2 with points pt 7 ps 0.8 {1} title 'by "
        "hand, 95 % interval', {0} using 1:3:(0):($4-$3) with vectors heads size graph 0.006,90 lw 1.8 {1} "
        "notitle",
        file, ink("human"));
  }
  if (!bad.empty())
    drawing.commands += fmt::format(", {} using 1:2 with points pt 2 ps 0.9 lw 2 {} title 'failed gate one'",
                                    drawing.data(canvas, "climb_bad", bad), ink("bad"));
  drawing.commands += label_clauses(canvas, drawing, "climb_labels", climb_labels(canvas, versions));
  if (!tips.empty()) drawing.commands += ", " + hover(drawing.data(canvas, "climb_tips", tips));
  drawing.commands += "\n";
}

std::optional<Draft> draft_climb(const LedgerView& ledger) {
  const std::vector<const Measurement*> versions = ledger.versions("human");
  if (versions.empty()) return std::nullopt;
  const Measurement* rival = ledger.best("llm");
  if (rival && !is_judged(*rival)) rival = nullptr;
  Plot plot{"climb", "Speedup of each version over the baseline", "", {}, {}};
  plot.columns = {"Version", "Speedup [95 %]", "Gate one", "Gate two"};
  std::vector<std::string> story;
  for (const Measurement* m : versions) {
    plot.rows.push_back(judged_row(*m));
    story.push_back(safe_label(m->version) + (m->gate_one != GateOne::kPassed ? ": failed gate one"
                                              : is_judged(*m)
                                                  ? ": " + format_speedup(m->measured->speedup->point)
                                                  : ": passed gate one, not timed"));
  }
  plot.description = join(story, "; ");
  return drafted(
      plot, [&](const Canvas& canvas, Drawing& drawing) { draw_climb(versions, rival, canvas, drawing); });
}

// ---- counts, version by version ---------------------------------------------------------------------------

// One count of every version.
struct CountPanel {
  const char* title;
  std::function<std::optional<double>(const std::string& candidate, const std::string& version)> value;
  std::function<std::string(double)> text;
  double scale = 1;  // of the axis
  std::string unit = {};
  double needed = 0;  // what the problem needs at least; 0: unknown
};

std::string count_text(double value) {
  if (value < 1e4) return fmt::format("{:g}", value);
  return value < 1e6   ? fmt::format("{:.3g} k", value / 1e3)
         : value < 1e9 ? fmt::format("{:.3g} M", value / 1e6)
                       : fmt::format("{:.3g} G", value / 1e9);
}

std::vector<CountPanel> count_panels(const VersionCounts& counts) {
  const auto of = [&counts](auto value) {
    return
        [&counts, value](const std::string& candidate, const std::string& version) -> std::optional<double> {
          const Explanation* e = counts.of(candidate, version);
          return e ? std::optional<double>(value(*e)) : std::nullopt;
        };
  };
  return {
      {"Global memory traffic", of([](const Explanation& e) { return e.moved_bytes(); }), format_bytes},
      {"Sectors per request of a warp",
       of([](const Explanation& e) { return e.total.global.units_per_request(); }),
       [](double v) { return fmt::format("{:.1f}", v); }},
      {"Bank conflicts (extra wavefronts)",
       of([](const Explanation& e) { return static_cast<double>(bank_conflicts(e)); }), count_text},
      {"FLOP", of([](const Explanation& e) { return static_cast<double>(e.total.flops); }), count_text},
      {"Modelled bound on time",
       [&counts](const std::string& candidate, const std::string& version) -> std::optional<double> {
         const ModelledFloor* floor = counts.floor(candidate, version);
         return floor ? std::optional<double>(floor->ms()) : std::nullopt;
       },
       format_time_ms},
  };
}

constexpr double kLargest = 1e30;  // a damaged ledger may hold anything, and gnuplot knows no infinity

// What a value of a panel (bytes, milliseconds or a number) is multiplied with for an axis in this unit.
constexpr std::array<std::pair<const char*, double>, 11> kUnitScales{{{"KiB", 0x1p-10},
                                                                      {"MiB", 0x1p-20},
                                                                      {"GiB", 0x1p-30},
                                                                      {"TiB", 0x1p-40},
                                                                      {"µs", 1e3},
                                                                      {"ms", 1},
                                                                      {"s", 1e-3},
                                                                      {"k", 1e-3},
                                                                      {"M", 1e-6},
                                                                      {"G", 1e-9},
                                                                      {"B", 1}}};

// The panels that have something to show, each with a scale for its axis.
std::vector<CountPanel> panels_with_values(const VersionCounts& counts,
                                           const std::vector<const Measurement*>& versions,
                                           const Explanation& any) {
  std::vector<CountPanel> panels;
  for (CountPanel& panel : count_panels(counts)) {
    double top = 0;
    for (const Measurement* m : versions)
      top = std::max(top, panel.value(m->candidate, m->version).value_or(0));
    if (!drawable(top) || top > kLargest) continue;
    // The axis has the unit of its largest value: "512 KiB" gives KiB.
    const std::string text = panel.text(top);
    for (const auto& [unit, scale] : kUnitScales)
      if (text.ends_with(std::string(" ") + unit)) panel.unit = unit, panel.scale = scale;
    if (panels.empty()) panel.needed = any.compulsory_bytes;
    panels.push_back(std::move(panel));
  }
  return panels;
}

// Two to four steps up to `top`, at round numbers.
double tic_step(double top) {
  const double decade = std::pow(10, std::floor(std::log10(top))), digits = top / decade;
  return decade * (digits < 2 ? 0.5 : digits < 4 ? 1 : digits < 8 ? 2 : 2.5);
}

void draw_counts(const std::vector<CountPanel>& panels, const std::vector<const Measurement*>& versions,
                 const Measurement* rival, const Canvas& canvas, Drawing& drawing) {
  const int each = canvas.narrow ? 126 : 136, above = 34, below = 34, left = canvas.narrow ? 48 : 64;
  drawing.height = each * static_cast<int>(panels.size()) + below;
  const auto share = [&](int y) { return static_cast<double>(drawing.height - y) / drawing.height; };
  std::vector<std::string> names;
  for (const Measurement* m : versions) names.push_back(safe_label(m->version));
  drawing.commands = fmt::format(
      "set multiplot\nset key off\nset xrange [0.5:{}.5]\nset lmargin at screen {}\n"
      "set rmargin at screen 0.97\nset ytics autofreq\n",
      versions.size(), static_cast<double>(left) / canvas.width);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const CountPanel& panel = panels[i];
    const bool last = i + 1 == panels.size();
    const std::string name = fmt::format("count_{}", i);
    std::string good, bad, tips, first_text, last_text;
    double top = panel.needed * panel.scale;
    for (std::size_t at = 0; at < versions.size(); ++at) {
      const Measurement& m = *versions[at];
      const auto value = panel.value(m.candidate, m.version);
      if (m.gate_one != GateOne::kPassed) {
        bad += fmt::format("{}\t0\n", at + 1);
        tips += fmt::format("{}\t0\t{}: {}\n", at + 1, names[at], label_of(m.gate_one));
        continue;
      }
      if (!value) continue;
      const double y = *value * panel.scale;
      top = std::max(top, y);
      good += fmt::format("{}\t{}\n", at + 1, y);
      tips += fmt::format("{}\t{}\t{}: {}\n", at + 1, y, names[at], panel.text(*value));
      last_text = panel.text(*value);
      if (first_text.empty()) first_text = last_text;
    }
    double other = 0;
    if (rival) other = panel.value(rival->candidate, rival->version).value_or(0) * panel.scale;
    top = std::max(top, other);
    if (!drawable(top)) top = 1;
    std::string title = panel.title + (panel.unit.empty() ? "" : " [" + panel.unit + "]") +
                        (first_text.empty() ? std::string() : ": " + first_text);
    if (last_text != first_text) title += " to " + last_text;
    if (panel.needed > 0 && !canvas.narrow)
      title += fmt::format(" (dashed: the problem needs {})", panel.text(panel.needed));
    drawing.commands += fmt::format(
        "set tmargin at screen {}\nset bmargin at screen {}\nset yrange [0:{}]\nset ytics {}\nset label 1 "
        "\"{}\" "
        "at graph 0,1 offset 0,0.6 left {}\n{}plot {}",
        share(each * static_cast<int>(i) + above), share(each * static_cast<int>(i + 1)), top * 1.12,
        tic_step(top), title, text_ink("ink"), last ? "set xtics nomirror\n" : "unset xtics\n",
        last ? version_tics(canvas, drawing, "count_tics", names) : "-1 notitle");
    if (panel.needed > 0)
      drawing.commands +=
          fmt::format(", {} with lines dt 2 lw 1.5 {}", panel.needed * panel.scale, ink("base"));
    if (other > 0) drawing.commands += fmt::format(", {} with lines dt 4 lw 1.5 {}", other, ink("llm"));
    if (!good.empty())
      drawing.commands += fmt::format(", {0} using 1:2 with linespoints pt 7 ps 0.6 lw 2 {1}",
                                      drawing.data(canvas, name, good), ink("human"));
    if (!bad.empty())
      drawing.commands += fmt::format(", {} using 1:2 with points pt 2 ps 0.7 lw 2 {}",
                                      drawing.data(canvas, name + "_bad", bad), ink("bad"));
    if (!tips.empty()) drawing.commands += ", " + hover(drawing.data(canvas, name + "_tips", tips));
    drawing.commands += "\nunset label 1\n";
  }
  drawing.commands += "unset multiplot\n";
}

std::optional<Draft> draft_counts(const LedgerView& ledger, int least) {
  const VersionCounts counts(ledger);
  const std::vector<const Measurement*> versions = ledger.versions("human");
  const Explanation* any = nullptr;
  int counted = 0;
  for (const Measurement* m : versions)
    if (const Explanation* e = counts.of("human", m->version)) any = e, ++counted;
  if (any == nullptr || counted < least) return std::nullopt;
  const std::vector<CountPanel> panels = panels_with_values(counts, versions, *any);
  if (panels.empty()) return std::nullopt;
  const Measurement* rival = ledger.best("llm");
  if (rival && !counts.of("llm", rival->version)) rival = nullptr;
  Plot plot{"counts", fmt::format("Counted on the CPU at {}, not timed", counts.sizes()), "", {}, {}};
  if (rival) plot.title += fmt::format("; the second dashed line is {} of the model", rival->version);
  if (!counts.device().empty())
    plot.title += fmt::format("; no kernel with these counts can be faster than the modelled bound on {}",
                              counts.device());
  plot.columns = {"Version"};
  for (const CountPanel& panel : panels) plot.columns.push_back(panel.title);
  std::vector<std::string> story;
  for (const Measurement* m : versions) {
    std::vector<std::string> row{m->version};
    for (const CountPanel& panel : panels) {
      const auto value = panel.value(m->candidate, m->version);
      row.push_back(value ? panel.text(*value) : "–");
    }
    const Explanation* e = counts.of("human", m->version);
    story.push_back(safe_label(m->version) + (m->gate_one != GateOne::kPassed ? ": failed gate one"
                                              : e ? ": " + format_bytes(e->moved_bytes()) + " moved"
                                                  : ": not counted"));
    plot.rows.push_back(std::move(row));
  }
  plot.description = join(story, "; ");
  return drafted(plot, [&](const Canvas& canvas, Drawing& drawing) {
    draw_counts(panels, versions, rival, canvas, drawing);
  });
}

// ---- the roofline -----------------------------------------------------------------------------------------

struct RoofPoint {
  const Measurement* m;
  std::string_view candidate;
  double intensity, flops;
};

std::vector<RoofPoint> roof_points(const LedgerView& ledger) {
  std::vector<RoofPoint> points;
  for (const char* candidate : kCandidates)
    for (const Measurement* m : ledger.versions(candidate)) {
      const Arm* arm = candidate_arm(*m);
      if (arm == nullptr || is_emulated(*m) || m->gate_one != GateOne::kPassed) continue;
      double seconds = arm->median_ms.point / 1e3, intensity = m->measured->flops / m->measured->bytes;
      if (!drawable(seconds) || !drawable(intensity)) continue;
      points.push_back({m, candidate, intensity, m->measured->flops / seconds});
    }
  return points;
}

// Derives the peak from a measurement: bytes per second, divided by the percentage of the memory peak. The
// same holds for compute.
Roof derived_roof(const LedgerView& ledger) {
  Roof roof;
  for (const auto* list : {&ledger.human, &ledger.llm, &ledger.together})
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

// Names of versions at their points: the hand-written ones to the right, the model's to the left. The best
// and the first of each side come first; a name that would overlap an earlier one is left to the tooltip.
std::vector<PointLabel> roof_labels(const std::vector<RoofPoint>& points, double least) {
  std::vector<PointLabel> labels;
  for (const std::string_view candidate : kCandidates) {
    std::vector<const RoofPoint*> order;
    for (const RoofPoint& p : points)
      if (p.candidate == candidate) order.push_back(&p);
    if (order.empty()) continue;
    std::stable_sort(order.begin() + 1, order.end(),
                     [](const RoofPoint* a, const RoofPoint* b) { return a->flops > b->flops; });
    std::vector<double> taken;
    for (const RoofPoint* p : order) {
      const double y = std::log10(p->flops);
      if (std::any_of(taken.begin(), taken.end(), [&](double t) { return std::abs(t - y) < least; }))
        continue;
      taken.push_back(y);
      labels.push_back({p->intensity, p->flops, safe_label(p->m->version),
                        candidate == "llm" ? PointLabel::Side::kLeft : PointLabel::Side::kRight});
    }
  }
  return labels;
}

std::string roof_text(const Roof& roof) {
  std::vector<std::string> parts;
  if (drawable(roof.bytes_per_second)) parts.push_back(format_bandwidth(roof.bytes_per_second));
  if (drawable(roof.flops_per_second)) parts.push_back(format_flops(roof.flops_per_second));
  return "the roof: " + join(parts, ", ");
}

void draw_roofline(const std::vector<RoofPoint>& points, const Roof& roof, const Canvas& canvas,
                   Drawing& drawing) {
  double x = points.front().intensity, low = 1e300, high = 0;
  std::string human, llm, together, tips;
  for (const RoofPoint& p : points) {
    low = std::min(low, p.flops);
    high = std::max(high, p.flops);
    (p.candidate == "llm"        ? llm
     : p.candidate == "together" ? together
                                 : human) += fmt::format("{}\t{}\n", p.intensity, p.flops);
    tips +=
        fmt::format("{}\t{}\t{}: {}\n", p.intensity, p.flops, safe_label(p.m->version),
                    format_flops(p.flops) +
                        (p.m->measured->percent_of_peak > 0 ? ", " + percent_text(*p.m) + " of peak" : ""));
  }
  const bool memory = drawable(roof.bytes_per_second), compute = drawable(roof.flops_per_second);
  const std::string ceiling = memory && compute ? fmt::format("x*{0} < {1} ? x*{0} : {1}",
                                                              roof.bytes_per_second, roof.flops_per_second)
                              : memory          ? fmt::format("x*{}", roof.bytes_per_second)
                              : compute         ? fmt::format("{}", roof.flops_per_second)
                                                : "";
  double left = x / 16, right = x * 16;
  if (memory && compute) right = std::max(right, 4 * roof.flops_per_second / roof.bytes_per_second);
  if (memory) high = std::max(high, roof.bytes_per_second * x);
  const double bottom = std::min(low / 3, memory ? roof.bytes_per_second * left : low / 3);
  const double top = std::max(high * 6, compute ? roof.flops_per_second * 2.5 : 0);
  drawing.height = canvas.narrow ? 340 : 440;
  drawing.commands =
      axes("arithmetic intensity [FLOP/B]", "performance [FLOP/s]") +
      fmt::format(
          "set logscale xy\nset xrange [{}:{}]\nset yrange [{}:{}]\nset format y '%.0s%c'\nset "
          "format x '%g'\nset samples 600\n",
          left, right, bottom, top);
  std::vector<std::string> parts;
  if (!ceiling.empty())
    parts.push_back(fmt::format("{} with lines lw 2 {} title '{}'", ceiling, ink("base"), roof_text(roof)));
  if (!human.empty())
    parts.push_back(fmt::format("{} using 1:2 with points pt 7 ps 0.9 {} title 'by hand'",
                                drawing.data(canvas, "roof_human", human), ink("human")));
  if (!llm.empty())
    parts.push_back(fmt::format("{} using 1:2 with points pt 5 ps 0.9 {} title 'the model'",
                                drawing.data(canvas, "roof_llm", llm), ink("llm")));
  if (!together.empty())
    parts.push_back(fmt::format("{} using 1:2 with points pt 9 ps 1.1 {} title 'together'",
                                drawing.data(canvas, "roof_together", together), ink("together")));
  const double least = std::log10(top / bottom) * 1.15 * canvas.font / (drawing.height - 100);
  drawing.commands += "plot " + join(parts, ", ") +
                      label_clauses(canvas, drawing, "roof_labels", roof_labels(points, least)) + ", " +
                      hover(drawing.data(canvas, "roof_tips", tips)) +
                      "\nunset logscale\nset format x '% h'\nset format y '% h'\n";
}

std::optional<Draft> draft_roofline(const LedgerView& ledger, const std::optional<Roof>& given) {
  const std::vector<RoofPoint> points = roof_points(ledger);
  if (points.empty()) return std::nullopt;
  Roof roof = given.value_or(Roof{}), derived = derived_roof(ledger);
  if (!drawable(roof.bytes_per_second)) roof.bytes_per_second = derived.bytes_per_second;
  if (!drawable(roof.flops_per_second)) roof.flops_per_second = derived.flops_per_second;
  Plot plot{"roofline", "Each version compared with the limits of the hardware", "", {}, {}};
  plot.columns = {"Version", "Intensity [FLOP/B]", "Performance", "Of peak"};
  std::vector<std::string> story;
  for (const RoofPoint& p : points) {
    story.push_back(fmt::format("{}: {}", safe_label(p.m->version), format_flops(p.flops)));
    plot.rows.push_back(
        {p.m->version, fmt::format("{:.3g}", p.intensity), format_flops(p.flops), percent_text(*p.m)});
  }
  plot.description =
      fmt::format("Arithmetic intensity {:.3g} FLOP/B. {}", points.front().intensity, join(story, "; "));
  return drafted(
      plot, [&](const Canvas& canvas, Drawing& drawing) { draw_roofline(points, roof, canvas, drawing); });
}

// ---- rows: the samples, and head to head ------------------------------------------------------------------

// Rows have their text above them, so that it never competes with the data for width.
constexpr int kRowHeight = 50, kAroundRows = 62;  // [px]

std::string row_frame(std::size_t rows, double left, double right, const std::string& x) {
  return axes(x, "") + fmt::format(
                           "set xrange [{}:{}]\nset yrange [{}.5:0.3]\nset key off\nunset ytics\nset "
                           "grid noytics xtics\nset border 1\n",
                           left, right, rows);
}

std::string row_labels(const Canvas& canvas, Drawing& drawing, const std::string& name, double left,
                       const std::vector<std::string>& texts) {
  std::string rows;
  for (std::size_t i = 0; i < texts.size(); ++i)
    rows += fmt::format("{}\t{}\t{}\n", left, static_cast<double>(i) + 0.62, texts[i]);
  return fmt::format(", {} using 1:2:3 with labels left offset 0.3,0 {} notitle",
                     drawing.data(canvas, name, rows), text_ink("ink"));
}

struct ArmRow {
  std::string label, color;
  const Arm* arm;
  std::vector<double> samples;
};

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

std::vector<ArmRow> arm_rows(const LedgerView& ledger) {
  std::vector<ArmRow> rows;
  const Measurement* human = ledger.best("human");
  const Measurement* llm = ledger.best("llm");
  const Measurement* stage = human != nullptr ? human : llm;
  if (stage == nullptr || !stage->measured || is_emulated(*stage)) return rows;
  const auto add = [&](const std::string& label, const char* color, const Arm* arm) {
    if (arm == nullptr) return;
    std::vector<double> samples = thinned(*arm, 180);
    if (!samples.empty()) rows.push_back({safe_label(label), color, arm, std::move(samples)});
  };
  for (const Arm& arm : stage->measured->arms)
    if (&arm != candidate_arm(*stage)) add(arm.name, "base", &arm);
  if (human != nullptr) add("by hand: " + human->version, "human", candidate_arm(*human));
  if (llm != nullptr && !is_emulated(*llm)) add("model: " + llm->version, "llm", candidate_arm(*llm));
  if (const Measurement* both = ledger.best("together"); both != nullptr && !is_emulated(*both))
    add("together: " + both->version, "together", candidate_arm(*both));
  return rows;
}

std::optional<Draft> draft_samples(const LedgerView& ledger) {
  const std::vector<ArmRow> rows = arm_rows(ledger);
  if (rows.empty()) return std::nullopt;
  Plot plot{"samples", "Samples of each arm; the line is their median", "", {}, {}};
  plot.columns = {"Arm", "Median", "95 % from", "to", "Fastest sample", "Slowest sample"};
  double low = 1e300, high = 0;
  std::vector<std::string> story, texts;
  for (const ArmRow& r : rows) {
    const auto [least, most] = std::minmax_element(r.samples.begin(), r.samples.end());
    low = std::min(low, *least);
    high = std::max(high, *most);
    const Interval& median = r.arm->median_ms;
    story.push_back(fmt::format("{}: median {}", r.label, format_time_ms(median.point)));
    texts.push_back(fmt::format("{}: {}", r.label, format_time_ms(median.point)));
    plot.rows.push_back({r.label, format_time_ms(median.point), format_time_ms(median.low),
                         format_time_ms(median.high), format_time_ms(*least), format_time_ms(*most)});
  }
  plot.description = join(story, "; ");
  const double margin = std::max((high - low) * 0.06, high * 0.01), left = std::max(0.0, low - margin);
  return drafted(plot, [&](const Canvas& canvas, Drawing& drawing) {
    drawing.height = kAroundRows + kRowHeight * static_cast<int>(rows.size());
    std::string plots, tips;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::string data;
      const double middle = static_cast<double>(row) + 1.12;
      for (std::size_t i = 0; i < rows[row].samples.size(); ++i) {
        // The golden ratio spreads the dots evenly without randomness, so that the page is the same every
        // time.
        const double spread = std::fmod(static_cast<double>(i) * 0.61803398875, 1.0) - 0.5;
        data += fmt::format("{}\t{:.4f}\n", rows[row].samples[i], middle + 0.36 * spread);
      }
      const double median = rows[row].arm->median_ms.point;
      plots += fmt::format(
          ", {} using 1:2 with points pt 7 ps 0.28 {} notitle, {} using 1:2 with lines lw 2.5 {} notitle",
          drawing.data(canvas, fmt::format("samples_{}", row), data), ink(rows[row].color),
          drawing.data(canvas, fmt::format("median_{}", row),
                       fmt::format("{0}\t{1}\n{0}\t{2}\n", median, middle - 0.26, middle + 0.26)),
          ink("ink"));
      tips += fmt::format("{}\t{}\t{}\n", median, middle, story[row]);
    }
    drawing.commands = row_frame(rows.size(), left, high + margin, "time of one launch [ms], cold cache") +
                       "plot -1 notitle" + plots + row_labels(canvas, drawing, "samples_text", left, texts) +
                       ", " + hover(drawing.data(canvas, "samples_tips", tips)) + "\n";
  });
}

struct BarRow {
  std::string version, text, color;
  Interval value;
};

// The rows with the largest (or smallest) values after the first `fixed` ones, which stay.
void keep_best(std::vector<BarRow>& rows, std::size_t fixed, bool largest) {
  if (rows.size() <= kMostBars) return;
  std::stable_sort(rows.begin() + static_cast<std::ptrdiff_t>(fixed), rows.end(),
                   [&](const BarRow& a, const BarRow& b) {
                     return largest ? a.value.point > b.value.point : a.value.point < b.value.point;
                   });
  rows.resize(kMostBars);
}

// Horizontal bars from zero, with intervals where they have a width.
Draft bars(Plot plot, const std::vector<BarRow>& rows, const std::string& x) {
  double top = 0;
  for (const BarRow& r : rows) top = std::max({top, r.value.point, r.value.high});
  std::vector<std::string> texts;
  for (const BarRow& r : rows) texts.push_back(r.text);
  plot.description = join(texts, "; ");
  return drafted(plot, [&](const Canvas& canvas, Drawing& drawing) {
    drawing.height = kAroundRows + kRowHeight * static_cast<int>(rows.size());
    std::string plots, intervals, tips;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double middle = static_cast<double>(i) + 1.1;
      plots += fmt::format(", {} using 1:2:3:4:5:6 with boxxyerror fs solid 0.85 noborder {} notitle",
                           drawing.data(canvas, fmt::format("bar_{}", i),
                                        fmt::format("{0}\t{1}\t0\t{0}\t{2}\t{3}\n", rows[i].value.point,
                                                    middle, middle - 0.2, middle + 0.2)),
                           ink(rows[i].color));
      if (rows[i].value.high > rows[i].value.low)
        intervals += fmt::format("{}\t{}\t{}\n", rows[i].value.low, middle, rows[i].value.high);
      tips += fmt::format("{}\t{}\t{}\n", rows[i].value.point, middle, rows[i].text);
    }
    drawing.commands = row_frame(rows.size(), 0, top * 1.06, x);
    drawing.commands += "plot -1 notitle" + plots;
    if (!intervals.empty())
      drawing.commands +=
          fmt::format(", {} using 1:2:($3-$1):(0) with vectors heads size graph 0.006,90 lw 1.6 {} notitle",
                      drawing.data(canvas, "bar_intervals", intervals), ink("ink"));
    drawing.commands += row_labels(canvas, drawing, "bar_text", 0, texts) + ", " +
                        hover(drawing.data(canvas, "bar_tips", tips)) + "\n";
  });
}

std::optional<Draft> draft_head_to_head(const LedgerView& ledger) {
  std::vector<BarRow> rows{{"baseline", "baseline: 1.00x", "base", {1, 1, 1}}};
  const auto add = [&](const Measurement* m, const char* color) {
    if (m != nullptr && is_judged(*m) && m->gate_one == GateOne::kPassed)
      rows.push_back({m->version, judged_text(*m), color, *m->measured->speedup});
  };
  add(ledger.best("human"), "human");
  add(ledger.best("together"), "together");
  const std::size_t fixed = rows.size();
  for (const Measurement* m : ledger.versions("llm")) add(m, "llm");
  if (rows.size() < 2) return std::nullopt;
  Plot plot{"head-to-head", "Speedup over the baseline, with its 95 % interval", "", {}, {}};
  if (rows.size() > kMostBars) plot.title += fmt::format(": the best {}", kMostBars);
  keep_best(rows, fixed, true);
  plot.columns = {"Version", "Speedup [95 %]", "Of peak"};
  for (const BarRow& r : rows)
    if (const Measurement* m = ledger.find(r.version))
      plot.rows.push_back({r.version, speedup_text(*m), percent_text(*m)});
  return bars(std::move(plot), rows, "speedup over the baseline");
}

// Without a GPU: the global memory traffic of the best kernels.
std::optional<Draft> draft_counted_head_to_head(const LedgerView& ledger) {
  constexpr double kKiB = 1024;
  const VersionCounts counts(ledger);
  std::vector<BarRow> rows;
  const auto add = [&](const Measurement* m, const char* color) {
    const Explanation* e =
        m != nullptr && m->gate_one == GateOne::kPassed ? counts.of(m->candidate, m->version) : nullptr;
    if (e == nullptr) return;
    const double needed = e->compulsory_bytes / kKiB, moved = e->moved_bytes() / kKiB;
    if (rows.empty() && needed > 0)
      rows.push_back({"",
                      "what the problem needs: " + format_bytes(e->compulsory_bytes),
                      "base",
                      {needed, needed, needed}});
    rows.push_back({m->version,
                    safe_label(m->version) + ": " + format_bytes(e->moved_bytes()) +
                        (needed > 0 ? fmt::format(", {:.3g} times what is needed", moved / needed) : ""),
                    color,
                    {moved, moved, moved}});
  };
  add(ledger.best("human"), "human");
  add(ledger.best("together"), "together");
  const std::size_t fixed = rows.size();
  for (const Measurement* m : ledger.versions("llm")) add(m, "llm");
  if (rows.empty()) return std::nullopt;
  Plot plot{"head-to-head",
            fmt::format("Global memory traffic, counted on the CPU at {}", counts.sizes()),
            "",
            {},
            {}};
  if (rows.size() > kMostBars) plot.title += fmt::format(": the best {}", kMostBars);
  keep_best(rows, fixed, false);
  plot.columns = {"Version", "Global memory traffic"};
  for (const BarRow& r : rows)
    plot.rows.push_back({r.version.empty() ? "needed" : r.version, format_bytes(r.value.point * kKiB)});
  return bars(std::move(plot), rows, "global memory traffic [KiB]");
}

}  // namespace

bool only_emulated(const LedgerView& ledger) {
  for (const auto* list : {&ledger.human, &ledger.llm, &ledger.together})
    for (const Measurement& m : *list)
      if (!is_emulated(m)) return false;
  return true;
}

std::vector<Plot> draw_plots(const LedgerView& ledger, const std::optional<Roof>& roof,
                             const Resources& resources) {
  std::vector<Draft> drafts;
  const auto add = [&](std::optional<Draft> draft) {
    if (draft) drafts.push_back(std::move(*draft));
  };
  const bool emulated = only_emulated(ledger);
  add(draft_counts(ledger, emulated ? 1 : 2));
  if (emulated) {
    add(draft_counted_head_to_head(ledger));
  } else {
    add(draft_climb(ledger));
    add(draft_roofline(ledger, roof));
    add(draft_samples(ledger));
    add(draft_head_to_head(ledger));
  }
  return render_plots(std::move(drafts), resources);
}

}  // namespace capstone
