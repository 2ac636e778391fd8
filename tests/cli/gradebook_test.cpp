// What a mentor does after the night: marks, a second version, publishing, and the tables.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Gradebook : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    ASSERT_EQ(
        capstone({"init", "vector_add", "in/ada", "--from", "01", "--member", "Ada Lovelace (id 1815)"}).code,
        0);
    ASSERT_EQ(
        capstone({"init", "vector_add", "in/eve", "--from", "01", "--member", "=cmd, \"Eve\" (id 7)"}).code,
        0);
    grade();
  }
  void grade() {
    Outcome graded =
        capstone({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
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
  EXPECT_EQ(capstone({"gradebook", "publish", "--incomplete", "--grader", "Grace"}).code, 0);

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

TEST_F(Gradebook, PublishingWarnsShowsAndReachesTheStudent) {
  const std::string reason = "see record #4: {{v2}} it fails";
  for (const char* criterion : {"correctness", "depth", "head_to_head", "honesty"})
    ASSERT_EQ(mark({"ada", "--criterion", criterion, "--points", "9", "--reason", reason}).code, 0);
  ASSERT_EQ(mark({"eve", "--criterion", "depth", "--points", "12", "--reason", "half"}).code, 0);
  const fs::path marks = home_ / "graded/submissions/ada/feedback/marks.html";
  Outcome preview = capstone({"gradebook", "publish", "--preview"});
  EXPECT_EQ(preview.code, 0) << preview;
  EXPECT_TRUE(says(preview.out, "what ada, Ada Lovelace will see")) << preview;
  EXPECT_TRUE(says(preview.out, "Total: 36 of 100"));
  EXPECT_TRUE(says(preview.out, "not marked: correctness, head_to_head, honesty (held back)")) << preview;
  EXPECT_FALSE(fs::exists(marks)) << "a preview writes nothing";
  Outcome published = capstone({"gradebook", "publish", "--grader", "Grace"});
  EXPECT_TRUE(says(published.out, "published for 1 person")) << published;
  EXPECT_TRUE(says(published.out, "warning: eve, "));
  EXPECT_TRUE(says(slurp(marks), reason)) << slurp(marks);
  EXPECT_FALSE(fs::exists(home_ / "graded/submissions/eve/feedback/marks.html"));
  spit(home_ / "in" / "ada" / "worklog.md", slurp(home_ / "in" / "ada" / "worklog.md") + "\nmore\n");
  grade();
  EXPECT_TRUE(fs::exists(marks)) << "grading again does not take published marks away";
  Outcome held = capstone({"gradebook", "publish", "ada", "--grader", "Grace"});
  EXPECT_EQ(held.code, 2) << held;
  EXPECT_TRUE(says(held.out, "marks for an earlier version: correctness, depth, head_to_head, honesty"));
  EXPECT_EQ(capstone({"gradebook", "publish", "eve", "--incomplete", "--grader", "Grace"}).code, 0);
  EXPECT_TRUE(says(slurp(home_ / "graded/submissions/eve/feedback/marks.md"), "Not marked yet."));
}

TEST_F(Gradebook, ADuplicateIsResolvedByACommand) {
  fs::copy(home_ / "in" / "ada", home_ / "in" / "ada-new", fs::copy_options::recursive);
  spit(home_ / "in" / "roster.csv", "name;id\nAda Lovelace;1815\nBea;9\n=cmd, \"Eve\";7\n");
  Outcome graded =
      capstone({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
  EXPECT_TRUE(says(graded.out, "more than one submission: Ada Lovelace: ada, ada-new")) << graded;
  EXPECT_EQ(mark({"Bea", "--criterion", "depth", "--points", "0", "--reason", "never submitted"}).code, 0)
      << "who never submitted has a row";
  Outcome chosen =
      capstone({"gradebook", "choose", "ada-new", "--reason", "the last one", "--grader", "Grace"});
  EXPECT_EQ(chosen.code, 0) << chosen;
  EXPECT_TRUE(says(chosen.out, "dropped: ada"));
  Outcome table = capstone({"gradebook"});
  EXPECT_TRUE(says(table.out, "dropped: ada (ada-new counts instead: the last one, by Grace)")) << table;
  EXPECT_EQ(mark({"ada", "--criterion", "depth", "--points", "9", "--reason", "x"}).code, 2);
  Outcome again = capstone(
      {"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick", "--dry-run"});
  EXPECT_FALSE(says(again.out, "more than one submission")) << again;
  EXPECT_TRUE(says(again.out, "nothing: dropped")) << again;
  EXPECT_TRUE(says(again.out, "never submitted: Bea (9)")) << again;
  EXPECT_EQ(capstone({"gradebook", "choose", "ada", "--reason", "after all", "--grader", "Grace"}).code, 0);
  EXPECT_TRUE(says(capstone({"gradebook"}).out, "dropped: ada-new"));
}

// A mark that is given while a batch runs, or after it was interrupted, belongs to the version that was
// judged.
TEST_F(Gradebook, EachSubmissionIsInTheGradebookAsSoonAsItEnds) {
  spit(home_ / "in" / "ada" / "worklog.md", slurp(home_ / "in" / "ada" / "worklog.md") + "\nmore\n");
  spit(home_ / "in" / "eve" / "human" / "kernel.cu",
       "#include <cuda_runtime.h>\n#include <cstdint>\n"
       "__global__ void spin() { volatile int i = 0; while (true) i = i + 1; }\n"
       "extern \"C\" void launch(const float*, const float*, float*, int64_t, void*, cudaStream_t stream) {\n"
       "  spin<<<1, 32, 0, stream>>>();\n}\n");
  const auto judgements = [&](const std::string& name) {
    const std::string text = capstone({"gradebook", "history", name}).out;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("  judged: ", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  Child child = start({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick",
                       "--timeout", "120"});
  for (int i = 0; i < 600 && judgements("ada") < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(judgements("ada"), 2u);
  EXPECT_EQ(judgements("eve"), 1u) << "the batch still works on it";
  ::kill(child.pid(), SIGINT);
  child.finish(std::chrono::seconds(60));
}

TEST_F(Gradebook, WhatNeedsAMentorIsClearedWithAReason) {
  spit(home_ / "in" / "ada" / "human" / "kernel.cu",
       slurp(home_ / "in" / "ada" / "human" / "kernel.cu") + "x");
  const std::vector<std::string> words{"grade",    "in",       "--out", "graded", "--backend",
                                       "emulated", "--hidden", "0",     "--quick"};
  Outcome doubtful = capstone(words);
  EXPECT_EQ(doubtful.code, 4) << doubtful;
  EXPECT_TRUE(says(capstone({"gradebook"}).out, "needs_mentor"));
  EXPECT_EQ(capstone({"grade", "--clear", "eve", "--out", "graded", "--reason", "x"}).code, 2)
      << "nothing to clear";
  Outcome cleared = capstone(
      {"grade", "--clear", "ada", "--out", "graded", "--reason", "she showed me", "--grader", "Grace"});
  EXPECT_EQ(cleared.code, 0) << cleared;
  EXPECT_FALSE(says(capstone({"gradebook"}).out, "needs_mentor"));
  EXPECT_TRUE(says(capstone({"gradebook", "history", "ada"}).out, "by Grace: she showed me"));
  Outcome again = capstone(words);
  EXPECT_EQ(again.code, 0) << again;
  EXPECT_TRUE(says(again.out, "cleared"));
}

TEST_F(Gradebook, TablesAreSafeInSpreadsheetsAndWholeInJson) {
  Outcome csv = capstone({"gradebook", "graded", "--format", "csv"});
  EXPECT_TRUE(
      csv.out.starts_with("name,person,id,email,problem,state,late,submitted,deadline,days_late,grace_days,"
                          "correctness,depth,head_to_head,honesty,total,published,"))
      << csv;
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
  spit(home_ / "marks.csv",
       "name,criterion,points,reason\nada,depth,20,@clear\neve,depth,12.5,\"recipes, no reasons\"\n");
  EXPECT_EQ(mark({"--from", "marks.csv"}).code, 0);
  EXPECT_TRUE(
      says(capstone({"gradebook", "history", "ada"}).out, "depth 20 by Grace: A clear chain of versions."));
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
  std::string sheet = slurp(home_ / "graded" / "marking" / "Grace" / "eve.yaml");
  EXPECT_TRUE(says(sheet, "judged again: PASS")) << "the evidence stands in the sheet";
  spit(home_ / "left", "1");
  Outcome second = capstone({"mark", "--next", "--grader", "Grace"}, how);
  EXPECT_TRUE(says(second.err, "eve: 4 marks")) << second;
  EXPECT_TRUE(says(second.out, "nothing waits for marks"));
  EXPECT_FALSE(fs::exists(home_ / "graded" / "marking" / "Grace" / "eve.yaml"));
  Outcome none = capstone({"mark", "--next"}, {.env = {{"EDITOR", ""}, {"VISUAL", ""}}});
  EXPECT_EQ(none.code, 3) << none;
}

// An editor that waits until `go` exists has its sheet open for as long as the test wants.
TEST_F(Gradebook, TwoMentorsAreGivenTwoSheets) {
  spit(home_ / "edit.sh",
       "#!/bin/sh\necho \"$1\" >> opened\nwhile [ ! -e go ]; do sleep 0.05; done\n"
       "sed -i \"s/^    points: $/    points: 5/; s/^    reason: $/    reason: by $WHO/\" \"$1\"\n");
  auto mentor = [&](const std::string& who) {
    return start({"mark", "--next", "--grader", who},
                 {.env = {{"EDITOR", "sh " + (home_ / "edit.sh").string()}, {"VISUAL", ""}, {"WHO", who}}});
  };
  Child eva = mentor("eva"), tom = mentor("tom");
  auto opened = [&] { return fs::exists(home_ / "opened") ? slurp(home_ / "opened") : std::string(); };
  for (int i = 0; i < 2400 && std::ranges::count(opened(), '\n') < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::string both = opened();
  EXPECT_EQ(std::ranges::count(both, '\n'), 2) << both;
  EXPECT_NE(both.find("ada.yaml"), std::string::npos) << both;
  EXPECT_NE(both.find("eve.yaml"), std::string::npos) << both;
  spit(home_ / "go", "");
  for (Child* child : {&eva, &tom}) {
    const auto ended = child->finish(std::chrono::seconds(60));
    EXPECT_EQ(ended.status, 0) << ended.err;
  }
  // Whoever ends first is offered nothing more: the other sheet is claimed or marked.
  const std::string ada = capstone({"gradebook", "history", "ada"}).out,
                    eve = capstone({"gradebook", "history", "eve"}).out;
  EXPECT_NE(ada.find("by eva") != std::string::npos, ada.find("by tom") != std::string::npos) << ada;
  EXPECT_NE(eve.find("by eva") != std::string::npos, eve.find("by tom") != std::string::npos) << eve;
}

TEST_F(Gradebook, AMistakeInASheetOpensTheEditorAgainAndLosesNothing) {
  // The first time it types what is no YAML, the second time it corrects that.
  spit(home_ / "edit.sh",
       "#!/bin/sh\nif [ -e once ]; then [ -e second ] || cp \"$1\" second; sed -i 's/points: many/points: "
       "5/' \"$1\"; exit 0; fi\n"
       "touch once\nsed -i '0,/points: $/s//points: many/; 0,/reason: $/s//reason: typed for an hour/' "
       "\"$1\"\n");
  const How how{.env = {{"EDITOR", "sh " + (home_ / "edit.sh").string()}, {"VISUAL", ""}}};
  Outcome round = capstone({"mark", "ada", "--next", "--grader", "Grace"}, how);
  EXPECT_EQ(round.code, 0) << round;
  const std::string second = slurp(home_ / "second");
  EXPECT_TRUE(second.starts_with("#! the points 'many' are not a number (line ")) << second;
  EXPECT_TRUE(says(second, "typed for an hour"));
  EXPECT_TRUE(
      says(capstone({"gradebook", "history", "ada"}).out, "correctness 5 by Grace: typed for an hour"));
}

TEST_F(Gradebook, WhoeverReplacesAMarkIsTold) {
  ASSERT_EQ(
      capstone({"mark", "ada", "--criterion", "depth", "--points", "24", "--reason", "x", "--grader", "eva"})
          .code,
      0);
  Outcome second = mark({"1815", "--criterion", "depth", "--points", "20", "--reason", "y"});
  EXPECT_EQ(second.code, 0) << second;
  EXPECT_TRUE(says(second.err, "note: ada, depth: this replaces 24 by eva at "));
  const std::string history = capstone({"gradebook", "history", "Ada Lovelace"}).out;
  EXPECT_TRUE(says(history, "depth 24 by eva"));
  EXPECT_TRUE(says(history, "depth 20 by Grace"));
}

TEST_F(Gradebook, MarkingIsDividedAndAStrangersNameRefused) {
  for (const char* who : {"eva", "tom"}) {
    Outcome added = capstone({"grader", "add", who});
    EXPECT_EQ(added.code, 0) << added;
    EXPECT_EQ(added.out.size(), 65u) << "a token and nothing else, for scripts";
  }
  Outcome divided = capstone({"grader", "divide", "--share", "eva", "--share", "tom"});
  EXPECT_EQ(divided.code, 0) << divided;
  EXPECT_TRUE(says(divided.out, "eva: 1 assigned"));
  EXPECT_TRUE(says(divided.out, "tom: 1 assigned"));
  EXPECT_TRUE(
      says(capstone({"grader", "divide", "--share", "eva"}).out, "every submission is assigned already"));
  Outcome stranger = mark({"ada", "--criterion", "depth", "--points", "1", "--reason", "x"});
  EXPECT_EQ(stranger.code, 2) << stranger;
  EXPECT_TRUE(says(stranger.err, "no grader is called 'Grace'"));
  Outcome unknown = capstone({"grader", "divide", "--again", "--share", "zoe"});
  EXPECT_EQ(unknown.code, 2) << unknown;
  spit(home_ / "sections.csv", "name,id,section\nAda Lovelace,1815,A\nEve,7,B\n");
  Outcome sections = capstone({"grader", "divide", "--again", "--roster", "sections.csv", "--section",
                               "A=tom", "--section", "B=tom"});
  EXPECT_TRUE(says(sections.out, "tom: 2 assigned")) << sections;
  EXPECT_TRUE(says(capstone({"grader", "list"}).out, "tom"));
  EXPECT_EQ(capstone({"grader", "remove", "tmo"}).code, 2);
  EXPECT_EQ(capstone({"grader", "remove", "tom"}).code, 0);
}

TEST_F(Gradebook, ABackupIsMadeOnceAndVerified) {
  ASSERT_EQ(mark({"ada", "--criterion", "depth", "--points", "24", "--reason", "x"}).code, 0);
  EXPECT_EQ(capstone({"gradebook", "backup", "copy.sqlite"}).code, 0);
  EXPECT_EQ(capstone({"gradebook", "backup", "copy.sqlite"}).code, 2) << "it replaces nothing";
  EXPECT_TRUE(says(capstone({"gradebook", "verify", "copy.sqlite"}).out, "whole; 2 submissions, 1 marks"));
  EXPECT_TRUE(says(capstone({"gradebook", "verify"}).out, "whole"));
  EXPECT_EQ(capstone({"gradebook", "verify", "nothing"}).code, 2);
}

TEST_F(Gradebook, AMistakeInASheetOpensTheEditorAgain) {
  // First points out of range, then a reason with a colon; the third time the editor is closed.
  spit(home_ / "edit.sh",
       "#!/bin/sh\nn=$(cat left)\necho $((n - 1)) > left\n"
       "case $n in\n2) sed -i '0,/^    points: $/s//    points: 99/; 0,/^    reason: $/s//    reason: good: "
       "but short/' "
       "\"$1\" ;;\n1) grep -q '^#! 99 points for correctness are out of range' \"$1\" && "
       "sed -i 's/points: 99/points: 9/' \"$1\" ;;\nesac\n");
  spit(home_ / "left", "2");
  const How how{.env = {{"EDITOR", "sh " + (home_ / "edit.sh").string()}, {"VISUAL", ""}}};
  Outcome marked = capstone({"mark", "ada", "--next", "--grader", "Grace"}, how);
  EXPECT_TRUE(says(marked.err, "ada: 1 marks")) << marked;
  EXPECT_TRUE(says(capstone({"gradebook", "history", "ada"}).out, "correctness 9 by Grace: good: but short"));
  spit(home_ / "many.sh", "#!/bin/sh\nsed -i 's/^    points: $/    points: many/' \"$1\"\n");
  Outcome kept = capstone({"mark", "eve", "--next", "--grader", "Grace"},
                          {.env = {{"EDITOR", "sh " + (home_ / "many.sh").string()}, {"VISUAL", ""}}});
  EXPECT_EQ(kept.code, 2) << "an editor that changes nothing ends the round: " << kept;
}

TEST_F(Gradebook, DaysOfGraceStandInTableAndHistory) {
  EXPECT_EQ(
      capstone({"gradebook", "grace", "ada", "--days", "2", "--reason", "illness", "--grader", "Grace"}).code,
      0);
  EXPECT_TRUE(says(capstone({"gradebook"}).out, "2 d of grace"));
  EXPECT_TRUE(says(capstone({"gradebook", "history", "ada"}).out, "2 days of grace by Grace: illness"));
  Outcome bad = capstone({"gradebook", "grace", "ada", "--days", "-2", "--reason", "x", "--grader", "Grace"});
  EXPECT_EQ(bad.code, 2) << bad;
}

TEST_F(Gradebook, LatenessIsShownBesideGraceAndTakesNothingOff) {
  spit(home_ / "in" / "roster.csv",
       "name,id,submitted,deadline\nAda Lovelace,1815,2026-03-02T18:00Z,\nEve,7,2026-03-02 18:00 "
       "+00:00,2026-03-05T12:00Z\n");
  auto again = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
    return capstone(more);
  };
  Outcome told = again({"--deadline", "2026-03-01T13:00+01:00"});
  EXPECT_EQ(told.code, 0) << told;
  EXPECT_TRUE(says(told.err, "2 unchanged")) << "a deadline judges nothing again";
  Outcome table = capstone({"gradebook"});
  EXPECT_TRUE(says(table.out, "1.3 d late")) << table;
  EXPECT_EQ(
      capstone({"gradebook", "grace", "ada", "--days", "2", "--reason", "illness", "--grader", "Grace"}).code,
      0);
  EXPECT_TRUE(says(capstone({"gradebook"}).out, "1.3 d late, covered by 2 d of grace"));
  const Json rows = Json::parse(capstone({"gradebook", "--format", "json"}).out, nullptr, false)["rows"];
  EXPECT_EQ(rows[0]["deadline"], "2026-03-01T12:00:00Z");
  EXPECT_EQ(rows[1]["deadline"], "2026-03-05T12:00:00Z") << "the roster's own stands in front";
  EXPECT_LT(rows[1]["days_late"], 0);
  EXPECT_EQ(capstone({"gradebook", "--format", "html"}).code, 0);
  EXPECT_TRUE(says(slurp(home_ / "graded" / "gradebook.html"), "1.3 d late, covered by 2 d of grace"));
  Outcome sheet =
      capstone({"mark", "--next", "--grader", "Grace"}, {.env = {{"EDITOR", "true"}, {"VISUAL", ""}}});
  EXPECT_EQ(sheet.code, 0) << sheet;
  EXPECT_TRUE(
      says(slurp(home_ / "graded" / "marking" / "Grace" / "ada.yaml"),
           "submitted 2026-03-02T18:00:00Z: 1.3 d late, covered by 2 d of grace. No marks are deducted"));
  Outcome vague = again({"--deadline", "2026-03-01T12:00"});
  EXPECT_EQ(vague.code, 2) << vague;
  EXPECT_TRUE(says(vague.err, "error: the time has no time zone"));
  spit(home_ / "in" / "roster.csv", "name,id,deadline\nAda Lovelace,1815,tomorrow\n");
  Outcome row = again({});
  EXPECT_EQ(row.code, 2) << row;
  EXPECT_TRUE(says(row.err, "roster.csv:2"));
}

TEST_F(Gradebook, PublishedMarksFillACanvasFileAndDraftsDoNot) {
  for (const char* criterion : {"correctness", "depth", "head_to_head", "honesty"})
    ASSERT_EQ(mark({"ada", "--criterion", criterion, "--points", "10", "--reason", "as the levels say"}).code,
              0);
  spit(home_ / "canvas.csv",
       "Student,ID,SIS User ID,Capstone (5)\nPoints Possible,,,100\n\"Lovelace, Ada\",9,1815,\n");
  Outcome early = capstone({"export", "canvas", "canvas.csv", "--column", "Capstone", "--out", "filled.csv"});
  EXPECT_EQ(early.code, 2) << early;
  EXPECT_TRUE(says(early.err, "error: no marks to export"));
  ASSERT_EQ(capstone({"gradebook", "publish", "--grader", "Grace"}).code, 0);
  Outcome filled =
      capstone({"export", "canvas", "canvas.csv", "--column", "Capstone", "--out", "filled.csv"});
  EXPECT_EQ(filled.code, 0) << filled;
  EXPECT_EQ(slurp(home_ / "filled.csv"),
            "Student,ID,SIS User ID,Capstone (5)\nPoints Possible,,,100\n\"Lovelace, Ada\",9,1815,40\n");
  EXPECT_TRUE(says(filled.out, "eve, =cmd, \"Eve\": not marked: correctness, depth, head_to_head, honesty"));
  EXPECT_EQ(capstone({"export", "gradescope", "--out", "gs"}).code, 0);
  EXPECT_EQ(Json::parse(slurp(home_ / "gs" / "ada" / "results.json"))["score"], 40);
  EXPECT_TRUE(says(capstone({"export", "csv"}).out, "Ada Lovelace,1815,"));
}

TEST_F(Gradebook, AnAppealHasADossierAndADecision) {
  Outcome dossier = capstone({"appeal", "ada"});
  EXPECT_EQ(dossier.code, 0) << dossier;
  for (const char* part : {"# Appeal: ada", "Ada Lovelace (1815)", "## What is claimed",
                           "the ledger has no verdict on the submitted source", "- human: PASS",
                           "seeds: check-0 ", "## History"})
    EXPECT_TRUE(says(dossier.out, part));
  const std::string before = slurp(home_ / "graded" / "submissions" / "ada" / "result.json");
  Outcome again =
      capstone({"appeal", "ada", "--rejudge", "--backend", "emulated", "--hidden", "0", "--quick", "--decide",
                "dismissed", "--reason", "the same verdict twice", "--grader", "Grace"});
  EXPECT_EQ(again.code, 0) << again;
  EXPECT_TRUE(says(again.err, "human: PASS then, PASS now"));
  EXPECT_TRUE(says(again.out, "judged again on appeal: human PASS (appeals/"));
  EXPECT_TRUE(says(again.out, "appeal dismissed by Grace: the same verdict twice"));
  EXPECT_EQ(slurp(home_ / "graded" / "submissions" / "ada" / "result.json"), before)
      << "the record that stands stays";
  EXPECT_TRUE(says(capstone({"appeal", "adda"}).err, "did you mean 'ada'?"));
  EXPECT_EQ(capstone({"appeal", "ada", "--decide", "upheld"}).code, 2) << "a decision needs a reason";
}

TEST_F(Gradebook, AStudentSeesTheFailingCaseAgain) {
  const fs::path kernel = home_ / "in" / "eve" / "human" / "kernel.cu";
  std::string wrong = slurp(kernel);
  const std::size_t plus = wrong.find("x[i] + y[i]");
  ASSERT_NE(plus, std::string::npos) << wrong;
  wrong.replace(plus, 11, "x[i] - y[i]");
  spit(kernel, wrong);
  Outcome graded =
      capstone({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
  EXPECT_TRUE(says(graded.out, "WRONG")) << graded;
  Outcome dossier = capstone({"appeal", "eve"});
  EXPECT_TRUE(says(dossier.out, "in the case check-0"));
  EXPECT_TRUE(says(dossier.out, "first mismatch: "));
  const std::string verdict =
      (home_ / "graded" / "submissions" / "eve" / "feedback" / "verdict.json").string();
  Outcome replayed =
      capstone({"replay", verdict, "--backend", "emulated", "--quick"}, {.cwd = home_ / "in" / "eve"});
  EXPECT_EQ(replayed.code, 1) << replayed;
  EXPECT_TRUE(says(replayed.both(), "check-0"));
  spit(kernel, slurp(home_ / "in" / "ada" / "human" / "kernel.cu"));
  EXPECT_EQ(
      capstone({"replay", verdict, "--backend", "emulated", "--quick"}, {.cwd = home_ / "in" / "eve"}).code,
      0)
      << "mended";
  spit(home_ / "none.json", "{}");
  EXPECT_EQ(capstone({"replay", "../../none.json"}, {.cwd = home_ / "in" / "eve"}).code, 2);
}

TEST_F(Gradebook, PagesForMentorsAndClassAreWrittenAndHarmless) {
  const std::string hostile = "<script>alert(1)</script>, \"=cmd()\"";
  spit(home_ / "in" / "eve" / "capstone.yaml",
       std::string("members:\n  - name: ") + Json(hostile).dump() + "\n    id: \"7\"\n" +
           slurp(home_ / "in" / "eve" / "capstone.yaml")
               .substr(0, slurp(home_ / "in" / "eve" / "capstone.yaml").find("members:")));
  grade();
  for (const char* name : {"ada", "eve"})
    for (const char* criterion : {"correctness", "depth", "head_to_head", "honesty"})
      ASSERT_EQ(mark({name, "--criterion", criterion, "--points", name == std::string("ada") ? "10" : "5",
                      "--reason", hostile})
                    .code,
                0);
  ASSERT_EQ(capstone({"gradebook", "publish", "--grader", "Grace"}).code, 0);
  EXPECT_EQ(capstone({"gradebook", "graded", "--format", "html"}).code, 0);
  EXPECT_EQ(capstone({"leaderboard", "--present", "board.html"}).code, 0);
  EXPECT_TRUE(says(capstone({"leaderboard"}).out, "This board is not the grade"));
  spit(home_ / "order.txt", "eve\nada\n");
  EXPECT_EQ(capstone({"present", "--order", "order.txt", "--out", "slides.html"}).code, 0);
  EXPECT_EQ(capstone({"handout", "--out", "handout.html"}).code, 0);
  Outcome certificates = capstone(
      {"certificate", "--all", "--course", "Kernels & <co>", "--signatory", "Grace", "--at-least", "30"},
      {.env = {{"PATH", "/nonexistent"}}});
  EXPECT_EQ(certificates.code, 3) << "no browser, no PDF: " << certificates;
  EXPECT_TRUE(says(certificates.out, "20 of the required 30 points"));
  certificates = capstone({"certificate", "eve", "--course", "Kernels & <co>", "--signatory", "Grace"},
                          {.env = {{"PATH", "/nonexistent"}}});
  EXPECT_TRUE(says(certificates.out, "1 certificate: "));
  EXPECT_TRUE(says(slurp(home_ / "certificates" / "eve.svg"), "&lt;script&gt;alert(1)"));
  for (const char* page :
       {"graded/gradebook.html", "board.html", "slides.html", "handout.html",
        "certificates/certificates.html", "certificates/eve.svg", "graded/submissions/eve/score_sheet.html",
        "graded/submissions/eve/feedback/score_sheet.html"}) {
    const std::string text = slurp(home_ / page);
    EXPECT_FALSE(text.empty()) << page;
    EXPECT_EQ(text.find("<script>alert"), std::string::npos) << page;
    EXPECT_EQ(text.find("{{"), std::string::npos) << page;
  }
  EXPECT_LT(slurp(home_ / "slides.html").find("alert(1)"), slurp(home_ / "slides.html").find("Ada Lovelace"))
      << "the running order";
  EXPECT_TRUE(says(slurp(home_ / "handout.html"), "What each got stuck on"));
  EXPECT_EQ(slurp(home_ / "board.html").find("Ada Lovelace"), std::string::npos);
  EXPECT_EQ(capstone({"certificate", "--course", "x", "--signatory", "y"}).code, 2) << "whose?";
  Outcome browser = program({"bash", CAPSTONE_SOURCE_DIR "/scripts/check_gradebook.sh",
                             (home_ / "graded" / "gradebook.html").string(), "ada", "2"},
                            {.patience = std::chrono::seconds(100)});
  if (browser.code == 3) GTEST_SKIP() << browser.err;
  EXPECT_EQ(browser.code, 0) << browser;
}

TEST_F(Gradebook, ASecondMentorMarksBlindAndBothMarksStay) {
  ASSERT_EQ(mark({"ada", "--criterion", "depth", "--points", "28", "--reason", "told well"}).code, 0);
  Outcome assigned = capstone({"gradebook", "assign", "--double", "1", "--grader", "Eva Second"});
  EXPECT_EQ(assigned.code, 0) << assigned;
  assigned = capstone({"gradebook", "assign", "--double", "9", "--grader", "Eva Second"});
  EXPECT_TRUE(says(assigned.out, "1 blind copy for Eva Second: they have marked or been given all others"));
  int sheets = 0;
  for (const auto& copy : fs::directory_iterator(home_ / "graded" / "blind" / "Eva-Second-5cf4e7")) {
    const std::string sheet = slurp(copy.path() / "marks.yaml");
    EXPECT_EQ(sheet.find("Ada"), std::string::npos);
    EXPECT_EQ(sheet.find("suggested"), std::string::npos);
    EXPECT_FALSE(slurp(copy.path() / "human" / "kernel.cu").empty());
    std::string filled = sheet;
    const std::size_t at = filled.find("  depth:\n    points: ");
    ASSERT_NE(at, std::string::npos) << sheet;
    filled.replace(at, std::string("  depth:\n    points: \n    reason: ").size(),
                   "  depth:\n    points: 12\n    reason: recipes");
    spit(copy.path() / "marks.yaml", filled);
    ++sheets;
  }
  EXPECT_EQ(sheets, 2);
  Outcome merged = capstone({"gradebook", "merge", "graded/blind/Eva-Second-5cf4e7"});
  EXPECT_EQ(merged.code, 0) << merged;
  EXPECT_TRUE(says(merged.out, "2 second marks added"));
  EXPECT_TRUE(says(merged.out, "ada depth: 28 by Grace, 12 by Eva Second"));
  EXPECT_TRUE(says(capstone({"gradebook", "agreement"}).out, "-16.0"));
  EXPECT_TRUE(says(capstone({"gradebook", "--format", "csv"}).out, ",28,")) << "the first mark stands";
  EXPECT_EQ(capstone({"gradebook", "merge", "in"}).code, 2);
}

TEST_F(Gradebook, KernelsThatShareCodeAreShownSideBySide) {
  Outcome found = capstone({"gradebook", "similarity", "--least", "50"});
  EXPECT_EQ(found.code, 0) << found;
  EXPECT_TRUE(says(found.out, "never a penalty"));
  EXPECT_TRUE(says(found.out, "(the recorded start)"));
  const Json json = Json::parse(slurp(home_ / "graded" / "similarity.json"));
  ASSERT_EQ(json["pairs"].size(), 1u);
  EXPECT_EQ(json["pairs"][0]["share"], 1.0) << "both are the same rung";
  EXPECT_TRUE(says(slurp(home_ / "graded" / "similarity.html"), "ada and eve: 100 %"));
  ASSERT_EQ(capstone({"gradebook", "graded", "--format", "html"}).code, 0);
  EXPECT_TRUE(says(slurp(home_ / "graded" / "gradebook.html"), "Kernels that share code"));
}

TEST_F(Gradebook, TheStubThatEverybodyBeganWithIsNobodysCode) {
  for (const char* name : {"in/one", "in/two"})
    ASSERT_EQ(capstone({"init", "softmax", name, "--member", std::string("Somebody ") + name}).code, 0);
  for (const char* name : {"in/three", "in/four"}) {
    ASSERT_EQ(capstone({"init", "softmax", name, "--member", std::string("Somebody ") + name}).code, 0);
    spit(home_ / name / "human" / "kernel.py",
         "import torch\n# " + std::string(name) +
             " says something of its own\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n        "
             "super().__init__()\n"
             "    def forward(self, x):\n        m = x.amax(dim=-1, keepdim=True)\n        e = torch.exp(x - "
             "m)\n        s = e.sum(dim=-1, keepdim=True)\n        return (e / s).contiguous() * 1.0\n");
  }
  capstone({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
  Outcome found = capstone({"gradebook", "similarity", "--least", "10"});
  ASSERT_EQ(found.code, 0) << found;
  const Json json = Json::parse(slurp(home_ / "graded" / "similarity.json"));
  std::string pairs;
  for (const Json& pair : json["pairs"])
    pairs += pair["first"].get<std::string>() + " " + pair["second"].get<std::string>() + "\n";
  EXPECT_EQ(pairs.find("one"), std::string::npos) << pairs;
  EXPECT_EQ(pairs.find("two"), std::string::npos) << pairs;
  ASSERT_EQ(json["prose"].size(), 0u) << "worklogs as `init` wrote them share nothing of their own";
  EXPECT_TRUE(says(pairs, "four three")) << "Python is compared, too, and its comments are no code";
  for (const Json& origin : json["origins"]) EXPECT_NE(origin["submission"], "one") << json["origins"].dump();
}

TEST_F(Gradebook, AReasonThatIsNoCommentIsNotTakenLiterally) {
  spit(home_ / "graded" / "comments.yaml", "clear: A clear chain of versions.\n");
  Outcome typo = mark({"ada", "--criterion", "depth", "--points", "20", "--reason", "@claer"});
  EXPECT_EQ(typo.code, 2) << typo;
  EXPECT_TRUE(says(typo.err, "error: no comment is called '@claer'"));
  EXPECT_TRUE(says(typo.err, "graded/comments.yaml"));
  EXPECT_TRUE(says(typo.err, "did you mean '@clear'?"));
  EXPECT_EQ(mark({"ada", "--criterion", "depth", "--points", "20", "--reason", "@clear"}).code, 0);
}

TEST_F(Gradebook, AFolderWithoutOneIsNamed) {
  Outcome none = capstone({"gradebook", "in"});
  EXPECT_EQ(none.code, 2) << none;
  EXPECT_TRUE(says(none.err, "error: no gradebook here"));
  EXPECT_FALSE(fs::exists(home_ / "in" / "gradebook.sqlite"));
}

}  // namespace
}  // namespace capstone::cli_test
