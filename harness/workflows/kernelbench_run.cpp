#include "harness/workflows/kernelbench_run.h"

#include <fmt/format.h>

#include <fstream>
#include <map>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"
#include "harness/runtime/python/python.h"
#include "harness/workflows/judge_and_record.h"

namespace capstone::workflows {
namespace {

constexpr const char* kRecords = "records.jsonl";

Json record_of(const SuiteSample& sample, const JudgedSample& judged) {
  Json record{{"schema_version", 1},
              {"key", judged.key},
              {"problem", sample.problem.id()},
              {"sample", sample.number}};
  if (judged.measurement)
    record["measurement"] = *judged.measurement;
  else
    record["refused"] = judged.refused;
  return record;
}

// Judgements of earlier runs by key. Samples that were refused or not judgeable are tried again. A torn last
// line is skipped.
std::map<std::string, JudgedSample> earlier(const fs::path& file) {
  std::map<std::string, JudgedSample> known;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const Json record = parse_recorded(line);
    if (!record.is_object() || !record.contains("measurement")) continue;
    JudgedSample judged{record.value("key", ""), record["measurement"].get<Measurement>(), {}, true};
    if (judged.measurement->gate_one != GateOne::kNotJudgeable) known[judged.key] = std::move(judged);
  }
  return known;
}

class KernelBenchRun {
 public:
  KernelBenchRun(const Workspace& workspace, const KernelBenchRequest& request,
                 const KernelBenchEvents& events)
      : workspace_(workspace), request_(request), events_(events), out_(workspace.cwd / request.out) {}

  Result<KernelBenchOutcome> run() {
    CAPSTONE_TRY(memory_, memory_for(request_.memory_gb, request_.judge.backend, workspace_.resources));
    CAPSTONE_TRY(auto problems, find_suite_problems(workspace_.cwd / request_.problems, request_.level));
    CAPSTONE_CHECK(make_folders(out_));
    if (request_.self) {
      suite_.problems = std::move(problems);
      for (const KernelBenchFile& problem : suite_.problems) suite_.samples.push_back({problem, 0, {}});
    } else {
      CAPSTONE_TRY(suite_, match_suite(std::move(problems), workspace_.cwd / request_.solutions));
    }
    for (const fs::path& path : suite_.unmatched)
      report_note(events_.progress,
                  "note: " + path.string() + " belongs to none of the problems: it is left out");
    if (suite_.samples.empty())
      return fail("no candidate matches a problem", (workspace_.cwd / request_.solutions).string(),
                  "names are level_1_problem_3_sample_0_kernel.py, or the problem's own file name");
    const auto known = request_.again ? std::map<std::string, JudgedSample>() : earlier(out_ / kRecords);
    auto ended = judge_all(known);
    if (!judged_.empty()) CAPSTONE_CHECK(write_results());  // also of what was judged before an interruption
    if (!ended) return fail(ended.error());
    return outcome();
  }

 private:
  // Every judgement is appended to the records at once. The results are one document, rewritten after each
  // problem.
  Result<void> judge_all(const std::map<std::string, JudgedSample>& known) {
    bool news = false;
    for (std::size_t i = 0; i < suite_.samples.size(); ++i) {
      const SuiteSample& sample = suite_.samples[i];
      if (news && sample.problem.path != suite_.samples[i - 1].problem.path) {
        CAPSTONE_CHECK(write_results());
        news = false;
      }
      CAPSTONE_TRY(JudgedSample judged, judge_one(sample, known));
      news |= !judged.before;
      if (events_.judged) events_.judged(i + 1, suite_.samples.size(), sample, judged);
      judged_.push_back(std::move(judged));
    }
    return {};
  }

  // Samples come by problem, so one definition (or the reason why there is none) serves all samples of a
  // problem.
  const Result<ImportedProblem>& definition(const KernelBenchFile& file) {
    if (!definition_ || definition_->first != file.path) definition_.emplace(file.path, imported(file));
    return definition_->second;
  }

  // Before the first judgement: a PyTorch that does not work fails for all candidates, so it is one error.
  Result<void> try_torch() {
    if (torch_) return *torch_;
    report_step(events_.progress, "starting PyTorch");
    const std::string& wanted = request_.judge.python;
    auto trial = [&]() -> Result<void> {
      CAPSTONE_TRY(const Python python,
                   find_python(wanted == "none" ? "auto" : wanted, workspace_.resources));
      CAPSTONE_TRY(const ImportedTorch torch, import_torch(python));
      if (choose_backend(request_.judge.backend, workspace_.resources).backend == Backend::kCuda &&
          !torch.computes)
        return fail(
            fmt::format("PyTorch {} cannot use this GPU: it is built for {}", python.torch, torch.built_for),
            python.program.string(),
            "install a build for this GPU's CUDA (https://pytorch.org/get-started), give --python another "
            "python3, or --backend emulated",
            ExitCode::kEnvironment);
      return {};
    };
    return *(torch_ = trial());
  }

  // A problem's definition, imported again only when its file changes.
  Result<ImportedProblem> imported(const KernelBenchFile& file) {
    CAPSTONE_TRY(const std::string digest, sha256_file(file.path));
    const fs::path folder = out_ / "problems" / file.id(), mark = out_ / "problems" / (file.id() + ".json");
    const Json wanted{{"source", digest}, {"memory", memory_}, {"tool", workspace_.resources.version}};
    if (auto text = read_file(mark)) {
      const Json found = parse_json(*text);
      auto problem = load_problem(folder);
      if (found.is_object() && found.value("import", Json()) == wanted && problem)
        return ImportedProblem{std::move(*problem), found.value("notes", std::vector<std::string>())};
    }
    CAPSTONE_CHECK(try_torch());
    CAPSTONE_TRY(ImportedProblem made,
                 import_kernelbench({file, folder, request_.judge.python, memory_}, workspace_.resources,
                                    narration_to(events_.progress)));
    CAPSTONE_CHECK(write_file_atomic(mark, Json{{"import", wanted}, {"notes", made.notes}}.dump(1)));
    return made;
  }

  // The candidate's file; of a problem itself: its reference as ModelNew.
  Result<fs::path> source_of(const SuiteSample& sample, const Problem& problem) const {
    if (!request_.self) return sample.file;
    CAPSTONE_TRY(std::string text, read_file(problem.folder / "reference.py"));
    const fs::path file = out_ / "self" / (sample.problem.id() + ".py");
    CAPSTONE_CHECK(make_folders(file.parent_path()));
    CAPSTONE_CHECK(write_file_atomic(file, text + "\n\nModelNew = Model\n"));
    return file;
  }

  Result<JudgedSample> judge_one(const SuiteSample& sample,
                                 const std::map<std::string, JudgedSample>& known) {
    JudgedSample judged;
    auto outcome = try_one(sample, known, judged);
    if (!outcome) {
      if (outcome.error().code == ExitCode::kInterrupted || (torch_ && !*torch_))
        return fail(outcome.error());
      judged.refused =
          outcome.error().what + (outcome.error().hint.empty() ? "" : " (" + outcome.error().hint + ")");
    } else if (*outcome) {
      return judged;  // of an earlier run
    }
    std::ofstream records(out_ / kRecords, std::ios::app);
    records << record_of(sample, judged).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n'
            << std::flush;
    if (!records)
      return fail("cannot write the records", (out_ / kRecords).string(), "is the disk full?",
                  ExitCode::kEnvironment);
    return judged;
  }

  // Whether an earlier run's judgement served.
  Result<bool> try_one(const SuiteSample& sample, const std::map<std::string, JudgedSample>& known,
                       JudgedSample& judged) {
    const auto& defined = definition(sample.problem);
    if (!defined) return fail(defined.error());
    const Problem& problem = defined->problem;
    CAPSTONE_TRY(const fs::path source, source_of(sample, problem));
    CAPSTONE_TRY(const std::string digest, sha256_file(source));
    judged.key = fmt::format("{} {} {} {}", sample.problem.id(), sample.number, digest, problem.digest);
    if (const auto before = known.find(judged.key); before != known.end()) {
      judged = before->second;
      return true;
    }
    CAPSTONE_CHECK(try_torch());
    JudgeRequest request = request_of(problem, request_.judge);
    request.name_causes = false;
    request.candidates = {{fmt::format("{}/{}", sample.problem.level, sample.problem.name), source}};
    CAPSTONE_TRY(auto measurements, judge(request, workspace_.resources, narration_to(events_.progress)));
    judged.measurement = std::move(measurements.front());
    judged.measurement->source_sha256 = digest;
    return false;
  }

  // KernelBench's file is of one level.
  Result<void> write_results() const {
    std::map<int, Json> levels;
    Json baselines = Json::object();
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      const SuiteSample& sample = suite_.samples[i];
      Json& level = levels.try_emplace(sample.problem.level, Json::object()).first->second;
      Json entry = judged_[i].measurement ? eval_result(*judged_[i].measurement, sample.number)
                                          : Json{{"sample_id", sample.number},
                                                 {"compiled", false},
                                                 {"correctness", false},
                                                 {"metadata", {{"not_judged", judged_[i].refused}}},
                                                 {"runtime", -1.0},
                                                 {"runtime_stats", Json::object()}};
      level[std::to_string(sample.problem.number)].push_back(std::move(entry));
      if (judged_[i].measurement)
        if (Json times = baseline_times(*judged_[i].measurement); !times.is_null())
          baselines[fmt::format("level{}", sample.problem.level)][sample.problem.path.filename().string()] =
              std::move(times);
    }
    const bool one_level =
        suite_.samples.front().problem.level == suite_.samples.back().problem.level;  // they are sorted by it
    for (const auto& [level, results] : levels) {
      const std::string name =
          one_level ? "eval_results.json" : fmt::format("eval_results_level_{}.json", level);
      CAPSTONE_CHECK(
          write_file_atomic(out_ / name, results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
    }
    if (!baselines.empty())
      CAPSTONE_CHECK(write_file_atomic(out_ / "baseline_eager.json", baselines.dump(2) + "\n"));
    return {};
  }

  KernelBenchOutcome outcome() const {
    KernelBenchOutcome all;
    all.suite = suite_;
    all.judged = judged_;
    all.records = out_ / kRecords;
    all.results = out_;
    std::vector<Solution> solutions;  // a problem without a candidate counts as well
    for (const KernelBenchFile& problem : suite_.problems) solutions.push_back(solution_of(problem, nullptr));
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      const Measurement* m = judged_[i].measurement ? &*judged_[i].measurement : nullptr;
      solutions.push_back(solution_of(suite_.samples[i].problem, m));
      all.refused += m == nullptr || m->gate_one == GateOne::kNotJudgeable;
      all.compiled += m && has_compiled(*m);
      all.correct += solutions.back().correct;
      all.timed += solutions.back().speedup.has_value();
    }
    for (double p : {0.0, 1.0, 2.0}) all.fast.push_back(fast_p(solutions, p));
    return all;
  }

  const Workspace& workspace_;
  const KernelBenchRequest& request_;
  const KernelBenchEvents& events_;
  const fs::path out_;
  double memory_ = 0;
  std::optional<Result<void>> torch_;  ///< whether it works, once it was tried
  Suite suite_;
  std::optional<std::pair<fs::path, Result<ImportedProblem>>>
      definition_;                    ///< of the file that was asked about last
  std::vector<JudgedSample> judged_;  ///< in the order of suite_.samples
};

}  // namespace

Result<double> memory_for(double gigabytes, Backend backend, const Resources& resources) {
  if (gigabytes > 0) return gigabytes * 1e9;
  if (choose_backend(backend, resources).backend != Backend::kCuda) return 8e9;  // a student's card
  CAPSTONE_TRY(const GpuIdentity gpu, find_gpu(resources));
  return gpu.memory_bytes;
}

Result<KernelBenchOutcome> run_kernelbench(const KernelBenchRequest& request, const Workspace& workspace,
                                           const KernelBenchEvents& events) {
  if (!request.self && request.solutions.empty())
    return fail("neither --solutions nor --self", {},
                "capstone kernelbench run --problems DIR --solutions DIR");
  return KernelBenchRun(workspace, request, events).run();
}

}  // namespace capstone::workflows
