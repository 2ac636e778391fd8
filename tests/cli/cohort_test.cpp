// A mentor's night: a generated cohort of every kind of submission, killed at random, and started again.
#include <signal.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "harness/base/csv.h"
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Cohort : public CliTest {
 protected:
  void make(int count) {
    Outcome made = program({CAPSTONE_SOURCE_DIR "/scripts/make_cohort", (home_ / "c").string(), "--count",
                            std::to_string(count)});
    ASSERT_EQ(made.code, 0) << made;
    auto table =
        CsvTable::read(slurp(home_ / "c" / "expected.csv"), "expected.csv", {"name", "state", "fault"});
    ASSERT_TRUE(table);
    for (std::size_t i = 0; i < table->rows(); ++i)
      expected_[table->at(i, "name")] = table->at(i, "state") + " " + table->at(i, "fault");
  }

  std::vector<std::string> command(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{
        "grade", "c/submissions", "--out",     out,  "--backend", "emulated", "--hidden",
        "0",     "--quick",       "--timeout", "10", "-j",        "2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static Json result(const fs::path& out, const std::string& name) {
    return Json::parse(slurp(out / "submissions" / name / "result.json"), nullptr, false);
  }

  // What a batch came to, without times and seeds.
  static std::string essence(const fs::path& out) {
    std::string text = slurp(out / "grades.csv");
    for (const auto& entry : fs::directory_iterator(out / "submissions")) {
      Json json = result(out, entry.path().filename());
      text += json["name"].get<std::string>() + json["inputs"].dump() + json["suggested"].dump() +
              json["claims"].dump() + json["members"].dump() + "\n";
    }
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    text.clear();
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  void expect_right_states(const fs::path& out) const {
    for (const auto& [name, state] : expected_) {
      Json json = result(out, name);
      ASSERT_TRUE(json.is_object()) << name << " has no result";
      EXPECT_EQ(json["state"].get<std::string>() + " " + json["fault"].get<std::string>(), state)
          << name << ": " << json["why"];
    }
  }

  std::map<std::string, std::string> expected_;
};

// Every kind once, and the first two again.
constexpr int kCohort = 23;

TEST_F(Cohort, KilledTwentyTimesItEndsLikeAnUndisturbedOne) {
  make(kCohort);
  // The one that is killed comes first, when nothing is built yet. Both are made in the same place, which
  // builds are cached by.
  std::mt19937 random(20261122);
  for (int kill = 0; kill < 20; ++kill) {
    Child child = start(command("out"));
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::uniform_real_distribution<double>(0.02, 2.5)(random)));
    ::kill(child.pid(), SIGKILL);
    child.finish(std::chrono::seconds(5));
  }
  // A sandbox whose outer process is killed while it still sets up the inner one leaves that behind: the next
  // start ends it, and TearDown() looks for processes that are left.
  std::this_thread::sleep_for(std::chrono::seconds(1));  // those that die by themselves
  Outcome resumed = capstone(command("out"), {.patience = std::chrono::seconds(600)});
  EXPECT_EQ(resumed.code, 4) << resumed;
  expect_right_states(home_ / "out");
  fs::rename(home_ / "out", home_ / "killed");

  Outcome whole = capstone(command("out"), {.patience = std::chrono::seconds(600)});
  fs::rename(home_ / "out", home_ / "whole");
  EXPECT_EQ(whole.code, 4) << whole;
  expect_right_states(home_ / "whole");
  EXPECT_FALSE(fs::exists(home_ / "whole" / "escaped.txt"));
  EXPECT_TRUE(says(whole.out, "never submitted: Never There (1)"));
  // Claims that come from a GPU which is not here cost no honesty.
  for (const Json& mark : result(home_ / "whole", "s0000")["suggested"]) {
    if (mark["criterion"] == "honesty") {
      EXPECT_EQ(mark["points"], 10) << mark;
    }
  }

  EXPECT_EQ(essence(home_ / "killed"), essence(home_ / "whole"));
  const std::string table = capstone({"gradebook", "whole", "--format", "csv"}).out;
  EXPECT_GT(std::count(table.begin(), table.end(), '\n'), static_cast<long>(expected_.size()));
  EXPECT_EQ(capstone({"gradebook", "killed", "--format", "csv"}).out, table);

  // Nothing changed: nothing is done again, and the files stay as they are.
  const auto before = fs::last_write_time(home_ / "killed" / "submissions" / "s0000" / "result.json");
  Outcome again = capstone(command("killed"));
  EXPECT_TRUE(says(again.err, std::to_string(expected_.size()) + " unchanged since they were graded"));
  EXPECT_EQ(fs::last_write_time(home_ / "killed" / "submissions" / "s0000" / "result.json"), before);

  // Every result is what the schema says.
  Outcome python = program({"python3", "-c", "import jsonschema"});
  if (python.code != 0) GTEST_SKIP() << "python3-jsonschema is not here: " << python.err;
  Outcome valid = program({"python3", "-W", "ignore", "-c",
                           "import json, sys, glob, jsonschema\n"
                           "schema = json.load(open(sys.argv[1]))\n"
                           "jsonschema.Draft202012Validator.check_schema(schema)\n"
                           "files = glob.glob('whole/submissions/*/result.json')\n"
                           "[jsonschema.validate(json.load(open(f)), schema) for f in files]\n"
                           "bad = json.load(open(files[0])); bad['state'] = 'excellent'\n"
                           "try: jsonschema.validate(bad, schema); sys.exit('a wrong state is taken')\n"
                           "except jsonschema.ValidationError: print(len(files), 'valid')\n",
                           CAPSTONE_SOURCE_DIR "/rubric/result.schema.json"});
  EXPECT_EQ(valid.out, std::to_string(expected_.size()) + " valid\n") << valid;
}

TEST_F(Cohort, OnlyForceAndDryRunDoWhatTheySay) {
  ASSERT_EQ(capstone({"init", "vector_add", "c/submissions/ada", "--from", "01"}).code, 0);
  ASSERT_EQ(capstone({"init", "vector_add", "c/submissions/bob", "--from", "01"}).code, 0);
  Outcome plan = capstone(command("out", {"--dry-run"}));
  EXPECT_EQ(plan.code, 0) << plan;
  EXPECT_TRUE(says(plan.out, "grade: new"));
  EXPECT_FALSE(fs::exists(home_ / "out"));
  Outcome unknown = capstone(command("out", {"--only", "adda"}));
  EXPECT_EQ(unknown.code, 2) << unknown;
  EXPECT_TRUE(says(unknown.err, "did you mean 'ada'?"));
  Outcome one = capstone(command("out", {"--only", "ada"}));
  EXPECT_EQ(one.code, 4) << "bob waits: " << one;
  EXPECT_TRUE(says(one.out, "1 graded, 1 queued"));
  EXPECT_FALSE(fs::exists(home_ / "out" / "submissions" / "bob"));
  Outcome rest = capstone(command("out"));
  EXPECT_EQ(rest.code, 0) << rest;
  EXPECT_TRUE(says(rest.err, "1 unchanged"));
  EXPECT_TRUE(says(capstone(command("out", {"--force", "--dry-run"})).out, "grade: --force"));
  spit(home_ / "c" / "submissions" / "ada" / "worklog.md", "# more\n");
  plan = capstone(command("out", {"--dry-run"}));
  EXPECT_TRUE(says(plan.out, "grade: handed in again"));
  EXPECT_TRUE(says(plan.out, "nothing: unchanged"));
  EXPECT_TRUE(
      says(capstone({"grade", "c/submissions", "--out", "out", "--backend", "emulated", "--dry-run"}).out,
           "grade: other options"));
}

TEST_F(Cohort, AFaultOfTheMachineIsNoStudentsZeroAndIsTriedAgain) {
  ASSERT_EQ(capstone({"init", "vector_add", "c/submissions/ada", "--from", "01"}).code, 0);
  // Without a compiler nothing can be judged.
  fs::create_directories(home_ / "bin");
  for (const char* tool : {"bwrap", "sh"}) {
    Outcome where = program({"sh", "-c", std::string("command -v ") + tool});
    if (where.code == 0) fs::create_symlink(where.out.substr(0, where.out.find('\n')), home_ / "bin" / tool);
  }
  Outcome broken =
      capstone(command("out"),
               {.env = {{"PATH", (home_ / "bin").string()}, {"CAPSTONE_CACHE", (home_ / "cache").string()}}});
  EXPECT_EQ(broken.code, 4) << broken;
  Json json = result(home_ / "out", "ada");
  EXPECT_EQ(json["state"], "failed") << json;
  EXPECT_EQ(json["fault"], "machine");
  EXPECT_TRUE(json["suggested"].empty()) << "no mark is suggested, not even zero";
  Outcome again = capstone(command("out"));
  EXPECT_EQ(again.code, 0) << again;
  EXPECT_TRUE(says(again.err, "the machine failed last time"));
}

TEST_F(Cohort, FeedbackNamesNoSuggestedTotal) {
  ASSERT_EQ(capstone({"init", "vector_add", "c/submissions/ada", "--from", "01"}).code, 0);
  ASSERT_EQ(capstone(command("out")).code, 0);
  fs::path folder = home_ / "out" / "submissions" / "ada";
  EXPECT_TRUE(says(slurp(folder / "score_sheet.md"), "Suggested"));
  for (const char* file : {"score_sheet.md", "score_sheet.html", "score_sheet.json"}) {
    std::string text = slurp(folder / "feedback" / file);
    EXPECT_FALSE(text.empty()) << file;
    EXPECT_EQ(text.find("uggested"), std::string::npos) << file;
  }
  EXPECT_TRUE(says(slurp(folder / "feedback" / "score_sheet.md"), "judged again: PASS"));
}

TEST_F(Cohort, TwoBatchesDoNotWorkOnOneCohort) {
  ASSERT_EQ(capstone({"init", "vector_add", "c/submissions/ada", "--from", "01"}).code, 0);
  spit(home_ / "c" / "submissions" / "ada" / "human" / "kernel.cu", "#error slow to begin with\n");
  Child first = start(command("out", {"--force"}));
  ASSERT_TRUE(wait_for(first, "[1/1] ada"));
  Outcome second = capstone(command("out"));
  EXPECT_EQ(second.code, 3) << second;
  EXPECT_TRUE(says(second.err, "error: another `capstone grade` is working on this cohort"));
  first.finish(std::chrono::seconds(120));
}

}  // namespace
}  // namespace capstone::cli_test
