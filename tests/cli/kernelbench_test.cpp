// KernelBench's files and folders, as a user meets them. Skipped where no python3 on PATH has PyTorch.
#include <signal.h>

#include <algorithm>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

constexpr const char* kScale = R"(import torch
import torch.nn as nn


class Model(nn.Module):
    """Every row is divided by its sum."""

    def forward(self, x):
        return x / x.sum(dim=1, keepdim=True)


batch_size = 4096
dim = 2048


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
)";

constexpr const char* kRight = R"(import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * (1 / x.sum(1, keepdim=True))
)";

class KernelBench : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    const Json rows =
        Json::parse(capstone({"doctor", "--format", "json"}, {.patience = std::chrono::seconds(110)}).out,
                    nullptr, false);
    for (const Json& row : rows)
      if (row.value("what", "") == "PyTorch" && row.value("state", "") != "ok")
        GTEST_SKIP() << row.value("found", "");
    fs::create_directories(home_ / "problems" / "level1");
    spit(home_ / "problems" / "level1" / "5_Divide_by_sum.py", kScale);
  }
  Outcome run(std::vector<std::string> words) const {
    return capstone(std::move(words), {.patience = std::chrono::seconds(110)});
  }
};

TEST_F(KernelBench, AProjectFromAFileIsMeasuredLikeAnyOther) {
  Outcome made = run({"init", "--kernelbench", "problems/level1/5_Divide_by_sum.py", "mine"});
  EXPECT_EQ(made.code, 0) << made;
  EXPECT_TRUE(says(made.out, "KernelBench 1/5_Divide_by_sum (kb1_5_divide_by_sum, tier 1)"));
  const fs::path root = home_ / "mine";
  EXPECT_TRUE(says(slurp(root / "problem" / "launch.h"), "const float* x /* [batch_size, dim] */"));
  EXPECT_TRUE(says(slurp(root / "problem" / "problem.yaml"), "oracle: reference.py"));
  // The stub compiles, and is told that it writes nothing.
  Outcome stub = capstone({"measure", "--backend", "emulated", "--hidden", "0", "--quick"},
                          {.cwd = root, .patience = std::chrono::seconds(110)});
  EXPECT_EQ(stub.code, 1) << stub;
  EXPECT_TRUE(says(stub.out, "nothing written"));
  spit(root / "human" / "kernel.py", kRight);
  Outcome measured =
      capstone({"measure", "--backend", "emulated"}, {.cwd = root, .patience = std::chrono::seconds(110)});
  EXPECT_EQ(measured.code, 0) << measured;
  EXPECT_TRUE(says(measured.out, "PASS"));
  EXPECT_TRUE(says(measured.err, "human/kernel.py is judged, not human/kernel.cu, which is there, too"));
  EXPECT_TRUE(says(measured.out, "library work: PyTorch's own operators computed it")) << measured;
  EXPECT_TRUE(says(run({"init", "--kernelbench", "problems/level1/5_Divide_by_sum.py", "one", "two"}).err,
                   "too many words"));
  Outcome missing = run({"init", "--kernelbench", "nothing.py", "other"});
  EXPECT_EQ(missing.code, 2) << missing;
  EXPECT_TRUE(says(missing.err, "no such file"));
}

TEST_F(KernelBench, AnExceptionOfTheReferenceHasItsPlaceAndItsTracebackOnRequest) {
  ASSERT_EQ(run({"init", "--kernelbench", "problems/level1/5_Divide_by_sum.py", "mine"}).code, 0);
  // A problem of one's own, whose reference broke.
  fs::copy(home_ / "mine" / "problem", home_ / "own", fs::copy_options::recursive);
  std::string text = slurp(home_ / "own" / "reference.py");
  const std::string line = "return x / x.sum(dim=1, keepdim=True)";
  ASSERT_NE(text.find(line), std::string::npos);
  spit(home_ / "own" / "reference.py",
       text.replace(text.find(line), line.size(), "return x / x.no_such_method()"));
  ASSERT_EQ(run({"init", "own", "other"}).code, 0);
  spit(home_ / "other" / "human" / "kernel.py", kRight);
  auto measured = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"measure", "--backend", "emulated", "--hidden", "0"});
    return capstone(more, {.cwd = home_ / "other", .patience = std::chrono::seconds(110)});
  };
  const Outcome brief = measured({});
  EXPECT_EQ(brief.code, 2) << brief;
  EXPECT_TRUE(says(brief.err, "error: the reference cannot be computed in float64: "));
  EXPECT_TRUE(says(brief.err, "no_such_method"));
  EXPECT_TRUE(says(brief.err, "reference.py:"));
  EXPECT_TRUE(says(brief.err, "hint: --verbose shows the whole traceback"));
  EXPECT_EQ(brief.err.find("Traceback (most recent call last)"), std::string::npos);
  EXPECT_TRUE(says(measured({"--verbose"}).err, "Traceback (most recent call last)"));
}

TEST_F(KernelBench, AFolderOfCandidatesIsJudgedOnceAndResumed) {
  spit(home_ / "problems" / "level1" / "6_Refused.py", "class Model: pass\n");
  fs::create_directories(home_ / "solutions");
  spit(home_ / "solutions" / "level_1_problem_5_sample_0_kernel.py", kRight);
  spit(home_ / "solutions" / "level_1_problem_5_sample_1_kernel.py",
       "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n");
  spit(home_ / "solutions" / "level_1_problem_5_sample_2_kernel.py",
       "raise RuntimeError('Found no CUDA driver')\n");
  spit(home_ / "solutions" / "level_1_problem_6_sample_0_kernel.py", kRight);
  spit(home_ / "solutions" / "99_Nothing.py", kRight);
  const std::vector<std::string> command{"kernelbench", "run",       "--problems", "problems",
                                         "--solutions", "solutions", "--out",      "out",
                                         "--backend",   "emulated",  "--hidden",   "0"};
  Outcome first = run(command);
  EXPECT_EQ(first.code, 4) << first;
  EXPECT_TRUE(says(first.err, "99_Nothing.py belongs to none of the problems"));
  EXPECT_TRUE(says(first.err, "1/5_Divide_by_sum sample 0: PASS"));
  EXPECT_TRUE(says(first.err, "1/5_Divide_by_sum sample 1: WRONG"));
  EXPECT_TRUE(says(first.err, "1/5_Divide_by_sum sample 2: NOT JUDGEABLE"));
  EXPECT_TRUE(says(first.err, "1/6_Refused sample 0: not judged: the file defines no get_inputs"));
  EXPECT_TRUE(says(first.out, "compiled   2 of 4 samples"));
  EXPECT_TRUE(says(first.out, "fast_0     1 of 2 (50.0 %)"));
  EXPECT_TRUE(says(first.out, "fast_1     0 of 2 (0.0 %)"));
  const Json results = Json::parse(slurp(home_ / "out" / "eval_results.json"), nullptr, false);
  ASSERT_TRUE(results.is_object());
  ASSERT_EQ(results["5"].size(), 3u);
  EXPECT_TRUE(results["5"][0]["correctness"].get<bool>());
  EXPECT_EQ(results["5"][1]["sample_id"], 1);
  EXPECT_FALSE(results["5"][1]["correctness"].get<bool>());
  EXPECT_EQ(results["5"][0]["runtime"], -1.0) << "nothing is timed on a CPU";
  EXPECT_EQ(results["6"][0]["metadata"]["not_judged"].get<std::string>().substr(0, 31),
            "the file defines no get_inputs:");
  // Again: what was judged stays judged; what was refused, or not judgeable on a machine as it was then, is
  // tried again.
  auto lines = [&] {
    const std::string text = slurp(home_ / "out" / "records.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(), 4);
  EXPECT_EQ(run(command).code, 4);
  EXPECT_EQ(lines(), 6);
  EXPECT_EQ(Json::parse(slurp(home_ / "out" / "eval_results.json")), results);
}

TEST_F(KernelBench, AProblemIsRunOnceForAllItsSamplesAndEachLevelHasItsResults) {
  // The file itself tells how often it was run: what it prints is what is said about it.
  spit(home_ / "problems" / "level1" / "6_Refused.py", "class Model: pass\n");
  fs::create_directories(home_ / "problems" / "level2");
  spit(home_ / "problems" / "level2" / "1_Refused.py", "class Model: pass\n");
  fs::create_directories(home_ / "solutions");
  for (const char* name : {"level_1_problem_6_sample_0_kernel.py", "level_1_problem_6_sample_1_kernel.py",
                           "level_2_problem_1_sample_0_kernel.py"})
    spit(home_ / "solutions" / name, kRight);
  Outcome refused = run({"kernelbench", "run", "--problems", "problems", "--solutions", "solutions", "--out",
                         "out", "--backend", "emulated"});
  EXPECT_EQ(refused.code, 4) << refused;
  std::size_t runs = 0;
  for (std::size_t at = refused.err.find("running 6_Refused.py"); at != std::string::npos;
       at = refused.err.find("running 6_Refused.py", at + 1))
    ++runs;
  EXPECT_EQ(runs, 1u) << refused;
  EXPECT_TRUE(says(refused.err, "sample 1: not judged: the file defines no get_inputs"));
  EXPECT_FALSE(fs::exists(home_ / "out" / "eval_results.json")) << "its name would not say which level";
  EXPECT_EQ(Json::parse(slurp(home_ / "out" / "eval_results_level_1.json"))["6"].size(), 2u);
  EXPECT_EQ(Json::parse(slurp(home_ / "out" / "eval_results_level_2.json"))["1"].size(), 1u);
}

TEST_F(KernelBench, WhatWasJudgedBeforeAnInterruptionIsInTheResults) {
  fs::create_directories(home_ / "solutions");
  spit(home_ / "solutions" / "level_1_problem_5_sample_0_kernel.py", kRight);
  spit(home_ / "solutions" / "level_1_problem_5_sample_1_kernel.py",
       "import time\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        "
       "time.sleep(100)\n        return x\n");
  Child child = start({"kernelbench", "run", "--problems", "problems", "--solutions", "solutions", "--out",
                       "out", "--backend", "emulated", "--hidden", "0"});
  ASSERT_TRUE(wait_for(child, "1 of 2: 1/5_Divide_by_sum sample 0: PASS", std::chrono::seconds(60)));
  EXPECT_FALSE(fs::exists(home_ / "out" / "eval_results.json")) << "the problem has not ended";
  ASSERT_TRUE(wait_for(child, "gate one, case", std::chrono::seconds(60)));
  ::kill(child.pid(), SIGINT);
  EXPECT_EQ(child.finish(std::chrono::seconds(120)).status, 130);
  const Json results = Json::parse(slurp(home_ / "out" / "eval_results.json"), nullptr, false);
  ASSERT_TRUE(results.is_object());
  ASSERT_EQ(results["5"].size(), 1u);
  EXPECT_TRUE(results["5"][0]["correctness"].get<bool>());
}

TEST_F(KernelBench, AProblemsOwnReferenceIsRight) {
  Outcome self = run({"kernelbench", "run", "--self", "--problems", "problems", "--out", "out", "--backend",
                      "emulated", "--format", "json"});
  EXPECT_EQ(self.code, 0) << self;
  const Json said = Json::parse(self.out, nullptr, false);
  EXPECT_EQ(said.value("correct", 0), 1) << self;
  EXPECT_TRUE(
      says(run({"kernelbench", "run", "--problems", "problems"}).err, "neither --solutions nor --self"));
}

}  // namespace
}  // namespace capstone::cli_test
