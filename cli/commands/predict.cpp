#include <fmt/format.h>

#include "cli/recording.h"
#include "cli/context.h"

namespace capstone::cli {
namespace {

struct PredictArguments {
  std::string bottleneck, because;
  double speedup = 0;
};

Result<ExitCode> predict(const Context& context, const PredictArguments& arguments) {
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  Prediction prediction;
  prediction.bottleneck = arguments.bottleneck;
  if (arguments.speedup > 0) prediction.speedup = arguments.speedup;
  prediction.because = arguments.because;
  prediction.before_first_measurement = ledger.human.empty() && ledger.llm.empty();
  CAPSTONE_TRY(std::string machine, chain_id(context));
  CAPSTONE_TRY(Record record, append_record(project.ledger(), "prediction", Json(prediction), machine));
  const Terminal& t = context.terminal;
  if (context.json) {
    t.out(Json(record).dump(2));
    return ExitCode::kDone;
  }
  t.out(fmt::format("predicted: {}-bound{}{}", prediction.bottleneck,
                    prediction.speedup ? fmt::format(", {:.3g}x", *prediction.speedup) : "",
                    prediction.before_first_measurement ? ", before the first measurement" : ""));
  if (!prediction.before_first_measurement)
    t.say("note: there are measurements already; the worklog will say that this prediction came after them");
  if (!project.problem.expect.empty()) t.out("what others expect: " + project.problem.expect);
  t.out("next: edit human/kernel.cu, then: capstone measure human -m \"first version\"");
  return ExitCode::kDone;
}

}  // namespace

void add_predict(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("predict", "write down what will bound the kernel, before measuring it");
  auto arguments = std::make_shared<PredictArguments>();
  command->add_option("bottleneck", arguments->bottleneck, "memory, compute or latency")
      ->required()
      ->check(CLI::IsMember({"memory", "compute", "latency"}));
  command->add_option("--speedup", arguments->speedup, "how much faster than the baseline your kernel will be")->check(CLI::PositiveNumber);
  command->add_option("--because", arguments->because, "why, with numbers: bytes, FLOPs, peaks");
  add_format(*command, context);
  command->callback([&context, &action, arguments] { action = [&context, arguments] { return predict(context, *arguments); }; });
}

}  // namespace capstone::cli
