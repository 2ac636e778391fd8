// Marking as a browser does it: over HTTP, several graders at once.
#include <atomic>
#include <set>

#include "tests/desk/desk_fixture.h"

namespace capstone::desk {
namespace {

TEST_F(DeskTest, TwoGradersGetTwoSheetsAndWhoTakesOneOverKnowsIt) {
  start();
  Browser eva(port(), eva_), grace(port(), owner_);
  const std::string first = eva.next(), second = grace.next();
  EXPECT_NE(first, second);
  EXPECT_NE(grace.get(first)->body.find("eva has this sheet open since"), std::string::npos);
  auto refused = grace.post(first + "/save", filled("5", "over eva"));
  EXPECT_NE(refused->body.find("Not given: eva has this sheet open"), std::string::npos);
  EXPECT_NE(refused->body.find("over eva"), std::string::npos) << "what was typed stands in the page";
  EXPECT_EQ(grace.post(first + "/take")->status, 303);
  EXPECT_EQ(eva.post(first + "/beat")->body, "{\"holder\":\"grace\"}");
  EXPECT_EQ(grace.post(first + "/save", filled("5", "over eva"))->status, 303);
  EXPECT_TRUE(eva.post(first + "/save", filled("6", "eva again"))
                  ->body.find("Not given: grace has this sheet open") != std::string::npos);
}

TEST_F(DeskTest, AMarkThatCameInTheMeantimeIsToldBeforeItIsReplaced) {
  start();
  Browser eva(port(), eva_);
  const std::string sheet = eva.next();
  // The command line is another process; a claim does not stop it.
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    for (const char* each : {"ada", "eve"}) {
      Mark mark;
      mark.submission = each, mark.criterion = "depth", mark.points = 24,
      mark.reason = "from the command line";
      mark.grader = "grace";
      ASSERT_TRUE(cohort->book.mark(cohort->rubric, {mark}));
    }
  }
  auto told_first = eva.post(sheet + "/save", filled("5", "mine"));
  EXPECT_EQ(told_first->status, 200);
  EXPECT_NE(told_first->body.find("has 24 by grace at "), std::string::npos)
      << told_first->body.substr(0, 1500);
  EXPECT_EQ((history("ada") + history("eve")).find("by eva"), std::string::npos) << "nothing is given yet";
  auto again = filled("5", "mine");
  std::smatch seen;
  ASSERT_TRUE(
      std::regex_search(told_first->body, seen, std::regex("name=\"seen_depth\" value=\"([^\"]*)\"")));
  again["seen_depth"] = seen[1];
  EXPECT_EQ(eva.post(sheet + "/save", again)->status, 303);
  EXPECT_NE(eva.get(sheet)->body.find("depth replaces 24 by grace at "), std::string::npos);
  const std::string both = history("ada") + history("eve");
  EXPECT_NE(both.find("depth 5 by eva: mine"), std::string::npos);
  EXPECT_NE(both.find("depth 24 by grace"), std::string::npos);
}

TEST_F(DeskTest, PublishingIsLookedAtAndChosenBefore) {
  start();
  Browser eva(port(), eva_), grace(port(), owner_);
  const auto code_of = [](const std::string& sheet) { return sheet.substr(sheet.rfind('/') + 1); };
  const std::string first = eva.next();
  ASSERT_EQ(eva.post(first + "/save", filled("5", "well measured"))->status, 303);
  const std::string second = grace.next();
  ASSERT_EQ(grace.post(second + "/save", {{"points_depth", "4"}, {"reason_depth", "a beginning"}})->status,
            303);

  const std::string page = grace.get("/publish")->body;
  EXPECT_NE(page.find("name=\"pick_" + code_of(first) + "\" value=\"1\""), std::string::npos) << page;
  EXPECT_NE(page.find("not marked: "), std::string::npos) << "the other one lacks criteria";
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  const auto preview = grace.get("/publish/" + code_of(first));
  EXPECT_EQ(preview->status, 200);
  EXPECT_NE(preview->body.find("well measured"), std::string::npos);
  EXPECT_NE(preview->get_header_value("Content-Security-Policy").find("sandbox"), std::string::npos);

  EXPECT_EQ(grace.post("/publish")->status, 400) << "no one was chosen";
  EXPECT_EQ(grace.post("/publish", {{"pick_" + code_of(second), "1"}})->status, 400) << "only held back";
  EXPECT_FALSE(rows()[0].published || rows()[1].published);
  EXPECT_EQ(grace.post("/publish", {{"pick_" + code_of(first), "1"}})->status, 303);
  EXPECT_NE(rows()[0].published, rows()[1].published) << "the chosen one alone";
  EXPECT_EQ(grace.post("/publish", {{"pick_" + code_of(second), "1"}, {"incomplete", "1"}})->status, 303);
  EXPECT_TRUE(rows()[0].published && rows()[1].published);
}

TEST_F(DeskTest, WhatIsTypedOutlivesTheServer) {
  start();
  std::string sheet;
  {
    Browser eva(port(), eva_);
    sheet = eva.next();
    auto typed = filled("", "");
    typed["reason_depth"] = "half a sentence with \"quotes\" & <tags>";
    EXPECT_EQ(eva.post(sheet + "/draft", typed)->status, 200);
  }
  stop();
  start();
  Browser eva(port(), eva_);
  EXPECT_NE(eva.get(sheet)->body.find("half a sentence with &quot;quotes&quot; &amp; &lt;tags&gt;"),
            std::string::npos);
  EXPECT_EQ(eva.post(sheet + "/undo", {})->status, 303);
  EXPECT_EQ(eva.get(sheet)->body.find("half a sentence"), std::string::npos);
}

TEST_F(DeskTest, MarksFromTheDeskAreThoseOfTheGradebook) {
  start();
  Browser eva(port(), eva_);
  const std::string sheet = eva.next();
  auto incomplete = filled("5", "");
  EXPECT_NE(eva.post(sheet + "/save", incomplete)->body.find("needs points and a reason"), std::string::npos);
  auto too_many = filled("1000", "generous");
  EXPECT_NE(eva.post(sheet + "/save", too_many)->body.find("out of range"), std::string::npos);
  EXPECT_FALSE(rows()[0].total() || rows()[1].total()) << "all or none";
  auto whole = filled("5", "as\r\nsaid");
  whole["then"] = "next";
  const std::string following = eva.post(sheet + "/save", whole)->get_header_value("Location");
  EXPECT_NE(following, sheet);
  const auto all = rows();
  const auto& marked = all[0].total() ? all[0] : all[1];
  EXPECT_EQ(marked.total(), 20);
  EXPECT_EQ(marked.marks[0]->reason, "as\nsaid");
  EXPECT_EQ(marked.marks[0]->grader, "eva");
}

TEST_F(DeskTest, ItemsAndCommentsOnLinesAreKeptFromTheBrowser) {
  start();
  Browser eva(port(), eva_);
  const std::string sheet = eva.next();
  EXPECT_EQ(eva.post("/items", {{"criterion", "depth"}, {"id", "0"}, {"points", "7"}, {"text", "told well"}})
                ->status,
            303);
  EXPECT_NE(eva.get(sheet)->body.find("name=\"item_depth_1\""), std::string::npos);
  EXPECT_EQ(
      eva.post(sheet + "/save",
               {{"points_depth", "1"}, {"reason_depth", ""}, {"item_depth_1", "1"}, {"seen_depth", "-"}})
          ->status,
      303);
  EXPECT_EQ(eva.post("/items", {{"criterion", "depth"}, {"id", "1"}, {"points", "9"}, {"text", "told best"}})
                ->status,
            303);
  EXPECT_NE(eva.get("/items")->body.find("1 marks were given again"), std::string::npos);
  const auto all = rows();
  const auto& mark = all[0].marks[1] ? all[0].marks[1] : all[1].marks[1];
  EXPECT_EQ(mark->points, 10);
  EXPECT_EQ(mark->reason, "told best");
  EXPECT_EQ(eva.post(sheet + "/comment", {{"file", "0"}, {"line", "3"}, {"text", "why <b>?"}})->status, 303);
  EXPECT_NE(eva.get(sheet + "/source?file=0")->body.find("why &lt;b&gt;?"), std::string::npos);
}

// In a real browser, with the student who is called <script>alert(1)</script> shown by name.
TEST_F(DeskTest, AWholeCohortIsMarkedByKeysAlone) {
  start(true);
  const auto checked = check_in_browser(eva_);
  ASSERT_TRUE(checked);
  if (checked->status == 3) GTEST_SKIP() << checked->err;
  EXPECT_EQ(checked->status, 0) << checked->out << checked->err;
  for (const GradebookRow& row : rows()) {
    EXPECT_EQ(row.total(), 20) << row.submission;
    EXPECT_EQ(row.marks[1]->reason, "criterion 1, by keys");
  }
}

TEST_F(DeskTest, ASubmissionThatIsGradedMeanwhileGetsItsSheet) {
  start(true);
  Browser eva(port(), eva_);
  EXPECT_EQ(eva.get("/")->body.find("zoe"), std::string::npos);
  add("zoe", {"Zoe", "99", ""});
  const std::string list = eva.get("/")->body;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(list, found, std::regex("\"(/sheet/[0-9a-f]+)\">zoe: Zoe")));
  EXPECT_EQ(eva.get(found[1])->status, 200);
  EXPECT_EQ(eva.post(found[1].str() + "/save", filled("4", "seen"))->status, 303);
  const auto all = rows();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                          [](const auto& row) { return row.submission == "zoe" && row.total() == 16; }));
}

TEST_F(DeskTest, BrowsersRaceLoseNoWordToAKilledServerAndPublishWhatWasChosen) {
  const auto checked =
      run_script("check_desk_together.py", {(folder_ / "graded").string(), CAPSTONE_BINARY, eva_, owner_});
  ASSERT_TRUE(checked);
  if (checked->status == 3) GTEST_SKIP() << checked->err;
  EXPECT_EQ(checked->status, 0) << checked->out << checked->err;
}

// Ten graders with two requests each at a time: no mark is lost, no lock is told to anyone.
TEST_F(DeskTest, TenGradersAtOnceLoseNoMark) {
  for (int i = 0; i < 20; ++i) {
    SubmissionResult result;
    result.name = "s" + std::to_string(i);
    result.problem = "softmax";
    result.state = GradingState::kGraded;
    result.members = {{"Student " + std::to_string(i), std::to_string(100 + i), ""}};
    result.inputs.files = "d" + std::to_string(i);
    result.finished = "2026-03-01T09:30:00Z";
    ASSERT_TRUE(Gradebook::open(folder_ / "graded")->take({result}));
  }
  std::vector<std::string> tokens;
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    for (int i = 0; i < 10; ++i)
      tokens.push_back(
          Marking(cohort->book).add_grader("g" + std::to_string(i), GraderRole::kGrader, false).value());
  }
  start();
  std::atomic<int> given = 0;
  std::vector<std::thread> graders;
  for (const std::string& token : tokens)
    graders.emplace_back([&, token] {
      Browser browser(port(), token);
      for (std::string sheet = browser.next(); sheet != "/" && !sheet.empty();) {
        auto fields = filled("5", "by " + token.substr(0, 8));
        EXPECT_EQ(browser.post(sheet + "/draft", fields)->status, 200);
        fields["then"] = "next";
        auto saved = browser.post(sheet + "/save", fields);
        ASSERT_EQ(saved->status, 303) << saved->body.substr(0, 2000);
        ++given;
        sheet = saved->get_header_value("Location");
      }
    });
  for (std::thread& grader : graders) grader.join();
  EXPECT_EQ(given, 22);
  for (const GradebookRow& row : rows()) {
    EXPECT_EQ(row.total(), 20) << row.submission;
    std::set<std::string> reasons;
    for (const auto& mark : row.marks) reasons.insert(mark->reason);
    EXPECT_EQ(reasons.size(), 1u) << "one grader for each sheet";
  }
}

}  // namespace
}  // namespace capstone::desk
