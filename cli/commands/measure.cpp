#include "harness/workflows/measure.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "cli/context.h"
#include "cli/factor.h"
#include "cli/judge_flags.h"
#include "cli/shell_word.h"
#include "cli/show.h"
#include "cli/show_replay.h"
#include "harness/workflows/output_path.h"

namespace capstone::cli {
namespace {

using workflows::MeasureOutcome;
using workflows::MeasureRequest;
using workflows::Who;

struct MeasureArguments {
  std::string who = "human", bundle, from_bundle, out, replay, on, program = "capstone", gres = "gpu:1",
              expected;
  bool trust_problem = false;
  MeasureRequest request;
};

Result<std::optional<double>> parse_factor(const std::string& text) {
  if (text.empty()) return std::optional<double>();
  const std::string number = without_times_sign(text);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (!(value > 0) || *end)
    return fail("--expect takes a factor, not \"" + text + "\"", {}, "for example --expect 1.4x");
  return std::optional<double>(value);
}

Result<MeasureRequest> request_of(const MeasureArguments& arguments) {
  MeasureRequest request = arguments.request;
  request.who = arguments.who == "all"        ? Who::kAll
                : arguments.who == "llm"      ? Who::kLlm
                : arguments.who == "together" ? Who::kTogether
                                              : Who::kHuman;
  CAPSTONE_TRY(request.expected_speedup, parse_factor(arguments.expected));
  return request;
}

Result<ExitCode> show(const Context& context, const MeasureOutcome& outcome) {
  if (context.json)
    context.terminal.out(Json(outcome.measurements).dump(2));
  else
    print_verdict(outcome.measurements, next_step(outcome.measurements, outcome.ledger), context.terminal,
                  context.verbose);
  return workflows::exit_code_of(outcome.measurements);
}

Result<ExitCode> replay(const Context& context, const MeasureArguments& arguments) {
  if (arguments.who == "all")
    return fail("--replay takes one candidate", {}, "capstone measure human --replay CASE");
  CAPSTONE_TRY(const auto outcome,
               workflows::replay_last(arguments.who, arguments.replay, arguments.request.judge, context,
                                      context.progress()));
  return show_replay(context, outcome,
                     fmt::format("capstone measure {} --replay {}", arguments.who, arguments.replay));
}

Result<ExitCode> pack(const Context& context, const MeasureArguments& arguments) {
  CAPSTONE_TRY(const auto out, workflows::output_path(context, arguments.bundle, workflows::Output::kBundle));
  CAPSTONE_TRY(const MeasureRequest request, request_of(arguments));
  CAPSTONE_TRY(const BundleReceipt receipt,
               workflows::pack_project(request, out, context, context.progress()));
  const std::string name = receipt.file.filename().string();
  context.terminal.out(fmt::format("{} ({} bytes)", receipt.file.string(), receipt.bytes));
  context.terminal.out(
      fmt::format("next: on the machine with the GPU: capstone measure --from-bundle {0}; "
                  "bring {1} home; then: capstone ledger import {1}",
                  shell_word(name), shell_word(name + ".result.jsonl")));
  return ExitCode::kDone;
}

Result<ExitCode> judge_bundle(const Context& context, const MeasureArguments& arguments) {
  const std::string out = arguments.out.empty() ? arguments.from_bundle + ".result.jsonl" : arguments.out;
  workflows::JudgeBundleRequest request;
  CAPSTONE_TRY(request.out, workflows::output_path(context, out, workflows::Output::kRecords));
  request.file = context.cwd / arguments.from_bundle;
  request.judge = arguments.request.judge;
  request.trust_problem = arguments.trust_problem;
  CAPSTONE_TRY(const auto judged, workflows::judge_bundle(request, context, context.progress()));
  print_verdict(judged.measurements, {}, context.terminal, context.verbose);
  context.terminal.out(fmt::format("result: {}\nnext: in the project at home: capstone ledger import {}",
                                   judged.result.string(), shell_word(judged.result.filename().string())));
  return workflows::exit_code_of(judged.measurements);
}

Result<ExitCode> measure_remotely(const Context& context, const MeasureArguments& arguments) {
  CAPSTONE_TRY(workflows::Destination destination, workflows::parse_destination(arguments.on));
  destination.program = arguments.program;
  destination.gres = arguments.gres == "none" ? "" : arguments.gres;
  CAPSTONE_TRY(const MeasureRequest request, request_of(arguments));
  CAPSTONE_TRY(const MeasureOutcome outcome,
               workflows::measure_remotely(request, destination, arguments.on, context, context.progress()));
  return show(context, outcome);
}

Result<ExitCode> measure(const Context& context, const MeasureArguments& arguments) {
  if (!arguments.replay.empty()) return replay(context, arguments);
  if (!arguments.bundle.empty()) return pack(context, arguments);
  if (!arguments.from_bundle.empty()) return judge_bundle(context, arguments);
  if (!arguments.on.empty()) return measure_remotely(context, arguments);
  CAPSTONE_TRY(const MeasureRequest request, request_of(arguments));
  CAPSTONE_TRY(const MeasureOutcome outcome, workflows::measure(request, context, context.progress()));
  return show(context, outcome);
}

}  // namespace

void add_measure(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("measure", "judge the kernel: is it correct, and is it faster than the baseline?");
  auto a = std::make_shared<MeasureArguments>();
  command
      ->add_option(
          "who", a->who,
          "human (default), llm, together (the kernel that you and the model make with each other), or all")
      ->check(CLI::IsMember({"human", "llm", "together", "all"}));
  command->add_option("-m,--message", a->request.reason, "why this version");
  command->add_option("--expect", a->expected, "the speedup that you expect of this version: 1.4x");
  auto* bundle = command->add_option("--bundle", a->bundle, "pack the project for another machine into FILE");
  auto* from = command->add_option("--from-bundle", a->from_bundle, "judge a packed project on this machine");
  bundle->excludes(from);
  command->add_option("--out", a->out, "with --from-bundle: the result file (default FILE.result.jsonl)")
      ->needs(from);
  command
      ->add_flag("--trust-problem", a->trust_problem,
                 "with --from-bundle: accept a problem definition that is not the catalogue's; "
                 "on a GPU its baseline and reference run outside the sandbox")
      ->needs(from);
  auto* on =
      command
          ->add_option(
              "--on", a->on,
              "judge on another machine and bring the result home: ssh:HOST, or slurm:PARTITION from a "
              "login node; if interrupted, rerun to resume")
          ->type_name("PLACE")
          ->excludes(bundle)
          ->excludes(from);
  command
      ->add_option("--program", a->program,
                   "with --on ssh: remote capstone path (default: capstone, on its PATH)")
      ->needs(on);
  command->add_option("--gres", a->gres, "with --on slurm: what the job needs (default gpu:1; none: nothing)")
      ->needs(on);
  command
      ->add_option(
          "--replay", a->replay,
          "run one case of the last measurement again (check-0, hidden-1, x10 …); nothing is recorded")
      ->type_name("CASE")
      ->excludes(bundle)
      ->excludes(from)
      ->excludes(on);
  add_judge_options(*command, a->request.judge);
  add_format(*command, context);
  command->callback([&context, &action, a] { action = [&context, a] { return measure(context, *a); }; });
}

}  // namespace capstone::cli
