#include "harness/desk/pages.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"

namespace capstone::desk {
namespace {

using Dictionary = ctemplate::TemplateDictionary;

}  // namespace

Result<std::string> page(const PageTemplates& templates, const std::string& title, const Viewer* viewer,
                         const std::vector<Notice>& notices, const std::string& body,
                         const std::string& body_class) {
  Dictionary dict("desk");
  dict.SetValue("TITLE", to_utf8(title));
  dict.SetValue("CLASS", body_class);
  dict.SetValue("BODY", body);
  if (body_class != kView) dict.ShowSection("SCRIPT");
  for (const Notice& notice : notices) {
    auto* note = dict.AddSectionDictionary("NOTICE");
    note->SetValue("TONE", notice.bad ? "bad" : "good");
    note->SetValue("TEXT", to_utf8(notice.text));
  }
  if (viewer) {
    auto* user = dict.AddSectionDictionary("USER");
    user->SetValue("NAME", to_utf8(viewer->grader.name));
    user->SetValue("TOKEN", viewer->form_token);
    if (viewer->owner()) user->ShowSection("OWNER");
  }
  return templates.expand("desk.tpl", dict);
}

Result<std::string> login_body(const PageTemplates& templates) {
  return templates.expand("desk_login.tpl", Dictionary("login"));
}

Result<std::string> student_login_body(const PageTemplates& templates) {
  return templates.expand("desk_student_login.tpl", Dictionary("login"));
}

Result<std::string> student_body(const PageTemplates& templates, const std::string& form_token,
                                 const std::string& shown, bool verdict) {
  Dictionary dict("student");
  dict.SetValue("TOKEN", form_token);
  dict.SetValue("SHOWN", shown);
  if (verdict) dict.ShowSection("VERDICT");
  return templates.expand("desk_student.tpl", dict);
}

Result<std::string> list_body(const PageTemplates& templates, const Viewer& viewer,
                              const std::vector<ListRow>& rows, const std::vector<SecondMarking>& seconds) {
  Dictionary dict("list");
  dict.SetValue("TOKEN", viewer.form_token);
  long waiting = 0;
  for (const ListRow& each : rows) {
    waiting += each.waits;
    auto* row = dict.AddSectionDictionary("ROW");
    row->SetValue("CODE", each.code);
    row->SetValue("SHOWN", to_utf8(each.shown));
    row->SetValue("PROBLEM", to_utf8(each.problem));
    row->SetValue("STATE", each.state);
    row->SetValue("TONE", each.state == "graded" ? "plain" : "bad");
    row->SetValue("ASSIGNED", to_utf8(each.assigned));
    row->SetValue("HOLDER", to_utf8(each.holder));
    row->SetValue("MARKED", each.marked);
    row->SetValue("TOTAL", each.total);
  }
  dict.SetIntValue("WAITING", waiting);
  dict.SetIntValue("ALL", static_cast<long>(rows.size()));
  if (!seconds.empty()) {
    auto* section = dict.AddSectionDictionary("SECOND");
    section->SetValue("TOKEN", viewer.form_token);
    section->SetIntValue("COUNT", static_cast<long>(seconds.size()));
    for (const SecondMarking& each : seconds)
      section->AddSectionDictionary("COPY")->SetValue("CODE", each.code);
  }
  return templates.expand("desk_list.tpl", dict);
}

Result<std::string> items_body(const PageTemplates& templates, const Viewer& viewer, const Rubric& rubric,
                               const std::vector<MarkItem>& items) {
  Dictionary dict("items");
  for (const Criterion& criterion : rubric.criteria) {
    auto* section = dict.AddSectionDictionary("CRITERION");
    section->SetValue("TITLE", criterion.title);
    int key = 0;
    auto add = [&](const MarkItem& item) {
      auto* row = section->AddSectionDictionary("ITEM");
      row->SetValue("TOKEN", viewer.form_token);
      row->SetValue("CRITERION", criterion.id);
      row->SetFormattedValue("ID", "%lld", static_cast<long long>(item.id));
      row->SetValue("KEY", item.id == 0 ? "new" : key <= 9 ? std::to_string(key) : "");
      row->SetValue("POINTS", item.id == 0 ? "" : fmt::format("{:g}", item.points));
      row->SetValue("TEXT", to_utf8(item.text));
      row->SetValue("BUTTON", item.id == 0 ? "Add" : "Change, also where it was given");
    };
    for (const MarkItem& item : items)
      if (item.criterion == criterion.id) {
        ++key;
        add(item);
      }
    add({0, criterion.id, 0, ""});
  }
  return templates.expand("desk_items.tpl", dict);
}

Result<std::string> publish_body(const PageTemplates& templates, const Viewer& viewer,
                                 const std::vector<PublishRow>& rows) {
  Dictionary dict("publish");
  dict.SetValue("TOKEN", viewer.form_token);
  long held_back = 0, news = 0;
  for (const PublishRow& each : rows) {
    held_back += each.held_back;
    news += !each.published && !each.held_back;
    auto* row = dict.AddSectionDictionary("ROW");
    if (each.first) {
      auto* pick = row->AddSectionDictionary("PICK");
      pick->SetValue("CODE", each.code);
      pick->SetValue("NAME", to_utf8(each.submission));
      if (!each.published && !each.held_back) pick->ShowSection("CHECKED");
    }
    row->SetValue("NAME", to_utf8(each.submission));
    row->SetValue("CODE", each.code);
    row->SetValue("PERSON", to_utf8(each.person));
    row->SetValue("TOTAL", each.total);
    row->SetValue("PUBLISHED", each.published ? "yes" : "no");
    row->SetValue("WARNINGS", to_utf8(each.warnings));
  }
  dict.SetIntValue("NEWS", news);
  dict.SetIntValue("HELD_BACK", held_back);
  dict.SetIntValue("ALL", static_cast<long>(rows.size()));
  return templates.expand("desk_publish.tpl", dict);
}

}  // namespace capstone::desk
