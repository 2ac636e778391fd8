#include "harness/course/gradebook/agreement.h"

#include <algorithm>

#include "harness/course/gradebook/blind.h"
#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone {
namespace {

class Double : public testing::GradebookTest {
 protected:
  GraderAgreement agreement() {
    auto opened = GraderAgreement::open(folder);
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }
  static Mark second(const std::string& submission, const std::string& criterion, double points) {
    Mark mark = give(submission, criterion, points);
    mark.grader = "second";
    return mark;
  }
};

TEST(WeightedKappa, AgreesWithValuesWorkedOutByHand) {
  EXPECT_EQ(weighted_kappa({{0, 0}, {1, 1}, {2, 2}, {3, 3}}, 4), 1);
  auto kappa = weighted_kappa({{0, 0}, {0, 2}, {1, 2}, {2, 1}}, 3);
  ASSERT_TRUE(kappa);
  // Observed 4 + 1 + 1 = 6; sums {2,1,1} and {1,1,2}: expected (2 + 16 + 1 + 2 + 4 + 1) / 4 = 6.5.
  EXPECT_NEAR(*kappa, 1 - 6 / 6.5, 1e-12);
  EXPECT_FALSE(weighted_kappa({{1, 1}, {1, 1}}, 4)) << "chance alone agrees fully";
  EXPECT_FALSE(weighted_kappa({}, 4));
}

TEST_F(Double, NobodyIsGivenWhatTheyMarkedAndNothingTwice) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 20)}));  // by "mentor"
  auto for_mentor = agreement().assign(5, "mentor");
  ASSERT_TRUE(for_mentor);
  ASSERT_EQ(for_mentor->size(), 1u);
  EXPECT_EQ((*for_mentor)[0].submission, "team");
  auto for_second = agreement().assign(1, "second");
  ASSERT_EQ(for_second->size(), 1u);
  EXPECT_EQ((*for_second)[0].submission, "ada") << "the team already has a second grader";
  EXPECT_EQ(agreement().assign(5, "second")->size(), 1u);
  EXPECT_TRUE(agreement().assign(5, "second")->empty());
  auto whose = agreement().copy_of((*for_second)[0].code);
  ASSERT_TRUE(whose);
  EXPECT_EQ(*whose, std::pair(std::string("ada"), std::string("second")));
  EXPECT_FALSE(agreement().copy_of("copy-0"));
}

TEST_F(Double, SecondMarksCountForNothingAndStandInHistory) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 20)}));
  EXPECT_EQ(agreement().merge(rubric, {second("ada", "depth", 12)})->added, 1);
  EXPECT_EQ(agreement().merge(rubric, {second("ada", "depth", 12)})->added, 0)
      << "merging again adds nothing";
  EXPECT_EQ(rows()[0].marks[1]->points, 20);
  auto history = book().history("ada");
  ASSERT_TRUE(history);
  EXPECT_TRUE(std::any_of(history->begin(), history->end(), [](const HistoryEntry& e) {
    return e.text == "second mark: depth 12 by second: as the levels say";
  }));
  EXPECT_FALSE(agreement().merge(rubric, {second("ada", "honesty", 5), second("ada", "depth", 31)}));
  auto pairs = agreement().pairs();
  ASSERT_TRUE(pairs);
  ASSERT_EQ(pairs->size(), 1u) << "all or none";
  EXPECT_EQ((*pairs)[0].first, 20);
  EXPECT_EQ((*pairs)[0].second, 12);
  EXPECT_EQ((*pairs)[0].second_grader, "second");
}

TEST_F(Double, MergeNeverReplacesGivenSecondMarks) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 20)}));
  ASSERT_TRUE(agreement().merge(rubric, {second("ada", "depth", 12)}));
  for (int time = 0; time < 2; ++time) {
    const auto again = agreement().merge(rubric, {second("ada", "depth", 20), second("ada", "honesty", 5)});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->added, time == 0 ? 1 : 0);
    ASSERT_EQ(again->conflicts.size(), 1u) << "reported each time";
    EXPECT_EQ(again->conflicts[0].given.points, 12);
    EXPECT_EQ(again->conflicts[0].other.points, 20);
  }
  EXPECT_EQ(agreement().pairs()->at(0).second, 12) << "what was given first counts";
  std::string told;
  const auto history = book().history("ada").value();
  for (const HistoryEntry& e : history) told += e.text + "\n";
  EXPECT_NE(told.find("second mark: depth 12 by second: as the levels say\n"), std::string::npos) << told;
  const std::string other =
      "second mark: depth 20 by second: as the levels say (does not count: another one was given before)\n";
  ASSERT_NE(told.find(other), std::string::npos) << told;
  EXPECT_EQ(told.find(other), told.rfind(other)) << "merging the same sheet again adds nothing";
}

TEST_F(Double, AgreementIsByLevelsAndNamesWhatToReconcile) {
  std::vector<MarkPair> pairs{{"a", "depth", "x", "y", 28, 22},
                              {"b", "depth", "x", "y", 28, 27},
                              {"c", "depth", "x", "y", 12, 2},
                              {"d", "honesty", "x", "y", 10, 10}};
  AgreementReport report = agreement_of(pairs, rubric);
  ASSERT_EQ(report.criteria.size(), 4u);
  EXPECT_EQ(report.criteria[1].pairs, 3);
  EXPECT_NEAR(report.criteria[1].mean_difference, -17.0 / 3, 1e-9);
  EXPECT_TRUE(report.criteria[1].kappa);
  EXPECT_FALSE(report.criteria[0].kappa);
  ASSERT_EQ(report.reconcile.size(), 2u);
  EXPECT_EQ(report.reconcile[0].submission, "c");
}

TEST_F(Double, MarksOfAnEarlierVersionAreNotCompared) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 20)}));
  ASSERT_TRUE(agreement().merge(rubric, {second("ada", "depth", 12)}));
  ASSERT_TRUE(book().take({result("ada", "later", {{"Ada", "1", ""}}, "2026-03-02T09:30:00Z")}));
  EXPECT_TRUE(agreement().pairs()->empty());
}

TEST(NameMask, TakesOutNamesTheirPartsIdsAndAddresses) {
  NameMask mask({{"Ada King Lovelace", "1815", "ada.l@example.org"}}, {"lovelaceada"});
  EXPECT_EQ(mask.apply("by Ada King Lovelace (1815), ada.l@example.org"), "by [author] ([author]), [author]");
  EXPECT_EQ(mask.apply("ADA's kernel; lovelaceada.cu; // Lovelace"),
            "[author]'s kernel; [author].cu; // [author]");
  EXPECT_EQ(mask.apply("adaptive 18150 parking"), "adaptive 18150 parking");
  EXPECT_EQ(NameMask({{"Ludwig van the Younger", "", ""}}, {}).apply("leave the editor, Younger"),
            "leave the editor, [author]");
  EXPECT_EQ(NameMask({{"", "", ""}}, {""}).apply("text"), "text");
}

TEST_F(Double, ABlindCopyShowsNoNameNoSuggestionAndNoMark) {
  ASSERT_TRUE(book().mark(rubric, {give("ada", "depth", 20, "a secret reason")}));
  const fs::path project = folder / "p";
  ASSERT_TRUE(make_folders(project / "human"));
  ASSERT_TRUE(write_file_atomic(project / "worklog.md", "I, Ada, wrote this.\n"));
  ASSERT_TRUE(write_file_atomic(project / "human" / "kernel.cu", "// ada@example.org\n"));
  Json evidence{
      {"criteria",
       {{{"id", "depth"},
         {"suggested", 22.5},
         {"because", "5 of 7"},
         {"evidence", {{{"standing", "met"}, {"looks_for", "versions"}, {"found", "Ada's v1"}}}}}}}};
  ASSERT_TRUE(write_blind_copy(folder / "blind", "copy-1", project, "", rows()[0], rubric, evidence, {},
                               NameMask({rows()[0].person}, {"ada"})));
  EXPECT_EQ(*read_file(folder / "blind" / "worklog.md"), "I, [author], wrote this.\n");
  EXPECT_EQ(*read_file(folder / "blind" / "human" / "kernel.cu"), "// [author]\n");
  const std::string sheet = *read_file(folder / "blind" / "marks.yaml");
  EXPECT_NE(sheet.find("[met] versions: [author]'s v1"), std::string::npos) << sheet;
  for (const char* secret : {"22.5", "secret", "Ada", "20 by"})
    EXPECT_EQ(sheet.find(secret), std::string::npos) << secret;
  auto marks = read_sheet(sheet, "marks.yaml", "ada", "second", {});
  ASSERT_TRUE(marks) << marks.error().what;
  EXPECT_TRUE(marks->empty());
}

TEST_F(Double, ABlindCopyHasTheNumbersOfTheLedger) {
  const fs::path project = folder / "p";
  ASSERT_TRUE(make_folders(project / "human"));
  ASSERT_TRUE(make_folders(project / ".capstone"));
  ASSERT_TRUE(write_file_atomic(project / "worklog.md", "v2 is {{v2.speedup}}.\n"));
  ASSERT_TRUE(write_file_atomic(folder / "worklog.md", "Ada's v2 is 2.62x.\n"));
  Measurement m;
  m.candidate = "human";
  m.version = "v2";
  m.gate_one = GateOne::kPassed;
  m.reason = "Ada read | the counts";
  ASSERT_TRUE(append_record(project / ".capstone" / "ledger.jsonl", "measurement", Json(m), "machine"));
  ASSERT_TRUE(write_blind_copy(folder / "blind", "copy-1", project, folder / "worklog.md", rows()[0], rubric,
                               Json::object(), {}, NameMask({rows()[0].person}, {"ada"})));
  EXPECT_EQ(*read_file(folder / "blind" / "worklog.md"), "[author]'s v2 is 2.62x.\n");
  const std::string ledger = *read_file(folder / "blind" / "ledger.md");
  EXPECT_NE(ledger.find("| v2 | PASS | NOT JUDGED | not judged |  | [author] read \\| the counts |"),
            std::string::npos)
      << ledger;
}

}  // namespace
}  // namespace capstone
