// `serve --students`: what was published for the student who looks. No route of the graders exists there.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/result.h"
#include "harness/desk/app.h"

namespace capstone::desk {
namespace {

constexpr std::string_view kStudentCookie = "capstone_student";

std::string student_session(const httplib::Request& request) {
  return session_in(request.get_header_value("Cookie"), kStudentCookie);
}

std::string cookie(std::string_view session) { return session_cookie(session, kStudentCookie, "/student"); }

// What was published is of the files that were judged last; a later version is not shown before its marks.
bool is_of(const SubmissionResult& result, const PublishedPage& page) {
  return result.inputs.files == page.row.digest &&
         std::none_of(page.row.marks.begin(), page.row.marks.end(),
                      [](const auto& mark) { return mark && mark->earlier_version; });
}

void add_marks(Figure& figure, const PublishedPage& page, const Rubric& rubric) {
  figure.blocks.push_back(NoteBlock{page.row.total() ? fmt::format("Total: {:g}", *page.row.total())
                                                     : "Not all criteria are marked yet."});
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i) {
    const auto& mark = page.row.marks[i];
    const Criterion& criterion = rubric.criteria[i];
    figure.blocks.push_back(HeadingBlock{fmt::format(
        "{}: {} of {}", criterion.title, mark ? fmt::format("{:g}", mark->points) : "-", criterion.weight)});
    if (!mark) continue;
    for (const std::string& line : split(mark->reason, '\n'))
      if (!trim(line).empty()) figure.blocks.push_back(NoteBlock{to_utf8(line)});
    if (mark->earlier_version)
      figure.blocks.push_back(NoteBlock{"This mark is for an earlier version.", Tone::kMuted});
  }
}

void add_comments(Figure& figure, const PublishedPage& page) {
  if (page.comments.empty()) return;
  TableBlock table{"Comments on lines", {{"File"}, {"Line", true}, {"Comment"}}, {}};
  for (const LineComment& each : page.comments)
    table.rows.push_back(
        {Cell{to_utf8(each.file)}, Cell{std::to_string(each.line)}, Cell{to_utf8(each.text)}});
  figure.blocks.push_back(table);
}

}  // namespace

void Desk::App::add_student_routes() {
  serve_file("/page.css", "page.css", "text/css");
  serve_file("/desk.css", "desk.css", "text/css");
  serve_file("/desk.js", "desk.js", "text/javascript");
  using StudentHandler = Result<void> (App::*)(const Request&, Response&);
  const auto handled = [this](StudentHandler handler) {
    return [this, handler](const Request& request, Response& response) {
      if (auto done = (this->*handler)(request, response); !done) {
        if (response.status < 400) response.status = 500;
        // The place of an error may name a folder of someone; students need only the words.
        response.set_content(done.error().what + ". " + done.error().hint + "\n",
                             "text/plain; charset=utf-8");
      }
    };
  };
  server_.Get("/", [](const Request&, Response& response) { redirect(response, "/student"); });
  server_.Get("/student", handled(&App::student_page));
  server_.Get("/student/verdict.json", handled(&App::student_verdict));
  server_.Post("/student/login", handled(&App::student_log_in));
  server_.Post("/student/logout", handled(&App::student_log_out));
}

Result<std::optional<Student>> Desk::App::student_of(const Request& request) {
  const std::string session = student_session(request);
  if (session.empty()) return std::nullopt;
  return students_.student_of_session(session);
}

Result<void> Desk::App::student_log_in(const Request& request, Response& response) {
  const Lock lock(mutex_);
  CAPSTONE_TRY(const auto session, students_.log_in(std::string(trim(field(request, "secret")))));
  if (!session) {
    response.status = 403;
    return fail("this token is not known", {}, "Ask your mentor for a new one.");
  }
  response.set_header("Set-Cookie", cookie(*session));
  redirect(response, "/student");
  return {};
}

Result<void> Desk::App::student_log_out(const Request& request, Response& response) {
  const std::string session = student_session(request);
  if (!same_secret(field(request, "token"), form_token(session))) {
    response.status = 403;
    return fail("the form is not of this session", {}, "Reload the page.");
  }
  const Lock lock(mutex_);
  CAPSTONE_CHECK(students_.log_out(session));
  response.set_header("Set-Cookie", cookie({}));
  redirect(response, "/student");
  return {};
}

Result<void> Desk::App::student_page(const Request& request, Response& response) {
  std::optional<Student> student;
  std::optional<PublishedPage> published;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(student, student_of(request));
    if (student) {
      CAPSTONE_TRY(published, students_.page_of(cohort_.rubric, *student));
    }
  }
  std::string body, body_class;
  bool verdict = false;
  if (!student) {
    CAPSTONE_TRY(body, student_login_body(templates_));
  } else {
    body_class = kView;
    Figure figure{"marks", "Your marks", {}};
    if (published) {
      figure.title = "Marks: " + to_utf8(published->row.problem + ", " + published->row.person.name);
      add_marks(figure, *published, cohort_.rubric);
      add_comments(figure, *published);
      const auto result = read_result(cohort_.folder_of(student->submission) / "result.json");
      if (result && is_of(*result, *published)) {
        add_judged(figure.blocks, Looked{}, *result);
        verdict = true;
      }
    } else {
      figure.blocks.push_back(NoteBlock{"Nothing is published yet."});
    }
    CAPSTONE_TRY(const std::string shown, templates_.expand(figure));
    CAPSTONE_TRY(body, student_body(templates_, form_token(student_session(request)), shown, verdict));
  }
  CAPSTONE_TRY(const std::string html, page(templates_, "Marks", nullptr, {}, body, body_class));
  response.set_content(html, "text/html; charset=utf-8");
  response.set_header("Content-Security-Policy", kPagePolicy);
  return {};
}

// The file that `capstone replay` reads, once the marks for this version are published.
Result<void> Desk::App::student_verdict(const Request& request, Response& response) {
  response.status = 404;
  fs::path folder;
  std::optional<PublishedPage> published;
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(const auto student, student_of(request));
    if (!student) return fail("you are not logged in", {}, "Open the address that you were sent.");
    CAPSTONE_TRY(published, students_.page_of(cohort_.rubric, *student));
    folder = cohort_.folder_of(student->submission);
  }
  if (!published) return fail("nothing is published yet", {}, "Come back later.");
  const auto result = read_result(folder / "result.json");
  const auto verdict = read_file(folder / "feedback" / "verdict.json", std::size_t{64} << 20);
  if (!result || !verdict || !is_of(*result, *published))
    return fail("there is no verdict of the published version", {}, "Ask your mentor.");
  response.status = 200;
  response.set_content(*verdict, "application/json");
  response.set_header("Content-Disposition", "attachment; filename=\"verdict.json\"");
  return {};
}

}  // namespace capstone::desk
