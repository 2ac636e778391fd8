// `capstone fast-p`: how many problems were solved correctly and more than p times as fast; and pass@k.
#include "harness/analysis/fast_p.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/project/ledger/ledger.h"
#include "harness/workflows/output_path.h"

namespace capstone::cli {
namespace {

struct FastPArguments {
  std::vector<std::string> files;
  std::string baseline, svg;
  std::vector<int> k{1};
};
using Groups = std::map<std::string, std::vector<Solution>>;  // whose solutions: "human", "llm", the name of
                                                              // a results file

Solution solution_of(const Measurement& m) {
  Solution solution{m.problem_id, m.gate_one == GateOne::kPassed, {}};
  if (m.measured && m.backend == Backend::kCuda) solution.speedup = m.measured->speedup;
  return solution;
}

Result<void> add_ledger(const fs::path& file, Groups& groups) {
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(file));
  for (const char* who : {"human", "llm"})
    for (const Measurement* m : ledger.versions(who)) groups[who].push_back(solution_of(*m));
  // An attempt without code solved nothing, but it was one.
  std::string problem;
  for (const Record& record : ledger.records)
    if (problem.empty() && record.body.is_object() && record.body.value("problem_id", Json()).is_string())
      problem = record.body["problem_id"];
  for (const Attempt& attempt : ledger.attempts)
    if (!attempt.no_code_because.empty()) groups["llm"].push_back({problem, false, {}});
  return {};
}

Result<Json> read_json(const fs::path& file) {
  CAPSTONE_TRY(const std::string text, read_file(file, std::size_t{256} << 20));
  Json json = parse_json(text);
  if (json.is_discarded())
    return fail("not JSON", file.string(), "a ledger ends in .jsonl, a results file in .json");
  return json;
}

Result<Groups> read_all(const Context& context, const FastPArguments& arguments) {
  Json baseline;
  if (!arguments.baseline.empty()) {
    CAPSTONE_TRY(baseline, read_json(context.cwd / arguments.baseline));
  }
  Groups groups;
  for (const std::string& name : arguments.files) {
    const fs::path file = context.cwd / name;
    std::error_code code;
    if (fs::is_directory(file, code)) {
      CAPSTONE_CHECK(add_ledger(file / ".capstone" / "ledger.jsonl", groups));
    } else if (file.extension() == ".jsonl") {
      CAPSTONE_CHECK(add_ledger(file, groups));
    } else {
      CAPSTONE_TRY(const Json results, read_json(file));
      auto solutions = read_eval_results(results, baseline);
      if (!solutions)
        return fail(solutions.error().what, file.string(), "the form of KernelBench's eval_results.json");
      auto& group = groups[file.stem().string()];
      group.insert(group.end(), solutions->begin(), solutions->end());
    }
  }
  return groups;
}

// Whether any correct sample has a speedup. Without one, nothing is known about speed: no GPU was used.
bool is_judged(const std::vector<Solution>& solutions) {
  return std::any_of(solutions.begin(), solutions.end(),
                     [](const Solution& s) { return s.correct && s.speedup.has_value(); });
}
bool has_correct(const std::vector<Solution>& solutions) {
  return std::any_of(solutions.begin(), solutions.end(), [](const Solution& s) { return s.correct; });
}

// The whole curve, 0 to 4, drawn by gnuplot. Names of groups travel as data.
Result<void> draw(const Context& context, const Groups& groups, const fs::path& file) {
  std::string data, plots;
  int index = 0;
  for (const auto& [who, solutions] : groups) {
    if (has_correct(solutions) && !is_judged(solutions)) continue;
    std::string name;
    for (char c : who) name += std::isalnum(static_cast<unsigned char>(c)) || c == ' ' || c == '-' ? c : '_';
    data += name + "\n";
    for (int i = 0; i <= 400; ++i) {
      const FastPoint point = fast_p(solutions, i / 100.0);
      data += fmt::format("{}\t{}\t{}\t{}\n", point.p, point.share.point, point.share.low, point.share.high);
    }
    data += "\n\n";
    plots += fmt::format(
        "{0}'-' index {1} using 1:3:4 with filledcurves fs transparent solid 0.15 lt {2} notitle, '-' index "
        "{1} using 1:2 with steps lw 2 lt {2} title columnheader(1)",
        index ? ", " : "", index, index + 1);
    ++index;
  }
  if (index == 0)
    return fail("not judged: no sample was timed on a GPU, so there is no curve", file.string(),
                "measure on a machine with a GPU, or leave --svg out", ExitCode::kEnvironment);
  const fs::path points = fs::path(file.string() + ".points");
  CAPSTONE_CHECK(write_file_atomic(points, data));
  ProcessSpec spec;
  spec.argv = {"gnuplot"};
  spec.cwd = file.parent_path().empty() ? context.cwd : file.parent_path();
  spec.timeout = std::chrono::seconds(30);
  spec.input =
      "set encoding utf8\nset datafile separator tab\nset terminal svg size 720,420 dynamic noenhanced font "
      "'sans-serif,13' background rgb 'white'\n"
      "set output 'curve.tmp.svg'\nset border 3\nset tics nomirror\nset grid ytics lt 1 lc rgb "
      "'#dddddd'\nset xrange [0:4]\nset yrange [0:1]\n"
      "set xlabel 'p: times as fast as the reference'\nset ylabel 'share of problems, right and faster than "
      "p'\nplot " +
      replace_all(plots, "'-'", "'" + points.filename().string() + "'") + "\n";
  auto drawn = run_process(spec);
  std::error_code code;
  fs::remove(points, code);
  if (!drawn || !drawn->ok())
    return fail(
        "gnuplot could not draw the curve" + (drawn ? ": " + std::string(trim(drawn->err)) : std::string()),
        file.string(), "apt install gnuplot-nox", ExitCode::kEnvironment);
  fs::rename(spec.cwd / "curve.tmp.svg", file, code);
  if (code) return fail("cannot keep the curve: " + code.message(), file.string());
  return {};
}

Result<ExitCode> curve(const Context& context, const FastPArguments& arguments) {
  if (!arguments.svg.empty())
    CAPSTONE_CHECK(workflows::output_path(context, arguments.svg, workflows::Output::kCurve));
  CAPSTONE_TRY(const Groups groups, read_all(context, arguments));
  const Terminal& t = context.terminal;
  Json all = Json::object();
  for (const auto& [who, solutions] : groups) {
    if (solutions.empty()) continue;
    Table table({"p", "right and faster", "share", "95 % band", "whole interval above p"});
    Json points = Json::array(), passes = Json::array();
    int problems = 0;
    const bool judged = is_judged(solutions) || !has_correct(solutions);
    for (double p : {0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0}) {
      const FastPoint point = fast_p(solutions, p);
      problems = point.problems;
      if (p > 0 && !judged) {
        points.push_back({{"p", p}, {"problems", point.problems}, {"judged", false}});
        continue;
      }
      table.row({fmt::format("{:g}", p), fmt::format("{} of {}", point.hits, point.problems),
                 fmt::format("{:.1f} %", 100 * point.share.point),
                 fmt::format("{:.1f} to {:.1f} %", 100 * point.share.low, 100 * point.share.high),
                 std::to_string(point.resolved)});
      points.push_back({{"p", p},
                        {"hits", point.hits},
                        {"problems", point.problems},
                        {"share", {point.share.point, point.share.low, point.share.high}},
                        {"resolved", point.resolved}});
    }
    std::string said;
    for (int k : arguments.k) {
      const PassAtK pass = pass_at_k(solutions, k);
      if (pass.problems)
        said += fmt::format(
            "\npass@{}: {:.1f} % (unbiased; problems with at least {} samples: {}); 1 - (1 - p)^{}: {:.1f} %",
            k, 100 * pass.unbiased, k, pass.problems, k, 100 * pass.board);
      else
        said += fmt::format("\npass@{}: no problem has {} samples", k, k);
      passes.push_back(
          {{"k", k}, {"problems", pass.problems}, {"unbiased", pass.unbiased}, {"board", pass.board}});
    }
    if (context.json)
      all[who] = {
          {"problems", problems}, {"samples", solutions.size()}, {"fast_p", points}, {"pass_at_k", passes}};
    else
      t.out(t.paint(Tone::kBold, fmt::format("{}: {} problem{}, {} sample{}; the best of each problem counts",
                                             who, problems, problems == 1 ? "" : "s", solutions.size(),
                                             solutions.size() == 1 ? "" : "s")) +
            "\n" + table.text(t) +
            (judged ? "" : "\nfaster than p: not judged, because no sample was timed on a GPU") + said +
            "\n");
  }
  if (context.json) t.out(all.dump(2));
  if (!arguments.svg.empty()) {
    CAPSTONE_CHECK(draw(context, groups, context.cwd / arguments.svg));
    if (!context.json) t.out("curve: " + (context.cwd / arguments.svg).string());
  }
  return ExitCode::kDone;
}

}  // namespace

void add_fast_p(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "fast-p", "over many problems: how many were solved correctly and p times as fast; pass@k");
  auto arguments = std::make_shared<FastPArguments>();
  command
      ->add_option("results", arguments->files,
                   "projects, ledgers (.jsonl), or KernelBench results (eval_results.json)")
      ->required();
  command->add_option("--baseline", arguments->baseline,
                      "times of the reference for KernelBench results, in milliseconds");
  command->add_option("--svg", arguments->svg, "draw the curve from 0 to 4 into this file");
  command->add_option("-k", arguments->k, "for pass@k: 1 5 10")->check(CLI::Range(1, 1000000));
  add_format(*command, context);
  command->callback([&context, &action, arguments] {
    action = [&context, arguments] { return curve(context, *arguments); };
  });
}

}  // namespace capstone::cli
