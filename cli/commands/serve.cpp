// `serve`: marking in the browser.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "harness/desk/desk.h"

namespace capstone::cli {
namespace {

struct ServeArguments {
  std::string cohort = "graded";
  desk::DeskOptions desk;
};

Result<ExitCode> serve(const Context& context, const ServeArguments& arguments) {
  CAPSTONE_TRY(desk::Desk opened, desk::Desk::open(context, arguments.cohort, arguments.desk));
  const Terminal& t = context.terminal;
  const bool students = arguments.desk.students;
  t.out(fmt::format("http://{}:{}/{}", arguments.desk.host, opened.port(), students ? "student" : "login"));
  t.say(students ? "students log in with the addresses of `capstone gradebook tokens`; Ctrl-C ends the server"
                 : "log in with a token of `capstone grader add`; Ctrl-C ends the server");
  if (arguments.desk.host != "127.0.0.1" && arguments.desk.host != "localhost")
    t.say(
        "note: tokens and marks cross the network unencrypted: put a proxy with TLS in front, or use an ssh "
        "tunnel");
  CAPSTONE_CHECK(opened.run());
  return ExitCode::kDone;
}

}  // namespace

void add_serve(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("serve", "for mentors: mark a cohort in the browser, several graders at once");
  auto a = std::make_shared<ServeArguments>();
  command->add_option("cohort", a->cohort, "the folder that `grade --out` made (default graded/)");
  command->add_option("--bind", a->desk.host,
                      "the address to listen on (default 127.0.0.1: only this machine)");
  command->add_option("--port", a->desk.port, "the port (default 8040; 0: any free one)")
      ->check(CLI::Range(0, 65535));
  command->add_option("--name", a->desk.names,
                      "a host name under which browsers reach it, for example behind a proxy");
  auto* names = command->add_flag("--names", a->desk.show_names,
                                  "show the students' names (default: codes, and texts without names)");
  command
      ->add_flag("--students", a->desk.students,
                 "serve students instead: each sees, with a token of `gradebook tokens`, what was published "
                 "for them, and no page of the graders exists")
      ->excludes(names);
  command->callback([&context, &action, a] { action = [&context, a] { return serve(context, *a); }; });
}

}  // namespace capstone::cli
