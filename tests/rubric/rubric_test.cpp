#include "rubric/rubric.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "fixture.h"
#include "harness/base/digest.h"
#include "harness/base/text.h"
#include "harness/project/stub.h"
#include "rubric/reasons.h"
#include "rubric/review.h"

namespace capstone {
namespace {

using testing::Where;

const std::filesystem::path kRubricFile =
    std::filesystem::path(CAPSTONE_SOURCE_DIR) / "rubric" / "rubric.yaml";

Rubric shipped() {
  Result<Rubric> rubric = load_rubric(kRubricFile);
  EXPECT_TRUE(rubric) << (rubric ? "" : render(rubric.error()));
  return rubric.value_or(Rubric{});
}

Worklog worklog_of(const testing::Capstone& c) {
  std::ifstream in(c.project.worklog());
  return parse_worklog(std::string(std::istreambuf_iterator<char>(in), {}));
}

double mark_of(const ScoreSheet& sheet, const std::string& id) {
  for (const CriterionScore& c : sheet.criteria)
    if (c.criterion->id == id) return c.suggested;
  ADD_FAILURE() << "no criterion " << id;
  return -1;
}

struct RubricTest : ::testing::Test {
  testing::Scratch scratch;
  testing::Capstone capstone = testing::make_capstone(scratch.path());
  Rubric rubric = shipped();

  ScoreSheet sheet() { return score(rubric, capstone.project, capstone.ledger, worklog_of(capstone)); }
  std::vector<double> marks() {
    std::vector<double> all;
    for (const CriterionScore& c : sheet().criteria) all.push_back(c.suggested);
    return all;
  }
  void edit(std::string_view from, std::string_view to) {
    std::string text = testing::fixture_worklog(Where::kGpu), changed = replace_all(text, from, to);
    ASSERT_NE(text, changed) << from;
    testing::write_worklog(capstone, changed);
  }
};

TEST_F(RubricTest, WeightsAreThirtyThirtyThirtyTen) {
  ASSERT_EQ(rubric.criteria.size(), 4u);
  std::vector<int> weights;
  for (const Criterion& c : rubric.criteria) weights.push_back(c.weight);
  EXPECT_EQ(weights, (std::vector<int>{30, 30, 30, 10}));
  for (const Criterion& c : rubric.criteria) {
    EXPECT_EQ(c.levels.size(), 4u) << c.id;
    EXPECT_GE(c.questions.size(), 3u) << c.id;
  }
}

TEST_F(RubricTest, EveryCheckIsUsedByTheShippedRubric) {
  std::set<std::string> used;
  for (const Criterion& c : rubric.criteria)
    for (const Check& check : c.checks) used.insert(check.id);
  for (const std::string& id : check_ids()) EXPECT_TRUE(used.contains(id)) << id;
}

TEST_F(RubricTest, AFinishedCapstoneIsSuggestedFullMarks) { EXPECT_EQ(sheet().suggested, 100); }

TEST_F(RubricTest, WithoutAnyGpuFullMarksAreReachable) {
  testing::Scratch other;
  testing::Capstone emulated = testing::make_capstone(other.path(), Where::kEmulated);
  ScoreSheet result = score(rubric, emulated.project, emulated.ledger, worklog_of(emulated));
  EXPECT_EQ(result.suggested, 100);
}

TEST_F(RubricTest, RawSpeedEarnsNothing) {
  std::vector<double> before = marks();
  for (double factor : {0.01, 0.3, 3.0, 1000.0}) {
    testing::Capstone faster = testing::make_capstone(scratch.path());
    for (auto* list : {&faster.ledger.human, &faster.ledger.llm})
      for (Measurement& m : *list) {
        if (!m.measured || !m.measured->speedup) continue;
        Interval& s = *m.measured->speedup;
        s = {s.point * factor, s.low * factor, s.high * factor};
        m.measured->percent_of_peak *= factor;
        m.gate_two = s.low > 1 ? GateTwo::kFaster : GateTwo::kSlower;
      }
    std::vector<double> after;
    for (const CriterionScore& c : score(rubric, faster.project, faster.ledger, worklog_of(faster)).criteria)
      after.push_back(c.suggested);
    EXPECT_EQ(before, after) << "speedups times " << factor;
  }
}

// Every finished example, with the numbers that it quotes. Only the measured speeds change.
TEST_F(RubricTest, RawSpeedEarnsNothingInTheExamplesEither) {
  int seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(CAPSTONE_SOURCE_DIR) / "examples")) {
    if (!std::filesystem::exists(entry.path() / "capstone.yaml")) continue;
    Result<Project> project = open_project(entry.path());
    ASSERT_TRUE(project) << render(project.error());
    Result<LedgerView> ledger = read_ledger(project->ledger());
    ASSERT_TRUE(ledger);
    testing::Capstone example{*project, *ledger};
    auto marks_of = [&](double factor) {
      LedgerView scaled = *ledger;
      for (auto* list : {&scaled.human, &scaled.llm})
        for (Measurement& m : *list)
          if (m.measured && m.measured->speedup) {
            Interval& s = *m.measured->speedup;
            s = {s.point * factor, s.low * factor, s.high * factor};
            m.gate_two = s.low > 1 ? GateTwo::kFaster : GateTwo::kSlower;
          }
      std::vector<double> marks;
      for (const CriterionScore& c : score(rubric, *project, scaled, worklog_of(example)).criteria)
        marks.push_back(c.suggested);
      return marks;
    };
    const std::vector<double> before = marks_of(1);
    for (double factor : {0.01, 0.5, 2.0, 100.0})
      EXPECT_EQ(marks_of(factor), before) << entry.path() << " times " << factor;
    ++seen;
  }
  EXPECT_EQ(seen, 4);
}

TEST_F(RubricTest, EvidenceNamesItsNumbers) {
  edit("The intervals are far apart.", "v4 is 2.3x faster than the reference.");
  std::map<std::string, std::string> facts;
  for (const CriterionScore& c : sheet().criteria)
    for (const Evidence& e : c.evidence) facts[e.check] = e.fact;
  EXPECT_NE(facts["numbers_agree"].find("\"2.3x\", ledger 2.31x"), std::string::npos)
      << facts["numbers_agree"];
  EXPECT_NE(facts["timed_or_explained"].find(" samples in "), std::string::npos)
      << facts["timed_or_explained"];
  EXPECT_NE(facts["timed_or_explained"].find(" after 1.5 s of warm-up, ratio "), std::string::npos)
      << facts["timed_or_explained"];
  EXPECT_NE(facts["predicted_first"].find("measured: memory-bound (v4)"), std::string::npos)
      << facts["predicted_first"];
  EXPECT_NE(facts["versions_discussed"].find(" of 4 versions with a measurement in the same paragraph"),
            std::string::npos)
      << facts["versions_discussed"];
}

// A loss that is understood earns as much as a win that is understood. An unexplained win earns less.
TEST_F(RubricTest, CapstonesOrderByUnderstandingNotBySpeed) {
  auto graded = [&](double speedup, bool explained) {
    testing::Scratch folder;
    testing::Capstone c = testing::make_capstone(folder.path());
    for (Measurement& m : c.ledger.human)
      if (m.measured && m.measured->speedup) {
        m.measured->speedup = Interval{speedup, speedup * 0.99, speedup * 1.01};
        m.gate_two = speedup > 1 ? GateTwo::kFaster : GateTwo::kSlower;
        if (!explained && m.version == "v4") m.labels = {"needs an explanation: below the memory floor"};
      }
    if (!explained) {
      std::string text = replace_all(testing::fixture_worklog(Where::kGpu), "v4", "my last one");
      testing::write_worklog(
          c, replace_all(replace_all(text, "{{my last one.speedup}}", ""), "{{my last one.median}}", ""));
    }
    return score(rubric, c.project, c.ledger, worklog_of(c));
  };
  const ScoreSheet win = graded(2.3, true), loss = graded(0.6, true), beaten_by_library = graded(0.05, true),
                   suspicious = graded(9.0, false);
  EXPECT_EQ(win.suggested, loss.suggested);
  EXPECT_EQ(mark_of(loss, "honesty"), 10);
  EXPECT_EQ(beaten_by_library.suggested, loss.suggested);
  EXPECT_LT(suspicious.suggested, loss.suggested - 5);
}

TEST_F(RubricTest, AClaimFromAnotherGpuNeverCostsHonesty) {
  Rejudged rejudged;
  rejudged.human = GateOne::kPassed;  // claims that are not comparable give no contradiction
  EXPECT_EQ(
      mark_of(score(rubric, capstone.project, capstone.ledger, worklog_of(capstone), &rejudged), "honesty"),
      10);
  rejudged.contradictions = {"human: 2.20x claimed, 2.00x measured afresh"};
  EXPECT_EQ(
      mark_of(score(rubric, capstone.project, capstone.ledger, worklog_of(capstone), &rejudged), "honesty"),
      0);
}

TEST_F(RubricTest, ALostRaceToldStraightScoresFullMarks) {
  for (Measurement& m : capstone.ledger.human)
    if (m.measured && m.measured->speedup) {
      m.measured->speedup = Interval{0.4, 0.39, 0.41};
      m.gate_two = GateTwo::kSlower;
    }
  EXPECT_EQ(sheet().suggested, 100);
}

TEST_F(RubricTest, AnInventedNumberLosesAllOfHonestyAndNothingElse) {
  edit("The intervals are far apart.", "It is 6.4x faster than the reference.");
  ScoreSheet result = sheet();
  EXPECT_EQ(mark_of(result, "honesty"), 0);
  EXPECT_EQ(result.suggested, 90);
}

TEST_F(RubricTest, AModelThatFailedIsFullEvidence) {
  capstone.ledger.llm.pop_back();  // only the wrong attempt is left
  capstone.ledger.attempts.pop_back();
  EXPECT_EQ(mark_of(sheet(), "head_to_head"), 30);
}

TEST_F(RubricTest, CorrectnessAsksForBothAttempts) {
  const double both = mark_of(sheet(), "correctness");
  capstone.ledger.llm.clear();
  EXPECT_LT(mark_of(sheet(), "correctness"), both);
}

TEST_F(RubricTest, AChangedPromptThatIsNotToldLosesAllOfHonesty) {
  EXPECT_EQ(mark_of(sheet(), "honesty"), 10) << "attempt-2 had one sentence more, and section 3 says so";
  edit("Nothing at first. After it fell over the same ragged tail as I did, one sentence about row lengths.",
       "");
  EXPECT_EQ(mark_of(sheet(), "honesty"), 0);
  for (Attempt& attempt : capstone.ledger.attempts) attempt.prompt_difference.clear();
  EXPECT_EQ(mark_of(sheet(), "honesty"), 10) << "no prompt was changed";
}

TEST_F(RubricTest, LevelsOfHonestyGiveNothingForAFudgedResult) {
  const Level& last = rubric.criteria.back().levels.back();
  EXPECT_EQ(last.to, 0);
  EXPECT_NE(last.text.find("fudged"), std::string::npos) << last.text;
}

TEST_F(RubricTest, AHumanKernelThatNeverPassedIsCapped) {
  for (Measurement& m : capstone.ledger.human) m.gate_one = GateOne::kWrong;
  EXPECT_LE(mark_of(sheet(), "correctness"), 12);
}

TEST_F(RubricTest, WithoutAGpuTheCountsAreEvidence) {
  testing::Scratch elsewhere;
  testing::Capstone emulated = testing::make_capstone(elsewhere.path(), testing::Where::kEmulated);
  ScoreSheet result = score(rubric, emulated.project, emulated.ledger, worklog_of(emulated));
  const Evidence* found = nullptr;
  for (const CriterionScore& c : result.criteria)
    for (const Evidence& e : c.evidence)
      if (e.check == "timed_or_explained") found = &e;
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found->fact.find("the counts of 1 explanation"), std::string::npos) << found->fact;
  EXPECT_EQ(found->records, (std::vector<std::int64_t>{12}));
}

TEST_F(RubricTest, WithoutRecordedCountsSectionFourDoesNotArgueFromThem) {
  testing::Scratch elsewhere;
  testing::Capstone emulated = testing::make_capstone(elsewhere.path(), testing::Where::kEmulated);
  std::erase_if(emulated.ledger.records, [](const Record& r) { return r.kind == "explanation"; });
  emulated.ledger.explanations.clear();
  for (const CriterionScore& c :
       score(rubric, emulated.project, emulated.ledger, worklog_of(emulated)).criteria)
    for (const Evidence& e : c.evidence)
      if (e.check == "timed_or_explained") {
        EXPECT_EQ(e.standing, Standing::kNotMet);
        EXPECT_NE(e.fact.find("no counts are recorded"), std::string::npos) << e.fact;
      }
}

// No criterion, honesty included, is suggested more than its lowest level.
void expect_lowest(const ScoreSheet& sheet, bool with_honesty) {
  for (const CriterionScore& c : sheet.criteria) {
    if (c.criterion->id == "honesty" && !with_honesty) continue;
    EXPECT_LE(c.suggested, c.criterion->levels.back().to) << c.criterion->id << ": " << c.because;
  }
}

TEST_F(RubricTest, AnswersWithoutContentAreSuggestedTheLowestLevel) {
  for (const std::string answer : {"See code.", "See the code for all of this, please.", "ok"}) {
    std::string text;
    for (const std::string& line : split(testing::fixture_worklog(Where::kGpu), '\n')) {
      if (line.starts_with("#") || line.starts_with("<!--")) text += line + "\n\n";
      if (line.starts_with("> Q")) text += line + "\n\n" + answer + "\n\n";
    }
    testing::write_worklog(capstone, text);
    expect_lowest(sheet(), true);
    EXPECT_LE(sheet().suggested, 3 * 9.5 + 0.5) << answer;
  }
}

TEST_F(RubricTest, AKernelThatDoesNotBuildOrHangsIsSuggestedTheLowestLevel) {
  for (GateOne verdict : {GateOne::kBuildFailed, GateOne::kTimedOut}) {
    const Rejudged rejudged{verdict, {}};
    const ScoreSheet result =
        score(rubric, capstone.project, capstone.ledger, worklog_of(capstone), &rejudged);
    expect_lowest(result, false);
    EXPECT_EQ(mark_of(result, "honesty"), 10) << "a failure that is told costs no honesty";
  }
  const Rejudged wrong{GateOne::kWrong, {}};
  EXPECT_EQ(mark_of(score(rubric, capstone.project, capstone.ledger, worklog_of(capstone), &wrong), "depth"),
            30)
      << "a wrong kernel has a worklog worth reading";
}

TEST_F(RubricTest, TheStubIsSuggestedTheLowestLevel) {
  std::ofstream(capstone.project.human_kernel()) << stub_kernel(capstone.project.problem);
  expect_lowest(sheet(), true);
  std::filesystem::remove(capstone.project.human_kernel());
  expect_lowest(sheet(), true);
}

TEST_F(RubricTest, ASpeedOfAGpuThatNoRecordHasIsNeverMet) {
  testing::Scratch elsewhere;
  testing::Capstone emulated = testing::make_capstone(elsewhere.path(), testing::Where::kEmulated);
  // One emulated time with a wide interval, as a busy machine gives it.
  for (Measurement& m : emulated.ledger.human)
    if (m.measured)
      for (Arm& arm : m.measured->arms) arm.median_ms.high = arm.median_ms.point * 20;
  for (const std::string claim : {"It is 7.3x on my RTX 4090.", "v2 is 7.7 times faster than v1.",
                                  "On the emulator v2 is 2.9 times faster than v1."}) {
    testing::write_worklog(emulated,
                           testing::fixture_worklog(testing::Where::kEmulated) + "\n" + claim + "\n");
    const ScoreSheet result = score(rubric, emulated.project, emulated.ledger, worklog_of(emulated));
    for (const CriterionScore& c : result.criteria)
      for (const Evidence& e : c.evidence)
        if (e.check == "numbers_agree") {
          EXPECT_EQ(e.standing, Standing::kNotMet) << claim << ": " << e.fact;
        }
    EXPECT_EQ(mark_of(result, "honesty"), 0) << claim;
  }
}

// A win with a label of the judge, and one paragraph of section 4 that names v4.
struct SuspiciousWin : RubricTest {
  ScoreSheet with(const std::string& prose,
                  const std::string& label = "needs an explanation: below the memory floor") {
    for (Measurement& m : capstone.ledger.human)
      if (m.version == "v4") m.labels = {label};
    for (Attempt& attempt : capstone.ledger.attempts) attempt.prompt_difference.clear();  // asks, too
    std::string text = replace_all(testing::fixture_worklog(Where::kGpu), "v4", "my last one");
    text = replace_all(replace_all(text, "{{my last one.speedup}}", ""), "{{my last one.median}}", "");
    testing::write_worklog(capstone, replace_all(text, "Nothing is below the floor of 0.24 ms.", prose));
    return sheet();
  }
  static std::vector<std::string> questions(const ScoreSheet& sheet) {
    for (const CriterionScore& c : sheet.criteria)
      if (c.criterion->id == "head_to_head") return questions_of(c);
    return {};
  }
};

TEST_F(SuspiciousWin, ExplainedByAMechanismCostsNothing) {
  const ScoreSheet result = with("v4 finds half of its input in the L2 cache.");
  EXPECT_EQ(mark_of(result, "head_to_head"), 30);
  EXPECT_EQ(questions(result).size(), rubric.criteria[2].questions.size());
}

TEST_F(SuspiciousWin, PassedOverIsNotYetHeadToHeadAndAsksTheMentor) {
  const ScoreSheet result = with("v4 is simply the best.");
  EXPECT_LE(mark_of(result, "head_to_head"), 9.5) << "the level for a win that goes unquestioned";
  EXPECT_EQ(mark_of(result, "honesty"), 10);
  ASSERT_EQ(questions(result).size(), rubric.criteria[2].questions.size() + 1);
  EXPECT_NE(questions(result).back().find("How can v4 do this work"), std::string::npos)
      << questions(result).back();
}

TEST_F(SuspiciousWin, CalledUnexplainedLiesBetween) {
  const double silent = mark_of(with("v4 is simply the best."), "head_to_head");
  const ScoreSheet result = with("I cannot explain why v4 is that fast.");
  EXPECT_GT(mark_of(result, "head_to_head"), silent + 10);
  EXPECT_LT(mark_of(result, "head_to_head"), 30);
  EXPECT_EQ(mark_of(result, "honesty"), 10);
}

TEST_F(SuspiciousWin, TensorCoresAreExplainedByPrecisionOnly) {
  const std::string label =
      "needs an explanation: tensor-core instructions (HMMA) in a problem that is judged in fp32";
  const ScoreSheet silent = with("v4 needs one launch and has more reuse in registers.", label);
  EXPECT_LT(mark_of(silent, "head_to_head"), 10);
  EXPECT_TRUE(questions(silent).back().starts_with("In which precision does v4 multiply and add?"))
      << questions(silent).back();
  EXPECT_EQ(mark_of(with("v4 splits each float into three bf16 numbers.", label), "head_to_head"), 30);
}

TEST_F(SuspiciousWin, ThatIsWrongNeedsNoExplanation) {
  for (Measurement& m : capstone.ledger.human)
    if (m.version == "v4") m.gate_one = GateOne::kWrong;
  EXPECT_EQ(mark_of(with("It is a pity."), "head_to_head"), 30);
}

TEST_F(RubricTest, RemovingTheQuestionsDoesNotAnswerThem) {
  testing::write_worklog(capstone,
                         "## The problem and the plan\n\n## The by-hand attempt\n\n## The model's "
                         "attempt\n\n## The head-to-head\n\n## What each got stuck on\n\nv3.\n");
  ScoreSheet result = sheet();
  EXPECT_LT(mark_of(result, "depth"), 22);
  EXPECT_LT(mark_of(result, "head_to_head"), 20);
}

TEST_F(RubricTest, EvidenceNamesItsRecords) {
  for (const CriterionScore& c : sheet().criteria)
    for (const Evidence& e : c.evidence) {
      EXPECT_FALSE(e.fact.empty()) << e.check;
      if (e.check == "human_correct" || e.check == "predicted_first" || e.check == "model_tried") {
        EXPECT_FALSE(e.records.empty()) << e.check;
      }
      // v1 did not build (3) before it passed (4); v3 (6) and attempt-1 (9) were wrong.
      if (e.check == "human_correct") {
        EXPECT_EQ(e.records, (std::vector<std::int64_t>{4}));
      }
      if (e.check == "failures_told") {
        EXPECT_EQ(e.records, (std::vector<std::int64_t>{3, 6, 9}));
      }
    }
}

// ---- strict loading
// --------------------------------------------------------------------------------------------

struct Mutation {
  const char *from, *to, *what, *hint;
};

TEST(RubricFile, MistakesAreNamedWithTheirPlace) {
  testing::Scratch scratch;
  std::ifstream in(kRubricFile);
  const std::string good(std::istreambuf_iterator<char>(in), {});
  for (const Mutation& m : std::initializer_list<Mutation>{
           {"weight: 10", "weight: 11", "should end at 11", "half marks"},
           {"id: ledger_whole", "id: ledger_hole", "unknown check 'ledger_hole'", "ledger_whole"},
           {"looks_for: The page", "look_for: The page", "unknown key 'look_for'", "looks_for"},
           {"rule: all_or_nothing", "rule: maybe", "unknown rule 'maybe'", "share"},
           {"from: 9, to: 10", "from: 9.5, to: 10", "should end at", "half marks"},
           {"schema: 1", "schema: 2", "schema 2 is not known", "schema 1"},
           {"schema: 1", "schema: 1\nschema: 1", "appears twice", ""},
           {"share: 10, required", "share: -1, required", "above 0", ""}}) {
    std::size_t at = good.find(m.from);
    ASSERT_NE(at, std::string::npos) << m.from;
    std::string bad = good;
    bad.replace(at, std::string_view(m.from).size(), m.to);
    std::ofstream(scratch.path() / "rubric.yaml") << bad;
    Result<Rubric> rubric = load_rubric(scratch.path() / "rubric.yaml");
    ASSERT_FALSE(rubric) << m.to;
    EXPECT_NE(rubric.error().what.find(m.what), std::string::npos) << rubric.error().what;
    EXPECT_NE(rubric.error().hint.find(m.hint), std::string::npos) << rubric.error().hint;
    EXPECT_NE(rubric.error().where.find("rubric.yaml:"), std::string::npos) << rubric.error().where;
  }
}

TEST(RubricFile, WeightsMustSumToOneHundred) {
  testing::Scratch scratch;
  std::ifstream in(kRubricFile);
  std::string text(std::istreambuf_iterator<char>(in), {});
  text = replace_all(replace_all(text, "weight: 10", "weight: 20"), "from: 9, to: 10", "from: 9, to: 20");
  std::ofstream(scratch.path() / "rubric.yaml") << text;
  Result<Rubric> rubric = load_rubric(scratch.path() / "rubric.yaml");
  ASSERT_FALSE(rubric);
  EXPECT_EQ(rubric.error().what, "the weights sum to 110, not 100");
}

// ---- review
// ----------------------------------------------------------------------------------------------------

struct ReviewTest : ::testing::Test {
  testing::Scratch scratch;
  testing::Capstone capstone = testing::make_capstone(scratch.path());

  std::vector<Finding> findings() { return review(capstone.project, capstone.ledger, worklog_of(capstone)); }
  /// The severity of the finding in `section` whose text contains `what`; empty when there is none.
  std::optional<Severity> found(int section, std::string_view what) {
    for (const Finding& f : findings())
      if (f.section == section && f.what.find(what) != std::string::npos) return f.severity;
    return std::nullopt;
  }
};

TEST_F(ReviewTest, AFinishedCapstoneHasNothingToMend) {
  for (const Finding& f : findings()) ADD_FAILURE() << f.section << ": " << f.what << " (" << f.where << ")";
}

TEST_F(ReviewTest, NoPrediction) {
  capstone.ledger.predictions.clear();
  EXPECT_EQ(found(1, "no prediction"), Severity::kMissing);
}
TEST_F(ReviewTest, PredictionAfterTheFirstMeasurement) {
  capstone.ledger.predictions[0].before_first_measurement = false;
  EXPECT_EQ(found(1, "after the first measurement"), Severity::kContradiction);
}
TEST_F(ReviewTest, ALatePredictionCanBeExplainedInSectionOne) {
  capstone.ledger.predictions[0].before_first_measurement = false;
  std::string text = testing::fixture_worklog(Where::kGpu);
  text.insert(text.find("## ", text.find("## ") + 3),
              "I measured first and wrote the prediction afterwards: I had expected memory.\n\n");
  testing::write_worklog(capstone, text);
  EXPECT_EQ(found(1, "after the first measurement; section 1 says"), Severity::kAdvice);
}
TEST_F(ReviewTest, TheStubAndWhatDoesNotBuildAreNotAskedForTheirReasons) {
  for (const char* version : {"v12", "v13"}) {
    Measurement m = testing::passed(capstone.project, "human", version, 1.5, Where::kGpu);
    m.reason = "";
    m.expected_speedup.reset();
    m.source_sha256 = version;
    if (m.version == "v12") m.gate_one = GateOne::kBuildFailed;
    testing::add_measurement(capstone, m);
  }
  capstone.ledger.stub_sha256 = "v13";
  EXPECT_FALSE(found(2, "no reason"));
  EXPECT_FALSE(found(2, "no expected speedup"));
  EXPECT_TRUE(capstone.ledger.find("v12")) << "it stays on record";
}
TEST_F(ReviewTest, AnUnclosedPlaceholder) {
  testing::write_worklog(capstone, testing::fixture_worklog(Where::kGpu) + "\nIt is {{v2.speedup now.\n");
  EXPECT_EQ(found(5, "unclosed placeholder {{v2.speedup"), Severity::kContradiction);
}
TEST_F(ReviewTest, HumanKernelNeverPassed) {
  for (Measurement& m : capstone.ledger.human) m.gate_one = GateOne::kWrong;
  EXPECT_EQ(found(2, "never passed gate one"), Severity::kMissing);
}
TEST_F(ReviewTest, OnlyOneVersion) {
  capstone.ledger.human.resize(2);
  EXPECT_EQ(found(2, "only one version"), Severity::kMissing);
}
TEST_F(ReviewTest, VersionsWithoutAReason) {
  capstone.ledger.human[2].reason = " ";
  EXPECT_EQ(found(2, "no reason was given for v2"), Severity::kMissing);
}
TEST_F(ReviewTest, AReasonThatNamesNoCause) {
  capstone.ledger.human[2].reason = "v2 was faster";
  EXPECT_EQ(found(2, "the reason names no cause for v2 (\"v2 was faster\")"), Severity::kAdvice);
}
TEST(Reason, ResultsAndChangesAreNoCause) {
  for (const char* text :
       {"faster", "Faster!", "v2", "x", "it was better now", "a new version", "3", "optimised"})
    EXPECT_TRUE(names_no_cause(text)) << text;
  for (const char* text : {"", "  ", "…", "tiles in shared memory", "faster: float4 loads", "padding",
                           "Kacheln", "unroll 4", "共享内存"})
    EXPECT_FALSE(names_no_cause(text)) << text;
}
TEST_F(ReviewTest, AReasonSurvivesARemeasurementWithoutOne) {
  Measurement again = capstone.ledger.human.back();
  again.reason = "";
  testing::add_measurement(capstone, again);
  EXPECT_FALSE(found(2, "no reason"));
}
TEST_F(ReviewTest, NoModelAttempt) {
  capstone.ledger.attempts.clear();
  capstone.ledger.llm.clear();
  EXPECT_EQ(found(3, "no attempt"), Severity::kMissing);
}
TEST_F(ReviewTest, AttemptFiledButNeverJudged) {
  capstone.ledger.llm.pop_back();
  EXPECT_EQ(found(3, "attempt-2 was recorded but never judged"), Severity::kMissing);
}
TEST_F(ReviewTest, QuestionUnanswered) {
  testing::write_worklog(capstone, replace_all(testing::fixture_worklog(Where::kGpu),
                                               "Nothing is below the floor of 0.24 ms.", ""));
  EXPECT_EQ(found(4, "not answered: If a result is better"), Severity::kMissing);
}
TEST_F(ReviewTest, NumberNotInTheLedgerIsNamedWithItsLine) {
  testing::write_worklog(capstone, "## The by-hand attempt\n\nIt is 6.1x faster.\n");
  for (const Finding& f : findings())
    if (f.what == "\"6.1x\" is not in the ledger") {
      EXPECT_EQ(f.where, "worklog.md:3");
      EXPECT_EQ(f.severity, Severity::kContradiction);
      return;
    }
  FAIL() << "not found";
}
TEST_F(ReviewTest, UnknownPlaceholder) {
  testing::write_worklog(capstone, testing::fixture_worklog(Where::kGpu) + "\n{{v7.speedup}}\n");
  EXPECT_EQ(found(5, "unknown placeholder {{v7.speedup}}"), Severity::kContradiction);
}
TEST_F(ReviewTest, KernelDiffersFromEveryMeasuredVersion) {
  std::ofstream(capstone.project.human_kernel(), std::ios::app) << "// one more idea\n";
  EXPECT_EQ(found(2, "differs from every measured version"), Severity::kContradiction);
}
TEST_F(ReviewTest, KernelIsAnEarlierVersion) {
  capstone.ledger.human.back().source_sha256 = "another";
  capstone.ledger.human[2].source_sha256 = *sha256_file(capstone.project.human_kernel());
  EXPECT_EQ(found(2, "human/kernel.cu is v2"), Severity::kAdvice);
}
TEST_F(ReviewTest, DamagedLedger) {
  capstone.ledger.damage = {"line 4: the chain is broken"};
  EXPECT_EQ(found(0, "line 4: the chain is broken"), Severity::kContradiction);
}
TEST_F(ReviewTest, JudgedAgainstAnotherProblem) {
  capstone.ledger.human[2].problem_digest = "feed";
  EXPECT_EQ(found(0, "v2 was judged against another copy"), Severity::kContradiction);
}
TEST_F(ReviewTest, AnomalyThatNobodyNames) {
  Measurement m = testing::passed(capstone.project, "human", "v12", 9.9, Where::kGpu);
  m.labels = {"needs an explanation: below the memory floor"};
  testing::add_measurement(capstone, m);
  EXPECT_EQ(found(4, "no explanation of v12"), Severity::kMissing);
}
TEST_F(ReviewTest, AnomalyThatIsNamedButNotExplained) {
  capstone.ledger.human.back().labels = {"needs an explanation: below the memory floor"};
  EXPECT_FALSE(found(4, "no explanation of v4")) << "the fixture's prose names v4 and a mechanism";
  std::string text = replace_all(replace_all(testing::fixture_worklog(Where::kGpu), "v4", "my last one"),
                                 "{{my last one.", "{{v3.");
  testing::write_worklog(capstone, text + "\nI do not know why v4 is so fast.\n");
  EXPECT_EQ(found(4, "no explanation of v4"), Severity::kAdvice);
  testing::write_worklog(capstone, text + "\nv4 is fast.\n");
  EXPECT_EQ(found(4, "no explanation of v4"), Severity::kMissing);
}
TEST_F(ReviewTest, FindingsComeBySectionGravestFirst) {
  testing::write_worklog(capstone, "## The by-hand attempt\n\nIt is 6.1x faster.\n");
  capstone.ledger.predictions.clear();
  std::vector<Finding> all = findings();
  ASSERT_GT(all.size(), 4u);
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_LE(std::pair(all[i - 1].section, static_cast<int>(all[i - 1].severity)),
              std::pair(all[i].section, static_cast<int>(all[i].severity)));
}

}  // namespace
}  // namespace capstone
