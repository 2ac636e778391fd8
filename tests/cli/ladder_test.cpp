// `capstone ladder` without a GPU, and records that are made in parts.
#include "harness/ladder/ladder.h"
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Ladders : public CliTest {};

TEST_F(Ladders, WithoutAGpuEveryRungIsCheckedAndNoneIsTimed) {
  Outcome climbed = capstone({"ladder", "softmax", "--only", "01", "02", "--backend", "emulated"});
  ASSERT_EQ(climbed.code, 0) << climbed;
  EXPECT_TRUE(says(climbed.out, "01_three_pass"));
  EXPECT_TRUE(says(climbed.out, "PASS"));
  EXPECT_TRUE(says(climbed.out, "not timed: a ladder's times need a GPU"));
  EXPECT_TRUE(says(climbed.out, "sectors")) << "what cannot be timed is counted";
  EXPECT_EQ(climbed.out.find("03_"), std::string::npos) << climbed.out;
}

TEST_F(Ladders, RungThatIsWrongSaysSoAndFails) {
  const fs::path broken = home_ / "09_broken.cu";
  spit(broken, "// Rung 9: forgets its work.\n#include <cuda_runtime.h>\n#include <cstdint>\n__global__ void k() {}\n"
               "extern \"C\" void launch(const float*, float*, int64_t, int64_t, void*, cudaStream_t s) { k<<<1, 32, 0, s>>>(); }\n");
  Outcome climbed = capstone({"ladder", "softmax", "--only", broken.string(), "--backend", "emulated", "--format", "json"});
  EXPECT_EQ(climbed.code, 1) << climbed;
  const Json record = Json::parse(climbed.out, nullptr, false);
  ASSERT_TRUE(record.is_array()) << climbed;
  EXPECT_EQ(record[0]["steps"][0]["gate_one"], "WRONG");
  EXPECT_EQ(record[0]["steps"][0]["rung"], "09_broken");
}

TEST_F(Ladders, MistakesAreAnsweredWithWhatThereIs) {
  Outcome nothing = capstone({"ladder"});
  EXPECT_EQ(nothing.code, 2) << nothing;
  EXPECT_TRUE(says(nothing.err, "sgemm"));
  Outcome misspelt = capstone({"ladder", "softmacs"});
  EXPECT_EQ(misspelt.code, 2) << misspelt;
  EXPECT_TRUE(says(misspelt.err, "softmax"));
  Outcome session = capstone({"ladder", "--session", "L99"});
  EXPECT_EQ(session.code, 2) << session;
  EXPECT_TRUE(says(session.err, "L1 to L8"));
  Outcome size = capstone({"ladder", "softmax", "--size", "rows=0"});
  EXPECT_EQ(size.code, 2) << size;
  EXPECT_TRUE(says(size.err, "--size takes SYMBOL=NUMBER"));
  Outcome device = capstone({"ladder", "softmax", "--recorded", "abacus"});
  EXPECT_EQ(device.code, 2) << device;
  EXPECT_TRUE(says(device.err, "nothing was recorded on abacus"));
}

TEST_F(Ladders, RecordedOnesAreShownAsRecorded) {
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
  for (double ms : {2.0, 1.0}) {
    LadderStep step;
    step.rung.name = ms > 1 ? "01_three_pass" : "02_online";
    step.gate_one = "PASS";
    step.ms = {ms, ms, ms};
    step.of_library = {0.5, 0.5, 0.5};
    ladder.steps.push_back(step);
  }
  spit(home_ / "abacus.json", Json{{"schema", 1}, {"device", ladder.device}, {"ladders", {ladder}}}.dump());
  const std::string file = (home_ / "abacus.json").string();
  Outcome shown = capstone({"ladder", "softmax", "--recorded", file});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "RECORDED, not measured here: NVIDIA Abacus, driver 1.2"));
  EXPECT_TRUE(says(shown.out, "2.00x"));
  EXPECT_TRUE(says(shown.out, "50.0 %"));
  Outcome other = capstone({"ladder", "sgemm", "--recorded", file});
  EXPECT_EQ(other.code, 2) << other;
  EXPECT_TRUE(says(other.err, "no such ladder was recorded: sgemm"));
}

TEST_F(Ladders, SelftestsRecordGrowsByWhatIsShown) {
  const fs::path record = home_ / "record.json";
  for (const char* only : {"28_yaml_depth", "28_yaml_aliases", "28_yaml_depth"})
    ASSERT_EQ(capstone({"selftest", "--backend", "emulated", "--only", only, "--record", record.string()}).code, 0) << only;
  const Json whole = Json::parse(slurp(record), nullptr, false);
  ASSERT_TRUE(whole.is_object());
  EXPECT_EQ(whole["rows"].size(), 2u);
  EXPECT_EQ(whole["rate"]["caught"], 2);
}

}  // namespace
}  // namespace capstone::cli_test
