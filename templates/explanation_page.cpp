#include "templates/explanation_page.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/sizes_text.h"
#include "templates/highlight.h"
#include "templates/page.h"

namespace capstone {
namespace {

constexpr int kHeats = 9;                     // classes heat-1 … heat-9 in page.css
constexpr std::size_t kMaxSource = 1u << 20;  // [B]

using Lines = std::map<int, LineCounts>;

// A line with ten times the cost is about four heat classes higher.
int heat_of(double share) {
  if (share <= 0) return 0;
  return std::clamp(static_cast<int>(std::lround(kHeats + 4 * std::log10(share))), 1, kHeats);
}

std::string per_request(const Traffic& t) {
  return t.requests ? fmt::format("{:.1f} / {:.1f}", t.units_per_request(), t.ideal_per_request())
                    : std::string();
}
const char* tone_of(const Traffic& t) { return t.excess() >= 1.25 ? "bad" : "plain"; }

std::string number(std::uint64_t n) {
  if (n == 0) return {};
  return n < 100000 ? std::to_string(n) : fmt::format("{:.3g} M", double(n) / 1e6);
}

void fill(ctemplate::TemplateDictionary& row, const LineCounts& c) {
  const Traffic both = c.both();
  row.SetFormattedValue("HEAT", "heat-%d", heat_of(c.share));
  row.SetValue("SECTORS", per_request(c.global));
  row.SetValue("SECTORS_TONE", tone_of(c.global));
  row.SetValue("WAVEFRONTS", per_request(c.shared));
  row.SetValue("WAVEFRONTS_TONE", tone_of(c.shared));
  row.SetValue("LANES", both.requests_of_lanes() ? fmt::format("{:.1f}", both.lanes_per_request()) : "");
  row.SetValue("MOVED", c.global.units ? format_bytes(c.moved_bytes()) : "");
  row.SetValue("FLOPS", number(c.flops));
  row.SetValue("INTENSITY",
               c.flops && c.global.bytes + c.shared.bytes ? fmt::format("{:.3g}", c.intensity()) : "");
  row.SetValue("BARRIERS", number(c.barriers));
  row.SetValue("ATOMICS", number(c.atomics));
  row.SetValue("COST", c.share >= 0.0005 ? fmt::format("{:.1f} %", c.share * 100) : "");
}

void add_source(ctemplate::TemplateDictionary& page, const std::string& name, const std::string& text,
                const Lines& counts) {
  auto* file = page.AddSectionDictionary("SOURCE");
  file->SetValue("FILE", to_utf8(name));
  int at = 0;
  const std::string shown = to_utf8(text);
  for (const std::vector<Highlight>& line : highlighted_lines(shown)) {
    auto* row = file->AddSectionDictionary("LINE");
    row->SetIntValue("NUMBER", ++at);
    for (const Highlight& part : line) {
      auto* span = row->AddSectionDictionary("PART");
      span->SetValue("KIND", part.kind);
      span->SetValue("TEXT", std::string(part.text));
    }
    const auto found = counts.find(at);
    fill(*row, found == counts.end() ? LineCounts{} : found->second);
  }
}

}  // namespace

Result<std::string> explanation_page(const Explanation& e, const std::filesystem::path& source,
                                     const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  ctemplate::TemplateDictionary page("explanation");
  CAPSTONE_TRY(std::string css, pages.style());
  page.SetValue("CSS", css);
  page.SetValue("TITLE", to_utf8(e.source));
  page.SetValue("PLACE",
                e.is_program() ? "a whole program" : to_utf8(e.problem_id + " at " + sizes_text(e.sizes)));
  page.SetValue("COST_AT", e.is_program() ? "" : to_utf8(", at " + e.place_of_shares() + ","));
  page.SetValue("MOVED", format_bytes(e.moved_bytes()));
  if (e.compulsory_bytes > 0) {
    auto* again = page.AddSectionDictionary("AGAIN");
    again->SetValue("TIMES", fmt::format("{:.3g}", e.moved_bytes() / e.compulsory_bytes));
    again->SetValue("COMPULSORY", format_bytes(e.compulsory_bytes));
    again->SetValue("WHAT", e.what_is_compulsory());
  }
  if (e.compulsory_flops > 0)
    page.AddSectionDictionary("BEST")->SetValue("BEST_FLOPS",
                                                number(static_cast<std::uint64_t>(e.compulsory_flops)));
  page.SetValue("FLOPS", number(e.total.flops));
  page.SetValue("INTENSITY", fmt::format("{:.3g}", e.intensity()));
  for (const Advice& r : e.advice) {
    auto* item = page.AddSectionDictionary("ADVICE");
    item->SetValue("PLACE", to_utf8(fmt::format("{}:{}", r.file, r.line)));
    item->SetFormattedValue("SHARE", "%.0f", r.share * 100);
    item->SetValue("PATTERN", to_utf8(r.pattern));
    item->SetValue("WHAT", to_utf8(r.what));
    item->SetValue("REMEDY", to_utf8(r.remedy));
  }
  if (e.floor) {
    auto* floor = page.AddSectionDictionary("FLOOR");
    floor->SetValue("DEVICE", to_utf8(e.floor->place()));
    floor->SetValue("TIME", format_time_ms(e.floor->ms()));
    floor->SetValue("BOUND", to_utf8(e.floor->bound_by));
    floor->SetValue("MEMORY", format_time_ms(e.floor->memory_ms));
    floor->SetValue("WAVEFRONT", format_time_ms(e.floor->wavefront_ms));
    floor->SetValue("COMPUTE", format_time_ms(e.floor->compute_ms));
    floor->SetValue("SOURCE", to_utf8(e.floor->source));
  }
  std::map<std::string, Lines> files;
  for (const KernelCounts& kernel : e.kernels) {
    auto* item = page.AddSectionDictionary("KERNEL");
    item->SetValue("NAME", to_utf8(kernel.kernel));
    item->SetValue("LAUNCHES", std::to_string(kernel.launches));
    item->SetValue("BLOCKS", std::to_string(kernel.blocks));
    item->SetValue("THREADS", std::to_string(kernel.threads));
    for (const LineCounts& line : kernel.lines)
      if (line.line > 0) files[line.file][line.line].add(line);
  }
  const std::string main = source.filename().string();
  CAPSTONE_TRY(std::string text, read_file(source, kMaxSource));
  add_source(page, main, text, files[main]);
  for (const auto& [name, counts] : files) {
    if (name == main || !lies_in_folder(name)) continue;
    if (auto header = read_file(source.parent_path() / name, kMaxSource))
      add_source(page, name, *header, counts);
  }
  return pages.expand("explanation.tpl", page);
}

}  // namespace capstone
