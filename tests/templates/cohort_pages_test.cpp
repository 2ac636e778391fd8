// Pages about a whole cohort.
#include "templates/cohort_pages.h"

#include <gtest/gtest.h>

#include <ctime>

#include "fixture.h"
#include "templates/encode.h"
#include "templates/similarity_page.h"

namespace capstone {
namespace {

const std::string kHostile = "<script>alert(1)</script>, \"=cmd()\"";

struct CohortPages : ::testing::Test {
  std::filesystem::path templates = test_templates();
  Rubric rubric = *load_rubric(std::filesystem::path(CAPSTONE_SOURCE_DIR) / "rubric" / "rubric.yaml");
  std::vector<GradebookRow> rows;
  std::map<std::string, ResultSummary> summaries;

  static std::filesystem::path test_templates() { return testing::test_resources().templates(); }

  void add(const std::string& name, const std::string& person, double human, std::optional<double> model) {
    GradebookRow row;
    row.submission = name;
    row.problem = "softmax";
    row.state = "graded";
    row.digest = "digest of " + name;
    row.person = {person, name, ""};
    row.marks.resize(rubric.criteria.size());
    for (std::size_t i = 0; i < row.marks.size(); ++i)
      row.marks[i] =
          Mark{name, rubric.criteria[i].id, {}, rubric.criteria[i].weight * 0.8, "r", "g", "t", row.digest};
    rows.push_back(row);
    ResultSummary s;
    auto outcome = [](const char* who, double speedup) {
      return Outcome{who,
                     "PASS",
                     speedup > 1 ? "FASTER" : "SLOWER",
                     true,
                     "cuda",
                     "NVIDIA H200",
                     Interval{speedup, speedup * 0.98, speedup * 1.02},
                     50,
                     ""};
    };
    s.outcomes.push_back(outcome("human", human));
    if (model) s.outcomes.push_back(outcome("llm", *model));
    summaries[name] = s;
  }
  std::string gradebook() {
    auto page = gradebook_page(
        {"graded", rows, rubric, summaries, {{"a", kHostile, 0.75}}, "2026-03-01T09:30:00Z"}, templates);
    EXPECT_TRUE(page) << render(page.error());
    return *page;
  }
  void add_together(const std::string& name, double speedup, bool correct = true) {
    summaries[name].outcomes.push_back(
        {"together", correct ? "PASS" : "WRONG", correct ? "FASTER" : "NOT JUDGED", correct, "cuda",
         "NVIDIA H200",
         correct ? std::optional(Interval{speedup, speedup * 0.98, speedup * 1.02}) : std::nullopt, 50, ""});
  }
};

using testing::has;

TEST_F(CohortPages, TheGradebookHasATableCurvesWinsAndMarks) {
  add("a", "Ada", 2.0, 1.0);
  add("b", "Bob", 0.5, std::nullopt);
  const std::string page = gradebook();
  for (const char* part :
       {"<a href=\"submissions/a/score_sheet.html\">a</a>", "<path class=\"human\" d=\"M40.0 12.0",
        "2 of 2</td>", "1 of 2 [1]", "class=\"number strong\">80</td>", "75 %"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "{{"));
}

TEST_F(CohortPages, TheClassPageSaysNothingOfTogetherWhereNobodyHasIt) {
  add("a", "Ada", 2.0, 1.0);
  EXPECT_FALSE(has(gradebook(), "both together"));
}

TEST_F(CohortPages, TheFinaleShowsEachStudentsKernelBesideTheModels) {
  add("a", kHostile, 2.0, 1.0);
  add("b", "Bob", 1.5, std::nullopt);
  add("c", "Cyd", 1.0, 4.0);
  add("d", "Dan", 1.0, 1.01);
  add("e", "Eve", 3.0, 1.0);
  summaries["e"].outcomes[1].device = "NVIDIA A100";
  const std::string page = gradebook();
  EXPECT_TRUE(has(page,
                  "3 of 5 submissions have both kernels correct and timed on one GPU. The human is ahead "
                  "in 1, the model in 1; 1 not decided."));
  // From 1x at 8 to 4x at 192 on a logarithmic scale: 2x lies in the middle.
  EXPECT_TRUE(has(page, "<circle class=\"human\" cx=\"100.0\""));
  EXPECT_TRUE(has(page, "<circle class=\"llm\" cx=\"192.0\""));
  EXPECT_FALSE(has(page, "<script>alert"));
}

TEST_F(CohortPages, WithoutTwoTimesOnOneGpuThereIsNoFinale) {
  add("a", "Ada", 2.0, 1.0);
  summaries["a"].outcomes[0].backend = "emulated";
  summaries["a"].outcomes[0].speedup.reset();
  add("b", "Bob", 2.0, 1.0);
  summaries["b"].outcomes[1].correct = false;
  EXPECT_FALSE(has(gradebook(), "The finale"));
}

TEST_F(CohortPages, FewKernelsMadeTogetherDecideNothing) {
  add("a", "Ada", 2.0, 1.0);
  add("b", "Bob", 1.5, std::nullopt);
  add("c", "Cyd", 1.2, 1.3);
  add_together("a", 3.0);
  add_together("c", 1.3);
  const std::string page = gradebook();
  EXPECT_TRUE(
      has(page,
          "2 of 3 submissions have a kernel that was made together. It beats the better one of the two "
          "alone in 1, loses to it in 0, and 1 is not decided by the intervals."));
  EXPECT_TRUE(has(page, "too few to say whether the thesis held"));
  EXPECT_TRUE(has(page, "Median of the ratio: 1.25x"));
}

TEST_F(CohortPages, TheThesisHoldsOnlyWhereTheIntervalOfTheShareSaysSo) {
  for (int i = 0; i < 8; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    add(name, "Person " + name, 2.0, 1.0);
    add_together(name, 3.0);
  }
  EXPECT_TRUE(has(gradebook(), "The thesis held in this class."));
  for (const char* name : {"a", "b", "c", "d"}) {
    summaries[name].outcomes.pop_back();
    add_together(name, 0, false);
  }
  EXPECT_TRUE(has(gradebook(), "does not decide whether the thesis held"));
  for (const char* name : {"e", "f", "g", "h"}) {
    summaries[name].outcomes.pop_back();
    add_together(name, 1.1);
  }
  EXPECT_TRUE(has(gradebook(), "The thesis did not hold in this class"));
}

TEST_F(CohortPages, WhatWasNotJudgedHasAReasonAndNoLinkToASheetThatIsNotThere) {
  add("a", "Ada", 2.0, 1.0);
  add("b", "Bob", 2.0, 1.0);
  rows[1].state = "failed", rows[1].fault = "refused", rows[1].why = "archive refused: a link";
  summaries["b"].outcomes.clear();
  const std::string page = gradebook();
  EXPECT_TRUE(has(page, "<td data-label=\"Submission\">b</td>"));
  EXPECT_TRUE(has(page, "archive refused: a link"));
  EXPECT_FALSE(has(page, "submissions/b/"));
}

TEST_F(CohortPages, TheGradebookFitsAPhoneAndAPrintedPage) {
  add("a", "Ada", 2.0, 1.0);
  const std::string page = gradebook();
  EXPECT_TRUE(has(page, "@page { size: A4 landscape;")) << "the last column is not cut off";
  EXPECT_TRUE(has(page, ".grades tbody td::before"));
  for (const std::string& label : {std::string("Published"), rubric.criteria[0].title})
    EXPECT_TRUE(has(page, "data-label=\"" + label + "\"")) << "on a phone each cell has its heading";
}

TEST_F(CohortPages, PublishedMarksKeepTheLinesOfAReasonAndAreHarmless) {
  add("a", kHostile, 2.0, 1.0);
  Mark mark;
  mark.points = 24.5;
  mark.reason = "see record #4: {{v2}}\n\n<b>second</b> line";
  rows[0].marks.assign(rubric.criteria.size(), std::nullopt);
  rows[0].marks[0] = mark;
  auto page = marks_page(rows[0], rubric, templates);
  ASSERT_TRUE(page) << render(page.error());
  EXPECT_TRUE(has(*page, "<p>see record #4: {{v2}}</p>"));
  EXPECT_TRUE(has(*page, "<p>&lt;b&gt;second&lt;/b&gt; line</p>"));
  EXPECT_TRUE(has(*page, "24.5 of 30"));
  EXPECT_FALSE(has(*page, "<script>"));
  EXPECT_TRUE(has(marks_text(rows[0], rubric, false), "\nsee record #4: {{v2}}\n\n<b>second</b> line\n"));
  EXPECT_TRUE(has(marks_text(rows[0], rubric, true), "\\<b\\>second"));
}

TEST_F(CohortPages, ItsScriptIsTheOneThatThePolicyNames) {
  add("a", "Ada", 2.0, 1.0);
  const std::string page = gradebook();
  const std::size_t policy = page.find("script-src 'sha256-");
  ASSERT_NE(policy, std::string::npos);
  EXPECT_EQ(page.substr(policy + 19 + 43, 2), "='") << "32 bytes in base64";
  EXPECT_EQ(page.find("<script>"), page.rfind("<script>"));
}

TEST_F(CohortPages, AHostileNameIsTextOnEveryPage) {
  add("a", kHostile, 2.0, 1.0);
  summaries["a"].outcomes[0].device = kHostile;
  rows[0].problem = kHostile;
  const auto boards = leaderboards(rows, rubric, summaries, true);
  ASSERT_EQ(boards.size(), 1u);
  SimilarityReport similar;
  similar.pairs.push_back({kHostile, "b", kHostile, kHostile, {1, 1, {{1, 1, 1, 1}}}});
  const CertificateText text{kHostile, kHostile, kHostile, ""};
  for (const auto& page :
       {gradebook_page({kHostile, rows, rubric, summaries, {{kHostile, "b", 1}}, "now"}, templates),
        leaderboard_page(boards, kHostile, templates),
        present_page(rows, summaries, {"a"}, kHostile, templates),
        certificates_page({{kHostile, kHostile}}, text, templates),
        certificate_svg({kHostile, kHostile}, text, templates), similarity_page(similar, templates)}) {
    ASSERT_TRUE(page) << render(page.error());
    EXPECT_FALSE(has(*page, "<script>alert"));
    EXPECT_TRUE(has(*page, "&lt;script&gt;alert(1)")) << *page;
  }
}

TEST_F(CohortPages, TenThousandPeopleAreAPageWithinThreeSeconds) {
  for (int i = 0; i < 10'000; ++i)
    add("s" + std::to_string(i), "Student " + std::to_string(i), 0.3 + i % 400 / 100.0,
        0.2 + i % 300 / 100.0);
  // CPU time of this process, so that other work on the machine does not matter.
  const std::clock_t begun = std::clock();
  EXPECT_GT(gradebook().size(), 1'000'000u);
  EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, 3.0);
}

TEST_F(CohortPages, LongNamesAndOtherScriptsFitACertificate) {
  auto size_of = [&](const std::string& name) {
    auto svg = certificate_svg({name, "softmax"}, {"Kernels", "2026-03-01", "G. Hopper", ""}, templates);
    EXPECT_TRUE(svg);
    const std::size_t at = svg->find("y=\"372\" font-size=\"");
    return std::atoi(svg->c_str() + at + 19);
  };
  EXPECT_EQ(size_of("Ada"), 64);
  EXPECT_LT(size_of(std::string(60, 'm')), 30);
  EXPECT_TRUE(has(*certificate_svg({"محمد", "softmax"}, {}, templates), "direction=\"rtl\""));
  EXPECT_TRUE(has(*certificate_svg({"Émile", "softmax"}, {}, templates), "direction=\"ltr\""));
}

TEST_F(CohortPages, TheHandoutHasTheSectionsAndTheRubric) {
  auto page = handout_page(rubric, templates);
  ASSERT_TRUE(page);
  for (const char* part : {"The by-hand attempt.", "What each got stuck on.",
                           "Head-to-head analysis, 30 marks", "Speed alone earns no marks"})
    EXPECT_TRUE(has(*page, part)) << part;
}

TEST(Encode, PercentEncodingKeepsUnreservedCharacters) {
  EXPECT_EQ(percent_encoded("a b/ä~"), "a%20b%2F%C3%A4~");
}

}  // namespace
}  // namespace capstone
