// `capstone syllabus`, also called `map`: the course as a road, and the mentor's sheet of one session.
#include "harness/workflows/syllabus.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/course.h"
#include "cli/demos.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/results.h"

namespace capstone::cli {
namespace {

struct SyllabusArguments {
  std::string session, html;
  bool week = false;
};

Result<SessionSheet> sheet_of(const CourseSession& session, const SheetSources& sources,
                              const Context& context) {
  CAPSTONE_TRY(SessionSheet sheet, session_sheet(session, sources, context.resources));
  for (const Demo& one : demos())
    if (one.session == session.id && sheet.plan.demo.run != std::string("capstone demo ") + one.name)
      sheet.more_demos.emplace_back(one.name);
  return sheet;
}

Result<ExitCode> write_page(const Context& context, const Course& course,
                            const std::vector<CourseSession>& sessions, const std::string& file) {
  CAPSTONE_TRY(const auto target, workflows::output_path(context, file, workflows::Output::kPage));
  CAPSTONE_CHECK(workflows::expect_writable(target));
  CAPSTONE_TRY(const SheetSources sources, sheet_sources(context.resources));
  std::vector<SessionSheet> sheets;
  for (const CourseSession& session : sessions) {
    CAPSTONE_TRY(SessionSheet sheet, sheet_of(session, sources, context));
    sheets.push_back(std::move(sheet));
  }
  CAPSTONE_TRY(const auto page, workflows::write_syllabus_page(course, sheets, file, context));
  context.terminal.say(fmt::format("{}: {}", sheets.size() == 1 ? "the sheet" : "all sheets", page.string()));
  return ExitCode::kDone;
}

Result<ExitCode> syllabus(const Context& context, const SyllabusArguments& arguments) {
  const Terminal& t = context.terminal;
  CAPSTONE_TRY(const Course course, load_course(context.resources.reference_kernels()));
  std::vector<CourseSession> chosen = course.sessions;
  if (!arguments.session.empty()) {
    CAPSTONE_TRY(CourseSession session, find_session(course, arguments.session));
    chosen = {std::move(session)};
  }
  if (!arguments.html.empty()) return write_page(context, course, chosen, arguments.html);
  const std::string here = arguments.session.empty() ? "" : chosen.front().id;
  if (arguments.week) {
    t.out(weeks_text(course, here, t));
  } else if (here.empty()) {
    t.out(syllabus_text(course, here, t));
    t.out("\nnext: capstone syllabus SESSION");
  } else {
    CAPSTONE_TRY(const SheetSources sources, sheet_sources(context.resources));
    CAPSTONE_TRY(const SessionSheet sheet, sheet_of(chosen.front(), sources, context));
    t.out(sheet_text(course, sheet, t));
    t.out("\nnext: " + sheet.plan.demo.run);
  }
  return ExitCode::kDone;
}

}  // namespace

void add_syllabus(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "syllabus", "the course as a road; with a session: a mentor's sheet of it, minutes to numbers");
  command->alias("map");
  auto a = std::make_shared<SyllabusArguments>();
  command->add_option("session", a->session, "L1 … L8, W1 … W6: the sheet of this session");
  auto* week = command->add_flag("--week", a->week, "the road week by week: behind us, HERE, ahead");
  command
      ->add_option("--html", a->html,
                   "write the sheets of all sessions, or of the one, as a self-contained page")
      ->option_text("FILE")
      ->excludes(week);
  command->callback([&context, &action, a] { action = [&context, a] { return syllabus(context, *a); }; });
}

}  // namespace capstone::cli
