#include "templates/syllabus_page.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "templates/page.h"

namespace capstone {
namespace {

using ctemplate::TemplateDictionary;

void fill_road(TemplateDictionary& page, const Course& course, const std::vector<SessionSheet>& sheets) {
  TemplateDictionary *half = nullptr, *week = nullptr;
  std::string says;
  int number = 0;
  for (const CourseSession& session : course.sessions) {
    if (!half || session.half != says) {
      says = session.half;
      half = page.AddSectionDictionary("HALF");
      half->SetValue("SAYS", to_utf8(says));
    }
    if (session.week != number) {
      number = session.week;
      week = half->AddSectionDictionary("WEEK");
      week->SetIntValue("NUMBER", number);
    }
    const bool has_sheet = std::any_of(sheets.begin(), sheets.end(), [&](const SessionSheet& sheet) {
      return sheet.session.id == session.id;
    });
    TemplateDictionary* stop = week->AddSectionDictionary("STOP");
    stop->ShowSection(has_sheet ? "LINKED" : "PLAIN");
    stop->SetValue("ID", to_utf8(session.id));
    stop->SetValue("TITLE", to_utf8(session.title));
  }
}

void fill_steps(TemplateDictionary& section, const SessionPlan& plan) {
  int at = 0;
  for (const PlanStep& step : plan.steps) {
    TemplateDictionary* row = section.AddSectionDictionary("STEP");
    row->SetFormattedValue("FROM", "%d", at);
    row->SetFormattedValue("TO", "%d", at += step.minutes);
    row->SetIntValue("MINUTES", step.minutes);
    row->SetValue("KIND", std::string(name_of(step.kind)));
    row->SetValue("WHAT", to_utf8(step.what));
  }
}

void fill_ladders(TemplateDictionary& section, const std::vector<LadderInSession>& ladders) {
  if (ladders.empty()) return;
  TemplateDictionary* table = section.AddSectionDictionary("LADDERS");
  for (const LadderInSession& ladder : ladders) {
    TemplateDictionary* row = table->AddSectionDictionary("LADDER");
    row->SetValue("PROBLEM", to_utf8(ladder.problem));
    row->SetIntValue("RUNGS", ladder.rungs);
    if (!ladder.best) {
      row->ShowSection("UNKNOWN");
      continue;
    }
    TemplateDictionary* best = row->AddSectionDictionary("BEST");
    best->SetValue("RUNG", to_utf8(ladder.best->rung.name));
    best->SetValue("TIME", format_time_ms(ladder.best->ms.point));
    best->SetValue("PEAK", ladder.best->percent_of_peak >= 0.05
                               ? fmt::format("{:.1f} %", ladder.best->percent_of_peak)
                               : "n/a");
    best->SetValue("LIBRARY", ladder.best->of_library.point > 0
                                  ? fmt::format("{:.1f} %", 100 * ladder.best->of_library.point)
                                  : "n/a");
    best->SetValue("ORIGIN", to_utf8(fmt::format("{}, {}, {}", ladder.device, ladder.sizes, ladder.date)));
  }
}

void fill(TemplateDictionary& section, const SessionSheet& sheet) {
  const SessionPlan& plan = sheet.plan;
  section.SetValue("ID", to_utf8(sheet.session.id));
  section.SetValue("TITLE", to_utf8(sheet.session.title));
  section.SetValue("HALF", to_utf8(sheet.session.half));
  section.SetIntValue("WEEK", sheet.session.week);
  section.SetIntValue("MINUTES", plan.minutes());
  section.SetIntValue("TEACH", plan.minutes_of(PlanStep::Kind::kTeach));
  section.SetIntValue("BUILD", plan.minutes_of(PlanStep::Kind::kBuild));
  section.SetValue("LINE", to_utf8(plan.line));
  section.SetValue("ARTIFACT", to_utf8(plan.artifact));
  section.SetValue("BEGIN", to_utf8(plan.begin));
  section.SetValue("DEMO", to_utf8(plan.demo.run));
  section.SetIntValue("DEMO_SECONDS", plan.demo_seconds);
  section.SetValue("DEMO_SHOWS", to_utf8(plan.demo.shows));
  if (!sheet.more_demos.empty())
    section.SetValueAndShowSection("NAMES", to_utf8(join(sheet.more_demos, ", ")), "MORE_DEMOS");
  section.SetValue("THINKS", to_utf8(plan.thinks));
  section.SetValue("INSTEAD", to_utf8(plan.instead));
  section.SetValue("PROOF", to_utf8(plan.proof.run));
  section.SetValue("PROOF_SHOWS", to_utf8(plan.proof.shows));
  fill_steps(section, plan);
  for (const NumberInWords& number : sheet.numbers) {
    TemplateDictionary* item = section.AddSectionDictionary("NUMBER");
    item->SetValue("NAME", to_utf8(number.name));
    item->SetValue("SAYS", to_utf8(number.says));
    item->SetValueAndShowSection("TEXT", to_utf8(number.means), "MEANS");
    for (const std::string& fact : number.facts) item->SetValueAndShowSection("TEXT", to_utf8(fact), "FACT");
  }
  fill_ladders(section, sheet.ladders);
  TemplateDictionary* labs = sheet.labs.empty() ? nullptr : section.AddSectionDictionary("LABS");
  for (const Lab& lab : sheet.labs) {
    TemplateDictionary* item = labs->AddSectionDictionary("LAB");
    item->SetValue("ID", to_utf8(lab.id));
    item->SetValue("TITLE", to_utf8(lab.title));
  }
}

}  // namespace

Result<std::string> syllabus_page(const Course& course, const std::vector<SessionSheet>& sheets,
                                  const fs::path& templates) {
  PageTemplates pages(templates / "html");
  TemplateDictionary page("syllabus");
  CAPSTONE_TRY(const std::string css, pages.style());
  page.SetValue("CSS", css);
  page.SetValue("HEADING", sheets.size() == 1 ? to_utf8(fmt::format("{}: {}", sheets.front().session.id,
                                                                    sheets.front().session.title))
                                              : "The course, session by session");
  page.SetValue("QUESTION", to_utf8(course.question));
  page.SetValue("LOOP", to_utf8(course.loop));
  fill_road(page, course, sheets);
  for (const SessionSheet& sheet : sheets) fill(*page.AddSectionDictionary("SHEET"), sheet);
  return pages.expand("syllabus.tpl", page);
}

}  // namespace capstone
