// The sheet: what was handed in on the left, the criteria on the right.
#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/desk/pages.h"

namespace capstone::desk {
namespace {

using Dictionary = ctemplate::TemplateDictionary;

std::string number(double value) { return fmt::format("{:g}", value); }

void fill_evidence(Dictionary& dict, const Json& evidence, const Criterion& criterion) {
  for (const Json& found : evidence.value("criteria", Json::array())) {
    if (found.value("id", "") != criterion.id) continue;
    for (const Json& each : found.value("evidence", Json::array())) {
      const std::string standing = each.value("standing", "");
      auto* row = dict.AddSectionDictionary("EVIDENCE");
      row->SetValue("STANDING", standing);
      row->SetValue("TONE", standing == "met" ? "good" : standing == "not met" ? "bad" : "muted");
      row->SetValue("LOOKED", each.value("looks_for", ""));
      row->SetValue("FOUND", to_utf8(each.value("found", "")));
      if (each.contains("ask"))
        dict.AddSectionDictionary("QUESTION")->SetValue("TEXT", to_utf8(each.value("ask", "")));
    }
    if (found.contains("suggested")) {
      auto* suggested = dict.AddSectionDictionary("SUGGESTED");
      suggested->SetValue("POINTS", number(found.value("suggested", 0.0)));
      suggested->SetValue("BECAUSE", to_utf8(found.value("because", "")));
    }
  }
}

void fill_criterion(Dictionary& dict, const SheetView& sheet, std::size_t i) {
  const Criterion& criterion = sheet.rubric->criteria[i];
  const auto& mark = sheet.row.marks[i];
  dict.SetValue("ID", criterion.id);
  dict.SetValue("TITLE", criterion.title);
  dict.SetIntValue("WEIGHT", criterion.weight);
  dict.SetValue("LOOKS_FOR", criterion.looks_for);
  dict.SetValue("SEEN", seen_text(mark));
  if (mark) {
    auto* present = dict.AddSectionDictionary("PRESENT");
    present->SetValue("TEXT",
                      to_utf8((mark->earlier_version ? "for an earlier version: " : "") + told(*mark)));
  }
  const Draft draft = draft_shown(sheet.drafts, criterion.id, mark);
  dict.SetValue("POINTS", to_utf8(draft.points));
  dict.SetValue("REASON", to_utf8(draft.reason));
  if (sheet.drafts.contains(criterion.id)) dict.ShowSection("DRAFT");
  int key = 0;
  for (const MarkItem& item : sheet.items) {
    if (item.criterion != criterion.id) continue;
    ++key;
    auto* row = dict.AddSectionDictionary("ITEM");
    row->SetValue("CRITERION", criterion.id);
    row->SetFormattedValue("ID", "%lld", static_cast<long long>(item.id));
    row->SetValue("KEY", key <= 9 ? std::to_string(key) : "");
    row->SetValue("POINTS", fmt::format("{:+g}", item.points));
    row->SetValue("NUMBER", number(item.points));
    row->SetValue("TEXT", to_utf8(item.text));
    if (std::find(draft.items.begin(), draft.items.end(), item.id) != draft.items.end())
      row->ShowSection("CHECKED");
  }
  fill_evidence(dict, sheet.evidence, criterion);
  for (const std::string& question : criterion.questions)
    dict.AddSectionDictionary("QUESTION")->SetValue("TEXT", question);
  for (const Level& level : criterion.levels) {
    auto* row = dict.AddSectionDictionary("LEVEL");
    row->SetValue("RANGE",
                  level.from == level.to ? number(level.from) : number(level.from) + "–" + number(level.to));
    row->SetValue("NAME", level.name);
    row->SetValue("TEXT", level.text);
  }
}

}  // namespace

std::string seen_text(const std::optional<Mark>& mark) {
  return mark ? fmt::format("{:g} {} {}", mark->points, mark->time, mark->grader) : "-";
}

Draft draft_shown(const std::map<std::string, Draft>& drafts, const std::string& criterion,
                  const std::optional<Mark>& mark) {
  if (auto draft = drafts.find(criterion); draft != drafts.end()) return draft->second;
  if (!mark || mark->earlier_version) return {criterion, "", "", {}};
  if (mark->items.empty()) return {criterion, number(mark->points), mark->reason, {}};
  return {criterion, number(mark->own_points), mark->own_reason, mark->items};
}

Result<std::string> sheet_body(const PageTemplates& templates, const Viewer& viewer, const SheetView& sheet) {
  Dictionary dict("sheet");
  dict.SetValue("BASE", sheet.base);
  dict.SetValue("SHOWN", to_utf8(sheet.shown));
  dict.SetValue("PROBLEM", to_utf8(sheet.problem));
  dict.SetValue("STATE", sheet.state);
  dict.SetValue("TOKEN", viewer.form_token);
  dict.ShowSection(sheet.second ? "SECOND" : "FIRST");
  dict.SetValueAndShowSection("TEXT", to_utf8(sheet.why), "WHY");
  dict.SetValueAndShowSection("TEXT", to_utf8(sheet.late), "LATE");
  if (sheet.held) {
    auto* held = dict.AddSectionDictionary("HELD");
    held->SetValue("GRADER", to_utf8(sheet.held->grader));
    held->SetValue("SINCE", sheet.held->since.size() >= 16 ? sheet.held->since.substr(11, 5) : "");
    held->SetValue("BASE", sheet.base);
    held->SetValue("TOKEN", viewer.form_token);
  }
  for (std::size_t i = 0; i < sheet.rubric->criteria.size(); ++i)
    fill_criterion(*dict.AddSectionDictionary("CRITERION"), sheet, i);
  return templates.expand("desk_sheet.tpl", dict);
}

}  // namespace capstone::desk
