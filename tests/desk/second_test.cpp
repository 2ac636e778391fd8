// Second marks in the browser: what the second grader must not see, and what becomes of their marks.
#include <atomic>

#include "harness/course/gradebook/agreement.h"
#include "harness/workflows/mark_sheets.h"
#include "harness/workflows/second_marks.h"
#include "tests/desk/desk_fixture.h"

namespace capstone::desk {
namespace {

class SecondTest : public DeskTest {
 protected:
  static constexpr const char* kReason = "the halo of the tile is never loaded";
  static constexpr const char* kPoints = "7.13";
  static constexpr const char* kTotal = "28.52";
  static constexpr const char* kComment = "why twice the bandwidth here?";

  /// Eva marks both sheets first, with points that no page shows otherwise.
  void mark_first() {
    Browser eva(port(), eva_);
    for (std::string sheet = eva.next(); sheet != "/"; sheet = eva.next()) {
      auto given = filled(kPoints, kReason);
      EXPECT_EQ(eva.post(sheet + "/comment", {{"file", "0"}, {"line", "3"}, {"text", kComment}})->status,
                303);
      ASSERT_EQ(eva.post(sheet + "/save", given)->status, 303);
      ASSERT_EQ(eva.post(sheet + "/close")->status, 303);
    }
  }
  void mark_first_of(const std::string& name) {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    ASSERT_TRUE(cohort->book.mark(cohort->rubric, {{name, "depth", {}, 7.13, kReason, "eva", {}, {}}}));
  }
  void assign(const std::string& grader, int count) {
    ASSERT_TRUE(GraderAgreement::open(folder_ / "graded")->assign(count, grader));
  }
  static std::string whole(const httplib::Result& answer) {
    std::string all = std::to_string(answer->status) + "\n";
    for (const auto& [name, value] : answer->headers) all += name + ": " + value + "\n";
    return all + answer->body;
  }
  /// Nothing of the first marks: grader, reason, points, total, comment; and no name of the author.
  static void expect_blind(const httplib::Result& answer, const std::string& where) {
    ASSERT_TRUE(answer) << where;
    const std::string all = whole(answer);
    EXPECT_LT(answer->status, 400) << where << all.substr(0, 300);
    for (const std::string word :
         {"eva", kReason, kPoints, kTotal, kComment, "Lovelace", "1815", "ada@example.org", "alert(1)"}) {
      if (word == "eva" && where == "/progress") continue;  // that page lists every grader
      EXPECT_FALSE(
          std::regex_search(all, std::regex("(^|[^A-Za-z0-9.#])" + escaped(word) + "($|[^A-Za-z0-9])")))
          << where << " shows " << word;
    }
    EXPECT_EQ(all.find("Suggested"), std::string::npos) << where;
    EXPECT_FALSE(answer->has_header("ETag")) << where;
  }
  static std::string escaped(const std::string& word) {
    return std::regex_replace(word, std::regex(R"([.()?])"), R"(\$&)");
  }
};

TEST_F(SecondTest, TheSecondGraderSeesNothingOfTheFirstMarks) {
  start(true);  // names are shown on first sheets; never on second ones
  mark_first();
  assign("grace", 2);
  Browser grace(port(), owner_);
  const std::string list = grace.get("/")->body;
  EXPECT_NE(list.find("Second markings to do: 2."), std::string::npos) << list;
  expect_blind(grace.get("/"), "/");
  EXPECT_NE(grace.get(grace.next())->body.find("Second markings to do: 2."), std::string::npos);
  const std::string sheet = grace.post("/second/next")->get_header_value("Location");
  ASSERT_EQ(sheet.find("/second/copy-"), 0u) << sheet;
  for (const char* view :
       {"", "/worklog", "/source?file=0", "/source?file=0&line=3", "/versions", "/model", "/machine"}) {
    expect_blind(grace.get(sheet + view), sheet + view);
    EXPECT_NE(grace.get(sheet + view)->get_header_value("Content-Security-Policy").find("default-src 'none'"),
              std::string::npos);
  }
  expect_blind(grace.post(sheet + "/beat"), "beat");
  expect_blind(grace.post(sheet + "/draft", filled("3", "mine")), "draft");
  expect_blind(grace.post(sheet + "/undo"), "undo");
  expect_blind(grace.get(sheet), "after undo");
  auto half = filled("3", "mine");
  half["reason_depth"] = "";
  auto refused = grace.post(sheet + "/save", half);
  EXPECT_NE(refused->body.find("Second marks are given all at once"), std::string::npos);
  expect_blind(refused, "refused");
  expect_blind(grace.get("/progress"), "/progress");
  EXPECT_EQ(grace.get("/progress")->body.find("Kappa"), std::string::npos) << "a difference tells a mark";
  expect_blind(grace.get("/second"), "/second");
  // The owner's other pages: the sheet of the first marks is closed, and the total is hidden.
  EXPECT_EQ(grace.get("/publish")->body.find(kTotal), std::string::npos);
  for (const auto& [code, name] : [&] {
         auto cohort = workflows::open_cohort(workspace_, "graded");
         return Marking(cohort->book).codes().value();
       }()) {
    EXPECT_EQ(grace.get("/sheet/" + code)->status, 400);
    EXPECT_EQ(grace.get("/publish/" + code)->status, 400);
    EXPECT_EQ(grace.post("/sheet/" + code + "/save", filled("1", "first"))->status, 400);
  }
}

TEST_F(SecondTest, SecondMarksAreKeptApartAndCountInTheAgreement) {
  start();
  mark_first();
  assign("tom", 2);  // sees only what is assigned: a second marking is
  Browser tom(port(), tom_), grace(port(), owner_), eva(port(), eva_);
  std::string sheet = tom.post("/second/next")->get_header_value("Location");
  ASSERT_EQ(tom.get(sheet)->status, 200);
  auto typed = filled("4", "a second view");
  typed["reason_depth"] = "half a sent";
  EXPECT_EQ(tom.post(sheet + "/draft", typed)->status, 200);
  stop();
  start();
  Browser again(port(), tom_), owner(port(), owner_), first(port(), eva_);
  EXPECT_NE(again.get(sheet)->body.find("half a sent"), std::string::npos) << "autosaved";
  EXPECT_EQ(again.post("/second/next")->get_header_value("Location"), sheet) << "what is open comes first";
  EXPECT_EQ(owner.get("/second")->body.find("a second view"), std::string::npos) << "not given yet";
  auto given = filled("4", "a second view");
  given["then"] = "next";
  const std::string other = again.post(sheet + "/save", given)->get_header_value("Location");
  ASSERT_EQ(other.find("/second/copy-"), 0u) << other;
  EXPECT_NE(other, sheet);
  for (const GradebookRow& row : rows()) {
    EXPECT_NEAR(*row.total(), 28.52, 1e-9) << "the first marks stay";
    EXPECT_EQ(row.marks[0]->grader, "eva");
  }
  EXPECT_EQ(again.get(sheet)->status, 404) << "given marks are final";
  EXPECT_EQ(again.post(sheet + "/save", filled("9", "changed"))->status, 404);
  EXPECT_EQ(again.get("/progress")->body.find("Kappa"), std::string::npos) << "one more waits";
  EXPECT_NE(owner.get("/progress")->body.find("Kappa"), std::string::npos);
  EXPECT_NE(owner.get("/progress")->body.find("1 of 2"), std::string::npos);
  const auto agreement = workflows::open_cohort(workspace_, "graded");
  EXPECT_EQ(GraderAgreement::open(folder_ / "graded")->pairs()->size(), 4u) << "one for each criterion";
  const std::string both = owner.get("/second")->body;
  for (const char* word : {"a second view", kReason, "eva: ", "second marks by tom", kPoints, "-3.13"})
    EXPECT_NE(both.find(word), std::string::npos) << word;
  EXPECT_EQ(first.get("/second")->status, 403) << "the owner alone sees both";
  EXPECT_EQ(again.get("/second")->status, 403);
}

TEST_F(SecondTest, AnotherGradersCopyIsNotFoundAndFormsNeedTheToken) {
  start();
  mark_first();
  assign("tom", 1);
  Browser tom(port(), tom_), grace(port(), owner_), eva(port(), eva_);
  const std::string sheet = tom.post("/second/next")->get_header_value("Location");
  for (const char* view : {"", "/worklog", "/source", "/versions", "/model", "/machine"}) {
    EXPECT_EQ(grace.get(sheet + view)->status, 404) << view;
    EXPECT_EQ(eva.get(sheet + view)->status, 404) << view;
  }
  for (const char* what : {"/save", "/draft", "/undo", "/close", "/beat"}) {
    EXPECT_EQ(grace.post(sheet + what, filled("1", "not mine"))->status, 404) << what;
    EXPECT_EQ(tom.post(sheet + what, {{"token", "guessed"}})->status, 403) << what;
    EXPECT_EQ(tom.post(sheet + what, {}, {{"Origin", "http://evil.example"}})->status, 403) << what;
  }
  EXPECT_EQ(tom.post(sheet + "/comment", {{"file", "0"}, {"line", "3"}, {"text", "x"}})->status, 404);
  EXPECT_EQ(tom.post("/second/next", {{"token", ""}})->status, 403);
  EXPECT_EQ(grace.post("/second/next")->get_header_value("Location"), "/");
  EXPECT_EQ(tom.get("/second/copy-0123456789")->status, 404);
  EXPECT_EQ(tom.get("/second/../sheet/123456")->status, 404);
  httplib::Client stranger("127.0.0.1", port());
  EXPECT_EQ(stranger.Get(sheet)->get_header_value("Location"), "/login");
}

TEST_F(SecondTest, AGraderNeverMarksTheirOwnSheetTwice) {
  start();
  mark_first();
  assign("eva", 2);
  Browser eva(port(), eva_);
  EXPECT_EQ(eva.get("/")->body.find("Second markings to do"), std::string::npos);
  // Given before the first marks: who takes the first marking does not get the second one.
  add("bob", {"Bob", "9", ""});
  assign("eva", 1);
  EXPECT_NE(eva.get("/")->body.find("Second markings to do: 1."), std::string::npos);
  EXPECT_EQ(eva.next(), "/") << "nor is a second marking offered as a first one";
  const std::string copy = eva.post("/second/next")->get_header_value("Location");
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    ASSERT_TRUE(Marking(cohort->book).assign({{"bob", "eva"}}, "grace"));
  }
  EXPECT_EQ(eva.get(copy)->status, 404);
  EXPECT_EQ(eva.post(copy + "/save", filled("5", "mine"))->status, 404);
  EXPECT_EQ(eva.next().find("/sheet/"), 0u);
}

TEST_F(SecondTest, TheCommandLineShowsNoFirstMarksToTheSecondGrader) {
  mark_first_of("ada");
  assign("tom", 2);
  auto cohort = workflows::open_cohort(workspace_, "graded");
  int opened = 0;
  workflows::MarkingRound round{"ada", "tom", false, [&](const fs::path&) -> Result<void> {
                                  ++opened;
                                  return {};
                                }};
  for (const bool take : {false, true}) {
    round.take = take;
    const auto refused = workflows::mark_sheets(*cohort, round, {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("waits for second marks of tom"), std::string::npos);
    EXPECT_NE(refused.error().hint.find("capstone serve"), std::string::npos);
    EXPECT_EQ((refused.error().what + refused.error().hint).find("7.13"), std::string::npos);
  }
  // "this replaces 7.13 by eva" would tell the first mark.
  const auto given = workflows::give_marks(*cohort, {{"ada", "depth", {}, 3, "mine", "tom", {}, {}}});
  ASSERT_FALSE(given);
  EXPECT_NE(given.error().what.find("waits for second marks of tom"), std::string::npos);
  round.only.clear();
  const auto next = workflows::mark_sheets(*cohort, round, {});
  ASSERT_TRUE(next) << next.error().what;
  EXPECT_EQ(next->second, 2) << "told, as nothing else waits";
  EXPECT_EQ(opened, 0);
  round.only = "eve";
  round.grader = "grace";
  EXPECT_TRUE(workflows::mark_sheets(*cohort, round, {})) << "others mark as before";
  EXPECT_EQ(opened, 1);
}

TEST_F(SecondTest, ProgressListsOnlyWhatTheGraderMaySee) {
  start();
  mark_first();
  add("bob", {"Bob", "9", ""});
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    ASSERT_TRUE(Marking(cohort->book).assign({{"bob", "tom"}}, "grace"));
  }
  assign("grace", 2);
  Browser tom(port(), tom_), eva(port(), eva_), grace(port(), owner_);
  const std::string of_tom = tom.get("/progress")->body;  // sees only what is assigned
  EXPECT_NE(of_tom.find(">tom</td>"), std::string::npos) << of_tom;
  for (const char* other : {"eva", "grace"}) EXPECT_EQ(of_tom.find(other), std::string::npos) << other;
  const std::string sheet = grace.post("/second/next")->get_header_value("Location");
  ASSERT_EQ(grace.post(sheet + "/save", filled("4", "a second view"))->status, 303);
  const std::string of_eva = eva.get("/progress")->body;  // sees all sheets
  for (const char* word : {">eva</td>", ">tom</td>"}) EXPECT_NE(of_eva.find(word), std::string::npos) << word;
  for (const char* word : {"grace", "1 of 2", "Kappa"})
    EXPECT_EQ(of_eva.find(word), std::string::npos) << word;
  EXPECT_NE(grace.get("/progress")->body.find("1 of 2"), std::string::npos) << "the owner sees all";
}

TEST_F(SecondTest, MergeReportsWhatDiffersFromMarksGivenInTheBrowser) {
  start();
  std::vector<fs::path> sheets;
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    sheets = workflows::assign_blind_copies(workspace_, *cohort, 1, "tom", "copies").value().sheets;
  }
  ASSERT_EQ(sheets.size(), 1u);
  Browser tom(port(), tom_);
  const std::string page = tom.post("/second/next")->get_header_value("Location");
  ASSERT_EQ(tom.post(page + "/save", filled("4", "in the browser"))->status, 303);
  std::string text = read_file(sheets[0], 1u << 20).value();
  text = std::regex_replace(text, std::regex("points: *\n"), "points: 6\n");
  std::ofstream(sheets[0]) << std::regex_replace(text, std::regex("reason: *\n"), "reason: in the copy\n");
  auto cohort = workflows::open_cohort(workspace_, "graded");
  const auto merged = workflows::merge_blind_copies(workspace_, *cohort, "copies", {});
  ASSERT_TRUE(merged) << merged.error().what;
  EXPECT_EQ(merged->added, 0);
  EXPECT_EQ(merged->conflicts.size(), 4u);
  const auto all = Marking(cohort->book).second_markings(cohort->rubric).value();
  EXPECT_EQ(all[0].marks[0]->reason, "in the browser");
  const std::string told = history(all[0].submission);
  EXPECT_NE(told.find("by tom: in the browser\n"), std::string::npos) << told;
  EXPECT_NE(told.find("by tom: in the copy (does not count"), std::string::npos) << told;
}

TEST_F(SecondTest, WhatWasAssignedByMistakeIsTakenBack) {
  start();
  assign("eva", 2);
  Browser eva(port(), eva_);
  EXPECT_EQ(eva.next(), "/") << "a second marking is not offered as a first one";
  const std::string copy = eva.post("/second/next")->get_header_value("Location");
  ASSERT_EQ(eva.post(copy + "/save", filled("5", "given"))->status, 303);
  EXPECT_EQ(GraderAgreement::open(folder_ / "graded")->withdraw("eva"), 1) << "what has marks stays";
  EXPECT_EQ(eva.post("/second/next")->get_header_value("Location"), "/");
  EXPECT_EQ(eva.next().find("/sheet/"), 0u);
}

// An item that grace changes gives eva's marks again in the name of grace: that is no judgement of grace's.
TEST_F(SecondTest, AChangedItemMakesNoOneAFirstGrader) {
  start();
  Browser eva(port(), eva_), grace(port(), owner_);
  ASSERT_EQ(eva.post("/items", {{"criterion", "depth"}, {"id", "0"}, {"points", "7"}, {"text", "told well"}})
                ->status,
            303);
  auto with_item = filled("1", "and more");
  with_item["item_depth_1"] = "1";
  ASSERT_EQ(eva.post(eva.next() + "/save", with_item)->status, 303);
  ASSERT_EQ(
      grace.post("/items", {{"criterion", "depth"}, {"id", "1"}, {"points", "9"}, {"text", "told best"}})
          ->status,
      303);
  EXPECT_TRUE(GraderAgreement::open(folder_ / "graded")->pairs()->empty());
  assign("grace", 2);
  EXPECT_NE(grace.get("/")->body.find("Second markings to do: 2."), std::string::npos);
}

TEST_F(SecondTest, SecondSheetsAreMarkedByKeysAlone) {
  start();
  mark_first();
  assign("tom", 2);
  const auto checked = check_in_browser(tom_, {"--second"});
  ASSERT_TRUE(checked);
  if (checked->status == 3) GTEST_SKIP() << checked->err;
  EXPECT_EQ(checked->status, 0) << checked->out << checked->err;
  auto cohort = workflows::open_cohort(workspace_, "graded");
  const auto all = Marking(cohort->book).second_markings(cohort->rubric).value();
  ASSERT_EQ(all.size(), 2u);
  for (const SecondMarking& each : all) {
    ASSERT_TRUE(each.done()) << each.code;
    EXPECT_EQ(each.marks[1]->points, 5);
    EXPECT_EQ(each.marks[1]->reason, "criterion 1, by keys");
  }
}

TEST_F(SecondTest, TwoGradersAtOnceKeepBothTheirSecondMarks) {
  start();
  mark_first();
  assign("tom", 2);
  assign("grace", 2);
  std::atomic<int> given = 0, refused = 0;
  // Each grader with two browsers on the same copies: of two forms for one copy, one is taken.
  auto work = [&](const std::string& token, const std::string& reason) {
    Browser browser(port(), token);
    for (int i = 0; i < 8; ++i) {
      const std::string sheet = browser.post("/second/next")->get_header_value("Location");
      if (sheet == "/") return;
      browser.post(sheet + "/draft", filled("3", reason));
      const auto page = browser.get(sheet);
      EXPECT_EQ(page->body.find(reason == "by tom" ? "by grace" : "by tom"), std::string::npos);
      (browser.post(sheet + "/save", filled("3", reason))->status == 303 ? given : refused)++;
    }
  };
  std::vector<std::thread> graders;
  for (int i = 0; i < 2; ++i) {
    graders.emplace_back(work, tom_, "by tom");
    graders.emplace_back(work, owner_, "by grace");
  }
  for (std::thread& grader : graders) grader.join();
  EXPECT_EQ(given, 4) << refused;
  auto cohort = workflows::open_cohort(workspace_, "graded");
  const auto all = Marking(cohort->book).second_markings(cohort->rubric).value();
  ASSERT_EQ(all.size(), 4u);
  for (const SecondMarking& each : all) {
    ASSERT_TRUE(each.done());
    EXPECT_EQ(each.marks[0]->reason, "by " + each.grader);
  }
  const std::string told = history("ada");
  EXPECT_EQ(told.find("second mark: depth 3 by tom"), told.rfind("second mark: depth 3 by tom")) << told;
}

}  // namespace
}  // namespace capstone::desk
