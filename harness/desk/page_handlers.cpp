// Handlers that only look: lists, views, items, progress.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/base/text.h"
#include "harness/course/gradebook/lateness.h"
#include "harness/desk/app.h"
#include "harness/workflows/publish.h"
#include "harness/workflows/second_marks.h"
#include "templates/cohort_pages.h"

namespace capstone::desk {
namespace {

int number_in(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool sees(const Viewer& viewer, const std::map<std::string, std::string>& assigned, const std::string& name) {
  const auto owner = assigned.find(name);
  return !viewer.grader.only_assigned || (owner != assigned.end() && owner->second == viewer.grader.name);
}

}  // namespace

Result<std::optional<Viewer>> Desk::App::viewer_of(const Request& request) {
  const std::string session = session_of(request);
  if (session.empty()) return std::nullopt;
  const Lock lock(mutex_);
  CAPSTONE_TRY(auto grader, marking_.grader_of_session(session));
  if (!grader) return std::nullopt;
  return Viewer{std::move(*grader), form_token(session)};
}

Result<std::map<std::string, std::string>> Desk::App::codes_by_name() {
  CAPSTONE_TRY(codes_, marking_.codes());
  std::map<std::string, std::string> by_name;
  for (const auto& [code, name] : codes_) by_name[name] = code;
  return by_name;
}

Result<std::string> Desk::App::sheet_of(const Request& request, const Viewer& viewer) {
  const std::string code = request.matches[1];
  if (!codes_.contains(code)) {
    CAPSTONE_TRY(codes_, marking_.codes());  // submissions that were graded since
  }
  const auto found = codes_.find(code);
  bool seen = found != codes_.end();
  if (seen && viewer.grader.only_assigned) {
    CAPSTONE_TRY(const auto assigned, marking_.assignments());
    seen = sees(viewer, assigned, found->second);
  }
  if (seen) {
    CAPSTONE_TRY(const auto hidden, blind_to(viewer));
    seen = !hidden.contains(found->second);
  }
  // The same answer for all, so that no one learns which codes exist.
  if (!seen) return fail("you have no sheet " + code, {}, "choose one of the list");
  return found->second;
}

Result<Looked> Desk::App::look_at(const std::string& name, const std::string& code) {
  Looked looked{
      &workspace_, name, code, "/sheet/" + code, {}, cohort_.folder_of(name), cohort_.project_of(name)};
  CAPSTONE_CHECK(add_mask(looked));
  if (options_.show_names) looked.mask.reset();
  return looked;
}

Result<Looked> Desk::App::look_at_second(const SecondMarking& marking) {
  const std::string& name = marking.submission;
  Looked looked{&workspace_,
                name,
                marking.code,
                "/second/" + marking.code,
                {},
                cohort_.folder_of(name),
                cohort_.project_of(name)};
  looked.second = true;
  CAPSTONE_CHECK(add_mask(looked));
  return looked;
}

Result<void> Desk::App::add_mask(Looked& looked) {
  CAPSTONE_TRY(const auto rows, cohort_.book.rows(cohort_.rubric, looked.name));
  if (!rows.empty()) looked.digest = rows.front().digest;
  // Reading every summary takes milliseconds: a mask is made once for each version.
  auto& [digest, mask] = masks_[looked.name];
  if (!mask || digest != looked.digest) {
    CAPSTONE_TRY(const auto summaries, cohort_.book.summaries());
    digest = looked.digest;
    mask = workflows::mask_of(looked.name, rows, summaries);
  }
  looked.mask = mask;
  return {};
}

Result<Looked> Desk::App::looked_at(const Request& request, Response& response, const Viewer& viewer) {
  const Lock lock(mutex_);
  if (request.path.starts_with("/second/")) {
    CAPSTONE_TRY(const SecondMarking marking, second_of(request, response, viewer));
    return look_at_second(marking);
  }
  CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
  return look_at(name, request.matches[1]);
}

Result<void> Desk::App::show(const Request& request, Response& response, const Viewer& viewer,
                             const std::string& title, const Result<std::string>& body,
                             const std::string& body_class, std::vector<Notice> notices) {
  if (!body) return fail(body.error());
  {
    const Lock lock(mutex_);
    auto waiting = waiting_.extract(session_of(request));
    if (!waiting.empty()) notices.insert(notices.begin(), waiting.mapped().begin(), waiting.mapped().end());
  }
  CAPSTONE_TRY(const std::string html, page(templates_, title, &viewer, notices, *body, body_class));
  response.set_content(html, "text/html; charset=utf-8");
  response.set_header("Content-Security-Policy", kPagePolicy);
  return {};
}

Result<void> Desk::App::show_view(Response& response, const Result<std::string>& body) {
  std::vector<Notice> notices;
  if (!body) notices.push_back({body.error().what + ". " + body.error().hint, true});
  CAPSTONE_TRY(const std::string html, page(templates_, "View", nullptr, notices, body ? *body : "", kView));
  response.set_content(html, "text/html; charset=utf-8");
  response.set_header("Content-Security-Policy", kStudentPolicy);
  return {};
}

void Desk::App::tell(const Request& request, Notice notice) {
  const Lock lock(mutex_);
  waiting_[session_of(request)].push_back(std::move(notice));
}

Result<void> Desk::App::log_in(const Request& request, Response& response) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const auto session, marking_.log_in(std::string(trim(field(request, "secret")))));
  if (!session) return fail("This token is not known. Ask the owner for a new one.");
  response.set_header("Set-Cookie", session_cookie(*session));
  redirect(response, "/");
  return {};
}

Result<void> Desk::App::log_out(const Request& request, Response& response, const Viewer&) {
  const Lock lock(mutex_);
  CAPSTONE_CHECK(marking_.log_out(session_of(request)));
  response.set_header("Set-Cookie", session_cookie({}));
  redirect(response, "/login");
  return {};
}

Result<void> Desk::App::list(const Request& request, Response& response, const Viewer& viewer) {
  std::vector<ListRow> rows;
  std::vector<SecondMarking> seconds;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(auto codes, codes_by_name());
    CAPSTONE_TRY(const auto book, cohort_.book.rows(cohort_.rubric));
    CAPSTONE_TRY(const auto assigned, marking_.assignments());
    CAPSTONE_TRY(const auto claims, marking_.claims());
    CAPSTONE_TRY(seconds, seconds_of(viewer));
    CAPSTONE_TRY(const auto hidden, blind_to(viewer));
    for (const GradebookRow& row : book) {
      if (!sees(viewer, assigned, row.submission) || hidden.contains(row.submission)) continue;
      ListRow line;
      line.code = codes[row.submission];
      line.shown = options_.show_names ? row.submission + ": " + row.person.name : line.code;
      line.problem = row.problem;
      line.state = row.state;
      if (auto who = assigned.find(row.submission); who != assigned.end()) line.assigned = who->second;
      if (auto claim = claims.find(row.submission); claim != claims.end()) line.holder = claim->second.grader;
      const auto marked = std::count_if(row.marks.begin(), row.marks.end(),
                                        [](const auto& mark) { return mark && !mark->earlier_version; });
      line.marked = fmt::format("{} of {}", marked, row.marks.size());
      line.total = row.total() ? fmt::format("{:g}", *row.total()) : "";
      line.waits = waits_for_marks(row);
      rows.push_back(std::move(line));
    }
  }
  // In the order of the codes, which says nothing; by name where names are shown.
  if (!options_.show_names)
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ListRow& a, const ListRow& b) { return a.code < b.code; });
  return show(request, response, viewer, "Sheets", list_body(templates_, viewer, rows, seconds));
}

Result<void> Desk::App::worklog(const Request& request, Response& response, const Viewer& viewer) {
  CAPSTONE_TRY(const Looked looked, looked_at(request, response, viewer));
  auto html = worklog_html(looked);
  if (!html) return show_view(response, html);
  response.set_content(*html, "text/html; charset=utf-8");
  response.set_header("Content-Security-Policy", kStudentPolicy);
  return {};
}

Result<void> Desk::App::source(const Request& request, Response& response, const Viewer& viewer) {
  CAPSTONE_TRY(const Looked looked, looked_at(request, response, viewer));
  std::vector<LineComment> comments;
  if (!looked.second) {
    const Lock lock(mutex_);
    CAPSTONE_TRY(comments, marking_.comments(looked.name));
  }
  const int file = number_in(request.get_param_value("file"));
  return show_view(response, source_body(templates_, looked, static_cast<std::size_t>(std::max(0, file)),
                                         number_in(request.get_param_value("line")), comments,
                                         viewer.grader.name, viewer.form_token));
}

Result<void> Desk::App::versions(const Request& request, Response& response, const Viewer& viewer) {
  CAPSTONE_TRY(const Looked looked, looked_at(request, response, viewer));
  return show_view(response, versions_body(templates_, looked));
}

Result<void> Desk::App::model(const Request& request, Response& response, const Viewer& viewer) {
  CAPSTONE_TRY(const Looked looked, looked_at(request, response, viewer));
  return show_view(response, model_body(templates_, looked));
}

Result<void> Desk::App::machine(const Request& request, Response& response, const Viewer& viewer) {
  CAPSTONE_TRY(const Looked looked, looked_at(request, response, viewer));
  return show_view(response, machine_body(templates_, looked, cohort_.folder));
}

Result<void> Desk::App::items(const Request& request, Response& response, const Viewer& viewer) {
  std::vector<MarkItem> all;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(all, marking_.items());
  }
  return show(request, response, viewer, "Items", items_body(templates_, viewer, cohort_.rubric, all));
}

Result<void> Desk::App::progress(const Request& request, Response& response, const Viewer& viewer) {
  Figure figure{"progress", "Progress", {}};
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const auto hidden, blind_to(viewer));
    CAPSTONE_TRY(const auto assigned, marking_.assignments());
    // As on the list of sheets. What another grader gave as second marks is for the owner alone.
    const auto seen = [&](const std::string& name) {
      return viewer.owner() || (sees(viewer, assigned, name) && !hidden.contains(name));
    };
    CAPSTONE_TRY(const auto graders, workflows::marking_progress(cohort_, seen));
    TableBlock table{"Who is how far",
                     {{"Grader"},
                      {"Assigned", true},
                      {"Of these open", true},
                      {"Marked", true},
                      {"Second marks given"},
                      {"Has a sheet open"}},
                     {}};
    CAPSTONE_TRY(const auto seconds, marking_.second_markings(cohort_.rubric));
    for (const auto& each : graders) {
      const bool mine = viewer.owner() || each.grader == viewer.grader.name;
      if (!mine && !each.assigned && !each.marked && each.open_sheet.empty()) continue;
      int given = 0, all = 0;
      bool open = !each.open_sheet.empty();
      for (const SecondMarking& second : seconds) {
        if (!mine || second.grader != each.grader || !(second.done() || second.waits())) continue;
        ++all;
        given += second.done();
        open |= second.open;
      }
      table.rows.push_back({Cell{each.grader}, Cell{std::to_string(each.assigned)},
                            Cell{std::to_string(each.assigned_open)}, Cell{std::to_string(each.marked)},
                            Cell{all ? fmt::format("{} of {}", given, all) : ""}, Cell{open ? "yes" : ""}});
    }
    figure.blocks.push_back(table);
    CAPSTONE_TRY(const auto second, workflows::agreement_in(cohort_));
    TableBlock agreement{"Agreement of two graders (kappa: 1 is full agreement, 0 is chance)",
                         {{"Criterion"}, {"Pairs", true}, {"Mean difference", true}, {"Kappa", true}},
                         {}};
    for (const CriterionAgreement& each : second.report.criteria)
      agreement.rows.push_back({Cell{each.criterion}, Cell{std::to_string(each.pairs)},
                                Cell{each.pairs ? fmt::format("{:+.1f}", each.mean_difference) : ""},
                                Cell{each.kappa ? fmt::format("{:.2f}", *each.kappa) : ""}});
    // With few pairs, a difference tells a first mark to those who have yet to give a second one, and a
    // second mark to those who gave the first one.
    if (second.pairs && viewer.owner() && hidden.empty()) figure.blocks.push_back(agreement);
  }
  auto body = templates_.expand(figure);
  if (body) body = "<main>" + *body + "</main>";
  return show(request, response, viewer, "Progress", body);
}

Result<void> Desk::App::publishing(const Request& request, Response& response, const Viewer& viewer) {
  if (!viewer.owner()) return fail("only the owner publishes", {}, "ask the owner");
  std::vector<PublishRow> rows;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(auto codes, codes_by_name());
    CAPSTONE_TRY(const auto plan, workflows::plan_publication(cohort_, {}));
    CAPSTONE_TRY(const auto hidden, blind_to(viewer));
    for (const workflows::PublicationItem& item : plan) {
      const GradebookRow& row = item.row;
      rows.push_back({codes[row.submission], row.submission, row.person.name,
                      hidden.contains(row.submission) ? "hidden until your second marks are given"
                      : row.total()                   ? fmt::format("{:g}", *row.total())
                                                      : "partly marked",
                      join(item.warnings, "; "), row.published, item.held_back,
                      rows.empty() || rows.back().submission != row.submission});
    }
  }
  return show(request, response, viewer, "Publish", publish_body(templates_, viewer, rows));
}

// The page that publishing would write, of the present marks.
Result<void> Desk::App::preview(const Request& request, Response& response, const Viewer& viewer) {
  if (!viewer.owner()) return fail("only the owner publishes", {}, "ask the owner");
  GradebookRow row;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const std::string name, sheet_of(request, viewer));
    CAPSTONE_TRY(row, row_of(name));
  }
  CAPSTONE_TRY(const std::string html, marks_page(row, cohort_.rubric, workspace_.resources.templates()));
  response.set_content(html, "text/html; charset=utf-8");
  response.set_header("Content-Security-Policy", kStudentPolicy);
  return {};
}

}  // namespace capstone::desk
