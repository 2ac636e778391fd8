// `capstone bench` without a GPU, and live ladders and pages from recorded results.
#include <algorithm>
#include <set>

#include "harness/analysis/ladder/ladder.h"
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Recorded : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    Ladder ladder;
    ladder.problem = "softmax";
    ladder.title = "Softmax";
    ladder.sizes = {{"rows", 16384}, {"cols", 4096}};
    ladder.backend = "cuda";
    ladder.device = "NVIDIA Abacus";
    ladder.driver = "1.2";
    ladder.time = "2026-01-01T00:00:00Z";
    ladder.tool = "0";
    ladder.bytes = 5e8;
    ladder.flops = 1e8;
    ladder.copy_bytes_per_second = 1e12;
    for (double ms : {2.0, 0.8}) {
      LadderStep step;
      step.rung.name = ms > 1 ? "01_three_pass" : "02_online";
      step.rung.title = ms > 1 ? "three passes." : "one pass <online>.";
      step.rung.changed = ms > 1 ? "" : "maximum and sum in one pass.";
      step.gate_one = "PASS";
      step.ms = {ms, ms, ms};
      step.percent_of_peak = 25 / ms;
      step.of_library = {0.5 / ms, 0.4 / ms, 0.6 / ms};
      ladder.steps.push_back(step);
    }
    file_ = (home_ / "abacus.json").string();
    spit(file_, Json{{"schema", 1}, {"device", ladder.device}, {"ladders", {ladder}}}.dump());
  }
  std::string file_;
};

TEST_F(Recorded, BenchmarkIsReadByTheLibrarysOwnTools) {
  Outcome ran = capstone(
      {"bench", "--recorded", file_, "--filter", "softmax/0", "--out", "out.json", "--format", "json"},
      {.cwd = home_});
  ASSERT_EQ(ran.code, 0) << ran;
  for (const std::string& text : {ran.out, slurp(home_ / "out.json")}) {
    const Json json = Json::parse(text, nullptr, false);
    ASSERT_TRUE(json.is_object()) << text;
    EXPECT_EQ(json["context"]["gpu"], "NVIDIA Abacus");
    ASSERT_EQ(json["benchmarks"].size(), 2u);
    const Json& second = json["benchmarks"][1];
    EXPECT_EQ(second["run_name"].get<std::string>().substr(0, 17), "softmax/02_online");
    EXPECT_NEAR(second["real_time"].get<double>(), 0.8, 1e-9);
    EXPECT_EQ(second["time_unit"], "ms");
    EXPECT_NEAR(second["bytes_per_second"].get<double>(), 5e8 / 0.8e-3, 1);
    EXPECT_NEAR(second["percent_of_peak"].get<double>(), 25 / 0.8, 1e-9);
  }
}

TEST_F(Recorded, BenchmarkTakesADevicesNameAndTellsSizesApart) {
  Outcome ran = capstone({"bench", "--recorded", "h200", "--filter", "^(softmax|scan)/", "--format", "json"});
  ASSERT_EQ(ran.code, 0) << ran;
  const Json json = Json::parse(ran.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << ran;
  std::set<std::string> names;
  for (const Json& one : json["benchmarks"])
    EXPECT_TRUE(names.insert(one["name"]).second) << "twice: " << one["name"];
  EXPECT_TRUE(std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("softmax/02_online/rows=4096,cols=65536");
  }));
  EXPECT_TRUE(std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("softmax/02_online/iterations");
  }));
  Outcome nowhere = capstone({"bench", "--recorded", "abacus"});
  EXPECT_EQ(nowhere.code, 2) << nowhere;
  EXPECT_TRUE(says(nowhere.err, "recorded: h100, h200"));
}

TEST_F(Recorded, BenchmarkWithoutAGpuSaysWhatItCannotDo) {
  Outcome list = capstone({"bench", "--list", "--filter", "sgemm/0[12]"});
  ASSERT_EQ(list.code, 0) << list;
  EXPECT_EQ(list.out, "sgemm/01_naive\nsgemm/02_coalesced\n");
  Outcome none = capstone({"bench", "--filter", "nonsense"});
  EXPECT_EQ(none.code, 2) << none;
  Outcome broken = capstone({"bench", "--filter", "("});
  EXPECT_EQ(broken.code, 2) << broken;
  EXPECT_TRUE(says(broken.err, "not a regular expression"));
  Outcome other = capstone({"bench", "--filter", "sgemm", "--recorded", file_});
  EXPECT_EQ(other.code, 2) << other;
  Outcome blind = capstone({"bench", "--filter", "softmax"},
                           {.env = {{"CUDA_VISIBLE_DEVICES", "-1"}, {"CAPSTONE_IGNORE_TOOLKIT", "1"}}});
  EXPECT_EQ(blind.code, 3) << blind;
  EXPECT_TRUE(says(blind.err, "nothing can be timed here"));
}

TEST_F(Recorded, LiveLadderTakesTheGuessBeforeItShowsTheGain) {
  Outcome live = capstone({"ladder", "softmax", "--recorded", file_, "--live"}, {.input = "\n2,4\n\n"});
  ASSERT_EQ(live.code, 0) << live;
  EXPECT_TRUE(says(live.out, "RECORDED on NVIDIA Abacus, not measured here"));
  EXPECT_TRUE(says(live.out, "maximum and sum in one pass."));
  EXPECT_TRUE(says(live.out, "the room said 2.4x: spot on"));
  EXPECT_TRUE(says(live.out, "1 guess of the room; the farthest was off by 1.04x"));
  EXPECT_LT(live.out.find("how many times faster"), live.out.find("the room said")) << live.out;
  EXPECT_TRUE(says(live.out, "██")) << "large type";
  Outcome slip = capstone({"ladder", "softmax", "--recorded", file_, "--live"}, {.input = "\nwas?\n2.4\n\n"});
  EXPECT_TRUE(says(slip.out, "that is no number: 2.5, 3x, or just Enter"));
  EXPECT_LT(slip.out.find("that is no number"), slip.out.find("the room said 2.4x"))
      << "a slip of the finger gives nothing away: " << slip;
  Outcome silent = capstone({"ladder", "softmax", "--recorded", file_, "--live"}, {.input = "\n"});
  EXPECT_EQ(silent.code, 0) << "whoever leaves, leaves";
  EXPECT_EQ(silent.out.find("2.50"), std::string::npos) << "nothing is told before the guess";
}

TEST_F(Recorded, LiveSessionEndsWhenTheRoomLeavesAndTakesEachLadderOnce) {
  Outcome left = capstone({"ladder", "--session", "L3", "--recorded", "h200", "--live"}, {.input = "\n"});
  ASSERT_EQ(left.code, 0) << left;
  EXPECT_TRUE(says(left.out, "(histogram, "));
  EXPECT_EQ(left.out.find("(transpose, "), std::string::npos) << left;
  Outcome whole =
      capstone({"ladder", "transpose", "--recorded", "h200", "--live"}, {.input = std::string(40, '\n')});
  EXPECT_TRUE(says(whole.out, "rows=8192 cols=8192"));
  EXPECT_EQ(whole.out.find("rows=32768"), std::string::npos)
      << "one ladder, two sizes: the room guesses once";
}

TEST_F(Recorded, LiveLadderWithoutTimesNamesTheWay) {
  Outcome live = capstone({"ladder", "softmax", "--live", "--backend", "emulated"});
  EXPECT_EQ(live.code, 3) << live;
  EXPECT_TRUE(says(live.err, "--live --recorded DEVICE"));
}

TEST_F(Recorded, PageIsWholeEscapedAndMarkedAsRecorded) {
  Outcome shown =
      capstone({"ladder", "softmax", "--recorded", file_, "--html", "stairs.html"}, {.cwd = home_});
  ASSERT_EQ(shown.code, 0) << shown;
  const std::string page = slurp(home_ / "stairs.html");
  EXPECT_TRUE(says(page, "measured on another machine at another time"));
  EXPECT_TRUE(says(page, "one pass &lt;online&gt;."));
  EXPECT_TRUE(says(page, "<span class=\"gain good\">2.50×</span>"));
  EXPECT_TRUE(says(page, "<div class=\"track\" role=\"img\"")) << "a dot on an axis";
  EXPECT_TRUE(says(page, "<li class=\"axis\" aria-hidden=\"true\">"));
  EXPECT_FALSE(says(page, "<rect")) << "a bar on a truncated logarithm";
  EXPECT_EQ(page.find("{{"), std::string::npos) << "a placeholder is left";
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST_F(Recorded, ASlowerRungIsNotGreen) {
  const Outcome shown =
      capstone({"ladder", "softmax", "--recorded", "h200", "--html", "stairs.html"}, {.cwd = home_});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "dots: the times on a logarithmic axis, the fastest on the left"));
  EXPECT_TRUE(says(shown.out, "●")) << shown;
  const std::string page = slurp(home_ / "stairs.html");
  EXPECT_TRUE(says(page, "<span class=\"gain plain\">0.93×</span>"));
  EXPECT_FALSE(says(page, "<span class=\"gain good\">0."));
}

TEST_F(Recorded, PageOfOneLadderAtTwoSizesHasOneHeading) {
  Outcome shown =
      capstone({"ladder", "transpose", "--recorded", "h200", "--html", "stairs.html"}, {.cwd = home_});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(slurp(home_ / "stairs.html"), "<h1>Matrix transpose</h1>"));
}

TEST_F(Recorded, RehearsalBuildsAndChecksAndTimesNothing) {
  Outcome ready = capstone({"ladder", "softmax", "--only", "01", "--rehearse", "--backend", "emulated"});
  ASSERT_EQ(ready.code, 0) << ready;
  EXPECT_TRUE(says(ready.out, "softmax: 1 of 1 rungs are built and checked"));
}

}  // namespace
}  // namespace capstone::cli_test
