// `capstone syllabus`, also called `map`: the road, its weeks, the sheets, and that every command which a
// plan names works.
#include <gtest/gtest.h>

#include <ostream>

#include "harness/analysis/plan/plan.h"
#include "harness/base/text.h"
#include "tests/cli/command.h"

namespace capstone {

// GoogleTest finds it by the argument's namespace.
void PrintTo(const CourseSession& session, std::ostream* stream) { *stream << session.id; }

}  // namespace capstone

namespace capstone::cli_test {
namespace {

const fs::path kKernels = fs::path(CAPSTONE_SOURCE_DIR) / "reference_kernels";
const How kWithoutGpu{.env = {{"CUDA_VISIBLE_DEVICES", ""}}};

using Syllabus = CliTest;

TEST_F(Syllabus, ShowsTheRoadWithAttentionInTheSecondHalf) {
  const Outcome road = capstone({"syllabus"});
  ASSERT_EQ(road.code, 0) << road;
  const std::size_t second = road.out.find("Then we make the model fast.");
  EXPECT_LT(road.out.find("First we make the multiply fast."), road.out.find("L1  what a GPU is"));
  EXPECT_LT(road.out.find("L7  profiling"), second);
  EXPECT_LT(second, road.out.find("L8  attention"));
  EXPECT_TRUE(says(road.out, "What percent of the peak do you get?"));
  EXPECT_TRUE(says(road.out, "guess → code → profile"));
}

TEST_F(Syllabus, MapIsAnotherNameOfTheSameCommand) {
  EXPECT_EQ(capstone({"map"}).out, capstone({"syllabus"}).out);
  EXPECT_EQ(capstone({"map", "L3"}).out, capstone({"syllabus", "L3"}).out);
  EXPECT_TRUE(says(capstone({"help", "map"}).out, "--week"));
  EXPECT_TRUE(says(capstone({"map", "--weak"}).err, "did you mean `--week`?"));
  EXPECT_TRUE(says(capstone({"completion", "bash"}).out, "\" map\") where=\"map\""));
}

TEST_F(Syllabus, WeeksSayWhatIsBehindUsAndWhatIsAhead) {
  const Outcome weeks = capstone({"map", "L6", "--week"});
  ASSERT_EQ(weeks.code, 0) << weeks;
  const auto line = [&](const std::string& with) {
    for (const std::string& one : split(weeks.out, '\n'))
      if (one.find(with) != std::string::npos) return one;
    return std::string();
  };
  EXPECT_TRUE(line(" L5 ").ends_with("behind us")) << weeks;
  EXPECT_TRUE(line(" L6 ").ends_with("tensor cores   ◀── we are HERE")) << weeks;
  EXPECT_TRUE(line(" L7 ").ends_with("ahead")) << weeks;
  EXPECT_LT(weeks.out.find("week 2"), weeks.out.find(" L5 "));
  EXPECT_LT(weeks.out.find("week 3"), weeks.out.find(" L8 "));
  const Outcome nowhere = capstone({"map", "--week"});
  EXPECT_EQ(nowhere.out.find("ahead"), std::string::npos) << "without a session we are nowhere yet";
}

TEST_F(Syllabus, SheetHasWhatAMentorNeedsForTheSession) {
  const Outcome sheet = capstone({"map", "l3"});
  ASSERT_EQ(sheet.code, 0) << sheet;
  for (const char* text : {"[L3]",
                           "we are HERE: memory",
                           "week 1 of 4: First we make the multiply fast.",
                           "60 minutes: 40 teach, 20 build",
                           "the line",
                           "$ capstone lab L3-3",
                           "the demo, within 20 s",
                           "$ capstone demo coalescing",
                           "more demos: bank-conflict",
                           "they think: ",
                           "$ capstone demo bank-conflict",
                           "point at: 16.50",
                           "02_shared",
                           "03_padded",
                           "% of the library",
                           "NVIDIA H",
                           "source: ",
                           "measured here: ",
                           "histogram",
                           "L3-4  A histogram for each block",
                           "next: capstone demo coalescing"})
    EXPECT_TRUE(says(sheet.out, text));
}

TEST_F(Syllabus, UnknownSessionIsAnsweredWithTheList) {
  const Outcome unknown = capstone({"syllabus", "X9"});
  EXPECT_EQ(unknown.code, 2) << unknown;
  EXPECT_TRUE(says(unknown.err, "no session is called X9"));
  EXPECT_TRUE(says(unknown.err, "sessions: L1, L2"));
}

TEST_F(Syllabus, PageHasASheetForEverySessionAndNeedsNothingElse) {
  const Outcome written = capstone({"map", "--html", "course.html"});
  ASSERT_EQ(written.code, 0) << written;
  const std::string page = slurp(home_ / "course.html");
  const auto course = load_course(kKernels);
  ASSERT_TRUE(course);
  for (const CourseSession& session : course->sessions) {
    EXPECT_TRUE(says(page, "<h2 id=\"" + session.id + "\">"));
    EXPECT_TRUE(says(page, "href=\"#" + session.id + "\""));
  }
  for (const char* loads : {"<script", "<img", "<link", "http://", "https://", "{{"})
    EXPECT_EQ(page.find(loads), std::string::npos) << loads;
  EXPECT_TRUE(says(page, "default-src 'none'"));

  ASSERT_EQ(capstone({"map", "W4", "--html", "one.html"}).code, 0);
  const std::string one = slurp(home_ / "one.html");
  EXPECT_TRUE(says(one, "<title>W4: serving</title>"));
  EXPECT_EQ(one.find("<h2 id=\"W5\">"), std::string::npos);

  ASSERT_EQ(capstone({"map", "W6", "--html", "last.html"}).code, 0);
  const std::string last = slurp(home_ / "last.html");  // the linked stop keeps its place on the road
  EXPECT_LT(last.find("<b>W5</b>"), last.find("<b>W6</b>"));
}

TEST_F(Syllabus, PageIsNotWrittenOverSomethingElse) {
  spit(home_ / "notes.html", "my notes");
  const Outcome refused = capstone({"map", "--html", "notes.html"});
  EXPECT_EQ(refused.code, 2) << refused;
  EXPECT_EQ(slurp(home_ / "notes.html"), "my notes");
  EXPECT_EQ(capstone({"map", "--html", "a.html", "--week"}).code, 2);
}

std::vector<CourseSession> all_sessions() {
  const auto course = load_course(kKernels);
  return course ? course->sessions : std::vector<CourseSession>{};
}

class PlanCommands : public CliTest, public ::testing::WithParamInterface<CourseSession> {
 protected:
  Outcome run(const std::string& line) const {
    std::vector<std::string> words = split(line, ' ');
    words.erase(words.begin());  // "capstone"
    return capstone(words, kWithoutGpu);
  }
};

TEST_P(PlanCommands, WorkAndShowWhatTheMentorPointsAt) {
  const auto plan = plan_of(GetParam(), kKernels);
  ASSERT_TRUE(plan) << render(plan.error());
  for (const PlanCommand* command : {&plan->demo, &plan->proof}) {
    const Outcome shown = run(command->run);
    EXPECT_EQ(shown.code, 0) << command->run << "\n" << shown;
    EXPECT_TRUE(says(shown.out, command->shows)) << command->run;
  }
  const Outcome begun = run(plan->begin);
  EXPECT_EQ(begun.code, 0) << plan->begin << "\n" << begun;
}

// "capstone demo receipt" in the text of a step.
TEST_P(PlanCommands, InTheTextOfAStepExist) {
  const auto plan = plan_of(GetParam(), kKernels);
  ASSERT_TRUE(plan) << render(plan.error());
  const std::string demos = capstone({"demo"}).out;
  for (const PlanStep& step : plan->steps)
    for (std::size_t at = step.what.find("capstone demo "); at != std::string::npos;
         at = step.what.find("capstone demo ", at + 1)) {
      const std::size_t name = at + std::string("capstone demo ").size();
      EXPECT_TRUE(says(demos, step.what.substr(name, step.what.find_first_of("),.: ", name) - name)));
    }
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanCommands, ::testing::ValuesIn(all_sessions()),
                         [](const auto& named) { return named.param.id; });

}  // namespace
}  // namespace capstone::cli_test
