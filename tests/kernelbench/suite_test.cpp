// Which candidate belongs to which problem, and the results in KernelBench's form.
#include "harness/kernelbench/suite.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace capstone {
namespace {

class SuiteFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::error_code code;
    fs::remove_all(root_, code);
    for (const char* name : {"problems/level1/19_ReLU.py", "problems/level1/3_Softmax.py",
                             "problems/level2/19_Conv.py", "problems/level4/1_Huge.py", "problems/notes.txt"})
      put(name);
  }
  void put(const std::string& name) const {
    ASSERT_TRUE(make_folders((root_ / name).parent_path()));
    ASSERT_TRUE(write_file_atomic(root_ / name, "pass\n"));
  }
  fs::path root_;
};

TEST_F(SuiteFiles, AFileSaysItsLevelNumberAndId) {
  const KernelBenchFile file = kernelbench_file(root_ / "problems/level2/19_Conv.py", 0);
  EXPECT_EQ(file.level, 2);
  EXPECT_EQ(file.number, 19);
  EXPECT_EQ(file.id(), "kb2_19_conv");
  EXPECT_EQ(kernelbench_file("37_Matmul_with_a_very_long_name_that_goes_on_and_on_.py", 3).id(),
            "kb3_37_matmul_with_a_very_long_name_that");
  EXPECT_EQ(kernelbench_file("9_x___.py", 1).id(), "kb1_9_x");
}

TEST_F(SuiteFiles, ProblemsAreSortedByLevelAndNumberAndLevel4IsNotOurs) {
  const auto all = find_suite_problems(root_ / "problems", 0).value();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "3_Softmax");
  EXPECT_EQ(all[1].name, "19_ReLU");
  EXPECT_EQ(all[2].level, 2);
  EXPECT_EQ(find_suite_problems(root_ / "problems", 2).value().size(), 1u);
  const auto nothing = find_suite_problems(root_ / "problems", 3);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().what, "no problem found");
  put("problems/level1/19_Other.py");
  const auto twice = find_suite_problems(root_ / "problems", 0);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().what, "two files are problem 19 of level 1");
}

TEST_F(SuiteFiles, CandidatesAreMatchedByEitherNameAndTheOthersAreTold) {
  for (const char* name :
       {"s/level_1_problem_19_sample_0_kernel.py", "s/level_1_problem_19_sample_2_kernel.py",
        "s/level2/19_Conv.py", "s/3_Softmax.cu", "s/77_Unknown.py", "s/level_1_problem_88_sample_0_kernel.py",
        "s/level_3_problem_1_sample_0_kernel.py", "s/README.md"})
    put(name);
  const Suite suite = match_suite(find_suite_problems(root_ / "problems", 0).value(), root_ / "s").value();
  ASSERT_EQ(suite.samples.size(), 4u);
  EXPECT_EQ(suite.samples[0].file.filename(), "3_Softmax.cu");
  EXPECT_EQ(suite.samples[1].number, 0);
  EXPECT_EQ(suite.samples[2].number, 2);
  EXPECT_EQ(suite.samples[3].problem.id(), "kb2_19_conv");
  ASSERT_EQ(suite.unmatched.size(), 2u);  // level 3 was not requested, README.md is not a candidate
  EXPECT_EQ(suite.unmatched[0].filename(), "77_Unknown.py");
  EXPECT_EQ(suite.unmatched[1].filename(), "level_1_problem_88_sample_0_kernel.py");
  put("s/19_ReLU.py");
  const auto twice = match_suite(find_suite_problems(root_ / "problems", 0).value(), root_ / "s");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().what, "two files are sample 0 of 19_ReLU");
}

Measurement timed(double speedup, std::vector<double> samples) {
  Measurement m;
  m.backend = Backend::kCuda;
  m.gate_one = GateOne::kPassed;
  m.gate_two = GateTwo::kFaster;
  m.environment = {{"device", "NVIDIA H200"}};
  Measured measured;
  Arm eager, own;
  eager.samples_ms = {{4, 4}, {4}};
  own.samples_ms = {std::move(samples)};
  measured.arms = {eager, own};
  measured.speedup = Interval{speedup, speedup - 0.1, speedup + 0.1};
  m.measured = measured;
  return m;
}

TEST(EvalResult, HasKernelBenchsFieldsInMilliseconds) {
  const Json result = eval_result(timed(2, {1, 2, 3}), 4);
  EXPECT_EQ(result["sample_id"], 4);
  EXPECT_TRUE(result["compiled"].get<bool>());
  EXPECT_TRUE(result["correctness"].get<bool>());
  EXPECT_DOUBLE_EQ(result["runtime"].get<double>(), 2);
  EXPECT_EQ(result["runtime_stats"]["num_trials"], 3);
  EXPECT_DOUBLE_EQ(result["runtime_stats"]["min"].get<double>(), 1);
  EXPECT_DOUBLE_EQ(result["runtime_stats"]["max"].get<double>(), 3);
  EXPECT_NEAR(result["runtime_stats"]["std"].get<double>(), 0.8165, 1e-4);
  EXPECT_EQ(result["runtime_stats"]["hardware"], "NVIDIA H200");
  EXPECT_DOUBLE_EQ(baseline_times(timed(2, {1}))["mean"].get<double>(), 4);
}

TEST(EvalResult, WhatWasNotTimedHasTheRuntimeMinusOneAndWhatFailedSaysWhy) {
  Measurement m;
  m.gate_one = GateOne::kWrong;
  CaseResult bad;
  bad.id = "check-0";
  bad.problem = "wrong result: nothing was written";
  m.cases = {bad};
  Json result = eval_result(m, 0);
  EXPECT_TRUE(result["compiled"].get<bool>());
  EXPECT_FALSE(result["correctness"].get<bool>());
  EXPECT_EQ(result["runtime"], -1.0);
  EXPECT_TRUE(result["runtime_stats"].empty());
  EXPECT_EQ(result["metadata"]["correctness_issue"], bad.problem);
  EXPECT_TRUE(baseline_times(m).is_null());
  m.gate_one = GateOne::kBuildFailed;
  m.build.first_error = CompilerMessage{"k.py", 3, 0, "SyntaxError"};
  result = eval_result(m, 0);
  EXPECT_FALSE(result["compiled"].get<bool>());
  EXPECT_EQ(result["metadata"]["compilation_error"], "SyntaxError");
}

TEST(EvalResult, ProblemsWithoutACandidateCountInTheDenominatorAndFastIsStrict) {
  const KernelBenchFile one{"1_a.py", 1, 1, "1_a"}, two{"2_b.py", 1, 2, "2_b"}, three{"3_c.py", 1, 3, "3_c"};
  const Measurement right = timed(1.0, {1}), fast = timed(2.5, {1});
  const std::vector<Solution> solutions{solution_of(one, &right), solution_of(two, &fast),
                                        solution_of(three, nullptr)};
  EXPECT_EQ(fast_p(solutions, 0).hits, 2);
  EXPECT_EQ(fast_p(solutions, 0).problems, 3);
  EXPECT_EQ(fast_p(solutions, 1).hits, 1) << "exactly as fast is not faster";
  EXPECT_EQ(fast_p(solutions, 2).hits, 1);
}

}  // namespace
}  // namespace capstone
