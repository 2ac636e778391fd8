// `capstone selftest`: every case that a CPU can show, shown to the judge as a mentor would; and a corpus
// whose manifests lie, so that the command is known to fail when it must.
#include <algorithm>
#include <cctype>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

const fs::path kCorpus = fs::path(CAPSTONE_SOURCE_DIR) / "tests" / "corpus";

// The reference kernels have tests of their own.
std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kCorpus))
    if (fs::exists(entry.path() / "manifest.yaml") && entry.path().filename() != "honest_reference_kernels")
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class Corpus : public CliTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(Corpus, JudgeKeepsThePromiseOfTheManifest) {
  Outcome shown = capstone({"selftest", "--backend", "emulated", "--only", GetParam(), "--format", "json"},
                           {.patience = std::chrono::seconds(240)});
  Json record = Json::parse(shown.out, nullptr, false);
  ASSERT_TRUE(record.is_object()) << shown;
  ASSERT_EQ(record["rows"].size(), 1u);
  const Json& row = record["rows"][0];
  if (row["state"] == "not run") GTEST_SKIP() << row["why"].get<std::string>();
  EXPECT_EQ(row["state"], "ok") << "expected " << row["expected"] << ", got " << row["got"] << ": "
                                << row["why"];
  EXPECT_EQ(shown.code, 0) << shown;
}

INSTANTIATE_TEST_SUITE_P(Emulated, Corpus, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param; });

using Selftest = CliTest;

TEST_F(Selftest, TableEndsWithTheRateAndRowsThatCannotRunDoNotCount) {
  Outcome shown = capstone({"selftest", "--backend", "emulated", "--only", "01_writes_nothing", "11_*",
                            "honest_grid_stride", "--record", "record.json", "-j", "2"});
  EXPECT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "01_writes_nothing"));
  EXPECT_TRUE(says(shown.out, "not run"));
  EXPECT_TRUE(says(shown.out, "nothing is timed on a CPU"));
  EXPECT_TRUE(says(shown.out,
                   "tricks caught: 1 of 1 (100 %); honest kernels passed: 1 of 1 (100 %); not run here: 4"));
  Json record = Json::parse(slurp(home_ / "record.json"), nullptr, false);
  ASSERT_TRUE(record.is_object());
  EXPECT_EQ(record["backend"], "emulated");
  EXPECT_EQ(record["rate"]["caught"], 1);
  EXPECT_EQ(record["rows"][0]["measurement"]["gate_one"], "wrong");
}

TEST_F(Selftest, WhatWasShownBeforeAnInterruptionIsInTheRecord) {
  Outcome shown =
      program({"timeout", "-s", "INT", "3", CAPSTONE_BINARY, "selftest", "--backend", "emulated", "--only",
               "11_patches_event_timer", "13_*", "--record", (home_ / "record.json").string()});
  EXPECT_NE(shown.code, 0) << shown;
  const Json record = Json::parse(slurp(home_ / "record.json"), nullptr, false);
  ASSERT_TRUE(record.is_object()) << shown;
  ASSERT_FALSE(record["rows"].empty());
  EXPECT_LT(record["rows"].size(), 7u) << "six cases take longer than that";
  EXPECT_EQ(record["rows"][0]["name"], "11_patches_event_timer");
}

TEST_F(Selftest, AnInterruptionKeepsWhatTheRecordHadOfTheSameMachine) {
  const std::string file = (home_ / "record.json").string();
  Outcome first = program({CAPSTONE_BINARY, "selftest", "--backend", "emulated", "--only",
                           "11_patches_event_timer", "--record", file});
  EXPECT_EQ(first.code, 0) << first;
  const Json before = Json::parse(slurp(file), nullptr, false);
  Outcome second = program({"timeout", "-s", "INT", "2", CAPSTONE_BINARY, "selftest", "--backend", "emulated",
                            "--only", "13_endless_host_loop", "--record", file});
  EXPECT_NE(second.code, 0) << second;
  const Json record = Json::parse(slurp(file), nullptr, false);
  ASSERT_TRUE(record.is_object()) << second;
  ASSERT_FALSE(record["rows"].empty());
  EXPECT_EQ(record["rows"][0]["name"], "11_patches_event_timer");
  EXPECT_EQ(record["isolation"], before["isolation"]);
}

TEST_F(Selftest, WithoutAGpuTheGpuBackendIsRefusedAtOnce) {
  if (capstone({"calibrate", "--pairs", "0", "--slower", "0"}).code == 0) GTEST_SKIP() << "there is a GPU";
  Outcome refused = capstone({"selftest", "--backend", "cuda"});
  EXPECT_EQ(refused.code, 3) << refused;
  EXPECT_TRUE(says(refused.err, "GPU"));
  EXPECT_EQ(refused.out, "");
}

TEST_F(Selftest, UnknownCaseIsSaid) {
  Outcome shown = capstone({"selftest", "--only", "nosuch"});
  EXPECT_EQ(shown.code, 2) << shown;
  EXPECT_TRUE(says(shown.err, "error: no case matches nosuch"));
}

// A capstone whose corpus is another one.
class LyingCorpus : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    const fs::path built = fs::path(CAPSTONE_BINARY).parent_path().parent_path();
    fs::create_directories(home_ / "tree" / "bin");
    fs::create_directories(home_ / "tree" / "share" / "capstone" / "corpus");
    fs::copy_file(CAPSTONE_BINARY, home_ / "tree" / "bin" / "capstone");
    fs::create_directory_symlink(built / "libexec", home_ / "tree" / "libexec");
    for (const auto& entry : fs::directory_iterator(built / "share" / "capstone"))
      if (entry.path().filename() != "corpus")
        fs::create_directory_symlink(entry.path(),
                                     home_ / "tree" / "share" / "capstone" / entry.path().filename());
  }
  // A case of the real corpus under another manifest.
  void lie(const std::string& name, const std::string& of, const std::string& row,
           const std::string& promise) {
    const fs::path folder = home_ / "tree" / "share" / "capstone" / "corpus" / name;
    fs::create_directories(folder);
    fs::copy_file(kCorpus / of / "kernel.cu", folder / "kernel.cu");
    spit(folder / "manifest.yaml", "schema: 1\nrow: " + row + "\nwhat: a lie\nproblem: softmax\n" +
                                       (row == "honest" ? "" : "fools: nobody\n") + "emulated: " + promise +
                                       "\ncuda-in-process: " + promise + "\ncuda-replayed: " + promise +
                                       "\n");
  }
  Outcome selftest() {
    return program({(home_ / "tree" / "bin" / "capstone").string(), "selftest", "--backend", "emulated"});
  }
};

TEST_F(LyingCorpus, EscapeRefusalAndDifferenceFail) {
  lie("01_right", "honest_grid_stride", "1", "{caught: [WRONG]}");
  lie("01_wrong", "01_writes_nothing", "1", "{caught: [CRASH]}");
  lie("honest_wrong", "01_writes_nothing", "honest", "{passes: true}");
  Outcome shown = selftest();
  EXPECT_EQ(shown.code, 1) << shown;
  EXPECT_TRUE(says(shown.out, "ESCAPED"));
  EXPECT_TRUE(says(shown.out, "DIFFERS"));
  EXPECT_TRUE(says(shown.out, "REFUSED"));
  EXPECT_TRUE(says(shown.out, "tricks caught: 0 of 2 (0 %); honest kernels passed: 0 of 1 (0 %)"));
}

TEST_F(LyingCorpus, BrokenManifestIsNamedWithItsLine) {
  lie("01_right", "honest_grid_stride", "1", "{cought: [WRONG]}");
  Outcome shown = selftest();
  EXPECT_EQ(shown.code, 2) << shown;
  EXPECT_TRUE(says(shown.err, "unknown key `cought`"));
  EXPECT_TRUE(says(shown.err, "manifest.yaml:6:12"));
}

}  // namespace
}  // namespace capstone::cli_test
