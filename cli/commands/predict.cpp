#include "harness/workflows/predict.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/factor.h"

namespace capstone::cli {
namespace {

Result<ExitCode> predict(const Context& context, workflows::PredictRequest request) {
  if (request.speedup && *request.speedup <= 0) request.speedup.reset();
  CAPSTONE_TRY(const auto outcome, workflows::predict(request, context));
  const Prediction& prediction = outcome.prediction;
  const Terminal& t = context.terminal;
  if (context.json) {
    t.out(Json(outcome.record).dump(2));
    return ExitCode::kDone;
  }
  t.out(fmt::format("predicted: {}-bound{}{}", prediction.bottleneck,
                    prediction.speedup ? fmt::format(", {:.3g}x", *prediction.speedup) : "",
                    prediction.before_first_measurement ? ", before the first measurement" : ""));
  if (!prediction.before_first_measurement)
    t.say("note: there are measurements already; the worklog will say that this prediction came after them");
  if (!outcome.expected.empty()) t.out("what others expect: " + outcome.expected);
  t.out("next: edit human/kernel.cu, then: capstone measure human -m \"first version\"");
  return ExitCode::kDone;
}

}  // namespace

void add_predict(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("predict", "write down what will bound the kernel, before you measure it");
  auto request = std::make_shared<workflows::PredictRequest>();
  command->add_option("bottleneck", request->bottleneck, "memory, compute or latency")
      ->required()
      ->check(CLI::IsMember({"memory", "compute", "latency"}));
  command
      ->add_option("--speedup", request->speedup,
                   "how many times faster than the baseline your kernel will be: 2x")
      ->transform(without_times_sign)
      ->check(CLI::PositiveNumber);
  command->add_option("--because", request->because, "why, with numbers: bytes, FLOPs, peaks");
  add_format(*command, context);
  command->callback(
      [&context, &action, request] { action = [&context, request] { return predict(context, *request); }; });
}

}  // namespace capstone::cli
