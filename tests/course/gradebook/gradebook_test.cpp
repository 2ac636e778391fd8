#include <ctime>
#include <fstream>

#include "harness/course/gradebook/eligibility.h"
#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone {
namespace {

class Book : public testing::GradebookTest {};

TEST_F(Book, ATeamHasARowForEachMember) {
  auto all = rows();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].submission, "ada");
  EXPECT_EQ(all[2].person.name, "Eve");
  EXPECT_EQ(all[0].total(), std::nullopt);
}

TEST_F(Book, TheLastMarkStandsInFrontAndBothStay) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "honesty", 10)}));
  ASSERT_TRUE(book().mark(rubric, {give("ada", "honesty", 8, "a number without a measurement")}));
  EXPECT_EQ(rows()[0].marks[3]->points, 8);
  auto history = book().history("ada");
  ASSERT_TRUE(history);
  int marks = 0;
  for (const HistoryEntry& entry : *history) marks += entry.text.starts_with("honesty ");
  EXPECT_EQ(marks, 2);
}

TEST_F(Book, HandedInAgainKeepsEveryMarkAndFlagsIt) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "honesty", 10), give("ada", "depth", 20)}));
  ASSERT_TRUE(book().take({result("ada", "second", {{"Ada", "1", ""}}, "2026-03-02T09:30:00Z")}));
  auto all = rows();
  ASSERT_TRUE(all[0].marks[3].has_value());
  EXPECT_EQ(all[0].marks[3]->points, 10);
  EXPECT_TRUE(all[0].marks[3]->earlier_version);
  EXPECT_EQ(all[0].marks[3]->digest, "first");
  auto history = book().history("ada");
  ASSERT_TRUE(history);
  bool told = false;
  for (const HistoryEntry& entry : *history)
    told |= entry.text.find("given for an earlier version, first") != std::string::npos;
  EXPECT_TRUE(told);
  ASSERT_TRUE(book().mark(rubric, {give("ada", "honesty", 9)}));
  EXPECT_FALSE(rows()[0].marks[3]->earlier_version);
  EXPECT_TRUE(rows()[0].marks[1]->earlier_version);
}

TEST_F(Book, TakingTheSameResultAgainChangesNothing) {
  auto attempts = [&] { return book().history("ada")->size(); };
  std::size_t before = attempts();
  ASSERT_TRUE(book().take({result("ada", "first", {{"Ada", "1", "ada@example.org"}})}));
  EXPECT_EQ(attempts(), before);
}

TEST_F(Book, AMembersOwnMarkStandsInFrontOfTheTeams) {
  Mark own = give("team", "depth", 12, "told us nothing about v3");
  own.member = "3";
  ASSERT_TRUE(book().mark(rubric, {own, give("team", "depth", 25)}));
  auto all = rows();
  EXPECT_EQ(all[1].marks[1]->points, 25);
  EXPECT_EQ(all[2].marks[1]->points, 12);
  own.member = "nobody";
  auto refused = book().mark(rubric, {own});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "its members: 2, 3");
}

TEST_F(Book, AVersionThatCannotBeReadKeepsThePeople) {
  SubmissionResult damaged = result("team", "t2", {}, "2026-03-02T09:30:00Z");
  damaged.state = GradingState::kFailed;
  damaged.fault = GradingFault::kDamaged;
  ASSERT_TRUE(book().take({damaged}));
  auto all = rows();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2].person.name, "Eve");
  EXPECT_EQ(all[2].state, "failed");
}

TEST_F(Book, GraceIsGrantedToAllOrToAMemberAndTakenBack) {
  ASSERT_TRUE(book().grant_grace("team", std::nullopt, 1, "illness", "mentor"));
  ASSERT_TRUE(book().grant_grace("team", "3", 4, "hospital", "mentor"));
  EXPECT_EQ(rows()[1].grace_days, 1);
  EXPECT_EQ(rows()[2].grace_days, 4);
  ASSERT_TRUE(book().grant_grace("team", "3", 0, "a mistake", "mentor"));
  EXPECT_EQ(rows()[2].grace_days, 0);
  auto history = book().history("team");
  ASSERT_TRUE(history);
  int told = 0;
  for (const HistoryEntry& entry : *history) told += entry.text.find("days of grace") != std::string::npos;
  EXPECT_EQ(told, 3);
  EXPECT_FALSE(book().grant_grace("team", "nobody", 1, "x", "mentor"));
  EXPECT_FALSE(book().grant_grace("team", std::nullopt, -1, "x", "mentor"));
  EXPECT_FALSE(book().grant_grace("team", std::nullopt, 1, " ", "mentor"));
}

TEST_F(Book, SummariesTellWhatTablesNeed) {
  SubmissionResult r = result("ada", "first", {{"Ada", "1", ""}}, "2026-03-03T09:30:00Z");
  r.judged.resize(1);
  r.judged[0].candidate = "human";
  r.judged[0].gate_one = GateOne::kPassed;
  r.judged[0].gate_two = GateTwo::kFaster;
  r.judged[0].environment = {{"device", "NVIDIA H200"}};
  r.judged[0].measured.emplace();
  r.judged[0].measured->speedup = Interval{2, 1.9, 2.1};
  r.prediction = Prediction{"memory", 1.5, "bytes", true};
  r.origin.id = "77";
  ASSERT_TRUE(book().take({r}));
  auto all = book().summaries();
  ASSERT_TRUE(all);
  const ResultSummary& ada = all->at("ada");
  ASSERT_NE(ada.of("human"), nullptr);
  EXPECT_EQ(ada.of("human")->device, "NVIDIA H200");
  EXPECT_EQ(ada.of("human")->speedup->high, 2.1);
  EXPECT_EQ(ada.prediction->speedup, 1.5);
  EXPECT_EQ(ada.origin.id, "77");
  EXPECT_EQ(ada.of("llm"), nullptr);
}

TEST_F(Book, OneBadMarkLeavesAllOut) {
  struct Bad {
    Mark mark;
    std::string hint;
  };
  for (const Bad& bad :
       {Bad{give("adda", "depth", 1), "did you mean 'ada'?"},
        Bad{give("ada", "dept", 1), "did you mean 'depth'?"}, Bad{give("ada", "depth", 31), "give 0 to 30"},
        Bad{give("ada", "depth", -1), "give 0 to 30"},
        Bad{give("ada", "depth", 1, " "),
            "add --reason TEXT: the student reads it, and you need it when they ask"}}) {
    auto refused = book().mark(rubric, {give("ada", "honesty", 10), bad.mark});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().hint, bad.hint);
  }
  EXPECT_FALSE(rows()[0].marks[3].has_value());
}

TEST_F(Book, DraftsAreSeenByNobodyUntilPublishedAndAnEditIsADraftAgain) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "correctness", 30), give("ada", "depth", 20),
                                   give("ada", "head_to_head", 25.5), give("ada", "honesty", 10)}));
  EXPECT_EQ(rows()[0].total(), 85.5);
  EXPECT_FALSE(rows()[0].published);
  auto people = book().publish(rubric, "mentor");
  ASSERT_TRUE(people) << people.error().what;
  EXPECT_EQ(*people, 1);
  EXPECT_TRUE(rows()[0].published);
  EXPECT_FALSE(rows()[1].published) << "no mark was given";
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 22)}));
  EXPECT_FALSE(rows()[0].published);
  auto history = book().history("ada");
  ASSERT_TRUE(history);
  bool kept = false;
  for (const HistoryEntry& entry : *history) kept |= entry.text == "published by mentor: 1 sees 85.5";
  EXPECT_TRUE(kept);
}

TEST_F(Book, ADroppedSubmissionHasNoRowUntilItIsChosenAgain) {
  ASSERT_TRUE(book().take({result("ada~2", "d2", {{"Ada", "1", ""}})}));
  ASSERT_TRUE(book().mark(rubric, {give("ada~2", "depth", 20)}));
  EXPECT_FALSE(book().rule({{Ruling::Kind::kDropped, "ada~2", "", "", "Grace", "", ""}}))
      << "without a reason";
  ASSERT_TRUE(book().rule({{Ruling::Kind::kDropped, "ada~2", "", "an old copy", "Grace", "", ""}}));
  EXPECT_EQ(rows().size(), 3u);
  auto refused = book().mark(rubric, {give("ada~2", "depth", 21)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "it was dropped by Grace: an old copy");
  ASSERT_TRUE(book().rule({{Ruling::Kind::kRestored, "ada~2", "", "it was the new one", "Grace", "", ""}}));
  ASSERT_EQ(rows().size(), 4u);
  EXPECT_EQ(rows()[1].marks[1]->points, 20) << "no mark is lost";
  int told = 0;
  const auto history = book().history("ada~2").value();
  for (const HistoryEntry& entry : history)
    told += entry.text.starts_with("dropped by Grace: ") || entry.text.starts_with("restored by Grace: ");
  EXPECT_EQ(told, 2);
}

TEST_F(Book, AClearingHoldsForThisVersionAndThisFinding) {
  auto doubtful = [&](const std::string& digest, const std::string& why, const std::string& time) {
    SubmissionResult r = result("ada", digest, {{"Ada", "1", ""}}, time);
    r.state = GradingState::kNeedsMentor;
    r.fault = GradingFault::kContradicted;
    r.why = why;
    ASSERT_TRUE(book().take({r}));
  };
  const Ruling clear{Ruling::Kind::kCleared, "ada", "", "she showed me", "Grace", "", ""};
  EXPECT_FALSE(book().rule({clear})) << "nothing to clear";
  doubtful("d2", "human: 1.62x is claimed, 1.2x was measured", "2026-03-02T09:30:00Z");
  EXPECT_EQ(rows()[0].state, "needs_mentor");
  ASSERT_TRUE(book().rule({clear}));
  EXPECT_EQ(rows()[0].state, "graded");
  EXPECT_EQ(rows()[0].fault, "");
  EXPECT_NE(rows()[0].why.find("cleared by Grace: she showed me"), std::string::npos);
  doubtful("d2", "human: 1.62x is claimed, 1.315x was measured", "2026-03-03T09:30:00Z");
  EXPECT_EQ(rows()[0].state, "graded") << "the same finding with other numbers";
  doubtful("d2", "the ledger is shared with eve", "2026-03-04T09:30:00Z");
  EXPECT_EQ(rows()[0].state, "needs_mentor") << "another finding";
  doubtful("d3", "human: 1.62x is claimed, 1.2x was measured", "2026-03-05T09:30:00Z");
  EXPECT_EQ(rows()[0].state, "needs_mentor") << "another version";
}

TEST_F(Book, WhoNeverSubmittedHasARowAndMayHaveZero) {
  const Person bea{"Bea Müller", "9", "bea@example.org"};
  ASSERT_TRUE(book().keep_missing({bea, {"Cy", "", ""}}));
  ASSERT_TRUE(book().keep_missing({bea, {"Cy", "", ""}})) << "the next batch says the same";
  auto all = rows();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].submission, "Bea-Müller");
  EXPECT_EQ(all[0].state, "missing");
  for (const Criterion& c : rubric.criteria)
    ASSERT_TRUE(book().mark(rubric, {give("Bea-Müller", c.id, 0, "never submitted")}));
  EXPECT_EQ(rows()[0].total(), 0);
  EXPECT_EQ(book().publish(rubric, "Grace"), 1);
  ASSERT_TRUE(book().take({result("bea_late", "b1", {bea})}));
  ASSERT_TRUE(book().keep_missing({{"Cy", "", ""}}));
  all = rows();
  ASSERT_EQ(all.size(), 5u) << "the row of the submission stands in for that of the missing person";
  EXPECT_EQ(all[2].submission, "bea_late");
  EXPECT_TRUE(book().history("Bea-Müller")) << "its history stays";
}

TEST_F(Book, ACertificateNeedsAnHonestWholeAndSingleSubmission) {
  auto judged = [](SubmissionResult r, GateOne verdict) {
    Measurement m;
    m.candidate = "human";
    m.gate_one = verdict;
    r.judged = {m};
    return r;
  };
  ASSERT_TRUE(book().take({judged(result("ada", "first", {{"Ada", "1", ""}}), GateOne::kPassed)}));
  auto why = [&](double at_least = 0) {
    const auto all = book().published_rows(rubric).value();
    return why_not_eligible(all[0], all, rubric, book().summaries().value(), at_least);
  };
  auto mark_all = [&](double points, double honesty) {
    for (const Criterion& c : rubric.criteria)
      ASSERT_TRUE(book().mark(rubric, {give("ada", c.id, c.id == "honesty" ? honesty : points)}));
    ASSERT_TRUE(book().publish(rubric, "Grace"));
  };
  EXPECT_EQ(why(), "no published marks");
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 20)}));
  ASSERT_TRUE(book().publish(rubric, "Grace"));
  EXPECT_EQ(why(), "not every criterion is published");
  mark_all(20, 8);
  EXPECT_EQ(why(), "");
  EXPECT_EQ(why(90), "68 of the required 90 points");
  mark_all(20, 0);
  EXPECT_EQ(why(), "0 of 10 for honesty");
  mark_all(20, 8);
  ASSERT_TRUE(book().take({result("ada~2", "d2", {{"Ada", "1", ""}})}));
  EXPECT_EQ(why(), "has another submission: ada~2");
  ASSERT_TRUE(book().rule({{Ruling::Kind::kDropped, "ada~2", "", "an old copy", "Grace", "", ""}}));
  EXPECT_EQ(why(), "");
  const std::string later = "2026-03-02T09:30:00Z";
  ASSERT_TRUE(book().take({judged(result("ada", "second", {{"Ada", "1", ""}}, later), GateOne::kPassed)}));
  EXPECT_EQ(why(), "the published marks are for an earlier version");
  mark_all(20, 8);
  ASSERT_TRUE(book().take({judged(result("ada", "second", {{"Ada", "1", ""}}, later), GateOne::kWrong)}));
  EXPECT_EQ(why(), "the human kernel: WRONG");
  SubmissionResult doubtful = judged(result("ada", "second", {{"Ada", "1", ""}}, later), GateOne::kPassed);
  doubtful.state = GradingState::kNeedsMentor;
  doubtful.fault = GradingFault::kLedger;
  ASSERT_TRUE(book().take({doubtful}));
  EXPECT_EQ(why(), "needs_mentor (ledger)");
}

TEST_F(Book, PublishingSomeKeepsWhatTheOthersSee) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 20), give("team", "depth", 10)}));
  EXPECT_EQ(book().publish(rubric, "Grace"), 3);
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 25), give("team", "depth", 15)}));
  EXPECT_EQ(book().publish(rubric, "Grace", [](const GradebookRow& row) { return row.submission == "ada"; }),
            1);
  auto shown = book().published_rows(rubric).value();
  EXPECT_EQ(shown[0].marks[1]->points, 25);
  EXPECT_EQ(shown[1].marks[1]->points, 10);
  EXPECT_TRUE(rows()[0].published);
  EXPECT_FALSE(rows()[1].published);
}

TEST_F(Book, TenThousandSubmissionsAreATableWithinThreeSeconds) {
  std::vector<SubmissionResult> many;
  for (int i = 0; i < 10'000; ++i)
    many.push_back(
        result("s" + std::to_string(i), "d", {{"Student " + std::to_string(i), std::to_string(i), ""}}));
  ASSERT_TRUE(book().take(many));
  // CPU time of this process, so that other work on the machine does not matter.
  const std::clock_t begun = std::clock();
  EXPECT_EQ(rows().size(), 10'003u);
  EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, 3.0);
}

TEST_F(Book, AFileThatIsNoGradebookIsRefusedAndLeftAlone) {
  fs::path other = folder / "other";
  fs::create_directories(other);
  std::ofstream(other / "gradebook.sqlite") << std::string(2000, 'x');
  auto refused = Gradebook::open(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kUsage);
  EXPECT_EQ(fs::file_size(other / "gradebook.sqlite"), 2000u);
}

}  // namespace
}  // namespace capstone
