// The labs that the course ships: each one fits its rung, the exercise as it is given is not passed, and the
// rung is.
#include <gtest/gtest.h>

#include <map>
#include <ostream>

#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/text.h"
#include "harness/workflows/lab.h"
#include "tests/resources.h"

namespace capstone {

// GoogleTest finds it by the argument's namespace.
void PrintTo(const Lab& lab, std::ostream* stream) { *stream << lab.id; }

}  // namespace capstone

namespace capstone::workflows {
namespace {

const fs::path kRungs = fs::path(CAPSTONE_SOURCES) / "reference_kernels";

std::vector<Lab> all_labs() {
  auto labs = load_labs(kRungs);
  return labs ? *labs : std::vector<Lab>{};
}

Workspace workspace() {
  Workspace here;
  here.resources = test::suite_resources_and_headers();
  return here;
}

std::string told(const LabVerdict& verdict) {
  const Measurement& m = verdict.measurement;
  std::string text =
      verdict.lab.id + ": " + std::string(label_of(m.gate_one)) + (m.build.ok ? "" : "\n" + m.build.log);
  if (const CaseResult* failure = m.first_failure())
    text += " " + failure->id + " " + failure->sizes.dump() + ": " + failure->problem + " " + failure->where;
  for (const CountedLimit& one : verdict.limits)
    text += "\n" + std::to_string(one.value) + " " + std::string(one.limit.count->name);
  return text;
}

class CourseLab : public testing::TestWithParam<Lab> {
 protected:
  void SetUp() override {
    auto text = read_file(kRungs / GetParam().rung);
    ASSERT_TRUE(text) << render(text.error());
    rung_ = *text;
  }

  LabVerdict judged(const fs::path& source) {
    auto verdict = judge_lab(GetParam(), source, true, workspace(), {});
    if (verdict) return *verdict;
    ADD_FAILURE() << render(verdict.error());
    return {};
  }

  std::string rung_;
};

TEST_P(CourseLab, FitsItsRung) {
  auto text = exercise(GetParam(), rung_);
  ASSERT_TRUE(text) << render(text.error());
  EXPECT_GE(count_todos(*text), static_cast<int>(GetParam().spans.size()));
  for (const char* field : {"// Shapes", "// Launch", "// Divides"})
    EXPECT_NE(text->find(field), std::string::npos) << field;
  for (const char* field : {"// Changed", "// Why", "// Prediction"})
    EXPECT_EQ(text->find(field), std::string::npos) << "this tells the solution: " << field;
  EXPECT_LE(GetParam().title.size(), 43u) << "the list has room for no more";
}

TEST_P(CourseLab, ExerciseAsGivenIsNotPassed) {
  auto text = exercise(GetParam(), rung_);
  ASSERT_TRUE(text) << render(text.error());
  const fs::path source = fs::path(testing::TempDir()) / ("exercise_" + GetParam().id + ".cu");
  ASSERT_TRUE(write_file_atomic(source, *text));
  const LabVerdict verdict = judged(source);
  EXPECT_FALSE(verdict.passed()) << told(verdict);
  EXPECT_TRUE(verdict.measurement.build.ok) << "an exercise compiles: " << told(verdict);
  EXPECT_NE(verdict.measurement.gate_one, GateOne::kTimedOut) << "the first check must not take long";
  EXPECT_NE(verdict.measurement.gate_one, GateOne::kNotJudgeable) << told(verdict);
}

TEST_P(CourseLab, RungPassesIt) {
  const LabVerdict verdict = judged(kRungs / GetParam().rung);
  EXPECT_TRUE(verdict.passed()) << told(verdict);
}

INSTANTIATE_TEST_SUITE_P(Labs, CourseLab, testing::ValuesIn(all_labs()),
                         [](const testing::TestParamInfo<Lab>& info) {
                           return replace_all(info.param.id, "-", "_");
                         });

TEST(CourseLabs, EachSessionWithKernelsHasSome) {
  const auto labs = load_labs(kRungs);
  ASSERT_TRUE(labs) << render(labs.error());
  std::map<std::string, int> of;
  for (const Lab& lab : *labs) {
    ++of[lab.session()];
    EXPECT_TRUE(lab.rung.begin()->string().starts_with(lab.session() + "_"))
        << lab.id << " uses " << lab.rung;
  }
  for (const char* lecture : {"L2", "L3", "L4", "L5", "L6", "L7", "L8"}) EXPECT_GE(of[lecture], 3) << lecture;
  for (const char* workshop : {"W1", "W2", "W4", "W6"}) EXPECT_GE(of[workshop], 1) << workshop;
}

}  // namespace
}  // namespace capstone::workflows
