// `capstone kernelbench run`: a folder of candidates against a folder of KernelBench's problems.
#include <fmt/format.h>

#include <fstream>
#include <map>

#include "cli/gpu_memory.h"
#include "cli/mentor_commands.h"
#include "cli/recording.h"
#include "cli/context.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/kernelbench/suite.h"
#include "harness/runtime/python/python.h"
#include "harness/model/upgrade.h"

namespace capstone::cli {
namespace {

struct RunArguments {
  std::string problems, solutions, out = "kernelbench-results";
  bool self = false, again = false;
  int level = 0;
  double memory_gb = 0;
  JudgeOptions judge;
};

// What is known about one sample: a judgement, or why there is none.
struct Judged {
  std::string key;
  std::optional<Measurement> measurement;
  std::string refused;
  bool before = false;  ///< by an earlier run
};

constexpr const char* kRecords = "records.jsonl";

Json record_of(const SuiteSample& sample, const Judged& judged) {
  Json record{{"schema_version", 1}, {"key", judged.key}, {"problem", sample.problem.id()}, {"sample", sample.number}};
  if (judged.measurement) record["measurement"] = *judged.measurement;
  else record["refused"] = judged.refused;
  return record;
}

// Judgements of earlier runs by key; what was refused, or could not be judged there, is tried again. A torn last line is left out.
std::map<std::string, Judged> earlier(const fs::path& file) {
  std::map<std::string, Judged> known;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const Json record = parse_recorded(line);
    if (!record.is_object() || !record.contains("measurement")) continue;
    Judged judged{record.value("key", ""), record["measurement"].get<Measurement>(), {}, true};
    if (judged.measurement->gate_one != GateOne::kNotJudgeable) known[judged.key] = std::move(judged);
  }
  return known;
}

class KernelBenchRun {
 public:
  KernelBenchRun(const Context& context, const RunArguments& arguments) : context_(context), arguments_(arguments), out_(context.cwd / arguments.out) {}

  Result<ExitCode> run() {
    CAPSTONE_TRY(memory_, memory_for(arguments_.memory_gb, arguments_.judge.backend, context_.resources));
    CAPSTONE_TRY(auto problems, find_suite_problems(context_.cwd / arguments_.problems, arguments_.level));
    CAPSTONE_CHECK(make_folders(out_));
    if (arguments_.self) {
      suite_.problems = std::move(problems);
      for (const KernelBenchFile& problem : suite_.problems) suite_.samples.push_back({problem, 0, {}});
    } else {
      CAPSTONE_TRY(suite_, match_suite(std::move(problems), context_.cwd / arguments_.solutions));
    }
    for (const fs::path& path : suite_.unmatched) context_.terminal.say("note: " + path.string() + " belongs to no problem here: it is left out");
    if (suite_.samples.empty())
      return fail("no candidate belongs to a problem", (context_.cwd / arguments_.solutions).string(), "names are level_1_problem_3_sample_0_kernel.py, or the problem's own file name");
    const auto known = arguments_.again ? std::map<std::string, Judged>() : earlier(out_ / kRecords);
    auto ended = judge_all(known);
    if (!judged_.empty()) CAPSTONE_CHECK(write_results());  // also of what was judged before an interruption
    if (!ended) return fail(ended.error());
    return report();
  }

 private:
  // The results are one document, so they are written anew once for each problem; every judgement is in the records at once.
  Result<void> judge_all(const std::map<std::string, Judged>& known) {
    bool news = false;
    for (std::size_t i = 0; i < suite_.samples.size(); ++i) {
      const SuiteSample& sample = suite_.samples[i];
      if (news && sample.problem.path != suite_.samples[i - 1].problem.path) {
        CAPSTONE_CHECK(write_results());
        news = false;
      }
      CAPSTONE_TRY(Judged judged, judge_one(sample, known));
      news |= !judged.before;
      context_.terminal.say(fmt::format("{} of {}: {}", i + 1, suite_.samples.size(), line_of(sample, judged)));
      judged_.push_back(std::move(judged));
    }
    return {};
  }

  // Samples come by problem: what is known of one, or why it is refused, serves all of its samples.
  const Result<ImportedProblem>& definition(const KernelBenchFile& file) {
    if (!definition_ || definition_->first != file.path) definition_.emplace(file.path, imported(file));
    return definition_->second;
  }

  // Before the first work of this run: what is wrong with PyTorch is wrong for all candidates, and said once.
  Result<void> try_torch() {
    if (torch_) return *torch_;
    narration()("starting PyTorch");
    const std::string& wanted = arguments_.judge.python;
    auto trial = [&]() -> Result<void> {
      CAPSTONE_TRY(const Python python, find_python(wanted == "none" ? "auto" : wanted, context_.resources));
      CAPSTONE_TRY(const ImportedTorch torch, import_torch(python));
      if (choose_backend(arguments_.judge.backend, context_.resources).backend == Backend::kCuda && !torch.computes)
        return fail(fmt::format("PyTorch {} cannot use this GPU: it is built for {}", python.torch, torch.built_for), python.program.string(),
                    "install a build for this GPU's CUDA (https://pytorch.org/get-started), give --python another python3, or --backend emulated", ExitCode::kEnvironment);
      return {};
    };
    return *(torch_ = trial());
  }

  // A problem's definition, imported once for each state of its file.
  Result<ImportedProblem> imported(const KernelBenchFile& file) {
    CAPSTONE_TRY(const std::string digest, sha256_file(file.path));
    const fs::path folder = out_ / "problems" / file.id(), mark = out_ / "problems" / (file.id() + ".json");
    const Json wanted{{"source", digest}, {"memory", memory_}, {"tool", context_.resources.version}};
    if (auto text = read_file(mark)) {
      const Json found = Json::parse(*text, nullptr, false);
      auto problem = load_problem(folder);
      if (found.is_object() && found.value("import", Json()) == wanted && problem) return ImportedProblem{std::move(*problem), found.value("notes", std::vector<std::string>())};
    }
    CAPSTONE_CHECK(try_torch());
    CAPSTONE_TRY(ImportedProblem made, import_kernelbench({file, folder, arguments_.judge.python, memory_}, context_.resources, narration()));
    CAPSTONE_CHECK(write_file_atomic(mark, Json{{"import", wanted}, {"notes", made.notes}}.dump(1)));
    return made;
  }

  // The candidate's file; of a problem itself: its reference as ModelNew.
  Result<fs::path> source_of(const SuiteSample& sample, const Problem& problem) const {
    if (!arguments_.self) return sample.file;
    CAPSTONE_TRY(std::string text, read_file(problem.folder / "reference.py"));
    const fs::path file = out_ / "self" / (sample.problem.id() + ".py");
    CAPSTONE_CHECK(make_folders(file.parent_path()));
    CAPSTONE_CHECK(write_file_atomic(file, text + "\n\nModelNew = Model\n"));
    return file;
  }

  Result<Judged> judge_one(const SuiteSample& sample, const std::map<std::string, Judged>& known) {
    Judged judged;
    auto outcome = try_one(sample, known, judged);
    if (!outcome) {
      if (outcome.error().code == ExitCode::kInterrupted || (torch_ && !*torch_)) return fail(outcome.error());
      judged.refused = outcome.error().what + (outcome.error().hint.empty() ? "" : " (" + outcome.error().hint + ")");
    } else if (*outcome) {
      return judged;  // of an earlier run
    }
    std::ofstream records(out_ / kRecords, std::ios::app);
    records << record_of(sample, judged).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
    if (!records) return fail("cannot write the records", (out_ / kRecords).string(), "is the disk full?", ExitCode::kEnvironment);
    return judged;
  }

  // Whether an earlier run's judgement served.
  Result<bool> try_one(const SuiteSample& sample, const std::map<std::string, Judged>& known, Judged& judged) {
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
    JudgeRequest request = request_of(problem, arguments_.judge);
    request.candidates = {{fmt::format("{}/{}", sample.problem.level, sample.problem.name), source}};
    CAPSTONE_TRY(auto measurements, judge(request, context_.resources, narration()));
    judged.measurement = std::move(measurements.front());
    judged.measurement->source_sha256 = digest;
    return false;
  }

  Narration narration() const {
    return [this](const std::string& text) { context_.terminal.progress(text); };
  }

  std::string line_of(const SuiteSample& sample, const Judged& judged) const {
    std::string text = fmt::format("{}/{} sample {}: ", sample.problem.level, sample.problem.name, sample.number);
    if (!judged.measurement) return text + "not judged: " + judged.refused;
    const Measurement& m = *judged.measurement;
    text += label_of(m.gate_one);
    if (m.measured && m.measured->speedup && m.backend == Backend::kCuda) text += fmt::format(", {:.2f}x, {}", m.measured->speedup->point, label_of(m.gate_two));
    if (const CaseResult* bad = m.first_failure()) text += ": " + bad->problem;
    else if (m.build.first_error) text += ": " + m.build.first_error->text;
    return text;
  }

  // KernelBench's file is of one level.
  Result<void> write_results() const {
    std::map<int, Json> levels;
    Json baselines = Json::object();
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      const SuiteSample& sample = suite_.samples[i];
      Json& level = levels.try_emplace(sample.problem.level, Json::object()).first->second;
      Json entry = judged_[i].measurement ? eval_result(*judged_[i].measurement, sample.number)
                                          : Json{{"sample_id", sample.number}, {"compiled", false}, {"correctness", false}, {"metadata", {{"not_judged", judged_[i].refused}}},
                                                 {"runtime", -1.0}, {"runtime_stats", Json::object()}};
      level[std::to_string(sample.problem.number)].push_back(std::move(entry));
      if (judged_[i].measurement)
        if (Json times = baseline_times(*judged_[i].measurement); !times.is_null())
          baselines[fmt::format("level{}", sample.problem.level)][sample.problem.path.filename().string()] = std::move(times);
    }
    const bool one_level = suite_.samples.front().problem.level == suite_.samples.back().problem.level;  // they are sorted by it
    for (const auto& [level, results] : levels) {
      const std::string name = one_level ? "eval_results.json" : fmt::format("eval_results_level_{}.json", level);
      CAPSTONE_CHECK(write_file_atomic(out_ / name, results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
    }
    if (!baselines.empty()) CAPSTONE_CHECK(write_file_atomic(out_ / "baseline_eager.json", baselines.dump(2) + "\n"));
    return {};
  }

  Result<ExitCode> report() const {
    const Terminal& t = context_.terminal;
    std::vector<Solution> solutions;
    for (const KernelBenchFile& problem : suite_.problems) solutions.push_back(solution_of(problem, nullptr));  // without a candidate: still a problem
    int compiled = 0, correct = 0, refused = 0, timed = 0;
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      const Measurement* m = judged_[i].measurement ? &*judged_[i].measurement : nullptr;
      solutions.push_back(solution_of(suite_.samples[i].problem, m));
      refused += m == nullptr || m->gate_one == GateOne::kNotJudgeable;
      compiled += m && has_compiled(*m);
      correct += solutions.back().correct;
      timed += solutions.back().speedup.has_value();
    }
    Json points = Json::array();
    std::string text;
    for (double p : {0.0, 1.0, 2.0}) {
      const FastPoint point = fast_p(solutions, p);
      points.push_back({{"p", p}, {"hits", point.hits}, {"problems", point.problems}, {"share", point.share.point}, {"resolved", point.resolved}});
      text += fmt::format("fast_{:g}     {} of {} ({:.1f} %){}\n", p, point.hits, point.problems, 100 * point.share.point,
                          p > 0 ? fmt::format("; {} with their whole interval above", point.resolved) : "");
    }
    if (context_.json) {
      t.out(Json{{"samples", judged_.size()}, {"compiled", compiled}, {"correct", correct}, {"timed", timed}, {"not_judged", refused}, {"unmatched", suite_.unmatched.size()},
                 {"fast_p", points}, {"results", out_.string()}}.dump(2));
    } else {
      t.out(fmt::format("compiled   {0} of {3} samples\ncorrect    {1} of {3}\ntimed      {2} of {3}", compiled, correct, timed, judged_.size()));
      t.out(text + fmt::format("The best sample of each problem counts, strictly faster than p; wrong and missing ones stay in the {} problems.", suite_.problems.size()));
      if (refused) t.out(fmt::format("not judged: {} (above, and in {})", refused, (out_ / kRecords).string()));
      t.out("results: " + out_.string());
    }
    return refused ? ExitCode::kPartlyUngraded : ExitCode::kDone;
  }

  const Context& context_;
  const RunArguments& arguments_;
  const fs::path out_;
  double memory_ = 0;
  std::optional<Result<void>> torch_;  ///< whether it works, once it was tried
  Suite suite_;
  std::optional<std::pair<fs::path, Result<ImportedProblem>>> definition_;  ///< of the file that was asked about last
  std::vector<Judged> judged_;  ///< in the order of suite_.samples
};

}  // namespace

void add_kernelbench(CLI::App& app, Context& context, Action& action) {
  auto* group = app.add_subcommand("kernelbench", "judge a folder of candidates against KernelBench's problems");
  group->require_subcommand(1);
  auto* command = group->add_subcommand("run", "compiled, correct, fast_0, fast_1, fast_2; resumable: what was judged before is not judged again");
  auto arguments = std::make_shared<RunArguments>();
  command->add_option("--problems", arguments->problems, "folder with problems: level1/19_ReLU.py, or the files themselves")->required()->type_name("DIR");
  auto* solutions = command->add_option("--solutions", arguments->solutions, "folder with candidates: level_1_problem_19_sample_0_kernel.py, or 19_ReLU.py")->type_name("DIR");
  auto* self = command->add_flag("--self", arguments->self, "judge a copy of each problem's own reference: it must be correct, and TIE on a GPU");
  self->excludes(solutions);
  command->add_option("--level", arguments->level, "only this level")->check(CLI::Range(1, 3));
  command->add_option("--out", arguments->out, "where definitions, records and eval_results.json go (default kernelbench-results)")->type_name("DIR");
  command->add_flag("--again", arguments->again, "judge what was judged before once more");
  add_memory_option(*command, arguments->memory_gb);
  add_judge_options(*command, arguments->judge);
  add_format(*command, context);
  command->callback([&context, &action, arguments] {
    action = [&context, arguments]() -> Result<ExitCode> {
      if (!arguments->self && arguments->solutions.empty()) return fail("neither --solutions nor --self", {}, "capstone kernelbench run --problems DIR --solutions DIR");
      return KernelBenchRun(context, *arguments).run();
    };
  });
}

}  // namespace capstone::cli
