#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cli/context.h"
#include "cli/open_points.h"
#include "harness/base/text.h"
#include "harness/workflows/live_report.h"
#include "harness/workflows/report.h"

namespace capstone::cli {
namespace {

constexpr int kUsualPort = 8642;

struct OpenArguments {
  bool serve = false, no_browser = false;
  std::optional<int> port;
};

void show_in_browser(const Context& context, const std::string& target) {
  if (const auto opened = workflows::open_in_browser(target, context.desktop, context); !opened)
    context.terminal.say(one_line(opened.error().what) + "\n  hint: " + opened.error().hint);
}

Result<ExitCode> open_files(const Context& context, const OpenArguments& arguments) {
  CAPSTONE_TRY(const auto current, workflows::current_report(context));
  if (current.rendered) context.terminal.say("rendered: the report was missing or older than its sources");
  context.terminal.out(current.page.string());
  if (!arguments.no_browser) show_in_browser(context, current.page.string());
  return ExitCode::kDone;
}

void show_rendering(const Context& context, const workflows::LiveRendering& rendering) {
  const Terminal& t = context.terminal;
  if (rendering.problem)
    t.out(fmt::format("{} {}", clock_time(), trim(render(*rendering.problem))));
  else
    t.out(fmt::format("{} rendered in {:.1f} s; {}", clock_time(), rendering.seconds,
                      open_points_line(rendering.findings)));
}

Result<ExitCode> serve(const Context& context, const OpenArguments& arguments) {
  const int wanted = arguments.port.value_or(kUsualPort);
  CAPSTONE_CHECK(workflows::serve_report(
      wanted, context,
      [&](const std::string& url, int port) {
        if (wanted != 0 && port != wanted)
          context.terminal.say(fmt::format("port {} is taken: this is {}", wanted, port));
        context.terminal.out(url);
        context.terminal.say("the page follows worklog.md, the ledger and the kernels; Ctrl-C ends");
        if (!arguments.no_browser) show_in_browser(context, url);
      },
      [&](const workflows::LiveRendering& rendering) { show_rendering(context, rendering); }));
  return ExitCode::kDone;
}

}  // namespace

void add_open(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("open", "show the report in a browser; --serve: the page follows what you write");
  auto a = std::make_shared<OpenArguments>();
  auto* serves = command->add_flag(
      "--serve", a->serve, "serve it on 127.0.0.1 and reload it after every save; report/ stays as it is");
  command->add_option("--port", a->port, fmt::format("where to listen (default {}; 0: any)", kUsualPort))
      ->check(CLI::Range(0, 65535))
      ->needs(serves);
  command->add_flag("--no-browser", a->no_browser, "only say where the page is");
  command->callback([&context, &action, a] {
    action = [&context, a] { return a->serve ? serve(context, *a) : open_files(context, *a); };
  });
}

}  // namespace capstone::cli
