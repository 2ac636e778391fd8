// What a student sees of published marks.
#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include "harness/base/text.h"
#include "templates/blocks.h"
#include "templates/cohort_pages.h"
#include "templates/page.h"

namespace capstone {
namespace {

constexpr const char* kEarlier = "for an earlier version of what was handed in";

std::string who(const GradebookRow& row) {
  const Person& p = row.person;
  return p.name + (p.id.empty() ? "" : " (" + p.id + ")");
}

std::string what(const GradebookRow& row) {
  return row.problem.empty() ? row.submission : replace_all(row.problem, "_", " ");
}

std::string number(double value) { return fmt::format("{:g}", value); }

std::string total_text(const GradebookRow& row) {
  return row.total() ? number(*row.total()) + " of 100" : "not all criteria are marked yet";
}

}  // namespace

std::string marks_text(const GradebookRow& row, const Rubric& rubric, bool markdown) {
  const auto shown = [markdown](const std::string& text) {
    return markdown ? escape_markdown(to_utf8(text)) : to_utf8(text);
  };
  const std::string heading = markdown ? "# " : "";
  std::string out = fmt::format("{}Marks: {}\n\n{}\n\nTotal: {}\n", heading, shown(what(row)),
                                shown(who(row)), total_text(row));
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i) {
    const Criterion& c = rubric.criteria[i];
    const auto& mark = row.marks[i];
    out += fmt::format("\n{}{}: {} of {}\n", markdown ? "## " : "", shown(c.title),
                       mark ? number(mark->points) : "-", c.weight);
    if (!mark) {
      out += "\nNot marked yet.\n";
      continue;
    }
    // Line by line, so that a reason of several lines keeps them.
    for (const std::string& line : split(mark->reason, '\n'))
      if (!trim(line).empty()) out += "\n" + shown(std::string(trim(line))) + "\n";
    if (mark->earlier_version) out += fmt::format("\n({})\n", kEarlier);
  }
  return out;
}

Result<std::string> marks_page(const GradebookRow& row, const Rubric& rubric,
                               const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  CAPSTONE_TRY(const std::string style, pages.style());
  ctemplate::TemplateDictionary dict("marks");
  dict.SetValue("CSS", style);
  dict.SetValue("TITLE", to_utf8(what(row)));
  dict.SetValue("WHO", to_utf8(who(row)));
  dict.SetValue("TOTAL", total_text(row));
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i) {
    const auto& mark = row.marks[i];
    auto* criterion = dict.AddSectionDictionary("CRITERION");
    criterion->SetValue("TITLE", rubric.criteria[i].title);
    criterion->SetIntValue("WEIGHT", rubric.criteria[i].weight);
    criterion->SetValue("POINTS", mark ? number(mark->points) : "-");
    if (!mark) criterion->AddSectionDictionary("LINE")->SetValue("TEXT", "Not marked yet.");
    if (!mark) continue;
    for (const std::string& line : split(to_utf8(mark->reason), '\n'))
      criterion->AddSectionDictionary("LINE")->SetValue("TEXT", line);
    if (mark->earlier_version)
      criterion->AddSectionDictionary("LINE")->SetValue("TEXT", fmt::format("({})", kEarlier));
  }
  return pages.expand("marks.tpl", dict);
}

}  // namespace capstone
