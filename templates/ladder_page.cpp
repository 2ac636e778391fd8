#include "templates/ladder_page.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "harness/base/text.h"
#include "harness/model/sizes_text.h"
#include "templates/page.h"

namespace capstone {
namespace {

// A logarithmic axis, because naive rungs are hundreds of times slower. It begins and ends at 1, 2 or 5 times
// a power of ten.
class TimeAxis {
 public:
  TimeAxis(double fastest, double slowest) {
    const auto whole = [&] { return ends_.size() > 1 && ends_.back() >= slowest; };
    for (int decade = static_cast<int>(std::floor(std::log10(fastest))); !whole(); ++decade)
      for (double digit : {1.0, 2.0, 5.0}) {
        const double ms = digit * std::pow(10.0, decade);
        if (whole()) break;
        if (ends_.empty() || ms > fastest)
          ends_.push_back(ms);
        else
          ends_.front() = ms;
      }
  }
  /// [%] from the left
  double place(double ms) const {
    return 100 * std::log(ms / ends_.front()) / std::log(ends_.back() / ends_.front());
  }
  /// At most five, both ends among them.
  std::vector<double> tics() const {
    const std::size_t step = (ends_.size() + 3) / 4;
    std::vector<double> some;
    for (std::size_t i = 0; i + 1 < ends_.size(); i += step) some.push_back(ends_[i]);
    if (some.size() > 1 && place(some.back()) > 85) some.pop_back();
    some.push_back(ends_.back());
    return some;
  }

 private:
  std::vector<double> ends_;  // [ms]
};

std::string percent(double value) { return value > 0 ? fmt::format("{:.1f} %", value) : "n/a"; }

void fill(ctemplate::TemplateDictionary& section, const Ladder& ladder, bool recorded) {
  section.SetValue("KIND", recorded ? "recorded" : "measured");
  const bool compute = ladder.compute_bound();
  const bool timed =
      std::any_of(ladder.steps.begin(), ladder.steps.end(), [](const LadderStep& s) { return s.timed(); });
  double slowest = 0, fastest = 1e300;
  for (const LadderStep& s : ladder.steps)
    if (s.timed()) slowest = std::max(slowest, s.ms.point), fastest = std::min(fastest, s.ms.point);
  section.SetValue("TITLE", to_utf8(ladder.title));
  section.SetValue("PROBLEM", to_utf8(ladder.problem));
  section.SetValue("SIZES", to_utf8(sizes_text(ladder.sizes)));
  section.SetValue("ORIGIN", to_utf8(timed ? fmt::format("{}, driver {}, cold L2, {}", ladder.device,
                                                         ladder.driver, ladder.time)
                                           : "checked on the CPU; not timed, because that needs a GPU"));
  if (ladder.library_ms > 0)
    section.SetValueAndShowSection(
        "TEXT",
        to_utf8(fmt::format("The library: {}, {}.", ladder.library, format_time_ms(ladder.library_ms))),
        "LIBRARY");
  if (ladder.copy_bytes_per_second > 0)
    section.SetValueAndShowSection(
        "TEXT",
        fmt::format("A device copy in the same run: {}.", format_bandwidth(ladder.copy_bytes_per_second)),
        "COPY");
  std::optional<TimeAxis> axis;
  if (timed) {
    axis.emplace(fastest, slowest);
    auto* scale = section.AddSectionDictionary("AXIS");
    for (double ms : axis->tics()) {
      auto* tic = scale->AddSectionDictionary("TIC");
      tic->SetFormattedValue("LEFT", "%.2f", axis->place(ms));
      tic->SetValue("TEXT", format_time_ms(ms));
    }
  }
  for (std::size_t i = 0; i < ladder.steps.size(); ++i) {
    const LadderStep& s = ladder.steps[i];
    auto* row = section.AddSectionDictionary("STEP");
    row->SetValue("SESSION", to_utf8(s.rung.session));
    row->SetValue("RUNG", to_utf8(s.rung.name));
    row->SetValue("WHAT", html_with_code(s.rung.title));
    row->SetValue("CHANGED", html_with_code(i > 0 ? s.rung.changed : std::string()));
    for (const std::string& label : s.labels) row->SetValueAndShowSection("TEXT", to_utf8(label), "LABEL");
    row->SetValue("GATE", to_utf8(s.gate_one));
    row->SetValue("GATE_TONE", s.gate_one == "PASS" ? "good" : "bad");
    if (s.timed()) {
      auto* time = row->AddSectionDictionary("TIMED");
      const auto gain = ladder.gain(i);
      time->SetValue("TIME", format_time_ms(s.ms.point));
      time->SetFormattedValue("LEFT", "%.2f", axis->place(s.ms.point));
      time->SetValue("FIGURE", compute ? fmt::format("{:.2f} TFLOP/s", ladder.throughput(s) / 1e12)
                                       : fmt::format("{:.0f} GB/s", ladder.bandwidth(s) / 1e9));
      time->SetValue("PEAK", percent(s.percent_of_peak));
      if (!compute) time->SetValueAndShowSection("SHARE", percent(ladder.percent_of_copy(s)), "OF_COPY");
      time->SetValue("OF_LIBRARY", percent(100 * s.of_library.point));
      time->SetValue("GAIN", gain ? fmt::format("{:.2f}×", *gain) : "");
      time->SetValue("GAIN_TONE", gain && *gain > 1 ? "good" : "plain");
    } else if (s.counts) {
      auto* counts = row->AddSectionDictionary("COUNTED");
      counts->SetValue("SECTORS", fmt::format("{:.3g}", s.counts->sectors_per_request));
      counts->SetValue("WAVEFRONTS", s.counts->wavefronts_over_ideal > 0
                                         ? fmt::format("{:.3g}", s.counts->wavefronts_over_ideal)
                                         : "n/a");
      counts->SetValue("MOVED", fmt::format("{:.3g}", s.counts->moved_over_compulsory));
    } else {
      row->AddSectionDictionary("UNKNOWN")->SetValue("TROUBLE",
                                                     to_utf8(s.trouble.empty() ? "no time" : s.trouble));
    }
  }
}

}  // namespace

Result<std::string> ladder_page(const std::vector<Ladder>& ladders, bool recorded,
                                const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  ctemplate::TemplateDictionary page("ladders");
  CAPSTONE_TRY(std::string css, pages.style());
  page.SetValue("CSS", css);
  std::vector<std::string> titles;
  for (const Ladder& ladder : ladders)  // list a ladder only once, even if it was measured at several sizes
    if (std::find(titles.begin(), titles.end(), ladder.title) == titles.end()) titles.push_back(ladder.title);
  page.SetValue("HEADING", to_utf8(join(titles, ", ")));
  if (recorded) page.ShowSection("RECORDED");
  for (const Ladder& ladder : ladders) fill(*page.AddSectionDictionary("LADDER"), ladder, recorded);
  return pages.expand("ladder.tpl", page);
}

}  // namespace capstone
