// How well this machine can tell kernels apart: kernels judged against themselves, and against a slower self.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <algorithm>
#include <fstream>

#include "cli/output_path.h"
#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/judge.h"
#include "harness/timing/statistics.h"
#include "harness/model/upgrade.h"

namespace capstone::cli {
namespace {

struct CalibrateArguments {
  int pairs = 200, slower = 40, together = 8;
  double minutes = 8, budget = 10;
  std::string out = "calibration.jsonl";
};

// One thing to judge again and again. Times are those of a large data-centre GPU; what was measured is in the record.
struct Subject {
  std::string name;          // "20 us"
  std::string kind;          // "same", or "slower": by 3 %
  std::string problem;
  fs::path kernel;
  Sizes sizes;
  int wanted = 0, done = 0;
};

std::vector<Subject> subjects_of(const Context& context, const CalibrateArguments& arguments) {
  const fs::path softmax = context.resources.share / "harness" / "analysis" / "calibration" / "softmax.cu";
  const fs::path sgemm = context.resources.share / "reference_kernels" / "L5_gemm_ladder_two" / "sgemm" / "05_register_tile_2d.cu";
  const int each = (arguments.pairs + 2) / 3;
  std::vector<Subject> all{{"20 us", "same", "softmax", softmax, Sizes{{"rows", 2048}, {"cols", 4096}}, each},
                           {"200 us", "same", "softmax", softmax, Sizes{{"rows", 16384}, {"cols", 6144}}, each},
                           {"5 ms", "same", "sgemm", sgemm, Sizes{{"m", 4096}, {"k", 4096}, {"n", 4096}}, each},
                           {"200 us", "slower", "softmax", softmax, Sizes{{"rows", 16384}, {"cols", 6144}}, arguments.slower}};
  return all;
}

Result<std::vector<Json>> earlier(const fs::path& file) {
  std::vector<Json> lines;
  std::error_code code;
  if (!fs::exists(file, code)) return lines;
  CAPSTONE_TRY(std::string text, read_file(file, 64u << 20));
  for (const std::string& line : split(text, '\n')) {
    Json json = parse_recorded(line);
    if (json.is_object() && json.contains("kind") && json.contains("verdict")) lines.push_back(std::move(json));
  }
  return lines;
}

std::string summary(const std::vector<Json>& lines, const Terminal& t) {
  std::string text;
  struct Group {
    std::string kind, size;
    int pairs = 0, hits = 0, narrow = 0;
    std::vector<double> ms{}, half{};
  };
  std::vector<Group> groups;
  int all = 0, wrong = 0;
  for (const Json& line : lines) {
    const std::string kind = line["kind"], size = line["size"], verdict = line["verdict"];
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.kind == kind && g.size == size; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{kind, size});
    ++group->pairs;
    group->hits += verdict == (kind == "same" ? "TIE" : "SLOWER");
    group->ms.push_back(line["ms"]);
    group->half.push_back(line["half_width"]);
    group->narrow += line["half_width"].get<double>() <= 0.01;
    if (kind == "same") ++all, wrong += verdict != "TIE";
  }
  Table table({"judged", "about", "median", "pairs", "as it should be", "half-width", "within 1 %"});
  for (Group& g : groups)
    table.row({g.kind == "same" ? "against itself" : "against 3 % more work", g.size, format_time_ms(median(g.ms)), std::to_string(g.pairs),
               fmt::format("{} {}", g.hits, g.kind == "same" ? "TIE" : "SLOWER"), fmt::format("{:.2f} %", 100 * median(g.half)),
               fmt::format("{} of {}", g.narrow, g.pairs)});
  text = table.text(t);
  if (all > 0) {
    const Interval bound = binomial_interval(wrong, all);
    text += fmt::format("\nagainst itself, verdicts other than TIE: {} of {} = {:.2f} % (exact 95 % interval {:.2f} % to {:.2f} %)", wrong, all,
                        100.0 * wrong / all, 100 * bound.low, 100 * bound.high);
  }
  return text;
}

Result<ExitCode> calibrate(const Context& context, const CalibrateArguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  CAPSTONE_TRY(const fs::path file, output_path(context, arguments.out, Output::kCalibration));
  CAPSTONE_TRY(auto lines, earlier(file));
  CAPSTONE_TRY(GpuIdentity gpu, find_gpu(context.resources));
  for (const Json& line : lines)
    if (line.value("uuid", "") != gpu.uuid && line.value("device", "") != gpu.name)
      return fail("the file holds pairs of another GPU: " + line.value("device", ""), file.string(), "choose another --out");
  auto subjects = subjects_of(context, arguments);
  for (Subject& subject : subjects)
    for (const Json& line : lines) subject.done += line["kind"] == subject.kind && line["size"] == subject.name;

  const fs::path work = context.resources.cache / fmt::format("calibrate-{}", ::getpid());
  CAPSTONE_CHECK(make_folders(work));
  while (std::chrono::duration<double>(Clock::now() - begun).count() < arguments.minutes * 60) {
    auto next = std::min_element(subjects.begin(), subjects.end(), [](const Subject& a, const Subject& b) {
      return double(a.done) / std::max(1, a.wanted) < double(b.done) / std::max(1, b.wanted);
    });
    if (next->done >= next->wanted) break;
    CAPSTONE_TRY(Problem problem, find_problem(context.resources.problems(), next->problem));
    problem.measure = next->sizes;
    problem.check.resize(1);  // every timed run is checked anyway
    CAPSTONE_TRY(std::string source, read_file(next->kernel));
    const fs::path candidate = work / (next->kind + ".cu");
    CAPSTONE_CHECK(write_file_atomic(candidate, (next->kind == "slower" ? "#define EXTRA_PERCENT 3\n" : "") + source));
    JudgeRequest request;
    request.problem = &problem;
    request.options.backend = Backend::kCuda;
    request.options.budget_seconds = arguments.budget / arguments.together;
    request.options.hidden_cases = 0;
    request.options.python = "none";
    request.baseline = next->kernel;
    request.candidates = {{"self", candidate}};
    request.arms = std::min(arguments.together, next->wanted - next->done);
    CAPSTONE_TRY(auto measurements, judge(request, context.resources, [&](const std::string& text) { context.terminal.progress(text); }));
    std::ofstream out(file, std::ios::app);
    for (const Measurement& m : measurements) {
      if (!m.measured || !m.measured->speedup)
        return fail("a kernel judged against itself got no time: " + (m.first_failure() ? m.first_failure()->problem : m.gate_two_reason),
                    next->problem, "run `capstone doctor`, then `capstone selftest`", ExitCode::kEnvironment);
      const Interval s = *m.measured->speedup;
      Json line{{"kind", next->kind}, {"size", next->name}, {"problem", next->problem}, {"sizes", m.measured->sizes},
                {"verdict", label_of(m.gate_two)}, {"reason", m.gate_two_reason}, {"execution", recorded_name(m.execution)},
                {"speedup", {s.point, s.low, s.high}}, {"half_width", (s.high - s.low) / 2 / s.point}, {"floor", m.measured->floor},
                {"ms", m.measured->arms.back().median_ms.point}, {"reference_ms", m.measured->arms.front().median_ms.point},
                {"together", measurements.size()}, {"budget_s", arguments.budget}, {"seconds", m.seconds}, {"time", utc_now()},
                {"tool", context.resources.version}, {"device", gpu.name}, {"uuid", gpu.uuid}, {"driver", gpu.driver}};
      out << line.dump() << "\n";
      lines.push_back(std::move(line));
      ++next->done;
    }
    out.flush();
    if (!out) return fail("cannot write the record", file.string(), "is the disk full?", ExitCode::kEnvironment);
  }
  std::error_code code;
  fs::remove_all(work, code);
  context.terminal.end_progress();
  context.terminal.out(summary(lines, context.terminal));
  int left = 0;
  for (const Subject& subject : subjects) left += std::max(0, subject.wanted - subject.done);
  context.terminal.out(left ? fmt::format("{} pairs are left; the same command goes on with them. Record: {}", left, file.string())
                            : "record: " + file.string());
  return ExitCode::kDone;
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("calibrate", "how well this GPU can tell kernels apart: kernels judged against themselves");
  auto arguments = std::make_shared<CalibrateArguments>();
  command->add_option("--pairs", arguments->pairs, "pairs of a kernel and itself, over three running times (default 200)")->check(CLI::Range(0, 100000));
  command->add_option("--slower", arguments->slower, "pairs of a kernel and the same with 3 % more work (default 40)")->check(CLI::Range(0, 100000));
  command->add_option("--together", arguments->together, "pairs judged in one run (default 8)")->check(CLI::Range(1, 32));
  command->add_option("--minutes", arguments->minutes, "stop after this time; the same command goes on later (default 8)")->check(CLI::Range(0.0, 10000.0));
  command->add_option("--budget", arguments->budget, "seconds of timing a run (default 10)")->check(CLI::Range(1.0, 3600.0));
  command->add_option("--out", arguments->out, "where pairs are added, a line each (default calibration.jsonl)");
  command->callback([&context, &action, arguments] { action = [&context, arguments] { return calibrate(context, *arguments); }; });
}

}  // namespace capstone::cli
