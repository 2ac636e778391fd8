// From a student's `checkin` to a mentor's list of who needs a word.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class CheckIn : public CliTest {
 protected:
  fs::path student(const std::string& name, const std::string& id) const {
    Outcome made =
        capstone({"init", "vector_add", name, "--from", "01", "--member", name + " (id " + id + ")"});
    EXPECT_EQ(made.code, 0) << made;
    return home_ / name;
  }
  void check_in(const fs::path& root, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"checkin", "--out",
                                   (home_ / "in" / (root.filename().string() + ".json")).string()};
    words.insert(words.end(), more.begin(), more.end());
    Outcome done = capstone(words, {.cwd = root});
    EXPECT_EQ(done.code, 0) << done;
  }
  void SetUp() override {
    CliTest::SetUp();
    fs::create_directories(home_ / "in");
  }
};

TEST_F(CheckIn, TellsWhereAStudentStandsAndTheLedgerKeepsIt) {
  const fs::path root = student("ada", "1815");
  Outcome fresh = capstone({"checkin"}, {.cwd = root});
  EXPECT_EQ(fresh.code, 0) << fresh;
  EXPECT_TRUE(says(fresh.err, "if you are stuck, say where"));
  EXPECT_TRUE(fs::exists(root / "checkin-1815-vector-add.json"));
  ASSERT_EQ(measure(root, {"--quick"}).code, 0);
  Outcome json = capstone({"checkin", "--stuck", "the tail block", "--format", "json"}, {.cwd = root});
  EXPECT_EQ(json.code, 0) << json;
  const Json made = Json::parse(json.out, nullptr, false);
  EXPECT_EQ(made["last"]["verdict"], "PASS");
  EXPECT_EQ(made["versions"], 1);
  EXPECT_EQ(made["stuck"], "the tail block");
  EXPECT_EQ(records(root, "checkin").size(), 2u);
  EXPECT_TRUE(says(capstone({"ledger"}, {.cwd = root}).out, "the tail block"));
  expect_ledger_intact(root);
  Outcome listed = capstone({"submit", "--dry-run"}, {.cwd = root});
  EXPECT_TRUE(says(listed.out, "left out   checkin-1815-vector-add.json"));
}

TEST_F(CheckIn, AMentorSeesWhoNeedsAWordBeforeThereIsACohortAndAfter) {
  const fs::path ada = student("ada", "1"), bob = student("bob", "2");
  ASSERT_EQ(measure(ada, {"--quick"}).code, 0);
  std::string wrong = slurp(bob / "human" / "kernel.cu");
  const std::size_t plus = wrong.find("x[i] + y[i]");
  ASSERT_NE(plus, std::string::npos) << wrong;
  spit(bob / "human" / "kernel.cu", wrong.replace(plus, 11, "x[i] - y[i]"));
  ASSERT_EQ(measure(bob, {"--quick"}).code, 1);
  check_in(ada);
  check_in(bob, {"--stuck", "<script>alert(1)</script> the sign"});
  spit(home_ / "in" / "notes.json", "{}");
  spit(home_ / "roster.csv", "name,id\nada,1\nbob,2\nmallory,3\n");
  Outcome table = capstone({"gradebook", "--progress", "in", "--roster", "roster.csv"});
  EXPECT_EQ(table.code, 0) << table;
  EXPECT_TRUE(says(table.out, "2 of 3 need help:"));
  EXPECT_TRUE(says(table.out, "bob: stuck: <script>alert(1)</script> the sign"));
  EXPECT_TRUE(says(table.out, "bob: WRONG since "));
  EXPECT_TRUE(says(table.out, "mallory: never checked in"));
  EXPECT_TRUE(says(table.err, "notes.json (not a check-in)"));
  Outcome page = capstone({"gradebook", "--progress", "in", "--format", "html"});
  EXPECT_EQ(page.code, 0) << page;
  EXPECT_EQ(slurp(home_ / "progress.html").find("<script>"), std::string::npos);
  EXPECT_TRUE(says(slurp(home_ / "progress.html"), "&lt;script&gt;alert(1)"));

  // Bob hands in a project with another ledger.
  fs::create_directories(home_ / "handed");
  fs::copy(ada, home_ / "handed" / "ada", fs::copy_options::recursive);
  ASSERT_EQ(capstone({"init", "vector_add", "handed/bob", "--from", "01", "--member", "bob (id 2)"}).code, 0);
  Outcome graded =
      capstone({"grade", "handed", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
  ASSERT_EQ(graded.code, 0) << graded;
  Outcome after = capstone({"gradebook", "graded", "--progress", "in", "--format", "json"});
  const Json json = Json::parse(after.out, nullptr, false);
  ASSERT_EQ(json["rows"].size(), 2u) << after;
  EXPECT_EQ(json["rows"][0]["person"], "bob");
  EXPECT_TRUE(
      says(json["rows"][0]["needs"].dump(), "the submitted ledger is not the one that was checked in"));
  EXPECT_EQ(json["rows"][1]["handed_in"], "ada");
  EXPECT_TRUE(json["rows"][1]["needs"].empty()) << json["rows"][1];
}

TEST_F(CheckIn, WhatIsNoneIsRefused) {
  spit(home_ / "in" / "x.json", "{}");
  Outcome none = capstone({"gradebook", "--progress", "in/x.json"});
  EXPECT_EQ(none.code, 2) << none;
  EXPECT_TRUE(says(none.err, "error: not a check-in"));
  Outcome empty = capstone({"gradebook", "--progress", "in"});
  EXPECT_EQ(empty.code, 2) << empty;
  EXPECT_TRUE(says(empty.err, "error: no check-ins there"));
  Outcome nowhere = capstone({"checkin"});
  EXPECT_EQ(nowhere.code, 2) << nowhere;
  const fs::path root = student("ada", "1");
  Outcome novel = capstone({"checkin", "--stuck", std::string(5000, 'x')}, {.cwd = root});
  EXPECT_EQ(novel.code, 2) << novel;
  EXPECT_EQ(capstone({"gradebook", "--roster", "roster.csv"}).code, 2) << "a roster belongs to --progress";
}

}  // namespace
}  // namespace capstone::cli_test
