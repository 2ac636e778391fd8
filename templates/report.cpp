#include "templates/report.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "rubric/numbers.h"
#include "rubric/review.h"
#include "rubric/worklog.h"
#include "templates/figures.h"
#include "templates/page.h"
#include "templates/prose.h"

namespace capstone {

const std::string& ReportFiles::at(const std::string& name) const {
  for (const ReportFile& file : files)
    if (file.name == name) return file.bytes;
  throw std::out_of_range("the report has no file " + name);
}

namespace {

std::string authors(const Project& project) {
  std::vector<std::string> names;
  for (const Person& p : project.config.members) names.push_back(p.name.empty() ? p.id : p.name);
  return names.empty() ? "author not named" : join(names, ", ");
}

std::string title_of(const Project& project) {
  return project.problem.title.empty() ? project.config.problem_id : project.problem.title;
}

// ISO dates need no locale, unlike "3 March 2026".
std::string dates_of(const LedgerView& ledger) {
  std::string first, last;
  for (const Record& r : ledger.records) {
    std::string day = r.time.substr(0, 10);
    if (day.empty()) continue;
    if (first.empty() || day < first) first = day;
    if (last.empty() || day > last) last = day;
  }
  return first == last ? first : first + " to " + last;
}

struct Card {
  const char* kind;
  std::string who, big, small;
};

// The result of one candidate in three lines.
Card card_of(const LedgerView& ledger, const char* candidate, const char* who) {
  const Measurement* best = ledger.best(candidate);
  const std::vector<Measurement>& all = ledger.of(candidate);
  Card card{candidate, who, "", ""};
  if (best == nullptr) {
    const bool none_judged =
        std::none_of(all.begin(), all.end(), [](const Measurement& m) { return m.judged(); });
    card.big = all.empty()   ? "not tried"
               : none_judged ? "not judged here"
                             : std::string(label_of(all.back().gate_one));
    card.small = all.empty()   ? ""
                 : none_judged ? "this machine could not judge it"
                               : "no version passed gate one";
    return card;
  }
  bool judged = best->measured && best->measured->speedup && !is_emulated(*best);
  card.big = judged ? format_speedup(best->measured->speedup->point) : "correct";
  card.small = best->version + ": " +
               (judged               ? std::string(label_of(best->gate_two))
                : is_emulated(*best) ? "gate two: not judged here (no GPU)"
                                     : "gate two: not judged");
  if (judged && best->measured->percent_of_peak > 0)
    card.small += fmt::format(", {:.0f} % of peak", best->measured->percent_of_peak);
  return card;
}

Result<std::map<std::string, std::string>> as_html(const std::map<std::string, Figure>& figures,
                                                   const PageTemplates& templates) {
  std::map<std::string, std::string> html;
  for (const auto& [name, figure] : figures) {
    CAPSTONE_TRY(html[name], templates.expand(figure));
  }
  return html;
}

Result<std::string> page(const ReportInput& input, const Worklog& worklog, const LedgerNumbers& numbers,
                         const std::map<std::string, Figure>& figures, const PageTemplates& templates) {
  CAPSTONE_TRY(auto html, as_html(figures, templates));
  CAPSTONE_TRY(std::string style, templates.style());
  std::string environment = html.at("environment");
  html.erase("environment");
  ProseHtml prose = prose_to_html(worklog, numbers, html);

  ctemplate::TemplateDictionary dict("page");
  dict.SetValue("CSS", style);
  dict.SetValue("TITLE", to_utf8(title_of(*input.project)));
  dict.SetValue("WHO", to_utf8(authors(*input.project)));
  dict.SetIntValue("TIER", input.project->problem.tier);
  dict.SetValue("DEVICE", to_utf8(numbers.value("device").value_or("nothing judged yet")));
  dict.SetValueAndShowSection("TEXT", dates_of(*input.ledger), "DATES");
  std::vector<Card> cards{card_of(*input.ledger, "human", "By hand"),
                          card_of(*input.ledger, "llm", "The model")};
  if (!input.ledger->together.empty()) cards.push_back(card_of(*input.ledger, "together", "Together"));
  for (const Card& card : cards) {
    auto* entry = dict.AddSectionDictionary("CARD");
    entry->SetValue("KIND", card.kind);
    entry->SetValue("WHO", card.who);
    entry->SetValue("BIG", card.big);
    entry->SetValue("SMALL", to_utf8(card.small));
  }
  if (!trim(prose.preamble).empty()) dict.AddSectionDictionary("PREAMBLE")->SetValue("HTML", prose.preamble);
  for (const SectionSpec& spec : worklog_sections()) {
    auto* link = dict.AddSectionDictionary("LINK");
    link->SetIntValue("NUMBER", spec.number);
    link->SetValue("TITLE", std::string(spec.title));
    auto* section = dict.AddSectionDictionary("SECTION");
    section->SetIntValue("NUMBER", spec.number);
    section->SetValue("TITLE", std::string(spec.title));
    if (!worklog.section(spec.number).present) section->ShowSection("MISSING");
    section->SetValue("HTML", prose.sections[static_cast<std::size_t>(spec.number - 1)]);
  }
  dict.SetValue("ENVIRONMENT", environment);
  dict.SetValue("TOOL", input.resources->version);
  return templates.expand("page.tpl", dict);
}

std::string markdown(const Worklog& worklog, const LedgerNumbers& numbers,
                     const std::map<std::string, Figure>& figures) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, figure] : figures) texts[name] = to_markdown(figure);
  std::string environment = texts.at("environment");
  texts.erase("environment");
  return prose_to_markdown(worklog, numbers, texts) + "\n---\n\n" + environment;
}

}  // namespace

Result<ReportFiles> render_report(const ReportInput& input) {
  CAPSTONE_TRY(std::string bytes, read_file(input.project->worklog(), std::size_t{64} << 20));
  Worklog worklog = parse_worklog(bytes);
  LedgerNumbers numbers(*input.project, *input.ledger);
  std::vector<Plot> drawn, &plots = input.plots ? *input.plots : drawn;
  if (plots.empty()) plots = draw_plots(*input.ledger, input.roof, *input.resources);
  std::map<std::string, Figure> figures = make_figures(input, plots);
  PageTemplates templates(input.resources->templates() / "html");

  ReportFiles report;
  report.findings = review(*input.project, *input.ledger, worklog);
  CAPSTONE_TRY(std::string html, page(input, worklog, numbers, figures, templates));
  report.files.push_back({"worklog.md", markdown(worklog, numbers, figures)});
  report.files.push_back({"worklog.html", std::move(html)});

  CAPSTONE_TRY(Rubric rubric, load_rubric(input.resources->share / "rubric" / "rubric.yaml"));
  ScoreSheet sheet = score(rubric, *input.project, *input.ledger, worklog);
  CAPSTONE_TRY(std::vector<ReportFile> sheets, render_score_sheet(input, sheet, Audience::kStudent));
  std::move(sheets.begin(), sheets.end(), std::back_inserter(report.files));
  return report;
}

Result<void> write_report(const ReportFiles& report, const std::filesystem::path& folder) {
  CAPSTONE_CHECK(make_folders(folder));
  for (const ReportFile& file : report.files)
    CAPSTONE_CHECK(write_file_atomic(folder / file.name, file.bytes));
  return {};
}

}  // namespace capstone
