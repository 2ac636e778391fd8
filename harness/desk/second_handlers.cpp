// Second markings: a grader marks what another one marked, and sees nothing of the first marks.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/desk/app.h"

namespace capstone::desk {
namespace {

std::vector<SecondMarking> waiting_in(std::vector<SecondMarking> markings) {
  std::erase_if(markings, [](const SecondMarking& each) { return !each.waits(); });
  return markings;
}

std::string place_of(const SecondMarking& marking) { return "/second/" + marking.code; }

}  // namespace

Result<std::vector<SecondMarking>> Desk::App::seconds_of(const Viewer& viewer) {
  CAPSTONE_TRY(auto all, marking_.second_markings(cohort_.rubric, viewer.grader.name));
  return waiting_in(std::move(all));
}

Result<std::set<std::string>> Desk::App::blind_to(const Viewer& viewer) {
  CAPSTONE_TRY(const auto waiting, seconds_of(viewer));
  std::set<std::string> names;
  for (const SecondMarking& each : waiting) names.insert(each.submission);
  return names;
}

Result<SecondMarking> Desk::App::second_of(const Request& request, Response& response, const Viewer& viewer) {
  const std::string code = request.matches[1];
  CAPSTONE_TRY(const auto waiting, seconds_of(viewer));
  for (const SecondMarking& each : waiting)
    if (each.code == code) return each;
  // The same answer for a copy of another grader, so that no one learns which exist.
  response.status = 404;
  return fail("no second marking " + code + " waits for you", {}, "choose one of the list");
}

Result<void> Desk::App::show_second(const Request& request, Response& response, const Viewer& viewer,
                                    std::vector<Notice> notices) {
  SheetView view;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const SecondMarking marking, second_of(request, response, viewer));
    CAPSTONE_CHECK(marking_.open_second(marking));
    CAPSTONE_TRY(view.drafts, marking_.drafts(marking.submission, viewer.grader.name, Round::kSecond));
    CAPSTONE_TRY(const Looked looked, look_at_second(marking));
    view.code = marking.code;
    view.base = looked.base;
    view.problem = marking.problem;
    view.state = marking.state;
    view.row.marks = marking.marks;
    view.evidence = cohort_.evidence_of(marking.submission);
    mask_evidence(view.evidence, *looked.mask);
  }
  // As on a blind copy: what the machine found, but no points that it suggests.
  if (view.evidence.contains("criteria"))
    for (Json& criterion : view.evidence["criteria"])
      if (criterion.is_object()) criterion.erase("suggested");
  view.second = true;
  view.rubric = &cohort_.rubric;
  view.shown = "Second marks: " + view.code;
  return show(request, response, viewer, view.shown, sheet_body(templates_, viewer, view), "wide",
              std::move(notices));
}

Result<void> Desk::App::second_sheet(const Request& request, Response& response, const Viewer& viewer) {
  return show_second(request, response, viewer, {});
}

Result<void> Desk::App::next_second(const Request& request, Response& response, const Viewer& viewer) {
  std::string to = "/";
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const auto waiting, seconds_of(viewer));
    auto chosen = std::find_if(waiting.begin(), waiting.end(), [](const auto& each) { return each.open; });
    if (chosen == waiting.end()) chosen = waiting.begin();
    if (chosen != waiting.end()) {
      to = place_of(*chosen);
      CAPSTONE_CHECK(marking_.open_second(*chosen));
    }
  }
  if (to == "/") tell(request, {"No second marking waits for you.", false});
  redirect(response, to);
  return {};
}

Result<void> Desk::App::draft_second(const Request& request, Response& response, const Viewer& viewer) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const SecondMarking marking, second_of(request, response, viewer));
  CAPSTONE_CHECK(keep_drafts(request, viewer, marking.submission, marking.marks, Round::kSecond));
  response.set_content("{\"saved\":true}", "application/json");
  return {};
}

Result<void> Desk::App::save_second(const Request& request, Response& response, const Viewer& viewer) {
  std::vector<Notice> notices;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const SecondMarking marking, second_of(request, response, viewer));
    CAPSTONE_CHECK(keep_drafts(request, viewer, marking.submission, marking.marks, Round::kSecond));
    CAPSTONE_TRY(const auto drafts, marking_.drafts(marking.submission, viewer.grader.name, Round::kSecond));
    std::vector<Draft> given;
    for (std::size_t i = 0; i < cohort_.rubric.criteria.size(); ++i) {
      const Criterion& criterion = cohort_.rubric.criteria[i];
      given.push_back(draft_shown(drafts, criterion.id, marking.marks[i]));
      if (given.back().points.empty() || trim(given.back().reason).empty())
        notices.push_back({fmt::format("Not given: {} needs points and a reason. Second marks are given all "
                                       "at once, and are final.",
                                       criterion.title),
                           true});
    }
    if (notices.empty())
      if (auto done = marking_.give_second(cohort_.rubric, marking, given); !done)
        notices.push_back({fmt::format("Not given: {}. {}", done.error().what, done.error().hint), true});
  }
  if (!notices.empty()) return show_second(request, response, viewer, std::move(notices));
  tell(request, {"The second marks are given. The first marks stay.", false});
  if (field(request, "then") == "next") return next_second(request, response, viewer);
  redirect(response, "/");
  return {};
}

Result<void> Desk::App::undo_second(const Request& request, Response& response, const Viewer& viewer) {
  bool done = false;
  std::string to;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const SecondMarking marking, second_of(request, response, viewer));
    CAPSTONE_CHECK(keep_drafts(request, viewer, marking.submission, marking.marks, Round::kSecond));
    CAPSTONE_TRY(done, marking_.undo(marking.submission, viewer.grader.name, Round::kSecond));
    to = place_of(marking);
  }
  if (!done) tell(request, {"There is nothing to undo.", false});
  redirect(response, to);
  return {};
}

Result<void> Desk::App::close_second(const Request& request, Response& response, const Viewer& viewer) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const SecondMarking marking, second_of(request, response, viewer));
  CAPSTONE_CHECK(keep_drafts(request, viewer, marking.submission, marking.marks, Round::kSecond));
  CAPSTONE_CHECK(marking_.close_second(marking));
  redirect(response, "/");
  return {};
}

Result<void> Desk::App::beat_second(const Request& request, Response& response, const Viewer& viewer) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const SecondMarking marking, second_of(request, response, viewer));
  CAPSTONE_CHECK(marking_.open_second(marking));
  response.set_content("{\"holder\":\"\"}", "application/json");
  return {};
}

// Both marks next to each other, once the second ones are final.
Result<void> Desk::App::seconds(const Request& request, Response& response, const Viewer& viewer) {
  if (!viewer.owner()) {
    response.status = 403;
    return fail("only the owner sees first and second marks together", {}, "ask the owner");
  }
  Figure figure{"second", "Second marks", {}};
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(auto codes, codes_by_name());
    CAPSTONE_TRY(const auto hidden, blind_to(viewer));
    CAPSTONE_TRY(const auto all, marking_.second_markings(cohort_.rubric));
    const auto waiting = std::count_if(all.begin(), all.end(), [](const auto& each) { return each.waits(); });
    figure.blocks.push_back(
        NoteBlock{fmt::format("Second markings to do: {}. Both marks are shown when the "
                              "second ones are given, and never of a submission that "
                              "waits for your own second marks.",
                              waiting)});
    for (const SecondMarking& each : all) {
      if (!each.done() || hidden.contains(each.submission)) continue;
      CAPSTONE_TRY(const GradebookRow row, row_of(each.submission));
      TableBlock table{
          fmt::format("{}, second marks by {}",
                      options_.show_names ? each.submission : "Sheet " + codes[each.submission], each.grader),
          {{"Criterion"},
           {"First", true},
           {"Second", true},
           {"Difference", true},
           {"First reason"},
           {"Second reason"}},
          {}};
      for (std::size_t i = 0; i < cohort_.rubric.criteria.size(); ++i) {
        const auto& first = row.marks[i];
        const Mark& second = *each.marks[i];
        const bool both = first && !first->earlier_version;
        const double apart = both ? second.points - first->points : 0;
        table.rows.push_back(
            {Cell{cohort_.rubric.criteria[i].title}, Cell{both ? fmt::format("{:g}", first->points) : ""},
             Cell{fmt::format("{:g}", second.points)},
             Cell{apart != 0 ? fmt::format("{:+g}", apart)
                  : both     ? "0"
                             : ""},
             Cell{both ? first->grader + ": " + first->reason : "not marked"}, Cell{second.reason}});
      }
      figure.blocks.push_back(table);
    }
  }
  auto body = templates_.expand(figure);
  if (body) body = "<main>" + *body + "</main>";
  return show(request, response, viewer, "Second marks", body);
}

}  // namespace capstone::desk
