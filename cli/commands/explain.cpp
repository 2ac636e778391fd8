#include "harness/analysis/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/candidates.h"
#include "cli/output_path.h"
#include "cli/results.h"
#include "cli/context.h"
#include "cli/sizes.h"
#include "cli/show_explanation.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "templates/explanation_page.h"

namespace capstone::cli {
namespace {

struct ExplainArguments {
  std::string what = "human", problem, size, device, html;
};

// What the emulator's hooks can hold.
Result<Sizes> observable_sizes(const Problem& problem, const std::string& text) {
  CAPSTONE_TRY(Sizes sizes, parse_sizes(problem, problem.emulate, text));
  constexpr double kMostFlops = 2e9, kMostBytes = 1e8;   // about a minute; each byte has eight of shadow
  CAPSTONE_TRY(Cost cost, cost_at(problem, sizes));
  if (cost.flops > kMostFlops || cost.bytes > kMostBytes)
    return fail("too large to be observed on the CPU: " + to_string(sizes), problem.id, "counts per request do not depend on the size: take a smaller one");
  return sizes;
}

Result<ExitCode> run(const Context& context, const ExplainArguments& arguments) {
  CAPSTONE_TRY(Subject subject, subject_of(context, arguments.what, arguments.problem, "capstone explain {0} --problem {1}"));
  ExplainRequest request{&subject.problem, subject.source, {}, {}};
  CAPSTONE_TRY(request.sizes, observable_sizes(subject.problem, arguments.size));
  if (!arguments.device.empty()) {
    CAPSTONE_TRY(request.device, find_device_like(arguments.device));
  }
  CAPSTONE_TRY(std::string digest, sha256_file(subject.source));
  if (!arguments.html.empty()) {
    CAPSTONE_TRY(const fs::path page, output_path(context, arguments.html, Output::kPage));
    CAPSTONE_CHECK(expect_writable(page));
  }
  CAPSTONE_TRY(Explanation e, explain(request, context.resources, [&](const std::string& text) { context.terminal.progress(text); }));
  context.terminal.end_progress();
  e.candidate = subject.candidate;
  e.source_sha256 = digest;
  std::error_code code;
  e.source = subject.project ? fs::relative(subject.source, subject.project->root, code).string() : subject.source.filename().string();
  if (subject.project) CAPSTONE_CHECK(keep_findings(context, subject, digest, [&](const std::string& version) {
      e.version = version;
      return FoundRecord{"explanation", Json(e)};
    }));
  if (!arguments.html.empty()) {
    CAPSTONE_TRY(std::string page, explanation_page(e, subject.source, context.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(context.cwd / arguments.html, page));
  }
  context.terminal.out(context.json ? Json(e).dump(2) : explanation_text(e, context.terminal));
  if (!context.json && !arguments.html.empty()) context.terminal.out("heat-map: " + (context.cwd / arguments.html).string());
  return ExitCode::kDone;
}

}  // namespace

void add_explain(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("explain", "what each line of a kernel costs, counted on the CPU: sectors, bank conflicts, lanes, FLOPs; judges nothing");
  auto arguments = std::make_shared<ExplainArguments>();
  command->add_option("what", arguments->what, "human (default), llm, a .cu file, or a reference kernel by number or name");
  command->add_option("--problem", arguments->problem, "the problem that the file solves (default: the project's)");
  command->add_option("--size", arguments->size, "rows=64,cols=512 (default: the problem's emulate size)");
  command->add_option("--on", arguments->device, "a GPU, for a modelled lower bound on time: h100, a100, 4090 …");
  command->add_option("--html", arguments->html, "write the whole source as a heat-map into FILE");
  add_format(*command, context);
  command->callback([&context, &action, arguments] { action = [&context, arguments] { return run(context, *arguments); }; });
}

}  // namespace capstone::cli
