#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/show_explanation.h"
#include "harness/workflows/explain_kernel.h"

namespace capstone::cli {
namespace {

Result<ExitCode> run(const Context& context, const workflows::ExplainKernelRequest& request) {
  CAPSTONE_TRY(const Explanation e, workflows::explain_kernel(request, context, context.progress()));
  context.terminal.out(context.json ? Json(e).dump(2) : explanation_text(e, context.terminal));
  if (!context.json && !request.html.empty())
    context.terminal.out("heat map: " + (context.cwd / request.html).string());
  return ExitCode::kDone;
}

}  // namespace

void add_explain(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("explain",
                         "count on the CPU what each line of a kernel costs: sectors, bank conflicts, lanes, "
                         "FLOPs; no verdict");
  auto r = std::make_shared<workflows::ExplainKernelRequest>();
  command->add_option("what", r->what,
                      "human (default), llm, a .cu file, or a reference kernel by number or name");
  command->add_option("--problem", r->problem, "the problem that the file solves (default: the project's)");
  command->add_option("--size", r->size, "rows=64,cols=512 (default: the problem's emulate size)");
  command->add_option("--on", r->device, "a GPU, for a modelled lower bound on time: h100, a100, 4090 …");
  command->add_option("--html", r->html, "write the whole source as a heat map to FILE");
  add_format(*command, context);
  command->callback([&context, &action, r] { action = [&context, r] { return run(context, *r); }; });
}

}  // namespace capstone::cli
