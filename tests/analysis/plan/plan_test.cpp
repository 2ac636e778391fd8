// The road of the course and the plans of its sessions: what a file may say, what a sheet makes of it, and
// that the plans which the course ships name only what exists. That their commands work is a test of whole
// commands: tests/cli/syllabus_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "harness/analysis/plan/sheet.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "tests/base/scratch.h"

namespace capstone {

// GoogleTest finds it by the argument's namespace.
void PrintTo(const CourseSession& session, std::ostream* stream) { *stream << session.id; }

namespace {

using test::Scratch;

const fs::path kShare = CAPSTONE_SHARE;

constexpr const char* kCourse = R"(question: How fast?
loop: guess, measure
halves:
  - says: First this.
    weeks:
      1: {L1: one, L2: two}
  - says: Then that.
    weeks:
      2: {W1: three}
)";

constexpr const char* kPlan = R"(steps:
  - {teach: 40, what: Talk.}
  - {build: 20, what: Type.}
artifact: {what: A kernel., begin: capstone lab L3-3}
demo: {run: capstone demo coalescing, seconds: 20, shows: "16.56"}
line: Feed them.
pitfall: {thinks: It is fast., instead: It is not., run: capstone demo bank-conflict, shows: "16.50"}
numbers:
  - {ladder: sum, rungs: [01_tree, 02_shuffle], means: Less waiting.}
  - {course: "93.7 %"}
)";

class PlanTest : public ::testing::Test {
 protected:
  Scratch scratch;

  Result<SessionPlan> plan(const std::string& text) {
    EXPECT_TRUE(write_file_atomic(scratch / "L3.yaml", text));
    return load_plan(scratch / "L3.yaml");
  }
  Result<Course> course(const std::string& text) {
    EXPECT_TRUE(write_file_atomic(scratch / "course.yaml", text));
    return load_course(scratch.path());
  }
  void expect_refused(const std::string& from, const std::string& to, const std::string& what) {
    std::string text = kPlan;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    const auto read = plan(text.replace(text.find(from), from.size(), to));
    ASSERT_FALSE(read) << to;
    EXPECT_NE(read.error().what.find(what), std::string::npos) << render(read.error());
    EXPECT_NE(read.error().where.find("L3.yaml:"), std::string::npos) << "it says where";
  }
};

TEST_F(PlanTest, TellsMinutesByKind) {
  const auto read = plan(kPlan);
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(read->id, "L3");
  EXPECT_EQ(read->minutes(), 60);
  EXPECT_EQ(read->minutes_of(PlanStep::Kind::kTeach), 40);
  EXPECT_EQ(read->minutes_of(PlanStep::Kind::kBuild), 20);
  EXPECT_EQ(read->numbers.size(), 2u);
}

TEST_F(PlanTest, IsReadStrictly) {
  expect_refused("line:", "lines:", "unknown key `lines`");
  expect_refused("line: Feed them.\n", "", "`line` is missing");
  expect_refused("line: Feed them.", "line: ''", "`line` must be text");
  expect_refused("teach: 40", "teach: forty", "`teach` must be a whole number from 1 to 240");
  expect_refused("teach: 40", "teach: 40, build: 3", "a step is either teach, build or break");
  expect_refused("run: capstone demo coalescing", "run: rm -r .", "`run` must be a command of capstone");
  expect_refused("seconds: 20, ", "", "`seconds` is missing");
  expect_refused("seconds: 20", "seconds: 600", "`seconds` must be a whole number from 1 to 120");
  expect_refused("course: \"93.7 %\"", "means: Nothing.", "either of a ladder's rungs or of the course");
  expect_refused("ladder: sum, rungs: [01_tree, 02_shuffle]", "ladder: sum", "either of a ladder's rungs");
  expect_refused("[01_tree, 02_shuffle]", "[]", "`rungs` must be a list of texts");
}

TEST_F(PlanTest, CourseIsReadStrictly) {
  const auto read = course(kCourse);
  ASSERT_TRUE(read) << render(read.error());
  ASSERT_EQ(read->sessions.size(), 3u);
  EXPECT_EQ(read->sessions[2].half, "Then that.");
  EXPECT_EQ(read->sessions[2].week, 2);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = kCourse;
    const auto bad = course(text.replace(text.find(from), from.size(), to));
    return bad ? std::string("it was read") : bad.error().what;
  };
  EXPECT_EQ(refused("2: {W1", "3: {W1"), "week 2 comes next, not week 3");
  EXPECT_EQ(refused("W1: three", "L2: three"), "session L2 is there twice");
  EXPECT_EQ(refused("{W1: three}", "[W1]"), "a week must map sessions to titles");
  EXPECT_EQ(refused("loop: guess, measure\n", ""), "`loop` is missing");
}

TEST_F(PlanTest, SessionsAreFoundInAnyCaseAndTheOthersListed) {
  const auto read = course(kCourse);
  ASSERT_TRUE(read);
  EXPECT_EQ(find_session(*read, "w1")->title, "three");
  EXPECT_EQ(find_session(*read, "X9").error().hint, "sessions: L1, L2, W1");
}

TEST_F(PlanTest, QuotedNumbersComeFromThePageWithoutItsMarks) {
  const fs::path page = scratch / "docs" / "reference" / "handbook_numbers.md";
  ASSERT_TRUE(make_folders(page.parent_path()));
  const std::string text =
      "# Numbers\n\nWords.\n\n## 93.7 %\n- **Said**: it reaches\n  so much.\n- **Source**: a *paper*.\n"
      "- **Measured here**: 95 % (`capstone ladder`)\n- **Say**: \"Ours.\"\n";
  ASSERT_TRUE(write_file_atomic(page, text));
  const auto numbers = course_numbers(scratch.path());
  ASSERT_TRUE(numbers) << render(numbers.error());
  ASSERT_EQ(numbers->size(), 1u);
  EXPECT_EQ(numbers->front().said, "it reaches so much.");
  EXPECT_EQ(numbers->front().source, "a paper.");
  EXPECT_EQ(numbers->front().measured, "95 % (capstone ladder)");
  ASSERT_TRUE(write_file_atomic(page, replace_all(text, "**Source**", "**From**")));
  EXPECT_EQ(course_numbers(scratch.path()).error().what,
            "`93.7 %` needs Said, Source, Measured here and Say");
}

Ladder recording(const std::string& device, const std::string& time, double first, double second) {
  Ladder ladder;
  ladder.problem = "sum", ladder.device = device, ladder.time = time, ladder.sizes = {{"n", 64}};
  for (const auto& [name, ms] : {std::pair{"01_tree", first}, {"02_shuffle", second}}) {
    LadderStep step;
    step.rung.name = name, step.rung.session = "L3", step.gate_one = "PASS";
    step.ms = {ms, ms, ms}, step.percent_of_peak = 25, step.peak = "1 TB/s",
    step.of_library = {0.5, 0.5, 0.5};
    ladder.steps.push_back(step);
  }
  return ladder;
}

// The plan of a session L3 with the numbers above, in an installation with one page and no kernels.
class SheetTest : public PlanTest {
 protected:
  Result<SessionSheet> sheet(std::vector<Ladder> recorded) {
    EXPECT_TRUE(make_folders(scratch / "reference_kernels" / "plans"));
    EXPECT_TRUE(write_file_atomic(scratch / "reference_kernels" / "plans" / "L3.yaml", kPlan));
    Resources resources;
    resources.share = scratch.path();
    const SheetSources sources{std::move(recorded), {{"93.7 %", "said", "source", "here", "say"}}};
    return session_sheet({"L3", "memory", "First this.", 1}, sources, resources);
  }
};

TEST_F(SheetTest, NumbersAreThoseOfTheNewestRecordingWithAllRungs) {
  Ladder newest = recording("NVIDIA C", "2026-11-03", 8, 1);
  newest.steps.pop_back();
  Ladder wrong = recording("NVIDIA D", "2026-11-04", 8, 1);
  wrong.steps.back().gate_one = "WRONG";
  const auto made = sheet(
      {recording("NVIDIA A", "2026-11-01", 8, 1), recording("NVIDIA B", "2026-11-02", 8, 2), newest, wrong});
  ASSERT_TRUE(made) << render(made.error());
  EXPECT_EQ(made->numbers[0].says, "01_tree 8.00 ms → 02_shuffle 2.00 ms, 4.00x faster");
  EXPECT_EQ(made->numbers[0].facts[0], "the last: 25.0 % of 1 TB/s; 50.0 % of the library");
  EXPECT_EQ(made->numbers[0].facts[1], "NVIDIA B, n=64, 2026-11-02");
  EXPECT_EQ(made->numbers[0].means, "Less waiting.");
  EXPECT_EQ(made->numbers[1].name, "93.7 %");
  EXPECT_EQ(made->numbers[1].says, "said");
}

TEST_F(SheetTest, WhatWasNotRecordedIsNotMeasured) {
  const auto made = sheet({});
  ASSERT_TRUE(made) << render(made.error());
  EXPECT_EQ(made->numbers[0].says, "01_tree → 02_shuffle: not measured");
}

TEST_F(SheetTest, AQuotedNumberThatThePageLacksIsAnError) {
  Resources resources;
  resources.share = scratch.path();
  ASSERT_TRUE(sheet({}));  // it writes the plan
  const auto made =
      session_sheet({"L3", "memory", "First this.", 1}, {{}, {{"93.8 %", "a", "b", "c", "d"}}}, resources);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().what, "the course quotes no number `93.7 %`");
  EXPECT_EQ(made.error().hint, "did you mean `93.8 %`?");
}

TEST(Course, AttentionOpensTheSecondHalfAndProfilingClosesTheFirst) {
  const auto course = load_course(kShare / "reference_kernels");
  ASSERT_TRUE(course) << render(course.error());
  ASSERT_EQ(course->sessions.size(), 14u);
  EXPECT_EQ(course->weeks(), 4);
  EXPECT_EQ(find_session(*course, "L7")->half, "First we make the multiply fast.");
  EXPECT_EQ(find_session(*course, "L8")->half, "Then we make the model fast.");
  EXPECT_EQ(find_session(*course, "W1")->half, find_session(*course, "L8")->half);
}

std::vector<CourseSession> all_sessions() {
  const auto course = load_course(kShare / "reference_kernels");
  return course ? course->sessions : std::vector<CourseSession>{};
}

class CoursePlan : public testing::TestWithParam<CourseSession> {};

TEST_P(CoursePlan, NamesOnlyWhatExists) {
  Resources resources;
  resources.share = kShare;
  const auto sources = sheet_sources(resources);
  ASSERT_TRUE(sources) << render(sources.error());
  const auto sheet = session_sheet(GetParam(), *sources, resources);
  ASSERT_TRUE(sheet) << render(sheet.error());
  const bool lecture = GetParam().id.starts_with("L");
  EXPECT_EQ(sheet->plan.minutes(), lecture ? 60 : 180);
  if (lecture) {
    EXPECT_EQ(sheet->plan.minutes_of(PlanStep::Kind::kBuild), 20);
  }
  for (const NumberInWords& number : sheet->numbers)
    EXPECT_EQ(number.says.find("not measured"), std::string::npos) << number.says;
  for (const PlanNumber& number : sheet->plan.numbers) {
    if (number.ladder.empty()) continue;
    const auto rungs = rungs_of(resources, number.ladder);
    ASSERT_TRUE(rungs) << render(rungs.error());
    for (const std::string& named : number.rungs)
      EXPECT_TRUE(
          std::any_of(rungs->begin(), rungs->end(), [&](const Rung& rung) { return rung.name == named; }))
          << number.ladder << " has no rung " << named;
  }
  EXPECT_FALSE(sheet->numbers.empty());
}

// What a step says in passing counts, too: `capstone demo receipt`, `Lab L2-1`.
TEST_P(CoursePlan, TellsOfLabsThatExist) {
  Resources resources;
  resources.share = kShare;
  const auto plan = plan_of(GetParam(), resources.reference_kernels());
  ASSERT_TRUE(plan) << render(plan.error());
  const auto labs = load_labs(resources.reference_kernels());
  ASSERT_TRUE(labs);
  std::string text = plan->begin;
  for (const PlanStep& step : plan->steps) text += " " + step.what;
  for (char& c : text)
    if (c == ',' || c == '.' || c == ':' || c == '(' || c == ')') c = ' ';
  for (const std::string& word : split(text, ' ')) {
    const bool id = word.size() == 4 && word[2] == '-' && (word[0] == 'L' || word[0] == 'W');
    if (id) {
      EXPECT_TRUE(find_lab(*labs, word)) << word;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, CoursePlan, testing::ValuesIn(all_sessions()),
                         [](const auto& named) { return named.param.id; });

}  // namespace
}  // namespace capstone
