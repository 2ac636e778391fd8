#include "templates/book_page.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/analysis/profile/profile.h"
#include "harness/base/text.h"
#include "harness/model/sizes_text.h"
#include "harness/project/reply/difference.h"
#include "harness/timing/device.h"
#include "templates/highlight.h"
#include "templates/page.h"

namespace capstone {
namespace {

using Dictionary = ctemplate::TemplateDictionary;

// The numbers of the lines that `after` has and `before` has not, by the shortest difference.
std::set<int> new_lines(const std::string& difference) {
  std::set<int> lines;
  int at = 0;
  for (const std::string& line : split(difference, '\n')) {
    if (line.starts_with("---") || line.starts_with("+++")) continue;
    if (line.starts_with("@@")) {
      const std::size_t plus = line.find('+');
      at = plus == line.npos ? 0 : std::atoi(line.c_str() + plus + 1);
    } else if (line.starts_with("+")) {
      lines.insert(at++);
    } else if (line.starts_with(" ")) {
      ++at;
    }
  }
  return lines;
}

// A roofline on two logarithmic axes, from a hundredth to a hundred times the ridge. All steps of a ladder
// have the same intensity, so they stand on one vertical line.
struct RoofDrawing {
  static constexpr double kWide = 640, kHigh = 260, kDecades = 4;
  double ridge, peak, bandwidth;

  double x(double intensity) const {
    return kWide * (std::log10(intensity / ridge) + kDecades / 2) / kDecades;
  }
  double y(double flops) const { return kHigh * (0.1 - std::log10(flops / peak) / kDecades); }
};

std::optional<RoofDrawing> roof_of(const Ladder& ladder, Precision precision) {
  const auto peaks = find_device(ladder.device);
  if (!peaks || ladder.flops <= 0 || ladder.bytes <= 0) return std::nullopt;
  const double peak = peak_of(*peaks, precision).flops;
  if (peak <= 0 || peaks->bandwidth <= 0) return std::nullopt;
  const RoofDrawing roof{peak / peaks->bandwidth, peak, peaks->bandwidth};
  const double place = roof.x(ladder.flops / ladder.bytes);
  if (place < 0 || place > RoofDrawing::kWide) return std::nullopt;
  return roof;
}

void draw_roof(Dictionary& page, const Ladder& ladder, std::size_t own, Precision precision) {
  const auto roof = roof_of(ladder, precision);
  if (!roof) return;
  auto* drawing = page.AddSectionDictionary("ROOF");
  const double intensity = ladder.flops / ladder.bytes, left = roof->ridge / 100;
  drawing->SetFormattedValue("WIDE", "%.0f", RoofDrawing::kWide);
  drawing->SetFormattedValue("HIGH", "%.0f", RoofDrawing::kHigh);
  drawing->SetValue("LINE", fmt::format("0,{:.1f} {:.1f},{:.1f} {:.0f},{:.1f}",
                                        roof->y(left * roof->bandwidth), roof->x(roof->ridge),
                                        roof->y(roof->peak), RoofDrawing::kWide, roof->y(roof->peak)));
  drawing->SetValue(
      "TEXT", to_utf8(fmt::format(
                  "{}: {:.2f} FLOP for each byte, the ridge is at {:.1f}: under the roof of {}",
                  ladder.device, intensity, roof->ridge, intensity < roof->ridge ? "memory" : "arithmetic")));
  for (std::size_t i = 0; i < ladder.steps.size(); ++i) {
    if (!ladder.steps[i].timed()) continue;
    auto* dot = drawing->AddSectionDictionary("DOT");
    dot->SetFormattedValue("X", "%.1f", roof->x(intensity));
    dot->SetFormattedValue("Y", "%.1f",
                           std::min(RoofDrawing::kHigh - 4, roof->y(ladder.throughput(ladder.steps[i]))));
    dot->SetValue("KIND", i == own ? "own" : "other");
    dot->SetValue("NAME", to_utf8(fmt::format("{}: {}", ladder.steps[i].rung.name,
                                              format_flops(ladder.throughput(ladder.steps[i])))));
  }
}

void add_times(Dictionary& page, const BookRung& rung, Precision precision) {
  for (const BookTimes& there : rung.times) {
    const Ladder& ladder = *there.ladder;
    const LadderStep& step = ladder.steps[there.step];
    auto* row = page.AddSectionDictionary("TIMES");
    row->SetValue("DEVICE", to_utf8(ladder.device));
    row->SetValue("DATE", to_utf8(ladder.time.substr(0, 10)));
    row->SetValue("SIZES", to_utf8(sizes_text(ladder.sizes)));
    if (there.stale) row->ShowSection("STALE");
    row->SetValue("TIME", step.timed() ? format_time_ms(step.ms.point) : "no time");
    row->SetValue("FIGURE", !step.timed()            ? ""
                            : ladder.compute_bound() ? format_flops(ladder.throughput(step))
                                                     : format_bandwidth(ladder.bandwidth(step)));
    row->SetValue("PEAK", step.percent_of_peak > 0 ? fmt::format("{:.1f} %", step.percent_of_peak) : "");
    row->SetValue("OF_LIBRARY",
                  step.of_library.point > 0 ? fmt::format("{:.1f} %", 100 * step.of_library.point) : "");
    const auto gain = ladder.gain(there.step);
    row->SetValue("GAIN", gain ? fmt::format("{:.2f}×", *gain) : "");
  }
  if (rung.times.empty())
    page.ShowSection("NO_TIMES");
  else
    draw_roof(page, *rung.times.front().ladder, rung.times.front().step, precision);
}

void add_code(Dictionary& page, const BookRung& rung) {
  const std::string text = to_utf8(rung.text);
  const std::string difference =
      rung.before.empty() ? std::string()
                          : unified_diff(to_utf8(rung.before), text, {"the rung below", rung.rung.name});
  const std::set<int> fresh = new_lines(difference);
  int number = 0;
  bool in_header = true;  // it stands above, note by note
  const bool python = is_python_rung(rung.rung.source);
  for (const std::vector<Highlight>& line : python ? plain_lines(text) : highlighted_lines(text)) {
    ++number;
    in_header = in_header && !line.empty() && line.front().text.starts_with(python ? "#" : "//");
    if (in_header) continue;
    auto* row = page.AddSectionDictionary("LINE");
    row->SetIntValue("NUMBER", number);
    row->SetValue("STATE", fresh.contains(number) ? "fresh" : "kept");
    for (const Highlight& part : line) {
      auto* span = row->AddSectionDictionary("PART");
      span->SetValue("KIND", part.kind);
      span->SetValue("TEXT", std::string(part.text));
    }
  }
  if (difference.empty()) return;
  page.ShowSection("MARKED");
  auto* section = page.AddSectionDictionary("DIFFERENCE");
  section->SetValue("EXTENT", extent_of(difference));
  section->SetValue("TEXT", difference);
}

Result<std::string> finish(const PageTemplates& pages, const char* name, Dictionary& page) {
  CAPSTONE_TRY(const std::string css, pages.style());
  page.SetValue("CSS", css);
  return pages.expand(name, page);
}

}  // namespace

std::string book_file(const BookLadder& ladder) { return ladder.problem + ".html"; }
std::string book_file(const BookLadder& ladder, const Rung& rung) {
  return ladder.problem + "." + rung.name + ".html";
}
std::string book_counts_file(const BookLadder& ladder, const Rung& rung) {
  return ladder.problem + "." + rung.name + ".counts.html";
}

Result<std::string> book_index(const std::vector<BookLadder>& ladders, const std::string& version,
                               const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary page("book");
  page.SetValue("VERSION", version);
  std::size_t rungs = 0;
  for (const BookLadder& ladder : ladders) {
    rungs += ladder.rungs.size();
    auto* one = page.AddSectionDictionary("LADDER");
    one->SetValue("TITLE", to_utf8(ladder.title));
    one->SetValue("PROBLEM", to_utf8(ladder.problem));
    one->SetValue("SESSIONS", to_utf8(ladder.sessions));
    if (ladder.recorded) one->SetValueAndShowSection("HREF", to_utf8(book_file(ladder)), "RECORDED");
    for (const BookRung& rung : ladder.rungs) {
      auto* row = one->AddSectionDictionary("RUNG");
      row->SetValue("HREF", to_utf8(book_file(ladder, rung.rung)));
      row->SetValue("NAME", to_utf8(rung.rung.name));
      row->SetValue("WHAT", html_with_code(rung.rung.title));
    }
  }
  page.SetValue("COUNT", fmt::format("{} rungs on {} ladders", rungs, ladders.size()));
  return finish(pages, "book.tpl", page);
}

Result<std::string> book_rung_page(const BookLadder& ladder, std::size_t rung,
                                   const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary page("rung");
  const BookRung& own = ladder.rungs[rung];
  const RungHeader header = rung_header(own.text);
  page.SetValue("TITLE", html_with_code(header.title));
  page.SetValue("NAME", to_utf8(own.rung.name));
  page.SetValue("PROBLEM", to_utf8(ladder.problem));
  page.SetValue("LADDER", to_utf8(ladder.title));
  page.SetValue("SESSION", to_utf8(own.rung.session));
  page.SetValue("PLACE", fmt::format("rung {} of {}", rung + 1, ladder.rungs.size()));
  const auto link = [&](const char* section, std::size_t to) {
    auto* item = page.AddSectionDictionary(section);
    item->SetValue("HREF", to_utf8(book_file(ladder, ladder.rungs[to].rung)));
    item->SetValue("NAME", to_utf8(ladder.rungs[to].rung.name));
  };
  if (rung > 0) link("BELOW", rung - 1);
  if (rung + 1 < ladder.rungs.size()) link("ABOVE", rung + 1);
  if (ladder.recorded) page.SetValueAndShowSection("HREF", to_utf8(book_file(ladder)), "TABLE");
  if (!header.prose.empty()) page.SetValueAndShowSection("TEXT", html_with_code(header.prose), "PROSE");
  for (const auto& [name, text] : header.notes) {
    auto* note = page.AddSectionDictionary("NOTE");
    note->SetValue("NAME", to_utf8(name));
    note->SetValue("TEXT", html_with_code(text));
  }
  add_times(page, own, ladder.precision);
  if (own.counts) {
    auto* counts = page.AddSectionDictionary("COUNTS");
    counts->SetValue("HREF", to_utf8(book_counts_file(ladder, own.rung)));
    counts->SetValue("MOVED", format_bytes(own.counts->moved_bytes()));
    counts->SetValue("SIZES", to_utf8(sizes_text(own.counts->sizes)));
    if (own.counts->compulsory_bytes > 0)
      counts->SetValueAndShowSection(
          "TIMES", fmt::format("{:.3g}", own.counts->moved_bytes() / own.counts->compulsory_bytes), "AGAIN");
    counts->SetValue("SECTORS", fmt::format("{:.3g}", own.counts->total.global.units_per_request()));
    counts->SetValue("INTENSITY", fmt::format("{:.3g}", own.counts->intensity()));
    for (const KernelProfile& kernel : counts_of(*own.counts))
      for (const Answer& each : answers(kernel, false)) {
        auto* answer = counts->AddSectionDictionary("ANSWER");
        answer->SetValue("QUESTION", to_utf8(kernel.kernel + ": " + each.question));
        answer->SetValue("TEXT", to_utf8(each.text));
      }
  }
  add_code(page, own);
  return finish(pages, "book_rung.tpl", page);
}

}  // namespace capstone
