#include "templates/progress_page.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "templates/page.h"

namespace capstone {

Result<std::string> progress_page(const std::vector<ProgressRow>& rows, const std::string& generated,
                                  const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  ctemplate::TemplateDictionary dict("progress");
  CAPSTONE_TRY(std::string css, pages.style());
  dict.SetValue("CSS", css);
  dict.SetValue("TITLE", "Who needs help");
  dict.SetValue("GENERATED", generated);
  const auto waiting =
      std::count_if(rows.begin(), rows.end(), [](const ProgressRow& row) { return !row.needs.empty(); });
  dict.SetValue("SUMMARY", fmt::format("{} of {} rows need attention", waiting, rows.size()));
  for (const ProgressRow& row : rows) {
    const CheckIn none, &c = row.last ? *row.last : none;
    auto* r = dict.AddSectionDictionary("ROW");
    r->SetValue("PERSON", to_utf8(row.person));
    r->SetValue("ID", to_utf8(row.id));
    r->SetValue("PROBLEM", row.problem);
    r->SetValue("CHECKED", row.last ? c.time.substr(0, 10) : "never");
    r->SetValue("VERSIONS", row.last ? std::to_string(c.versions) : "");
    r->SetValue("ATTEMPTS", row.last ? std::to_string(c.attempts) : "");
    r->SetValue("VERDICT", c.last_verdict);
    r->SetValue("TONE", c.failures > 0 ? "bad" : "plain");
    r->SetValue("HANDED_IN", row.handed_in);
    for (const std::string& need : row.needs)
      r->AddSectionDictionary("NEED")->SetValue("TEXT", to_utf8(need));
  }
  return pages.expand("progress.tpl", dict);
}

}  // namespace capstone
