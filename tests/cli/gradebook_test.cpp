// What a mentor does after the night: marks, a second version, publishing, and the tables.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Gradebook : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    ASSERT_EQ(capstone({"init", "vector_add", "in/ada", "--from", "01", "--member", "Ada Lovelace (id 1815)"}).code, 0);
    ASSERT_EQ(capstone({"init", "vector_add", "in/eve", "--from", "01", "--member", "=cmd, \"Eve\" (id 7)"}).code, 0);
    grade();
  }
  void grade() {
    Outcome graded = capstone({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
    ASSERT_EQ(graded.code, 0) << graded;
  }
  Outcome mark(std::vector<std::string> more) {
    more.insert(more.begin(), "mark");
    more.insert(more.end(), {"--grader", "Grace"});
    return capstone(more);
  }
};

TEST_F(Gradebook, FromTheFirstMarkToASecondVersion) {
  EXPECT_EQ(mark({"ada", "--criterion", "depth", "--points", "24", "--reason", "told well"}).code, 0);
  Outcome wrong = mark({"ada", "--criterion", "dept", "--points", "24", "--reason", "x"});
  EXPECT_EQ(wrong.code, 2) << wrong;
  EXPECT_TRUE(says(wrong.err, "did you mean 'depth'?"));
  EXPECT_TRUE(says(capstone({"gradebook", "graded"}).out, "Ada Lovelace"));
  EXPECT_EQ(capstone({"gradebook", "publish", "--grader", "Grace"}).code, 0);

  spit(home_ / "in" / "ada" / "worklog.md", slurp(home_ / "in" / "ada" / "worklog.md") + "\nmore\n");
  grade();
  Outcome table = capstone({"gradebook"});
  EXPECT_TRUE(says(table.out, "24*"));
  EXPECT_TRUE(says(table.out, "* given for an earlier version"));
  Outcome history = capstone({"gradebook", "history", "ada"});
  EXPECT_EQ(history.code, 0) << history;
  EXPECT_TRUE(says(history.out, "depth 24 by Grace: told well (given for an earlier version, "));
  EXPECT_TRUE(says(history.out, "published by Grace: 1815 sees 24"));
  EXPECT_TRUE(says(capstone({"gradebook", "history", "adda"}).err, "did you mean 'ada'?"));
}

TEST_F(Gradebook, TablesAreSafeInSpreadsheetsAndWholeInJson) {
  Outcome csv = capstone({"gradebook", "graded", "--format", "csv"});
  EXPECT_TRUE(csv.out.starts_with("name,person,id,email,problem,state,late,grace_days,correctness,depth,head_to_head,honesty,total,published,")) << csv;
  EXPECT_TRUE(says(csv.out, "eve,\"'=cmd, \"\"Eve\"\"\",7,"));
  EXPECT_TRUE(csv.out.ends_with("\r\n"));
  Json json = Json::parse(capstone({"gradebook", "graded", "--format", "json"}).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["rows"].size(), 2u);
  EXPECT_TRUE(json["rows"][0]["total"].is_null());
}

TEST_F(Gradebook, ATableOfMarksIsTakenWholeOrNotAtAll) {
  spit(home_ / "graded" / "comments.yaml", "clear: A clear chain of versions.\n");
  spit(home_ / "marks.csv", "name,criterion,points,reason\nada,depth,20,@clear\neve,depth,200,too many\n");
  Outcome refused = mark({"--from", "marks.csv"});
  EXPECT_EQ(refused.code, 2) << refused;
  EXPECT_EQ(capstone({"gradebook", "history", "ada"}).out.find("depth"), std::string::npos);
  spit(home_ / "marks.csv", "name,criterion,points,reason\nada,depth,20,@clear\neve,depth,12.5,\"recipes, no reasons\"\n");
  EXPECT_EQ(mark({"--from", "marks.csv"}).code, 0);
  EXPECT_TRUE(says(capstone({"gradebook", "history", "ada"}).out, "depth 20 by Grace: A clear chain of versions."));
}

TEST_F(Gradebook, NextOpensASheetASubmissionAndResumes) {
  // An editor that fills in every mark of a sheet, for as many sheets as it has left.
  spit(home_ / "edit.sh",
       "#!/bin/sh\nn=$(cat left)\n[ \"$n\" -gt 0 ] || exit 0\necho $((n - 1)) > left\n"
       "sed -i 's/^    points: $/    points: 5/; s/^    reason: $/    reason: as said/' \"$1\"\n");
  spit(home_ / "left", "1");
  const How how{.env = {{"EDITOR", "sh " + (home_ / "edit.sh").string()}, {"VISUAL", ""}}};
  Outcome first = capstone({"mark", "--next", "--grader", "Grace"}, how);
  EXPECT_EQ(first.code, 0) << first;
  EXPECT_TRUE(says(first.err, "ada: 4 marks"));
  EXPECT_TRUE(says(first.out, "eve: no marks; the next time begins here"));
  std::string sheet = slurp(home_ / "graded" / "marking" / "eve.yaml");
  EXPECT_TRUE(says(sheet, "judged afresh: PASS")) << "the evidence stands in the sheet";
  spit(home_ / "left", "1");
  Outcome second = capstone({"mark", "--next", "--grader", "Grace"}, how);
  EXPECT_TRUE(says(second.err, "eve: 4 marks")) << second;
  EXPECT_TRUE(says(second.out, "nothing waits for marks"));
  EXPECT_FALSE(fs::exists(home_ / "graded" / "marking" / "eve.yaml"));
  Outcome none = capstone({"mark", "--next"}, {.env = {{"EDITOR", ""}, {"VISUAL", ""}}});
  EXPECT_EQ(none.code, 3) << none;
}

TEST_F(Gradebook, DaysOfGraceStandInTableAndHistory) {
  EXPECT_EQ(capstone({"gradebook", "grace", "ada", "--days", "2", "--reason", "illness", "--grader", "Grace"}).code, 0);
  EXPECT_TRUE(says(capstone({"gradebook"}).out, "2 d of grace"));
  EXPECT_TRUE(says(capstone({"gradebook", "history", "ada"}).out, "2 days of grace by Grace: illness"));
  Outcome bad = capstone({"gradebook", "grace", "ada", "--days", "-2", "--reason", "x", "--grader", "Grace"});
  EXPECT_EQ(bad.code, 2) << bad;
}

TEST_F(Gradebook, AFolderWithoutOneIsNamed) {
  Outcome none = capstone({"gradebook", "in"});
  EXPECT_EQ(none.code, 2) << none;
  EXPECT_TRUE(says(none.err, "error: no gradebook here"));
  EXPECT_FALSE(fs::exists(home_ / "in" / "gradebook.sqlite"));
}

}  // namespace
}  // namespace capstone::cli_test
