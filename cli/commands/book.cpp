// `capstone book`: the ladder book, a static site with a page for each rung.
#include "harness/workflows/book.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"

namespace capstone::cli {
namespace {

Result<ExitCode> book(const Context& context, const workflows::BookRequest& request) {
  const Terminal& t = context.terminal;
  const auto written = workflows::write_book(request, context,
                                             [&](const workflows::Progress& step) { t.progress(step.text); });
  t.end_progress();
  if (!written) return tl::unexpected(written.error());
  for (const std::string& note : written->notes) t.say(note);
  t.out(fmt::format("the book: {} (rungs: {}, ladders: {})", written->index.string(), written->rungs,
                    written->ladders));
  return ExitCode::kDone;
}

}  // namespace

void add_book(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "book", "the ladder book: a site with a page for each rung: idea, code, what is new in it, times");
  auto request = std::make_shared<workflows::BookRequest>();
  command->add_option("folder", request->folder, "where to write it: a new folder, or an earlier book")
      ->required();
  command->add_option("--problem", request->problems, "only these ladders: sgemm, gemm_languages …")
      ->option_text("ID…");
  command->add_flag("--counts", request->counts, "also count on the CPU what each line costs (minutes)");
  command->callback(
      [&context, &action, request] { action = [&context, request] { return book(context, *request); }; });
}

}  // namespace capstone::cli
