#include "rubric/worklog.h"

#include <gtest/gtest.h>

#include "fixture.h"
#include "harness/base/text.h"
#include "rubric/markdown.h"
#include "rubric/numbers.h"
#include "tests/cpu_seconds.h"

namespace capstone {
namespace {

using testing::Where;

bool mentions(const std::vector<Finding>& findings, std::string_view text) {
  for (const Finding& f : findings)
    if (f.what.find(text) != std::string::npos) return true;
  return false;
}

TEST(Worklog, ScaffoldHasFiveSectionsInOrderAndNothingAnswered) {
  testing::Scratch scratch;
  Project project = testing::make_capstone(scratch.path()).project;
  Worklog log = parse_worklog(worklog_scaffold(project.problem));
  EXPECT_TRUE(log.findings.empty());
  int figures = 0;
  for (const SectionSpec& spec : worklog_sections()) {
    const WorklogSection& section = log.section(spec.number);
    EXPECT_TRUE(section.present) << spec.title;
    EXPECT_EQ(section.words, 0) << spec.title;
    EXPECT_EQ(section.questions.size(), spec.questions.size()) << spec.title;
    EXPECT_EQ(section.unanswered(), static_cast<int>(spec.questions.size())) << spec.title;
    figures += static_cast<int>(spec.figures.size());
  }
  EXPECT_EQ(static_cast<int>(log.markers.size()), figures);
  EXPECT_NE(worklog_scaffold(project.problem).find(project.problem.title), std::string::npos);
}

TEST(Worklog, HeadingsAreKnownWithoutNumberCaseOrTypography) {
  EXPECT_EQ(section_of_heading("1. The problem and the plan"), 1);
  EXPECT_EQ(section_of_heading("THE BY-HAND ATTEMPT"), 2);
  EXPECT_EQ(section_of_heading("The model’s attempt"), 3);
  EXPECT_EQ(section_of_heading("4) The head to head"), 4);
  EXPECT_EQ(section_of_heading("The plan"), 0);
}

TEST(Worklog, AnAnswerEndsAtTheNextQuestion) {
  Worklog log = parse_worklog(
      "## The head-to-head\n\n> Q: Who won?\n\nNobody did.\n\n> Q: Why?\n\n## What each got stuck on\n");
  ASSERT_EQ(log.section(4).questions.size(), 2u);
  EXPECT_TRUE(log.section(4).questions[0].answered);
  EXPECT_EQ(log.section(4).questions[0].words, 2);
  EXPECT_FALSE(log.section(4).questions[1].answered);
  EXPECT_EQ(log.section(4).questions[1].line, 7);
}

TEST(Worklog, AnAnswerTypedRightBelowTheQuestionCounts) {
  Worklog log = parse_worklog("## The head-to-head\n\n> Q: Who won?\nMy kernel won.\n\n> Q: Why?\n");
  ASSERT_EQ(log.section(4).questions.size(), 2u);
  EXPECT_EQ(log.section(4).questions[0].text, "Who won?");
  EXPECT_TRUE(log.section(4).questions[0].answered);
  EXPECT_EQ(log.section(4).questions[1].line, 6)
      << "a line number in the file, not in the text with the inserted line";
}

TEST(Worklog, OnlyTheStudentsOwnProseIsCounted) {
  Worklog log = parse_worklog(
      "## The by-hand attempt\n\n> Q: What did you change?\n\n> a quotation of many other words\n\n"
      "Two words {{v2.speedup}}.\n\n```\ncode is not prose\n```\n\n| a table | is |\n|--|--|\n| not | prose "
      "|\n\n<!-- capstone:versions -->\n\n- and three more\n");
  EXPECT_EQ(log.section(2).words, 5);
}

TEST(Worklog, RemovedRenamedRepeatedAndMovedSectionsAreFound) {
  Worklog log = parse_worklog(
      "## The model's attempt\n\na\n\n## The by-hand attempt\n\nb\n\n## By hand attempt\n\n## The "
      "head-to-head\n\n## The head-to-head\n\n## Stuck\n");
  EXPECT_TRUE(mentions(log.findings, "\"The problem and the plan\" is not in the worklog"));
  EXPECT_TRUE(mentions(log.findings, "\"The by-hand attempt\" is out of order"));
  EXPECT_TRUE(mentions(log.findings, "\"The head-to-head\" appears twice"));
  EXPECT_TRUE(mentions(log.findings, "\"What each got stuck on\" was renamed to \"Stuck\""));
}

TEST(Worklog, ThreeMebibytesAreCutAtTwoWithAFinding) {
  std::string text = "## The by-hand attempt\n\n";
  while (text.size() < (std::size_t{3} << 20)) text += "äöü ein langes Wort nach dem andern\n\n";
  Worklog log = parse_worklog(text);
  EXPECT_LE(log.text.size(), kMarkdownLimit);
  EXPECT_TRUE(is_utf8(log.text));
  EXPECT_TRUE(mentions(log.findings, "only the first 2 MiB are read"));
}

TEST(Worklog, BytesThatAreNotUtf8AreReplacedWithAFinding) {
  Worklog log = parse_worklog("## The by-hand attempt\n\nna\xEFve \xFF text\n");
  EXPECT_TRUE(is_utf8(log.text));
  EXPECT_TRUE(mentions(log.findings, "not UTF-8"));
}

// Inputs on which Markdown parsers took quadratic time or worse.
TEST(Worklog, HostileMarkdownIsReadInBoundedTime) {
  auto repeat = [](std::string_view unit, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += unit;
    return text;
  };
  std::vector<std::string> hostile;
  for (const char* unit : {"[", "![[](", "> ", "- ", "*a_ ", "`a``", "<!--", "[a](<b", "a **a ", "|",
                           "~~~ x\n", "1. \n", "> - > - ", "_", "&", "\\", "{{", "2x ", "<a "})
    hostile.push_back(repeat(unit, std::size_t{1} << 20));
  for (const std::string& text : hostile) {
    EXPECT_LT(testing::cpu_seconds([&] { parse_worklog("## The by-hand attempt\n\n" + text); }), 30)
        << text.substr(0, 8);
  }
}

// ---- numbers in prose
// ------------------------------------------------------------------------------------------

struct NumbersTest : ::testing::Test {
  testing::Scratch scratch;
  testing::Capstone capstone = testing::make_capstone(scratch.path());
  LedgerNumbers numbers{capstone.project, capstone.ledger};

  std::vector<Quotation> find(std::string_view text, int section = 4) {
    return numbers.find(text, {section, ""});
  }
  bool accused(std::string_view text, int section = 4) {
    for (const Quotation& q : find(text, section))
      if (q.kind == Quotation::Kind::kNotInLedger) return true;
    return false;
  }
};

TEST_F(NumbersTest, PlaceholdersHaveTheLedgersValues) {
  EXPECT_EQ(numbers.value("v2.speedup"), "1.62x");
  EXPECT_EQ(numbers.value("v4.interval"), "[2.28, 2.34]");
  EXPECT_EQ(numbers.value("best.human.version"), "v4");
  EXPECT_EQ(numbers.value("attempt-2.speedup"), "1.88x");
  EXPECT_EQ(numbers.value("attempt-1.gate-one"), "WRONG");
  EXPECT_EQ(numbers.value("best.llm.median"), "436 µs");
  EXPECT_EQ(numbers.value("prediction.bottleneck"), "memory");
  EXPECT_EQ(numbers.value("device"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(numbers.value("v3.speedup"), "not judged");
  EXPECT_FALSE(numbers.value("v9.speedup"));
}

TEST_F(NumbersTest, AnUnknownPlaceholderIsAnsweredWithTheNearest) {
  auto found = find("It is {{v2.speeddup}} now.");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Quotation::Kind::kUnknown);
  EXPECT_NE(found[0].note.find("{{v2.speedup}}"), std::string::npos);
}

TEST_F(NumbersTest, ASpeedupThatWasNeverMeasuredIsMarked) {
  EXPECT_TRUE(accused("My kernel is 5.7x faster than the reference."));
  EXPECT_TRUE(accused("In the end it ran 9 times faster."));
  EXPECT_TRUE(accused("The speedup is 4×."));
}

TEST_F(NumbersTest, AMeasuredSpeedupMayBeQuotedRounded) {
  EXPECT_FALSE(accused("v4 is 2.3x faster than the reference."));
  EXPECT_FALSE(accused("v4 is 2.31× the reference."));
  EXPECT_FALSE(accused("v1 is 4.8 times slower than the reference."));   // 1 / 0.21
  EXPECT_FALSE(accused("v4 beats v2 by 1.43x."));                        // ratio of their medians
  EXPECT_FALSE(accused("v4 is 11x faster than v1."));                    // 2.31 / 0.21
  EXPECT_FALSE(accused("My kernel is 1.23x faster than the model's."));  // 2.31 / 1.88
}

TEST_F(NumbersTest, ToleranceIsFivePercentOrThreeStandardErrors) {
  EXPECT_FALSE(accused("The speedup of v4 came out at 2.42x."));  // within 5 % of 2.31
  EXPECT_TRUE(accused("The speedup of v4 came out at 2.48x."));
}

TEST_F(NumbersTest, PredictionsCountsAndCodeAreNotAccused) {
  for (const char* text :
       {"I expect 3x.", "It should be 5.5x faster.", "If it were perfect it would be 7.1x faster.",
        "a 16x16 tile", "v3 has 8 × 8 results a thread and is faster.",
        "A tile of 32 x 32 was slower than one of 64 × 64.", "It issues 4x fewer loads and 7.5x the traffic.",
        "float4x2", "unrolled 8x", "0x7f faster", "sm_90x"})
    EXPECT_FALSE(accused(text)) << text;
  EXPECT_FALSE(accused("It runs 6.5x faster.", 1)) << "section 1 is the plan";
}

// No measurement gives 5.7x, in whatever words the text states it.
TEST_F(NumbersTest, AFalseSpeedupIsSeenInAnyPhrasing) {
  for (const char* text : {"It is faster by a factor of 5.7.",
                           "The factor is 5.7 against eager.",
                           "My kernel is 470 % faster.",
                           "It runs 470 percent faster than eager.",
                           "It is 5.7-fold faster.",
                           "A thirtyfold gain in speed.",
                           "It is thirty times faster than the reference.",
                           "It has 5.7 times the speed of eager.",
                           "A speedup of 5.7 over eager.",
                           "Speedup: 5.7",
                           "The speed-up was about 5.7.",
                           "We see a 5.7 speedup.",
                           "It beats eager by 5.7.",
                           "It is faster, x5.7 in all.",
                           "It wins 5.7:1 in time.",
                           "It runs in 17.5 % of the time.",
                           "It needs 17.5 % of the baseline's time.",
                           "It takes 82.5 % less time.",
                           "It went from 2.85 ms to 0.5 ms.",

                           "It is 5.7\u00a0x faster.",
                           "It is 5.7\u200bx faster.",
                           "It is \uff15.\uff17x faster.",
                           "The memory-bound kernel is 5.7x faster.",
                           "I expected 2x, but measured 5.7x.",
                           "As the ledger says, it is 5.7x.",
                           "It sped up 5.7 times.",
                           "It has 5.7 times the throughput.",
                           "It is 5.7x the reference.",
                           "5.7 times better than eager.",
                           "In short: 5.7\u0445 faster."})
    EXPECT_TRUE(accused(text)) << text;
}

TEST_F(NumbersTest, AMeasuredSpeedupMayBeSaidInAnyPhrasing) {
  for (const char* text :
       {"v4 is faster by a factor of 2.31.", "v4 is 131 % faster than the reference.",
        "v4 is more than twice as fast as the reference.", "v4 needs 43 % of the reference's time.",
        "v4 takes 57 % less time.", "A speedup of 2.3 over eager.", "It went from 820 us to 355 us.",
        "v4 is 2.3-fold faster.", "v4 is an order of magnitude faster than v1.", "v4 runs in half the time."})
    EXPECT_FALSE(accused(text)) << text;
}

TEST_F(NumbersTest, WhatHappensToBeCountedIsNoSpeedup) {
  for (const char* text :
       {"I unrolled by a factor of 8 and it got faster.", "The traffic falls by a factor of 2.25.",
        "Each element is read 2.25 times.", "It waits half the time at barriers.",
        "It spends 30 % of its time in the sum.", "The barrier stalls 40 % of the time.",
        "There is a 30 % improvement in occupancy.", "I ran it 5 times and took the fastest time.",
        "A fourfold unrolled loop was slower.", "It reaches 83 % of the peak.", "Rows x 4 columns.",
        "The kernel runs at 61 % of the bandwidth, which is fast.", "It has 8 times as many threads.",
        "v2 and v3 take the same time.", "v3 takes 2.25 exponentials where the model takes one."})
    EXPECT_FALSE(accused(text)) << text;
}

TEST_F(NumbersTest, CodeSpansAndColumnsOfBareNumbersAreRead) {
  const Worklog worklog = parse_worklog(
      "## The head-to-head\n\nMy kernel is `5.7x` faster. A tile is `float4x2`.\n\n"
      "| version | speedup | expected speedup | ms |\n|---|---|---|---|\n"
      "| v4 | 5.8 | 5.9 | 6 |\n| v4 | 2.31 | 9 | 1 |\n| baseline | 1.0 | 1 | 1 |\n\n"
      "| | mine |\n|---|---|\n| Speedup | 6.1 |\n| expected speedup | 6.2 |\n");
  std::vector<std::string> found;
  for (const Paragraph& p : worklog.paragraphs)
    for (const Quotation& q : numbers.find(p.text, {p.section, p.column, p.row, p.with_code}))
      if (q.kind == Quotation::Kind::kNotInLedger) found.push_back(q.text);
  EXPECT_EQ(found, (std::vector<std::string>{"5.7x", "5.8", "6.1"}));
}

TEST_F(NumbersTest, AMegabyteOfNumbersIsReadInBoundedTime) {
  std::string text;
  while (text.size() < (std::size_t{1} << 20)) text += "faster by 7 7.5x ";
  EXPECT_LT(testing::cpu_seconds([&] { (void)numbers.find(text, {4, ""}); }), 60);
}

TEST_F(NumbersTest, AColumnHeadedExpectedHoldsPredictions) {
  EXPECT_TRUE(numbers.find("6.1x", {2, "expected"}).empty());
  EXPECT_FALSE(numbers.find("6.1x", {2, "measured"}).empty());
}

TEST_F(NumbersTest, ARatioOfEmulatedTimesIsNotALie) {
  testing::Scratch other;
  testing::Capstone emulated = testing::make_capstone(other.path(), Where::kEmulated);
  LedgerNumbers n(emulated.project, emulated.ledger);
  auto found = n.find("v2 is 7.7 times faster than v1.", {2, ""});  // 1.62 / 0.21
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Quotation::Kind::kEmulated);
  EXPECT_TRUE(n.find("On the emulator v2 is 7.7 times faster than v1.", {2, ""}).empty());
  EXPECT_EQ(n.value("v2.speedup"), "not judged");
  EXPECT_NE(n.value("v2.median")->find(" ms emulated"), std::string::npos);
}

TEST_F(NumbersTest, WithoutAGpuASentenceOfPlaceholdersIsPlainEnglish) {
  testing::Scratch other;
  testing::Capstone emulated = testing::make_capstone(other.path(), Where::kEmulated);
  LedgerNumbers n(emulated.project, emulated.ledger);
  EXPECT_EQ(n.value("v2.percent"), "an unknown percentage");
  EXPECT_EQ(n.value("v2.median").value().find('('), std::string::npos);
  EXPECT_EQ(n.value("device"), "the CPU, without a GPU");
}

TEST_F(NumbersTest, APlaceholderThatIsNotClosedIsFound) {
  for (const char* text : {"It is {{v2.speedup faster.", "It is {{v2.speedup", "{{ v2.speedup. Next."}) {
    auto found = numbers.find(text, {2, ""});
    ASSERT_EQ(found.size(), 1u) << text;
    EXPECT_EQ(found[0].kind, Quotation::Kind::kUnknown);
    EXPECT_NE(found[0].note.find("write {{v2.speedup}}"), std::string::npos) << found[0].note;
  }
  auto both = numbers.find("{{v2.speedup and {{v1.median}}", {2, ""});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].kind, Quotation::Kind::kPlaceholder);
  EXPECT_TRUE(numbers.find("int a[2][2] = {{1, 2}, {3, 4}; and {{", {2, ""}).empty());
}

}  // namespace
}  // namespace capstone
