// `capstone fast-p`: results of many problems in one table and one curve.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class FastPs : public CliTest {
 protected:
  std::string results() {
    spit(
        home_ / "eval_results.json",
        R"({"1": [{"sample_id": 0, "compiled": true, "correctness": true, "runtime": 1.0}, {"sample_id": 1, "compiled": true, "correctness": false}],
                                          "2": [{"sample_id": 0, "compiled": true, "correctness": true, "runtime": 4.0}, {"sample_id": 1, "compiled": true, "correctness": true, "runtime": 8.0}]})");
    spit(home_ / "baseline.json", R"({"1": 3.0, "2": 2.0})");
    return (home_ / "eval_results.json").string();
  }
};

TEST_F(FastPs, AFileThatIsNestedTooDeepIsRefused) {
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += "{\"a\":";
  spit(home_ / "deep.json", deep + "1" + std::string(200000, '}'));
  const Outcome answer = capstone({"fast-p", "deep.json"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "deep.json"));
}

TEST_F(FastPs, ResultsInKernelBenchsFormAreCounted) {
  const std::string file = results();
  Outcome shown = capstone({"fast-p", file, "--baseline", (home_ / "baseline.json").string(), "-k", "1", "2",
                            "3", "--format", "json"});
  ASSERT_EQ(shown.code, 0) << shown;
  const Json all = Json::parse(shown.out, nullptr, false);
  ASSERT_TRUE(all.contains("eval_results")) << shown;
  EXPECT_EQ(all["eval_results"]["problems"], 2);
  EXPECT_EQ(all["eval_results"]["fast_p"][0]["hits"], 2);
  EXPECT_EQ(all["eval_results"]["fast_p"][3]["hits"], 1) << "p = 1";
  EXPECT_EQ(all["eval_results"]["pass_at_k"][0]["unbiased"], 0.75);
  EXPECT_EQ(all["eval_results"]["pass_at_k"][2]["problems"], 0) << "nobody has three samples";
}

TEST_F(FastPs, CurveIsDrawn) {
  const std::string file = results();
  Outcome shown = capstone({"fast-p", file, "--baseline", (home_ / "baseline.json").string(), "--svg",
                            (home_ / "curve.svg").string()});
  if (shown.code == 3) GTEST_SKIP() << shown;
  ASSERT_EQ(shown.code, 0) << shown;
  const std::string svg = slurp(home_ / "curve.svg");
  EXPECT_TRUE(says(svg, "<svg"));
  EXPECT_TRUE(says(svg, "times as fast as the reference"));
  EXPECT_FALSE(fs::exists(home_ / "curve.svg.points"));
}

TEST_F(FastPs, ProjectsAreReadFromTheirLedgers) {
  const fs::path example = fs::path(CAPSTONE_SOURCE_DIR) / "examples" / "fusion_wins";
  Outcome shown = capstone({"fast-p", example.string()});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "human: 1 problem, "));
  EXPECT_TRUE(says(shown.out, "llm: 1 problem, 1 sample;"));
}

TEST_F(FastPs, AnAttemptWithoutCodeIsOneOfTheSamples) {
  const fs::path root = project("project", "02");
  ASSERT_EQ(capstone({"llm", "add", "-", "--model", "m", "--backend", "emulated", "--hidden", "0"},
                     {.cwd = root, .input = "```cuda\n" + slurp(root / "human" / "kernel.cu") + "```\n"})
                .code,
            0);
  for (int i = 0; i < 3; ++i)
    capstone({"llm", "add", "-", "--model", "m"},
             {.cwd = root, .input = "I cannot help with that, sorry " + std::to_string(i) + ".\n"});
  ASSERT_EQ(records(root, "attempt").size(), 4u);
  Outcome shown = capstone({"fast-p", root.string(), "--format", "json"});
  ASSERT_EQ(shown.code, 0) << shown;
  const Json all = Json::parse(shown.out, nullptr, false);
  EXPECT_EQ(all["llm"]["problems"], 1) << shown;
  EXPECT_EQ(all["llm"]["samples"], 4) << shown;
  EXPECT_EQ(all["llm"]["pass_at_k"][0]["unbiased"], 0.25) << shown;
}

TEST_F(FastPs, WithoutAGpuSpeedIsNotJudgedAndNoCurveIsDrawn) {
  spit(home_ / "untimed.json", R"({"1": [{"sample_id": 0, "compiled": true, "correctness": true}]})");
  const std::string file = (home_ / "untimed.json").string(), svg = (home_ / "curve.svg").string();
  const Outcome shown = capstone({"fast-p", file});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "1 of 1")) << "p = 0: correct";
  EXPECT_FALSE(says(shown.out, "0 of 1")) << shown;
  EXPECT_TRUE(says(shown.out, "faster than p: not judged, because no sample was timed on a GPU"));
  const Json all = Json::parse(capstone({"fast-p", file, "--format", "json"}).out, nullptr, false);
  EXPECT_EQ(all["untimed"]["fast_p"][0]["hits"], 1);
  EXPECT_EQ(all["untimed"]["fast_p"][3]["judged"], false);
  EXPECT_FALSE(all["untimed"]["fast_p"][3].contains("hits"));
  const Outcome drawn = capstone({"fast-p", file, "--svg", svg});
  EXPECT_EQ(drawn.code, 3) << drawn;
  EXPECT_TRUE(says(drawn.err, "not judged: no sample was timed on a GPU, so there is no curve"));
  EXPECT_FALSE(fs::exists(svg));
}

TEST_F(FastPs, WhatIsNoResultIsSaid) {
  spit(home_ / "x.json", "[1, 2]");
  Outcome wrong = capstone({"fast-p", (home_ / "x.json").string()});
  EXPECT_EQ(wrong.code, 2) << wrong;
  EXPECT_TRUE(says(wrong.err, "x.json"));
  EXPECT_EQ(capstone({"fast-p", "gone.jsonl"}).code, 2);
}

}  // namespace
}  // namespace capstone::cli_test
