#include "harness/course/gradebook/sheets.h"

#include <algorithm>

#include "harness/base/csv.h"
#include "harness/base/text.h"
#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone {
namespace {

class Sheet : public testing::GradebookTest {
 protected:
  const Comments comments{{"clear", "A clear chain of versions: each follows from an observation."}};
  Result<std::vector<Mark>> read(const std::string& text) {
    return read_sheet(text, "s.yaml", "ada", "mentor", comments);
  }
};

TEST_F(Sheet, AsMadeItGivesNoMarkAndFilledInItGivesThem) {
  Json evidence{{"criteria",
                 {{{"id", "depth"},
                   {"suggested", 22.5},
                   {"because", "5 of 7"},
                   {"evidence",
                    {{{"standing", "met"},
                      {"looks_for", "two\nversions"},
                      {"found", "v1, v2"},
                      {"ask", "Why\ntwo?"}}}}}}}};
  std::string sheet = marking_sheet(rows()[0], rubric, evidence, comments);
  EXPECT_NE(sheet.find("#   suggested: 22.5 (5 of 7)"), std::string::npos) << sheet;
  EXPECT_NE(sheet.find("#   [met] two versions: v1, v2"), std::string::npos)
      << "a line break in a text does not end the YAML comment";
  EXPECT_NE(sheet.find("#   ? Why two?"), std::string::npos) << sheet;
  auto none = read(sheet);
  ASSERT_TRUE(none) << none.error().what << none.error().where;
  EXPECT_TRUE(none->empty());
  sheet = replace_all(
      sheet, "  depth:\n    points: \n    reason: ", "  depth:\n    points: 21.5\n    reason: \"@clear\"");
  auto marks = read(sheet);
  ASSERT_TRUE(marks) << marks.error().what;
  ASSERT_EQ(marks->size(), 1u);
  EXPECT_EQ((*marks)[0].criterion, "depth");
  EXPECT_EQ((*marks)[0].points, 21.5);
  EXPECT_EQ((*marks)[0].reason, comments.at("clear"));
}

TEST_F(Sheet, MarksOfThisVersionAreFilledInAndEarlierOnesOnlyShown) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 20, "say: \"why\"?")}));
  auto marks = read(marking_sheet(rows()[0], rubric, Json::object(), {}));
  ASSERT_TRUE(marks) << marks.error().what;
  ASSERT_EQ(marks->size(), 1u);
  EXPECT_EQ((*marks)[0].reason, "say: \"why\"?");
  ASSERT_TRUE(book().take({result("ada", "second", {{"Ada", "1", ""}}, "2026-03-02T09:30:00Z")}));
  std::string sheet = marking_sheet(rows()[0], rubric, Json::object(), {});
  EXPECT_NE(sheet.find("given for an earlier version: 20 by mentor"), std::string::npos);
  EXPECT_TRUE(read(sheet)->empty());
}

TEST_F(Sheet, WhatFailedAndWhereTheFilesAreStandInTheSheet) {
  const Json evidence{
      {"judged", {{{"candidate", "human"}, {"verdict", "WRONG"}, {"lines", {"first mismatch: z[0]"}}}}},
      {"places", {"worklog: /c/submissions/ada/worklog.html"}}};
  const std::string sheet = marking_sheet(rows()[0], rubric, evidence, {});
  EXPECT_NE(sheet.find("# human: WRONG\n#   first mismatch: z[0]\n# worklog: /c/"), std::string::npos)
      << sheet;
  EXPECT_EQ(sheet.find(rubric.criteria[0].levels[0].text), std::string::npos)
      << "the score sheet has the texts";
  EXPECT_LT(std::count(sheet.begin(), sheet.end(), '\n'), 50);
}

TEST_F(Sheet, AReasonIsKeptLetterByLetter) {
  for (const std::string reason :
       {"see record #4, it fails", "good: but short", "{{v2}} is {{v2.speedup}}", "@Ada: well done",
        "- [x] `i<n && y` # why?", "* & ! % | > ?", "\"good\" and \"brief\"", "it's 50 % of C:\\new", "'tis",
        "李🦄 à la carte", "yes", "~"}) {
    auto marks = read("marks:\n\n# Depth (0 to 30)\n  depth:\n    points: 20\n    reason: " + reason +
                      "\n\n# the next\n  honesty:\n    points: \n    reason: \n");
    ASSERT_TRUE(marks) << reason << ": " << marks.error().what;
    ASSERT_EQ(marks->size(), 1u) << reason;
    EXPECT_EQ((*marks)[0].reason, reason);
    ASSERT_TRUE(book().mark(rubric, *marks)) << reason;
    auto again = read(marking_sheet(rows()[0], rubric, Json::object(), {}));
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ((*again)[0].reason, reason) << "the sheet that is opened again";
  }
}

TEST_F(Sheet, AReasonMayHaveSeveralLinesQuotationMarksOrABlock) {
  auto reason_in = [&](const std::string& value) {
    auto marks =
        read("marks:\n  depth:\n    points: 20\n    reason: " + value + "\n# x\n  honesty:\n    points:\n");
    EXPECT_TRUE(marks) << marks.error().what;
    return marks && marks->size() == 1 ? (*marks)[0].reason : std::string();
  };
  EXPECT_EQ(reason_in("first: one\n      # second\n\n      third"), "first: one\n# second\n\nthird");
  EXPECT_EQ(reason_in("\n      below"), "below");
  EXPECT_EQ(reason_in("|\n      a: b\n      c # d"), "a: b\nc # d\n");
  EXPECT_EQ(reason_in("\"two\\nlines # kept\""), "two\nlines # kept");
  EXPECT_EQ(reason_in("'it''s: so'"), "it's: so");
  EXPECT_EQ(reason_in("@clear"), comments.at("clear"));
  EXPECT_EQ(reason_in("windows\r"), "windows");
}

TEST_F(Sheet, CommentsAreKeptLetterByLetter) {
  ASSERT_TRUE(
      write_file_atomic(folder / "comments.yaml",
                        "# ours\nrecord: see record #4: it fails\nlong: >\n  two\n  lines\n\"a b\": {{v2}}\n"
                        "braces: {{v2.speedup}} of it\n"));
  auto read = read_comments(folder / "comments.yaml");
  ASSERT_FALSE(read) << "a key in quotation marks is YAML's own";
  ASSERT_TRUE(write_file_atomic(folder / "comments.yaml",
                                "# ours\nrecord: see record #4: it fails\nlong: >\n  two\n  lines\n"
                                "braces: {{v2.speedup}} of it\n"));
  read = read_comments(folder / "comments.yaml");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->at("record"), "see record #4: it fails");
  EXPECT_EQ(read->at("long"), "two lines\n");
  EXPECT_EQ(read->at("braces"), "{{v2.speedup}} of it");
}

TEST_F(Sheet, ATableWithSemicolonsAndDecimalCommasIsRead) {
  auto marks = read_marks(
      "name;criterion;points;reason\nada;depth;24,5;good, and brief\nada;honesty;;\nteam;depth;12.5;x\n",
      "m.csv", "mentor", comments);
  ASSERT_TRUE(marks) << marks.error().what;
  ASSERT_EQ(marks->size(), 2u) << "a row without points is not marked yet";
  EXPECT_EQ((*marks)[0].points, 24.5);
  EXPECT_EQ((*marks)[0].reason, "good, and brief");
  EXPECT_EQ((*marks)[1].points, 12.5);
  EXPECT_EQ(read("marks:\n  depth:\n    points: 24,5\n    reason: x\n")->at(0).points, 24.5);
}

TEST_F(Sheet, AMarkOfATableThatDoesNotFitNamesItsLine) {
  auto marks =
      read_marks("name,criterion,points,reason\nada,depth,20,x\nada,depth,31,y\n", "m.csv", "mentor", {});
  ASSERT_TRUE(marks);
  auto refused = book().mark(rubric, *marks);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "m.csv:3, ada");
}

TEST_F(Sheet, MistakesNameTheLine) {
  struct Bad {
    std::string text, where, what;
  };
  for (const Bad& bad : {Bad{"marks:\n  depth:\n    points: many\n    reason: x\n", "s.yaml:3",
                             "the points 'many' are not a number"},
                         Bad{"marks:\n  depth:\n    point: 3\n", "s.yaml:3", "unknown key 'point'"},
                         Bad{"marks:\n  depth:\n    points: 3\n    reason: \"@cleer\"\n", "s.yaml:2",
                             "no comment is called '@cleer'"},
                         Bad{"marks:\n  depth: 3\n", "s.yaml:2", "no points and reason for depth"},
                         Bad{"nothing", "s.yaml", "no `marks:` in the sheet"}}) {
    auto marks = read(bad.text);
    ASSERT_FALSE(marks) << bad.text;
    EXPECT_EQ(marks.error().where, bad.where);
    EXPECT_EQ(marks.error().what, bad.what);
  }
  EXPECT_FALSE(read("marks: [\n"));
}

TEST_F(Sheet, ATableOfMarksIsReadWithGradersAndMembers) {
  auto marks = read_marks(
      "name,criterion,points,reason,member,grader\nada,depth,20,\"good, and "
      "brief\",,\nteam,depth,12,@clear,3,Grace\n",
      "m.csv", "mentor", comments);
  ASSERT_TRUE(marks) << marks.error().what;
  EXPECT_EQ((*marks)[0].grader, "mentor");
  EXPECT_EQ((*marks)[0].reason, "good, and brief");
  EXPECT_EQ((*marks)[1].grader, "Grace");
  EXPECT_EQ((*marks)[1].member, "3");
  auto bad = read_marks("name,criterion,points,reason\nada,depth,x,y\n", "m.csv", "mentor", comments);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().where, "m.csv:2");
}

TEST_F(Sheet, AHostileNameIsHarmlessInCsvAndJson) {
  const std::string name = "<script>alert(1)</script>, \"=cmd()\"", formula = "=cmd()";
  ASSERT_TRUE(book().take({result("x", "d", {{name, formula, ""}})}));
  auto all = rows();
  std::string csv = gradebook_csv(all, rubric);
  EXPECT_NE(csv.find("\"<script>alert(1)</script>, \"\"=cmd()\"\"\",'=cmd(),"), std::string::npos) << csv;
  auto table = CsvTable::read(csv, "g.csv", {"name", "person", "id", "total"});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->at(3, "person"), name);
  EXPECT_EQ(gradebook_json(all, rubric)["rows"][3]["person"], name);
}

}  // namespace
}  // namespace capstone
