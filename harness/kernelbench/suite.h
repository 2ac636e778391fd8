#pragma once
// Matches a folder of candidates with a folder of problems, by KernelBench's names and forms.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/analysis/fast_p.h"
#include "harness/kernelbench/import.h"
#include "harness/model/record.h"

namespace capstone {

/// One candidate for one problem.
struct SuiteSample {
  KernelBenchFile problem;
  int number = 0;  ///< KernelBench's sample_id
  std::filesystem::path file;
};

struct Suite {
  std::vector<KernelBenchFile> problems;         ///< by level, then number
  std::vector<SuiteSample> samples;              ///< in the order of their problems
  std::vector<std::filesystem::path> unmatched;  ///< candidate files that belong to no problem
};

/// Every .py below `folder` whose name begins with a number, at most one folder down ("level1/19_ReLU.py").
/// `level`: 0 takes all levels from the folders' names; else only that level, which then also applies to
/// files without such a folder.
/// @error no such folder; it holds no problem; two problems with one level and number.
Result<std::vector<KernelBenchFile>> find_suite_problems(const std::filesystem::path& folder, int level);

/// Candidates by name: level_1_problem_3_sample_0_kernel.py (KernelBench's own), or a problem's file name
/// (sample 0), in the folder or one folder down. .cu files that define launch() are accepted under the same
/// names.
/// @error no such folder, two files for one sample.
Result<Suite> match_suite(std::vector<KernelBenchFile> problems, const std::filesystem::path& solutions);

/// Whether it compiled, in KernelBench's sense.
bool has_compiled(const Measurement& m);
/// One entry of eval_results.json: {"sample_id", "compiled", "correctness", "metadata", "runtime" [ms],
/// "runtime_stats"}; runtime is -1 if nothing was timed.
Json eval_result(const Measurement& m, int sample);
/// The baseline's times in the form of KernelBench's baseline files; null if nothing was timed.
Json baseline_times(const Measurement& m);
/// The input of fast_p.
Solution solution_of(const KernelBenchFile& problem, const Measurement* m);

}  // namespace capstone
