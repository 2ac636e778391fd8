// Handlers that mark: sheets, drafts, claims, comments, items, publishing.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/base/text.h"
#include "harness/course/gradebook/lateness.h"
#include "harness/course/gradebook/sheets.h"
#include "harness/desk/app.h"
#include "harness/workflows/publish.h"

namespace capstone::desk {
namespace {

bool same(const Draft& a, const Draft& b) {
  return a.points == b.points && a.reason == b.reason && a.items == b.items;
}

bool is_blank(const Draft& draft) {
  return draft.points.empty() && draft.items.empty() && trim(draft.reason).empty();
}

template <class Number>
Number id_in(std::string_view text) {
  Number id = 0;
  std::from_chars(text.data(), text.data() + text.size(), id);
  return id;
}

// The fields of one criterion in a form.
Draft draft_in(const httplib::Request& request, const std::string& criterion) {
  Draft draft{criterion,
              std::string(trim(field(request, "points_" + criterion))),
              field(request, "reason_" + criterion),
              {}};
  const std::string prefix = "item_" + criterion + "_";
  for (const auto& [name, content] : request.files)
    if (name.starts_with(prefix))
      draft.items.push_back(id_in<std::int64_t>(std::string_view(name).substr(prefix.size())));
  std::sort(draft.items.begin(), draft.items.end());
  return draft;
}

}  // namespace

void mask_evidence(Json& evidence, const NameMask& mask) {
  if (!evidence.contains("criteria")) return;
  for (Json& criterion : evidence["criteria"])
    if (criterion.is_object() && criterion.contains("evidence"))
      for (Json& found : criterion["evidence"])
        if (found.is_object()) found["found"] = mask.apply(found.value("found", ""));
}

Result<GradebookRow> Desk::App::row_of(const std::string& name) {
  CAPSTONE_TRY(auto rows, cohort_.book.rows(cohort_.rubric, name));
  if (rows.empty()) return fail("the submission has no people", name, "grade it again", ExitCode::kInternal);
  return std::move(rows.front());
}

Result<void> Desk::App::show_sheet(const Request& request, Response& response, const Viewer& viewer,
                                   std::vector<Notice> notices) {
  SheetView view;
  view.code = request.matches[1];
  view.base = "/sheet/" + view.code;
  std::optional<NameMask> mask;
  std::string name;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(name, sheet_of(request, viewer));
    CAPSTONE_TRY(view.held, marking_.claim(name, viewer.grader.name));
    CAPSTONE_TRY(view.row, row_of(name));
    CAPSTONE_TRY(view.items, marking_.items());
    CAPSTONE_TRY(view.drafts, marking_.drafts(name, viewer.grader.name));
    CAPSTONE_TRY(const Looked looked, look_at(name, view.code));
    mask = looked.mask;
  }
  view.rubric = &cohort_.rubric;
  view.evidence = cohort_.evidence_of(name);
  if (mask) mask_evidence(view.evidence, *mask);
  view.shown = options_.show_names ? name + ": " + view.row.person.name : "Submission " + view.code;
  view.problem = view.row.problem;
  view.state = view.row.state;
  view.why = mask ? mask->apply(view.row.why) : view.row.why;
  view.late = lateness_text(view.row);
  return show(request, response, viewer, view.shown, sheet_body(templates_, viewer, view), "wide",
              std::move(notices));
}

Result<void> Desk::App::sheet(const Request& request, Response& response, const Viewer& viewer) {
  return show_sheet(request, response, viewer, {});
}

Result<void> Desk::App::next(const Request& request, Response& response, const Viewer& viewer) {
  std::optional<std::string> name;
  std::string code;
  std::size_t seconds = 0;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(name, marking_.claim_next(cohort_.rubric, viewer.grader.name));
    CAPSTONE_TRY(const auto waiting, seconds_of(viewer));
    seconds = waiting.size();
    CAPSTONE_TRY(auto codes, codes_by_name());
    if (name) code = codes[*name];
  }
  if (!name) {
    std::string text = "Nothing waits for marks that no one else has open or was assigned.";
    if (seconds) text += fmt::format(" Second markings to do: {}.", seconds);
    tell(request, {text, false});
  }
  redirect(response, name ? "/sheet/" + code : "/");
  return {};
}

// What equals the present mark is no draft, unless it replaces one.
Result<void> Desk::App::keep_drafts(const Request& request, const Viewer& viewer, const std::string& name,
                                    const std::vector<std::optional<Mark>>& marks, Round round) {
  CAPSTONE_TRY(const auto present, marking_.drafts(name, viewer.grader.name, round));
  for (std::size_t i = 0; i < cohort_.rubric.criteria.size(); ++i) {
    const std::string& id = cohort_.rubric.criteria[i].id;
    if (!request.has_file("reason_" + id)) continue;
    const Draft typed = draft_in(request, id);
    if (!same(typed, draft_shown(present, id, marks[i])))
      CAPSTONE_CHECK(marking_.keep_draft(name, viewer.grader.name, typed, round));
  }
  return {};
}

Result<void> Desk::App::keep_draft(const Request& request, Response& response, const Viewer& viewer) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
  CAPSTONE_TRY(const GradebookRow row, row_of(name));
  CAPSTONE_CHECK(keep_drafts(request, viewer, name, row.marks, Round::kFirst));
  response.set_content("{\"saved\":true}", "application/json");
  return {};
}

Result<void> Desk::App::save(const Request& request, Response& response, const Viewer& viewer) {
  std::vector<Notice> notices;
  const std::string& me = viewer.grader.name;
  bool complete = false;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
    CAPSTONE_TRY(const GradebookRow row, row_of(name));
    CAPSTONE_CHECK(keep_drafts(request, viewer, name, row.marks, Round::kFirst));
    CAPSTONE_TRY(const auto held, marking_.claim(name, me));
    if (held)
      notices.push_back(
          {fmt::format("Not given: {} has this sheet open. Take it over first, or close it. What you "
                       "typed is kept as your draft.",
                       held->grader),
           true});
    CAPSTONE_TRY(const auto drafts, marking_.drafts(name, me));
    std::vector<Draft> given;
    for (std::size_t i = 0; i < cohort_.rubric.criteria.size(); ++i) {
      const Criterion& criterion = cohort_.rubric.criteria[i];
      const auto draft = drafts.find(criterion.id);
      if (draft == drafts.end() || is_blank(draft->second)) continue;
      const auto& mark = row.marks[i];
      // Someone gave a mark while this sheet was open: their grader decides again, knowing it.
      if (mark && mark->grader != me && field(request, "seen_" + criterion.id) != seen_text(mark))
        notices.push_back(
            {fmt::format("Not given: {} has {} since you opened the sheet. Give marks again to replace "
                         "it; both stay in the history.",
                         criterion.title, told(*mark)),
             true});
      if (draft->second.items.empty() && (draft->second.points.empty() || trim(draft->second.reason).empty()))
        notices.push_back({fmt::format("Not given: {} needs points and a reason, which the student reads.",
                                       criterion.title),
                           true});
      given.push_back(draft->second);
    }
    if (notices.empty()) {
      const auto replaced = marking_.give(cohort_.rubric, name, me, given);
      if (!replaced)
        notices.push_back(
            {fmt::format("Not given: {}. {}", replaced.error().what, replaced.error().hint), true});
      else
        for (const Mark& old : *replaced)
          waiting_[session_of(request)].push_back(
              {fmt::format("{} replaces {}; both stay in the history.", old.criterion, told(old)), false});
    }
    if (notices.empty()) {
      waiting_[session_of(request)].push_back({fmt::format("{} marks given.", given.size()), false});
      CAPSTONE_TRY(const GradebookRow after, row_of(name));
      complete = !waits_for_marks(after);
      if (field(request, "then") == "next" && complete) CAPSTONE_CHECK(marking_.release(name, me));
    }
  }
  if (!notices.empty()) return show_sheet(request, response, viewer, std::move(notices));
  if (field(request, "then") == "next" && complete) return next(request, response, viewer);
  redirect(response, "/sheet/" + std::string(request.matches[1]));
  return {};
}

Result<void> Desk::App::undo(const Request& request, Response& response, const Viewer& viewer) {
  bool done = false;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
    CAPSTONE_TRY(const GradebookRow row, row_of(name));
    CAPSTONE_CHECK(keep_drafts(request, viewer, name, row.marks, Round::kFirst));
    CAPSTONE_TRY(done, marking_.undo(name, viewer.grader.name));
  }
  if (!done) tell(request, {"There is nothing to undo. Marks that were given stay in the history.", false});
  redirect(response, "/sheet/" + std::string(request.matches[1]));
  return {};
}

Result<void> Desk::App::take(const Request& request, Response& response, const Viewer& viewer) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
  CAPSTONE_CHECK(marking_.claim(name, viewer.grader.name, true));
  redirect(response, "/sheet/" + std::string(request.matches[1]));
  return {};
}

Result<void> Desk::App::close(const Request& request, Response& response, const Viewer& viewer) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
  CAPSTONE_TRY(const GradebookRow row, row_of(name));
  CAPSTONE_CHECK(keep_drafts(request, viewer, name, row.marks, Round::kFirst));
  CAPSTONE_CHECK(marking_.release(name, viewer.grader.name));
  redirect(response, "/");
  return {};
}

Result<void> Desk::App::beat(const Request& request, Response& response, const Viewer& viewer) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
  CAPSTONE_TRY(const auto held, marking_.claim(name, viewer.grader.name));
  response.set_content(Json{{"holder", held ? held->grader : ""}}.dump(), "application/json");
  return {};
}

Result<void> Desk::App::comment(const Request& request, Response& response, const Viewer& viewer) {
  const int line = id_in<int>(field(request, "line"));
  const auto file = id_in<std::size_t>(field(request, "file"));
  const Lock lock(mutex_);
  CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
  CAPSTONE_TRY(const Looked looked, look_at(name, request.matches[1]));
  const auto files = files_of(looked);
  if (file >= files.size()) return fail("there is no such file", looked.code, "choose one of the list");
  CAPSTONE_CHECK(marking_.comment(name, {files[file], line, field(request, "text"), viewer.grader.name, {}}));
  redirect(response, fmt::format("{}/source?file={}#L{}", looked.base, file, line));
  return {};
}

Result<void> Desk::App::keep_item(const Request& request, Response& response, const Viewer& viewer) {
  MarkItem item{id_in<std::int64_t>(field(request, "id")), field(request, "criterion"), 0,
                std::string(trim(field(request, "text")))};
  CAPSTONE_TRY(item.points, points_of(field(request, "points"), item.criterion));
  int again = 0;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(again, marking_.keep_item(cohort_.rubric, item, viewer.grader.name));
  }
  tell(request,
       {again ? fmt::format("Kept, and {} marks were given again with it.", again) : "Kept.", false});
  redirect(response, "/items");
  return {};
}

// As `capstone gradebook publish` does: whoever has marks missing, or for an earlier version, is held back.
Result<void> Desk::App::publish(const Request& request, Response& response, const Viewer& viewer) {
  if (!viewer.owner()) return fail("only the owner publishes", {}, "ask the owner");
  workflows::PublicationRequest chosen{{}, request.has_file("incomplete")};
  std::string said;
  {
    const Lock lock(mutex_);
    for (const auto& [code, name] : codes_)
      if (request.has_file("pick_" + code)) chosen.names.push_back(name);
    if (chosen.names.empty())  // an empty list would mean everyone
      return fail("no one was chosen, so nothing was published", {}, "choose in the first column");
    CAPSTONE_TRY(const auto done, workflows::publish_marks(workspace_, cohort_, chosen, viewer.grader.name));
    said = fmt::format("Published for {} people.", done.people);
    const auto held_back =
        std::count_if(done.items.begin(), done.items.end(), [](const auto& item) { return item.held_back; });
    if (held_back)
      said += fmt::format(" Held back, with marks missing or for an earlier version: {}.", held_back);
  }
  tell(request, {said, false});
  redirect(response, "/publish");
  return {};
}

}  // namespace capstone::desk
