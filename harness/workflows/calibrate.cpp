#include "harness/workflows/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"
#include "harness/workflows/output_path.h"

namespace capstone::workflows {
namespace {

// One kernel to judge again and again. Times are those of a large data-centre GPU; the record has the
// measured ones.
struct Series {
  std::string name;  // "20 us"
  std::string kind;  // "same", or "slower": by 3 %
  std::string problem;
  fs::path kernel;
  Sizes sizes;
  int wanted = 0, done = 0;
};

std::vector<Series> series_of(const Workspace& workspace, const CalibrateRequest& request) {
  const fs::path softmax = workspace.resources.share / "harness" / "analysis" / "calibration" / "softmax.cu";
  const fs::path sgemm =
      workspace.resources.reference_kernels() / "L5_gemm_ladder_two" / "sgemm" / "05_register_tile_2d.cu";
  const int each = (request.pairs + 2) / 3;
  const Sizes medium{{"rows", 16384}, {"cols", 6144}};
  return {{"20 us", "same", "softmax", softmax, Sizes{{"rows", 2048}, {"cols", 4096}}, each},
          {"200 us", "same", "softmax", softmax, medium, each},
          {"5 ms", "same", "sgemm", sgemm, Sizes{{"m", 4096}, {"k", 4096}, {"n", 4096}}, each},
          {"200 us", "slower", "softmax", softmax, medium, request.slower}};
}

Result<std::vector<Json>> read_lines(const fs::path& file) {
  std::vector<Json> lines;
  std::error_code code;
  if (!fs::exists(file, code)) return lines;
  CAPSTONE_TRY(std::string text, read_file(file, 64u << 20));
  for (const std::string& line : split(text, '\n')) {
    Json json = parse_recorded(line);
    if (json.is_object() && json.contains("kind") && json.contains("verdict"))
      lines.push_back(std::move(json));
  }
  return lines;
}

class CalibrationRun {
 public:
  CalibrationRun(const CalibrateRequest& request, const Workspace& workspace, const ProgressSink& progress)
      : request_(request),
        workspace_(workspace),
        progress_(progress),
        work_(workspace.resources.cache / "calibrate"),
        series_(series_of(workspace, request)) {}

  Result<CalibrateOutcome> run() {
    CAPSTONE_TRY(file_, output_path(workspace_, request_.out, Output::kCalibration));
    CAPSTONE_TRY(lines_, read_lines(file_));
    CAPSTONE_TRY(gpu_, find_gpu(workspace_.resources));
    for (const Json& line : lines_)
      if (line.value("uuid", "") != gpu_.uuid && line.value("device", "") != gpu_.name)
        return fail("the file holds pairs of another GPU: " + line.value("device", ""), file_.string(),
                    "choose another --out");
    for (Series& series : series_)
      for (const Json& line : lines_)
        series.done += line["kind"] == series.kind && line["size"] == series.name;
    CAPSTONE_CHECK(make_folders(work_.path()));
    CAPSTONE_CHECK(judge_all());
    CalibrateOutcome outcome = summarize_calibration(lines_);
    for (const Series& series : series_) outcome.left += std::max(0, series.wanted - series.done);
    outcome.file = file_;
    return outcome;
  }

 private:
  Result<void> judge_all() {
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    while (std::chrono::duration<double>(Clock::now() - begun).count() < request_.minutes * 60) {
      auto next = std::min_element(series_.begin(), series_.end(), [](const Series& a, const Series& b) {
        return double(a.done) / std::max(1, a.wanted) < double(b.done) / std::max(1, b.wanted);
      });
      if (next->done >= next->wanted) return {};
      CAPSTONE_TRY(auto measurements, judge_some(*next));
      CAPSTONE_CHECK(keep(*next, measurements));
    }
    return {};
  }

  Result<std::vector<Measurement>> judge_some(const Series& series) const {
    CAPSTONE_TRY(Problem problem, find_problem(workspace_.resources.problems(), series.problem));
    problem.measure = series.sizes;
    problem.check.resize(1);  // every timed run is checked anyway
    CAPSTONE_TRY(const std::string source, read_file(series.kernel));
    const fs::path candidate = work_.path() / (series.kind + ".cu");
    const std::string extra = series.kind == "slower" ? "#define EXTRA_PERCENT 3\n" : "";
    CAPSTONE_CHECK(write_file_atomic(candidate, extra + source));
    JudgeRequest request;
    request.problem = &problem;
    request.options.backend = Backend::kCuda;
    request.options.budget_seconds = request_.budget / request_.together;
    request.options.hidden_cases = 0;
    request.options.python = "none";
    request.baseline = series.kernel;
    request.candidates = {{"self", candidate}};
    request.extra_checks = ExtraChecks::kNever;
    request.name_causes = false;
    request.arms = std::min(request_.together, series.wanted - series.done);
    return judge(request, workspace_.resources, narration_to(progress_));
  }

  Result<void> keep(Series& series, const std::vector<Measurement>& measurements) {
    std::ofstream out(file_, std::ios::app);
    for (const Measurement& m : measurements) {
      if (!m.measured || !m.measured->speedup)
        return fail("a kernel judged against itself got no time: " +
                        (m.first_failure() ? m.first_failure()->problem : m.gate_two_reason),
                    series.problem, "run `capstone doctor`, then `capstone selftest`",
                    ExitCode::kEnvironment);
      Json line = line_of(series, m, measurements.size());
      out << line.dump() << "\n";
      lines_.push_back(std::move(line));
      ++series.done;
    }
    out.flush();
    if (!out)
      return fail("cannot write the record", file_.string(), "is the disk full?", ExitCode::kEnvironment);
    return {};
  }

  Json line_of(const Series& series, const Measurement& m, std::size_t together) const {
    const Interval s = *m.measured->speedup, dirty = *m.measured->dirty_speedup;
    return {{"kind", series.kind},
            {"size", series.name},
            {"problem", series.problem},
            {"sizes", m.measured->sizes},
            {"verdict", label_of(m.gate_two)},
            {"reason", m.gate_two_reason},
            {"execution", recorded_name(m.execution)},
            {"speedup", {s.point, s.low, s.high}},
            {"dirty_speedup", {dirty.point, dirty.low, dirty.high}},
            {"half_width", (s.high - s.low) / 2 / s.point},
            {"dirty_half_width", (dirty.high - dirty.low) / 2 / dirty.point},
            {"floor", m.measured->floor},
            {"ms", m.measured->arms.back().median_ms.point},
            {"reference_ms", m.measured->arms.front().median_ms.point},
            {"together", together},
            {"budget_s", request_.budget},
            {"seconds", m.seconds},
            {"time", utc_now()},
            {"tool", workspace_.resources.version},
            {"device", gpu_.name},
            {"uuid", gpu_.uuid},
            {"driver", gpu_.driver}};
  }

  const CalibrateRequest& request_;
  const Workspace& workspace_;
  const ProgressSink& progress_;
  const ScratchFolder work_;
  std::vector<Series> series_;
  std::vector<Json> lines_;
  GpuIdentity gpu_;
  fs::path file_;
};

}  // namespace

CalibrateOutcome summarize_calibration(const std::vector<Json>& lines) {
  struct Times {
    std::vector<double> ms, half;
  };
  CalibrateOutcome outcome;
  std::vector<Times> times;  // of outcome.groups
  for (const Json& line : lines) {
    const bool same = line["kind"] == "same";
    const std::string about = line["size"], verdict = line["verdict"];
    auto group = std::find_if(outcome.groups.begin(), outcome.groups.end(),
                              [&](const CalibrationGroup& g) { return g.same == same && g.about == about; });
    if (group == outcome.groups.end()) {
      group = outcome.groups.insert(outcome.groups.end(), CalibrationGroup{same, about});
      times.emplace_back();
    }
    const double half = line["half_width"];
    Times& those = times[static_cast<std::size_t>(group - outcome.groups.begin())];
    those.ms.push_back(line["ms"]);
    those.half.push_back(half);
    ++group->pairs;
    group->expected += verdict == (same ? "TIE" : "SLOWER");
    group->narrow += half <= 0.01;
    outcome.against_itself += same;
    outcome.wrong += same && (verdict == "FASTER" || verdict == "SLOWER");
    outcome.unresolved += same && verdict == "UNRESOLVED";
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    outcome.groups[i].median_ms = median(times[i].ms);
    outcome.groups[i].median_half_width = median(times[i].half);
  }
  if (outcome.against_itself > 0)
    outcome.wrong_share = binomial_interval(outcome.wrong, outcome.against_itself);
  return outcome;
}

Result<CalibrateOutcome> calibrate(const CalibrateRequest& request, const Workspace& workspace,
                                   const ProgressSink& progress) {
  return CalibrationRun(request, workspace, progress).run();
}

}  // namespace capstone::workflows
