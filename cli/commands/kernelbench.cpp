// `capstone kernelbench run`: a folder of candidates against a folder of KernelBench's problems.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "harness/workflows/kernelbench_run.h"

namespace capstone::cli {
namespace {

using workflows::JudgedSample;
using workflows::KernelBenchOutcome;
using workflows::KernelBenchRequest;

std::string line_of(const SuiteSample& sample, const JudgedSample& judged) {
  std::string text =
      fmt::format("{}/{} sample {}: ", sample.problem.level, sample.problem.name, sample.number);
  if (!judged.measurement) return text + "not judged: " + judged.refused;
  const Measurement& m = *judged.measurement;
  text += label_of(m.gate_one);
  if (m.measured && m.measured->speedup && m.backend == Backend::kCuda)
    text += fmt::format(", {:.2f}x, {}", m.measured->speedup->point, label_of(m.gate_two));
  if (const CaseResult* bad = m.first_failure())
    text += ": " + bad->problem;
  else if (m.build.first_error)
    text += ": " + m.build.first_error->text;
  return text;
}

Json json_of(const KernelBenchOutcome& o) {
  Json points = Json::array();
  for (const FastPoint& point : o.fast)
    points.push_back({{"p", point.p},
                      {"hits", point.hits},
                      {"problems", point.problems},
                      {"share", point.share.point},
                      {"resolved", point.resolved}});
  return {{"samples", o.judged.size()}, {"compiled", o.compiled},
          {"correct", o.correct},       {"timed", o.timed},
          {"not_judged", o.refused},    {"unmatched", o.suite.unmatched.size()},
          {"fast_p", points},           {"results", o.results.string()}};
}

void print(const KernelBenchOutcome& o, const Terminal& t) {
  t.out(fmt::format("compiled   {0} of {3} samples\ncorrect    {1} of {3}\ntimed      {2} of {3}", o.compiled,
                    o.correct, o.timed, o.judged.size()));
  std::string text;
  for (const FastPoint& point : o.fast)
    text += fmt::format(
        "fast_{:g}     {} of {} ({:.1f} %){}\n", point.p, point.hits, point.problems, 100 * point.share.point,
        point.p > 0 ? fmt::format("; {} with their whole interval above", point.resolved) : "");
  t.out(text +
        fmt::format(
            "The best sample of each problem counts, strictly faster than p; wrong and missing ones stay in "
            "the {} problems.",
            o.suite.problems.size()));
  if (o.refused) t.out(fmt::format("not judged: {} (above, and in {})", o.refused, o.records.string()));
  t.out("results: " + o.results.string());
}

Result<ExitCode> run(const Context& context, const KernelBenchRequest& request) {
  workflows::KernelBenchEvents events;
  events.progress = context.progress();
  events.judged = [&](std::size_t number, std::size_t all, const SuiteSample& sample,
                      const JudgedSample& judged) {
    context.terminal.say(fmt::format("{} of {}: {}", number, all, line_of(sample, judged)));
  };
  CAPSTONE_TRY(const KernelBenchOutcome outcome, workflows::run_kernelbench(request, context, events));
  if (context.json)
    context.terminal.out(json_of(outcome).dump(2));
  else
    print(outcome, context.terminal);
  return outcome.refused ? ExitCode::kPartlyUngraded : ExitCode::kDone;
}

}  // namespace

void add_kernelbench(CLI::App& app, Context& context, Action& action) {
  auto* group =
      app.add_subcommand("kernelbench", "judge a folder of candidates against KernelBench's problems");
  group->require_subcommand(1);
  auto* command =
      group->add_subcommand("run",
                            "report compiled, correct, fast_0, fast_1 and fast_2; resumable: samples "
                            "that were judged before are not judged again");
  auto r = std::make_shared<KernelBenchRequest>();
  command
      ->add_option("--problems", r->problems,
                   "folder with problems: level1/19_ReLU.py, or the files themselves")
      ->required()
      ->type_name("DIR");
  auto* solutions =
      command
          ->add_option("--solutions", r->solutions,
                       "folder with candidates: level_1_problem_19_sample_0_kernel.py, or 19_ReLU.py")
          ->type_name("DIR");
  auto* self = command->add_flag(
      "--self", r->self, "judge a copy of each problem's reference: it must be correct, and TIE on a GPU");
  self->excludes(solutions);
  command->add_option("--level", r->level, "only this level")->check(CLI::Range(1, 3));
  command
      ->add_option("--out", r->out,
                   "folder for definitions, records and eval_results.json (default kernelbench-results)")
      ->type_name("DIR");
  command->add_flag("--again", r->again, "also judge samples that were judged before");
  add_memory_option(*command, r->memory_gb);
  add_judge_options(*command, r->judge);
  add_format(*command, context);
  command->callback([&context, &action, r] { action = [&context, r] { return run(context, *r); }; });
}

}  // namespace capstone::cli
