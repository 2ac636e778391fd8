// Labs: what a definition may say, the exercise that it makes of a rung, and the record of a student's
// progress.
#include "harness/project/lab/lab.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/project/lab/progress.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

constexpr const char* kRung = R"(// Rung 1: an idea.
//
// Changed     the solution, in words.
//
// Shapes      x [n];
//             any n.
// Launch      one block.
// Cost        n.
#include <cuda_runtime.h>

__global__ void twice(float* x) {
  const int i = threadIdx.x;
  x[i] *= 2;
  __syncthreads();
}
void launch(float* x) {
  twice<<<1, 32>>>(x);
}
)";

constexpr const char* kLab = R"(title: Twice
rung: L1/double/01_twice.cu
aim: Double each element.
read: [nothing]
spans:
  - first: const int i = threadIdx.x;
    last: x[i] *= 2;
    put: |-
      // TODO 1: double
        it
hints: [a, b, c]
)";

class LabTest : public ::testing::Test {
 protected:
  Scratch scratch;

  Result<Lab> load(const std::string& text, const std::string& name = "L2-1.yaml") {
    EXPECT_TRUE(make_folders(scratch / "labs"));
    EXPECT_TRUE(write_file_atomic(scratch / "labs" / name, text));
    return load_lab(scratch / "labs" / name);
  }
  Lab lab() { return load(kLab).value(); }

  void expect_refused(const std::string& text, const std::string& what, const std::string& hint) {
    const auto refused = load(text);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find(what), std::string::npos) << refused.error().what;
    EXPECT_NE(refused.error().hint.find(hint), std::string::npos) << refused.error().hint;
    EXPECT_NE(refused.error().where.find("L2-1.yaml:"), std::string::npos) << refused.error().where;
  }
  static std::string changed(std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  }
};

TEST_F(LabTest, ExerciseHoldsTheTodoInsteadOfTheLinesAndNotTheRungsIdea) {
  const auto text = exercise(lab(), kRung);
  ASSERT_TRUE(text) << render(text.error());
  EXPECT_EQ(*text, R"(// Lab L2-1: Twice.
//
// Write what each TODO says. README.md says what to read first.
// `capstone lab` in this folder checks the kernel.
//
// Shapes      x [n];
//             any n.
// Launch      one block.
#include <cuda_runtime.h>

__global__ void twice(float* x) {
  // TODO 1: double
    it
  __syncthreads();
}
void launch(float* x) {
  twice<<<1, 32>>>(x);
}
)");
  EXPECT_EQ(count_todos(*text), 1);
}

TEST_F(LabTest, SolutionIsWhatWasTakenOut) {
  const auto spans = taken_out(lab(), kRung);
  ASSERT_TRUE(spans) << render(spans.error());
  ASSERT_EQ(spans->size(), 1u);
  EXPECT_EQ(spans->front().line, 12);
  EXPECT_EQ(spans->front().text, "  const int i = threadIdx.x;\n  x[i] *= 2;\n");
}

TEST_F(LabTest, SpanThatTheRungDoesNotHaveIsAnError) {
  for (const auto& [from, to, what] :
       {std::tuple{"const int i = threadIdx.x;", "const int j = 0;", "nowhere"},
        {"last: x[i] *= 2;", "last: x[i] *= 3;", "no line `x[i] *= 3;`"},
        {"const int i = threadIdx.x;", "\"}\"", "more than once"}}) {
    const auto text = exercise(load(changed(kLab, from, to)).value(), kRung);
    ASSERT_FALSE(text) << to;
    EXPECT_NE(text.error().what.find(what), std::string::npos) << text.error().what;
    EXPECT_NE(text.error().hint.find("lab L2-1"), std::string::npos) << text.error().hint;
  }
}

TEST_F(LabTest, SpansMayNotOverlap) {
  const std::string second = "  - {first: \"x[i] *= 2;\", put: \"// TODO 2: more\"}\nhints:";
  const auto text = exercise(load(changed(kLab, "hints:", second)).value(), kRung);
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().what.find("overlaps"), std::string::npos) << text.error().what;
}

TEST_F(LabTest, DefinitionIsReadStrictly) {
  expect_refused(changed(kLab, "hints:", "hint:"), "unknown key `hint`", "did you mean `hints`?");
  expect_refused(changed(kLab, "[a, b, c]", "[a, b]"), "three hints", "");
  expect_refused(changed(kLab, "aim: Double each element.\n", ""), "`aim` is missing", "add `aim:`");
  expect_refused(changed(kLab, "// TODO 1", "// Task 1"), "nothing to do", "// TODO");
  expect_refused(std::string(kLab) + "limits: {sectors: {at_most: 4}}\n", "`sectors` is not counted",
                 "sectors per request");
  expect_refused(std::string(kLab) + "limits: {launches: {at_most: few}}\n", "must be a number", "");
  expect_refused(std::string(kLab) + "limits: {launches: {}}\n", "either at_most or at_least", "at_most: 4");
  const auto misnamed = load(kLab, "first.yaml");
  ASSERT_FALSE(misnamed);
  EXPECT_NE(misnamed.error().what.find("named like L4-2.yaml"), std::string::npos);
}

TEST_F(LabTest, LimitIsMetOnItsOwnSide) {
  const std::string limits = "limits: {launches: {at_most: 1}, lanes per request: {at_least: 25}}\n";
  const auto loaded = load(kLab + limits);
  ASSERT_TRUE(loaded) << render(loaded.error());
  ASSERT_EQ(loaded->limits.size(), 2u);
  EXPECT_TRUE(loaded->limits[0].met(1));
  EXPECT_FALSE(loaded->limits[0].met(2));
  EXPECT_TRUE(loaded->limits[1].met(32));
  EXPECT_FALSE(loaded->limits[1].met(5));
}

TEST_F(LabTest, IsFoundByItsIdInAnyCase) {
  const std::vector<Lab> labs{lab()};
  EXPECT_EQ(find_lab(labs, "l2-1")->title, "Twice");
  EXPECT_NE(find_lab(labs, "L2").error().hint.find("labs of L2: L2-1"), std::string::npos);
  EXPECT_NE(find_lab(labs, "L3-1").error().hint.find("did you mean L2-1?"), std::string::npos);
}

TEST_F(LabTest, ProgressIsWhatWasWritten) {
  LabProgress progress{"L2-1", "2026-03-01T09:30:00Z", "abc", 2, {}, {}};
  EXPECT_EQ(progress.state(), "begun");
  progress.given_up = "2026-03-01T10:00:00Z";
  EXPECT_EQ(progress.state(), "gave up");
  progress.passed = LabProgress::Pass{"2026-03-01T11:00:00Z", "def"};
  EXPECT_EQ(progress.state(), "passed after giving up");
  fs::create_directories(scratch / "L2-1/deep");
  ASSERT_TRUE(write_progress(scratch / "L2-1", progress));
  const auto read = read_progress(scratch / "L2-1");
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(*read, progress);
  EXPECT_EQ(lab_folder(scratch / "L2-1/deep"), scratch / "L2-1");
  EXPECT_EQ(lab_folder(scratch / "labs"), std::nullopt);
  progress.given_up = "2026-03-01T12:00:00Z";  // the solution was looked at afterwards
  EXPECT_EQ(progress.state(), "passed");
}

TEST_F(LabTest, DamagedProgressIsAnErrorAndNotALostPass) {
  fs::create_directories(scratch / "L2-1");
  for (const char* text : {"", "[]", "{}", "{\"lab\": 3}", "{\"lab\": \"L2-1\", \"passed\": true}"}) {
    ASSERT_TRUE(write_file_atomic(scratch / "L2-1/lab.json", text));
    const auto read = read_progress(scratch / "L2-1");
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().where.find("lab.json"), std::string::npos);
    EXPECT_FALSE(read.error().hint.empty()) << text;
  }
}

}  // namespace
}  // namespace capstone
