#include "templates/similarity_page.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "templates/page.h"

namespace capstone {
namespace {

using Dictionary = ctemplate::TemplateDictionary;

constexpr std::size_t kFragmentsShown = 12;

std::string lines_of(const std::vector<std::string>& lines, int from, int to) {
  std::string out;
  for (int line = std::max(from, 1); line <= to && line <= static_cast<int>(lines.size()); ++line)
    out += fmt::format("{:4}  {}\n", line, lines[static_cast<std::size_t>(line - 1)]);
  return out;
}

void fill(Dictionary& page, const char* section, const std::vector<SimilarityFinding>& findings,
          bool of_first) {
  for (const SimilarityFinding& f : findings) {
    auto* dict = page.AddSectionDictionary(section);
    dict->SetValue("FIRST", to_utf8(f.first));
    dict->SetValue("SECOND", to_utf8(f.second));
    dict->SetValue("SHARE",
                   fmt::format("{:.0f} %", 100 * (of_first ? f.likeness.of_first : f.likeness.share)));
    const auto first = split(to_utf8(f.first_text), '\n'), second = split(to_utf8(f.second_text), '\n');
    for (std::size_t i = 0; i < std::min(f.likeness.fragments.size(), kFragmentsShown); ++i) {
      const Fragment& fragment = f.likeness.fragments[i];
      auto* part = dict->AddSectionDictionary("FRAGMENT");
      part->SetValue("LEFT", lines_of(first, fragment.first_from, fragment.first_to));
      part->SetValue("RIGHT", lines_of(second, fragment.second_from, fragment.second_to));
    }
    if (f.likeness.fragments.size() > kFragmentsShown)
      dict->AddSectionDictionary("MORE")->SetIntValue(
          "N", static_cast<long>(f.likeness.fragments.size() - kFragmentsShown));
  }
}

}  // namespace

Result<std::string> similarity_page(const SimilarityReport& report, const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary dict("similarity");
  CAPSTONE_TRY(std::string css, pages.style());
  dict.SetValue("CSS", css);
  dict.SetValue("TITLE", "Kernels and worklogs that are alike");
  fill(dict, "PAIR", report.pairs, false);
  fill(dict, "ORIGIN", report.origins, true);
  fill(dict, "PROSE", report.prose, false);
  if (report.prose.empty()) dict.ShowSection("NO_PROSE");
  if (report.pairs.empty()) dict.ShowSection("NO_PAIRS");
  if (report.origins.empty()) dict.ShowSection("NO_ORIGINS");
  return pages.expand("similarity.tpl", dict);
}

}  // namespace capstone
