#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/program_options.h"
#include "cli/show_explanation.h"
#include "harness/workflows/explain_kernel.h"

namespace capstone::cli {
namespace {

struct Asked {
  workflows::ExplainKernelRequest kernel;
  workflows::ExplainProgramRequest program;
};

Result<Explanation> explain(const Context& context, Asked asked) {
  workflows::ExplainKernelRequest& kernel = asked.kernel;
  const std::filesystem::path file = context.cwd / kernel.what;
  const bool of_a_problem = !kernel.problem.empty() || !kernel.size.empty() || !kernel.device.empty();
  if (!of_a_problem && workflows::is_program(file)) {
    asked.program.program.source = file;
    asked.program.html = kernel.html;
    return workflows::explain_program(asked.program, context, context.progress(),
                                      [&](const std::string& text) { context.terminal.say(text); });
  }
  if (!asked.program.program.arguments.empty())
    return fail("only a program with a main() takes arguments", kernel.what,
                "name a .cu with a main(), without --problem, --size and --on", ExitCode::kUsage);
  return workflows::explain_kernel(kernel, context, context.progress());
}

Result<ExitCode> run(const Context& context, const Asked& asked) {
  CAPSTONE_TRY(const Explanation e, explain(context, asked));
  const workflows::ExplainKernelRequest& request = asked.kernel;
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
  auto asked = std::make_shared<Asked>();
  workflows::ExplainKernelRequest* const r = &asked->kernel;
  command->add_option(
      "what", r->what,
      "human (default), llm, a .cu file, or a reference kernel by number or name; without --problem "
      "a .cu with a main() is explained as a whole program");
  command->add_option("arguments", asked->program.program.arguments, "for the program's main(), after --");
  command->add_option("--problem", r->problem, "the problem that the file solves (default: the project's)");
  command->add_option("--size", r->size, "rows=64,cols=512 (default: the problem's emulate size)");
  command->add_option("--on", r->device, "a GPU, for a modelled lower bound on time: h100, a100, 4090 …");
  command->add_option("--html", r->html, "write the whole source as a heat map to FILE");
  add_program_options(*command, asked->program.program);
  add_format(*command, context);
  command->callback(
      [&context, &action, asked] { action = [&context, asked] { return run(context, *asked); }; });
}

}  // namespace capstone::cli
