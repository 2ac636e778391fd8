#include "harness/course/gradebook/exports.h"

#include "harness/base/csv.h"
#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone {
namespace {

class Export : public testing::GradebookTest {
 protected:
  // Ada has 85.5, the team 40, and its member Eve 39.
  std::vector<OutgoingMark> marks() {
    std::vector<Mark> given{give("ada", "correctness", 30), give("ada", "depth", 20, "=cmd(), \"why\"?"),
                            give("ada", "head_to_head", 25.5), give("ada", "honesty", 10)};
    for (const char* criterion : {"correctness", "depth", "head_to_head", "honesty"})
      given.push_back(give("team", criterion, 10));
    given.push_back(give("team", "depth", 9));
    given.back().member = "3";
    EXPECT_TRUE(book().mark(rubric, given));
    left_out.clear();
    return outgoing_marks(rows(), rubric, *book().summaries(), left_out);
  }
  static std::string notes(const FilledTable& filled) {
    std::string all;
    for (const std::string& note : filled.notes) all += note + "\n";
    return all;
  }
  std::vector<std::string> left_out;
};

TEST_F(Export, CanvasGetsTheColumnAndKeepsEveryOtherByte) {
  const std::string before =
      "\xEF\xBB\xBFStudent,ID,SIS User ID,SIS Login ID,Section,Lab 1 (11),\"Capstone, final (12)\",Final "
      "Score\r\n"
      "    Points Possible,,,,,10.00,50.00,(read only)\r\n"
      "\"Lovelace, Ada\",901,1,ada@example.org,\"L1, \"\"A\"\"\",  9 ,,90\n"
      "Bob,902,2,bob,L1,8,3,80\r\n"
      "Nobody,904,4,nobody,L1,,,\r\n";
  auto filled = fill_canvas(before, "c.csv", "Capstone, final", marks());
  ASSERT_TRUE(filled) << filled.error().what << filled.error().hint;
  EXPECT_EQ(filled->text,
            "\xEF\xBB\xBFStudent,ID,SIS User ID,SIS Login ID,Section,Lab 1 (11),\"Capstone, final "
            "(12)\",Final Score\r\n"
            "    Points Possible,,,,,10.00,50.00,(read only)\r\n"
            "\"Lovelace, Ada\",901,1,ada@example.org,\"L1, \"\"A\"\"\",  9 ,42.75,90\n"
            "Bob,902,2,bob,L1,8,20,80\r\n"
            "Nobody,904,4,nobody,L1,,,\r\n");
  EXPECT_EQ(filled->filled, 2);
  EXPECT_NE(notes(*filled).find("no row for Eve (team)"), std::string::npos) << notes(*filled);
  EXPECT_NE(notes(*filled).find("no mark for Nobody"), std::string::npos);
  EXPECT_NE(notes(*filled).find("scaled to the platform's 50 points"), std::string::npos);
}

TEST_F(Export, TheNumberInCanvasFileNamesFindsTheRow) {
  SubmissionResult r = result("lovelaceada", "x", {{"A. L.", "", ""}});
  r.origin = {"Canvas", "lovelaceada", "901", "", "", false};
  ASSERT_TRUE(book().take({r}));
  std::vector<Mark> given;
  for (const char* criterion : {"correctness", "depth", "head_to_head", "honesty"})
    given.push_back(give("lovelaceada", criterion, 5));
  ASSERT_TRUE(book().mark(rubric, given));
  auto filled = fill_canvas("Student,ID,Capstone (12)\nSomebody Else,901,\n", "c.csv", "Capstone",
                            outgoing_marks(rows(), rubric, *book().summaries(), left_out));
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->text, "Student,ID,Capstone (12)\nSomebody Else,901,20\n");
}

TEST_F(Export, AnUnknownColumnIsAnsweredWithTheNearest) {
  auto filled = fill_canvas("Student,ID,Capstone (12)\n", "c.csv", "Capston", marks());
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().where, "c.csv:1");
  EXPECT_NE(filled.error().hint.find("Capstone (12)"), std::string::npos) << filled.error().hint;
  EXPECT_FALSE(fill_canvas("a,b\n1,2\n", "c.csv", "x", marks()));
  EXPECT_FALSE(fill_canvas("Student,ID,Capstone (12)\n\"Ada,1,2\n", "c.csv", "Capstone", marks()));
  auto longer = fill_canvas("Student,ID,Capstone (12)\nAda,1\n", "c.csv", "Capstone", marks());
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().where, "c.csv:2");
}

TEST_F(Export, MoodleGetsGradeAndCommentAndKeepsWhatIsLocked) {
  const std::string before =
      "Identifier;Full name;Email address;Status;Grade;Maximum Grade;Grade can be changed;Feedback comments\n"
      "Participant 71;Ada;ada@example.org;Submitted;;100.00;Yes;\n"
      "Participant 72;Bob;;Submitted;12;100.00;No;\"kept; as is\"\n"
      "Participant 73;Eve;;Submitted;;100.00;Yes;\n";
  auto filled = fill_moodle(before, "m.csv", marks());
  ASSERT_TRUE(filled) << filled.error().what;
  EXPECT_NE(
      filled->text.find("Participant 71;Ada;ada@example.org;Submitted;85.5;100.00;Yes;\"<p>Correctness"),
      std::string::npos)
      << filled->text;
  EXPECT_NE(filled->text.find("=cmd(), \"\"why\"\"?"), std::string::npos);
  EXPECT_NE(filled->text.find("Participant 72;Bob;;Submitted;12;100.00;No;\"kept; as is\"\n"),
            std::string::npos);
  EXPECT_NE(filled->text.find("Participant 73;Eve;;Submitted;39;"), std::string::npos)
      << "Eve's individual mark";
  EXPECT_NE(notes(*filled).find("Bob: the platform does not allow changes to this grade"), std::string::npos);
}

TEST_F(Export, MoodlesCommentsAreHtmlWithAParagraphForEachLine) {
  std::vector<Mark> given;
  for (const char* criterion : {"correctness", "depth", "head_to_head", "honesty"})
    given.push_back(give("ada", criterion, 5, "`i<n && y>0`\n\nsecond line"));
  ASSERT_TRUE(book().mark(rubric, given));
  const auto outgoing = outgoing_marks(rows(), rubric, book().summaries().value(), left_out);
  auto filled =
      fill_moodle("Identifier,Full name,Grade,Feedback comments\nParticipant 71,Ada,,\n", "m.csv", outgoing);
  ASSERT_TRUE(filled) << filled.error().what;
  EXPECT_NE(filled->text.find("(5 of 30): `i&lt;n &amp;&amp; y&gt;0`</p><p>second line</p><p>"),
            std::string::npos)
      << filled->text;
}

TEST_F(Export, TwoMarksForOneRowLeaveItAlone) {
  ASSERT_TRUE(book().take({result("ada~2", "other", {{"Ada", "1", "ada@example.org"}})}));
  std::vector<Mark> given;
  for (const char* criterion : {"correctness", "depth", "head_to_head", "honesty"})
    given.push_back(give("ada~2", criterion, 5));
  ASSERT_TRUE(book().mark(rubric, given));
  auto filled = fill_canvas("Student,ID,SIS User ID,Capstone (12)\nAda,9,1,\n", "c.csv", "Capstone", marks());
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->filled, 0);
  EXPECT_NE(notes(*filled).find("Ada has several marks, so none was entered: ada, ada~2"), std::string::npos)
      << notes(*filled);
}

TEST_F(Export, WhoIsNotWhollyMarkedIsNamed) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 3)}));
  EXPECT_TRUE(outgoing_marks(rows(), rubric, {}, left_out).empty());
  EXPECT_EQ(left_out[0], "ada, Ada: not marked: correctness, head_to_head, honesty");
}

TEST_F(Export, OnlyWhatWasPublishedLeaves) {
  marks();
  auto before = book().published_rows(rubric);
  ASSERT_TRUE(before);
  EXPECT_FALSE((*before)[0].total());
  ASSERT_TRUE(book().publish(rubric, "mentor"));
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 1, "a draft")}));
  auto after = book().published_rows(rubric);
  ASSERT_TRUE(after);
  EXPECT_EQ((*after)[0].total(), 85.5);
  EXPECT_EQ((*after)[2].total(), 39);
}

TEST_F(Export, GradescopeAndCsvAreWholeAndHarmless) {
  marks();
  Json json = gradescope_results(rows()[0], rubric);
  EXPECT_EQ(json["score"], 85.5);
  ASSERT_EQ(json["tests"].size(), 4u);
  EXPECT_EQ(json["tests"][1]["output"], "=cmd(), \"why\"?");
  EXPECT_EQ(json["tests"][1]["output_format"], "text");
  ASSERT_TRUE(book().take({result("x", "d", {{"=cmd()", "", ""}})}));
  std::string csv = marks_csv(rows(), rubric);
  EXPECT_NE(csv.find("'=cmd(),"), std::string::npos) << csv;
  auto table =
      CsvTable::read(csv, "x.csv", {"name", "id", "email", "submission", "depth", "total", "comment"});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->at(0, "total"), "85.5");
}

}  // namespace
}  // namespace capstone
