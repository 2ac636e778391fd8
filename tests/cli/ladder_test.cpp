// `capstone ladder` without a GPU, and records that are made in parts.
#include "harness/analysis/ladder/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Ladders : public CliTest {};

// Character cells of a line without colours, behind the progress that was wiped.
int cells(const std::string& shown) {
  const std::size_t wiped = shown.rfind("\x1b[2K");
  const std::string line = wiped == shown.npos ? shown : shown.substr(wiped + 4);
  return static_cast<int>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u && c != '\r';
  }));
}

TEST_F(Ladders, WithoutAGpuEveryRungIsCheckedAndNoneIsTimed) {
  Outcome climbed = capstone({"ladder", "softmax", "--only", "01", "02", "--backend", "emulated"});
  ASSERT_EQ(climbed.code, 0) << climbed;
  EXPECT_TRUE(says(climbed.out, "01_three_pass"));
  EXPECT_TRUE(says(climbed.out, "PASS"));
  EXPECT_TRUE(says(climbed.out, "not timed: a ladder's times need a GPU"));
  EXPECT_TRUE(says(climbed.out, "sectors")) << "what cannot be timed is counted";
  EXPECT_EQ(climbed.out.find("03_"), std::string::npos) << climbed.out;
}

TEST_F(Ladders, OfLanguagesWithoutPyTorchSayWhatIsMissingAndWhatWasWritten) {
  Outcome climbed = capstone({"ladder", "softmax_languages", "--only", "01_triton", "--backend", "emulated",
                              "--python", "/bin/true"});
  EXPECT_EQ(climbed.code, 3) << climbed;
  EXPECT_TRUE(says(climbed.out, "Triton"));
  EXPECT_TRUE(says(climbed.out, "NOT JUDGEABLE"));
  EXPECT_TRUE(says(climbed.out, "this is no Python that runs"));
  Outcome path = capstone({"ladder", "softmax_languages", "--only", "01_triton", "--backend", "emulated",
                           "--python-path", "/nowhere/wheels"});
  EXPECT_EQ(path.code, 3) << path;
  EXPECT_TRUE(says(path.out, "no such folder of Python packages: /nowhere/wheels"));
  Outcome misspelt = capstone({"ladder", "gemm_language"});
  EXPECT_EQ(misspelt.code, 2) << misspelt;
  EXPECT_TRUE(says(misspelt.err, "did you mean `gemm_languages`?"));
}

TEST_F(Ladders, RungThatIsWrongSaysSoAndFails) {
  const fs::path broken = home_ / "09_broken.cu";
  spit(broken,
       "// Rung 9: forgets its work.\n#include <cuda_runtime.h>\n#include <cstdint>\n__global__ void k() {}\n"
       "extern \"C\" void launch(const float*, float*, int64_t, int64_t, void*, cudaStream_t s) { k<<<1, 32, "
       "0, s>>>(); }\n");
  Outcome climbed =
      capstone({"ladder", "softmax", "--only", broken.string(), "--backend", "emulated", "--format", "json"});
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
  EXPECT_TRUE(says(misspelt.err, "did you mean `softmax`?"));
  Outcome source = capstone({"ladder", "softmax", "--only", "nosuch.cu"});
  EXPECT_EQ(source.code, 2) << source;
  EXPECT_TRUE(says(source.err, "no such source file"));
  Outcome session = capstone({"ladder", "--session", "L99"});
  EXPECT_EQ(session.code, 2) << session;
  EXPECT_TRUE(says(session.err, "L1 to L8"));
  Outcome size = capstone({"ladder", "softmax", "--size", "rows=0"});
  EXPECT_EQ(size.code, 2) << size;
  EXPECT_TRUE(says(size.err, "--size takes SYMBOL=NUMBER"));
  Outcome device = capstone({"ladder", "softmax", "--recorded", "abacus"});
  EXPECT_EQ(device.code, 2) << device;
  EXPECT_TRUE(says(device.err, "no results were recorded on abacus"));
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
  EXPECT_TRUE(says(other.err, "recorded: softmax"));
  EXPECT_TRUE(says(capstone({"ladder", "sofmax", "--recorded", file}).err, "did you mean `softmax`?"));

  // What was asked for is shown, or an error: never something else.
  Outcome second = capstone({"ladder", "softmax", "--recorded", file, "--only", "2", "--size", "cols=4096"});
  ASSERT_EQ(second.code, 0) << second;
  EXPECT_TRUE(says(second.out, "02_online"));
  EXPECT_EQ(second.out.find("01_three_pass"), std::string::npos) << second;
  Outcome size = capstone({"ladder", "softmax", "--recorded", file, "--size", "cols=65536"});
  EXPECT_EQ(size.code, 2) << size;
  EXPECT_TRUE(says(size.err, "nothing was recorded at cols=65536"));
  EXPECT_TRUE(says(size.err, "rows=16384, cols=4096"));
  EXPECT_EQ(capstone({"ladder", "softmax", "--recorded", file, "--size", "depth=3"}).code, 2);
  Outcome rung = capstone({"ladder", "softmax", "--recorded", file, "--only", "7"});
  EXPECT_EQ(rung.code, 2) << rung;
  EXPECT_TRUE(says(rung.err, "recorded: 01_three_pass 02_online"));
  for (const std::vector<std::string>& measuring : std::vector<std::vector<std::string>>{
           {"--budget", "9"}, {"--record", "x.json"}, {"--backend", "cuda"}, {"--rehearse"}}) {
    std::vector<std::string> words{"ladder", "softmax", "--recorded", file};
    words.insert(words.end(), measuring.begin(), measuring.end());
    Outcome refused = capstone(words);
    EXPECT_EQ(refused.code, 2) << measuring[0] << refused;
    EXPECT_TRUE(says(refused.err, "excludes")) << measuring[0];
  }
}

TEST_F(Ladders, OfASessionDoNotTellWhatIsTaughtLater) {
  Outcome early = capstone({"ladder", "--session", "L4", "--recorded", "h200"});
  ASSERT_EQ(early.code, 0) << early;
  EXPECT_TRUE(says(early.out, "04_register_tile_1d"));
  EXPECT_EQ(early.out.find("05_"), std::string::npos) << early;
  Outcome late = capstone({"ladder", "--session", "L5", "--recorded", "h200"});
  EXPECT_TRUE(says(late.out, "01_naive"));
  EXPECT_TRUE(says(late.out, "10_autotuned"));
}

TEST_F(Ladders, WhatCannotBeWrittenIsSaidBeforeTheWork) {
  for (const char* option : {"--html", "--record"}) {
    Outcome refused = capstone({"ladder", "softmax", "--only", "01", "--backend", "emulated", option,
                                (home_ / "nosuch" / "x").string()});
    EXPECT_EQ(refused.code, 2) << refused;
    EXPECT_TRUE(says(refused.err, "cannot write"));
    EXPECT_EQ(refused.err.find("building"), std::string::npos) << refused;
  }
  Outcome folder = capstone({"ladder", "softmax", "--recorded", "h200", "--html", home_.string()});
  EXPECT_EQ(folder.code, 2) << folder;
  EXPECT_TRUE(says(folder.err, "this is a folder"));
  Outcome record =
      capstone({"ladder", "softmax", "--only", "01", "--backend", "emulated", "--record", "x.json"});
  EXPECT_EQ(record.code, 3) << record;
  EXPECT_TRUE(says(record.err, "--record needs times"));
  EXPECT_EQ(record.err.find("building"), std::string::npos) << record;
  EXPECT_FALSE(fs::exists(home_ / "x.json"));
}

// A projector has 80 columns: whatever the terminal, no line is wider.
TEST_F(Ladders, HaveRoomOnANarrowTerminal) {
  std::error_code code;
  if (!fs::exists("/usr/bin/script", code)) GTEST_SKIP() << "no script(1) here";
  for (int columns : {80, 120})
    for (const char* words : {"ladder sgemm --recorded h200", "ladder softmax --recorded h200",
                              "demo mountain", "demo flash-traffic", "syllabus", "map W4", "map W6",
                              "map L5 --week", "explain 03 --problem sgemm"}) {
      Outcome shown = program(
          {"/usr/bin/script", "-qec",
           fmt::format("stty cols {}; NO_COLOR=1 {} {}; echo exit=$?", columns, CAPSTONE_BINARY, words),
           "/dev/null"});
      ASSERT_TRUE(says(shown.out, "exit=0"))
          << words;  // script's own code is that of the last process below it
      std::istringstream lines(shown.out);
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(cells(line), columns) << words << ": " << line;
    }
}

TEST_F(Ladders, SelftestsRecordGrowsByWhatIsShown) {
  const fs::path record = home_ / "record.json";
  for (const char* only : {"28_yaml_depth", "28_yaml_aliases", "28_yaml_depth"})
    ASSERT_EQ(
        capstone({"selftest", "--backend", "emulated", "--only", only, "--record", record.string()}).code, 0)
        << only;
  const Json whole = Json::parse(slurp(record), nullptr, false);
  ASSERT_TRUE(whole.is_object());
  EXPECT_EQ(whole["rows"].size(), 2u);
  EXPECT_EQ(whole["rate"]["caught"], 2);
}

}  // namespace
}  // namespace capstone::cli_test
