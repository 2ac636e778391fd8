// `capstone ladder`: all rungs of a problem in one interleaved run, drawn as a staircase; or as it was recorded on another machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/rungs.h"
#include "cli/session.h"
#include "cli/sizes.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/ladder/ladder.h"

namespace capstone::cli {
namespace {

struct LadderArguments {
  std::string problem, session, size, recorded, record;
  std::vector<std::string> only;
  Backend backend = Backend::kAuto;
  double budget = 2;
};

// The time as a bar: a tenth of the slowest is a tenth of the width. Naive rungs are hundreds of times slower, hence the logarithm.
std::string bar(double ms, double slowest, double fastest) {
  constexpr int kCells = 20;
  const double span = std::max(1.0, std::log2(slowest / fastest));
  const int cells = 1 + static_cast<int>(std::lround((kCells - 1) * std::log2(ms / fastest) / span));
  std::string text;
  for (int i = 0; i < cells; ++i) text += "█";
  return text;
}

std::string percent(double value) { return value > 0 ? fmt::format("{:.1f} %", value) : "n/a"; }

std::string staircase(const Ladder& ladder, const Terminal& t) {
  const bool timed = std::any_of(ladder.steps.begin(), ladder.steps.end(), [](const LadderStep& s) { return s.timed(); });
  std::vector<std::string> header{"session", "rung", "gate one"};
  const bool compute = ladder.bytes > 0 && ladder.flops / ladder.bytes > 50;  // which of the two figures means something
  if (timed) {
    header.insert(header.end(), {"time", compute ? "TFLOP/s" : "GB/s", "of peak", "of a copy", "of the library", "over the last", ""});
    if (compute) header.erase(std::find(header.begin(), header.end(), "of a copy"));
  }
  header.emplace_back("what is new");
  Table table(header);
  double slowest = 0, fastest = 1e300;
  for (const LadderStep& s : ladder.steps)
    if (s.timed()) slowest = std::max(slowest, s.ms.point), fastest = std::min(fastest, s.ms.point);
  for (std::size_t i = 0; i < ladder.steps.size(); ++i) {
    const LadderStep& s = ladder.steps[i];
    std::vector<std::string> row{s.rung.session, t.paint(Tone::kBold, s.rung.name), t.paint(s.gate_one == "PASS" ? Tone::kGood : Tone::kBad, s.gate_one)};
    if (timed && s.timed()) {
      const auto gain = ladder.gain(i);
      row.insert(row.end(), {format_time_ms(s.ms.point), compute ? fmt::format("{:.2f}", ladder.throughput(s) / 1e12) : fmt::format("{:.0f}", ladder.bandwidth(s) / 1e9),
                             percent(s.percent_of_peak)});
      if (!compute) row.push_back(percent(ladder.percent_of_copy(s)));
      row.insert(row.end(), {percent(100 * s.of_library.point), gain ? fmt::format("{:.2f}x", *gain) : "", bar(s.ms.point, slowest, fastest)});
    } else if (timed) {
      row.insert(row.end(), header.size() - 4, "-");
    }
    row.push_back(s.trouble.empty() || s.gate_one == "PASS" ? s.rung.title : s.trouble);
    table.row(std::move(row));
  }
  return table.text(t);
}

std::string below(const Ladder& ladder) {
  if (ladder.backend == "emulated") return "checked on the CPU, not timed: a ladder's times need a GPU; `capstone explain RUNG` shows what each rung moves";
  std::string text = fmt::format("{}, driver {}, cold L2, {}", ladder.device, ladder.driver, ladder.time);
  if (ladder.library_ms > 0) text += fmt::format("\nthe library: {} ({})", ladder.library, format_time_ms(ladder.library_ms));
  if (ladder.copy_bytes_per_second > 0) text += fmt::format("\na device copy in the same run: {}", format_bandwidth(ladder.copy_bytes_per_second));
  return text;
}

void show(const Ladder& ladder, const Session& session, bool recorded) {
  const Terminal& t = session.terminal;
  std::string sizes;
  for (const auto& [name, value] : ladder.sizes.items()) sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", name, value.get<std::int64_t>());
  t.out(t.paint(Tone::kBold, ladder.title) + "  (" + ladder.problem + ", " + sizes + ")");
  t.out(staircase(ladder, t));
  t.out(t.paint(Tone::kDim, (recorded ? "RECORDED, not measured here: " : "") + below(ladder)));
  for (const LadderStep& s : ladder.steps)
    for (const std::string& label : s.labels) t.out(t.paint(Tone::kWarn, s.rung.name + ": " + label));
}

Result<std::vector<Rung>> chosen_rungs(const Session& session, const LadderArguments& arguments, const std::string& problem) {
  CAPSTONE_TRY(auto rungs, rungs_of(session.resources, problem));
  if (arguments.only.empty()) return rungs;
  std::vector<Rung> chosen;
  for (const std::string& wanted : arguments.only) {
    CAPSTONE_TRY(const fs::path path, find_rung(session, problem, wanted, "capstone ladder {1} --only {0}"));
    const auto found = std::find_if(rungs.begin(), rungs.end(), [&](const Rung& rung) { return rung.source == path; });
    chosen.push_back(found != rungs.end() ? *found : Rung{path, path.stem(), "", path.filename(), ""});
  }
  std::sort(chosen.begin(), chosen.end(), [](const Rung& a, const Rung& b) { return a.name < b.name; });
  return chosen;
}

// A results file by its path, or that of a device by a word of its name.
Result<fs::path> results_file(const Session& session, const std::string& wanted) {
  if (wanted.ends_with(".json")) return session.cwd / wanted;
  const auto devices = recorded_devices(session.resources);
  const fs::path folder = session.resources.reference_kernels() / "results";
  for (const std::string& name : devices)
    if (name == results_name(wanted) || name.starts_with(results_name(wanted) + "_")) return folder / (name + ".json");
  return fail("nothing was recorded on " + wanted, folder.string(),
              devices.empty() ? "record it: capstone ladder PROBLEM --record FILE.json" : "recorded: " + join(devices, ", ") + "; or the path of a results file");
}

Result<ExitCode> recorded_ladders(const Session& session, const LadderArguments& arguments, const std::vector<std::string>& problems) {
  CAPSTONE_TRY(const fs::path file, results_file(session, arguments.recorded));
  CAPSTONE_TRY(const auto results, read_results(file));
  Json all = Json::array();
  for (const Ladder& ladder : results.ladders) {
    if (std::find(problems.begin(), problems.end(), ladder.problem) == problems.end()) continue;
    if (session.json) all.push_back(ladder);
    else show(ladder, session, true);
    if (session.json) continue;
    session.terminal.out();
  }
  if (session.json) session.terminal.out(all.dump(2));
  const bool any = std::any_of(results.ladders.begin(), results.ladders.end(),
                               [&](const Ladder& ladder) { return std::find(problems.begin(), problems.end(), ladder.problem) != problems.end(); });
  if (!any) return fail("no such ladder was recorded: " + join(problems, ", "), file.string(), "capstone ladder PROBLEM --record " + file.filename().string());
  return ExitCode::kDone;
}

Result<ExitCode> ladder(const Session& session, const LadderArguments& arguments) {
  std::vector<std::string> problems;
  if (!arguments.problem.empty()) problems = {arguments.problem};
  else if (problems = ladders_of(session.resources, arguments.session); problems.empty())
    return fail("no ladder in session " + arguments.session, session.resources.reference_kernels().string(),
                "sessions are called L1 to L8 and W1 to W6; ladders: " + join(ladders_of(session.resources, ""), ", "));
  if (arguments.problem.empty() && arguments.session.empty())
    return fail("which ladder?", {}, "capstone ladder PROBLEM, or --session L5; ladders: " + join(problems, ", "));
  if (!arguments.recorded.empty()) return recorded_ladders(session, arguments, problems);
  ExitCode code = ExitCode::kDone;
  Json all = Json::array();
  for (const std::string& id : problems) {
    CAPSTONE_TRY(const auto rungs, chosen_rungs(session, arguments, id));
    CAPSTONE_TRY(Problem problem, find_problem(session.resources.problems(), id));
    CAPSTONE_TRY(problem.measure, parse_sizes(problem, problem.measure, arguments.size));
    // What is kept is timed by two sets of processes.
    LadderRequest request{&problem, rungs, arguments.backend, arguments.budget, arguments.record.empty() ? 1 : 2};
    CAPSTONE_TRY(const Ladder climbed, climb(request, session.resources, [&](const std::string& text) { session.terminal.progress(id + ": " + text); }));
    session.terminal.end_progress();
    if (session.json) all.push_back(climbed);
    else show(climbed, session, false);
    if (std::any_of(climbed.steps.begin(), climbed.steps.end(), [](const LadderStep& s) { return s.gate_one != "PASS"; })) code = ExitCode::kGateOneFailed;
    if (!arguments.record.empty()) {
      if (climbed.device.empty()) return fail("nothing to record: no times without a GPU", {}, "run it on a machine with one");
      CAPSTONE_CHECK(record_ladder(session.cwd / arguments.record, climbed));
    }
  }
  if (session.json) session.terminal.out(all.dump(2));
  return code;
}

}  // namespace

void add_ladder(CLI::App& app, Session& session, Action& action) {
  auto* command = app.add_subcommand("ladder", "the reference kernels of a problem, rung by rung: how fast, and what made it so");
  auto arguments = std::make_shared<LadderArguments>();
  static const std::map<std::string, Backend> backends{{"auto", Backend::kAuto}, {"emulated", Backend::kEmulated}, {"cuda", Backend::kCuda}};
  auto* problem = command->add_option("problem", arguments->problem, "whose ladder: sgemm, softmax, transpose …");
  command->add_option("--session", arguments->session, "all ladders of a session: L5")->excludes(problem);
  command->add_option("--only", arguments->only, "these rungs alone: 03 05, or a .cu of your own");
  command->add_option("--size", arguments->size, "the measured size: rows=8192,cols=8192 (default: the problem's)");
  command->add_option("--budget", arguments->budget, "seconds of timing a rung (default 2)")->check(CLI::Range(0.1, 3600.0));
  command->add_option("--recorded", arguments->recorded, "as recorded on a device (h200) or in a file (results.json); nothing is run");
  command->add_option("--record", arguments->record, "put the result into this file: reference_kernels/results/h200.json");
  command->add_option("--backend", arguments->backend, "auto (default), cuda, or emulated: checks every rung on the CPU, times none")
      ->transform(CLI::CheckedTransformer(backends, CLI::ignore_case));
  add_format(*command, session);
  command->callback([&session, &action, arguments] { action = [&session, arguments] { return ladder(session, *arguments); }; });
}

}  // namespace capstone::cli
