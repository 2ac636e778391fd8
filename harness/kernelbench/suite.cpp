#include "harness/kernelbench/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

// Files in `folder` and one folder down, sorted. Hidden files and caches are skipped.
Result<std::vector<fs::path>> files_of(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return fail("no such folder", folder.string(), "check the path");
  std::vector<fs::path> files;
  fs::recursive_directory_iterator it(folder, code), end;
  while (!code && it != end) {
    const std::string name = it->path().filename().string();
    if (it->is_directory(code) && (it.depth() >= 1 || name.starts_with('.') || name == "__pycache__"))
      it.disable_recursion_pending();
    else if (it->is_regular_file(code) && !name.starts_with('.'))
      files.push_back(it->path());
    it.increment(code);
  }
  if (code) return fail("cannot read the folder: " + code.message(), folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

bool begins_with_digit(const fs::path& file) {
  const std::string name = file.filename().string();
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0]));
}

struct NamedSample {
  int level = 0, problem = 0, sample = 0;
};

// level_1_problem_3_sample_0_kernel
std::optional<NamedSample> kernelbench_name(const std::string& stem) {
  const auto words = split(stem, '_');
  if (words.size() < 6 || words[0] != "level" || words[2] != "problem" || words[4] != "sample")
    return std::nullopt;
  NamedSample named;
  for (auto [word, into] :
       {std::pair{&words[1], &named.level}, {&words[3], &named.problem}, {&words[5], &named.sample}})
    if (auto [stop, code] = std::from_chars(word->data(), word->data() + word->size(), *into);
        code != std::errc() || stop != word->data() + word->size())
      return std::nullopt;
  return named;
}

struct Stats {
  double mean = 0, std = 0, min = 0, max = 0;
  std::size_t trials = 0;
};

Stats stats_of(const Arm& arm) {
  Stats stats;
  double squares = 0;
  for (const auto& restart : arm.samples_ms)
    for (const double ms : restart) {
      stats.min = stats.trials ? std::min(stats.min, ms) : ms;
      stats.max = std::max(stats.max, ms);
      stats.mean += ms;
      squares += ms * ms;
      ++stats.trials;
    }
  if (!stats.trials) return stats;
  stats.mean /= double(stats.trials);
  stats.std = std::sqrt(std::max(0.0, squares / double(stats.trials) - stats.mean * stats.mean));
  return stats;
}

Json stats_json(const Stats& stats, const Measurement& m) {
  return {{"mean", stats.mean}, {"std", stats.std},           {"min", stats.min},
          {"max", stats.max},   {"num_trials", stats.trials}, {"hardware", m.environment.value("device", "")},
          {"device", "cuda:0"}};
}

bool is_timed(const Measurement& m) {
  return m.backend == Backend::kCuda && m.measured && m.measured->speedup;
}

}  // namespace

Result<std::vector<KernelBenchFile>> find_suite_problems(const fs::path& folder, int level) {
  CAPSTONE_TRY(const auto files, files_of(folder));
  std::vector<KernelBenchFile> problems;
  std::map<std::pair<int, int>, fs::path> seen;
  for (const fs::path& path : files) {
    if (path.extension() != ".py" || !begins_with_digit(path)) continue;
    const std::string parent = path.parent_path().filename().string();
    const bool named = parent.starts_with("level") && std::isdigit(static_cast<unsigned char>(parent.back()));
    const int of_folder = named ? parent.back() - '0' : 0;
    if (named && (of_folder > 3 || (level != 0 && of_folder != level))) continue;
    KernelBenchFile file = kernelbench_file(path, named ? of_folder : level);
    if (auto [known, added] = seen.emplace(std::pair{file.level, file.number}, path); !added)
      return fail(fmt::format("two files are problem {} of level {}", file.number, file.level),
                  known->second.string() + ", " + path.string(), "keep one of them");
    problems.push_back(std::move(file));
  }
  if (problems.empty())
    return fail("no problem found", folder.string(),
                "problems are files such as level1/19_ReLU.py; --level chooses 1, 2 or 3");
  std::sort(problems.begin(), problems.end(), [](const auto& a, const auto& b) {
    return std::pair{a.level, a.number} < std::pair{b.level, b.number};
  });
  return problems;
}

Result<Suite> match_suite(std::vector<KernelBenchFile> problems, const fs::path& solutions) {
  CAPSTONE_TRY(const auto files, files_of(solutions));
  Suite suite;
  suite.problems = std::move(problems);
  std::set<int> levels;
  for (const KernelBenchFile& problem : suite.problems) levels.insert(problem.level);
  std::map<std::pair<std::string, int>, fs::path> seen;
  for (const fs::path& path : files) {
    const std::string extension = path.extension().string();
    if (extension != ".py" && extension != ".cu") continue;
    const auto named = kernelbench_name(path.stem().string());
    if (named && !levels.contains(named->level)) continue;  // a level that was not requested
    const KernelBenchFile like = kernelbench_file(path, 0);
    const bool in_level = path.parent_path().filename().string().starts_with("level");
    auto of = std::find_if(suite.problems.begin(), suite.problems.end(), [&](const KernelBenchFile& problem) {
      if (named) return problem.level == named->level && problem.number == named->problem;
      return problem.name == like.name && (!in_level || problem.level == like.level);
    });
    if (of == suite.problems.end()) {
      suite.unmatched.push_back(path);
      continue;
    }
    const int sample = named ? named->sample : 0;
    if (auto [known, added] = seen.emplace(std::pair{of->id(), sample}, path); !added)
      return fail(fmt::format("two files are sample {} of {}", sample, of->name),
                  known->second.string() + ", " + path.string(), "keep one of them");
    suite.samples.push_back({*of, sample, path});
  }
  std::sort(suite.samples.begin(), suite.samples.end(), [](const SuiteSample& a, const SuiteSample& b) {
    return std::tuple{a.problem.level, a.problem.number, a.number} <
           std::tuple{b.problem.level, b.problem.number, b.number};
  });
  return suite;
}

bool has_compiled(const Measurement& m) {
  return m.gate_one != GateOne::kBuildFailed && m.gate_one != GateOne::kNotJudgeable &&
         m.gate_one != GateOne::kMachineFault;
}

Json eval_result(const Measurement& m, int sample) {
  Json metadata{{"verdict", label_of(m.gate_one)},
                {"gate_two", label_of(m.gate_two)},
                {"labels", m.labels},
                {"backend", recorded_name(m.backend)}};
  if (m.build.first_error) metadata["compilation_error"] = m.build.first_error->text;
  if (const CaseResult* bad = m.first_failure()) metadata["correctness_issue"] = bad->problem;
  Json result{{"sample_id", sample},
              {"compiled", has_compiled(m)},
              {"correctness", m.gate_one == GateOne::kPassed},
              {"metadata", std::move(metadata)},
              {"runtime", -1.0},
              {"runtime_stats", Json::object()}};
  if (!is_timed(m)) return result;
  const Stats stats = stats_of(m.measured->arms.back());
  result["metadata"]["speedup"] = {m.measured->speedup->point, m.measured->speedup->low,
                                   m.measured->speedup->high};
  result["runtime"] = stats.mean;
  result["runtime_stats"] = stats_json(stats, m);
  return result;
}

Json baseline_times(const Measurement& m) {
  return is_timed(m) ? stats_json(stats_of(m.measured->arms.front()), m) : Json();
}

Solution solution_of(const KernelBenchFile& problem, const Measurement* m) {
  Solution solution{problem.id(), m && m->gate_one == GateOne::kPassed, {}};
  if (m && is_timed(*m)) solution.speedup = m->measured->speedup;
  return solution;
}

}  // namespace capstone
