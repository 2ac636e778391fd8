#include "harness/analysis/lint/lint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/analysis/lint/reference.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/judge/reference_oracle.h"
#include "tests/analysis/lint/definition.h"

namespace capstone {
namespace {

using testing::Definition;
using testing::kBaseline;
using testing::kOracle;
using testing::kYaml;
using State = LintCheck::State;

std::vector<LintCheck> lint(const std::filesystem::path& folder) {
  auto checks = lint_problem(folder, test::suite_resources(), [](const std::string&) {});
  EXPECT_TRUE(checks) << render(checks.error());
  return checks.value_or(std::vector<LintCheck>{});
}

/// Lints a definition that one check must refuse, and expects exactly that check to fail with this text.
void expect_failure(const Definition& definition, const std::string& name, const std::string& what) {
  const auto checks = lint(definition.path());
  EXPECT_FALSE(passes(checks));
  bool seen = false;
  for (const LintCheck& check : checks) {
    if (check.state != State::kFailed) continue;
    EXPECT_EQ(check.name, name) << check.what;
    EXPECT_FALSE(check.where.empty());
    EXPECT_FALSE(check.hint.empty());
    seen |= check.what.find(what) != std::string::npos;
    if (!seen) ADD_FAILURE() << check.name << " says: " << check.what;
  }
  EXPECT_TRUE(seen);
}

TEST(Lint, AWholeDefinitionPassesEveryCheck) {
  const Definition definition;
  definition.write("hints.md", "## Hint 1\na\n## Hint 2\nb\n## Hint 3\nc\n");
  const auto checks = lint(definition.path());
  std::vector<std::string> names;
  for (const LintCheck& check : checks) {
    names.push_back(check.name);
    EXPECT_NE(check.state, State::kFailed) << check.name << ": " << check.what;
    if (check.name == "reference") continue;  // it needs PyTorch
    EXPECT_EQ(check.state, State::kOk) << check.name << ": " << check.what;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"loads", "statement", "hints", "cost", "memory", "hidden sizes",
                                             "tolerance", "triviality", "baseline", "reference"}));
}

TEST(Lint, WhatDoesNotLoadIsNamedWithLineAndColumn) {
  const Definition definition;
  definition.change("problem.yaml", kYaml, "shape: [cols], python", "shape: [colls], python");
  const auto checks = lint(definition.path());
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].state, State::kFailed);
  EXPECT_EQ(checks[0].name, "loads");
  EXPECT_NE(checks[0].where.find("problem.yaml:9:"), std::string::npos) << checks[0].where;
  EXPECT_NE(checks[0].hint.find("cols"), std::string::npos) << checks[0].hint;
}

TEST(Lint, AFolderThatIsNotCalledLikeItsProblem) {
  const Definition definition;
  const auto other = definition.path().parent_path() / "another_name";
  std::filesystem::rename(definition.path(), other);
  const auto checks = lint(other);
  std::filesystem::rename(other, definition.path());
  EXPECT_FALSE(passes(checks));
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const LintCheck& c) {
    return c.state == State::kFailed &&
           c.what.find("but the folder is called another_name") != std::string::npos;
  }));
}

TEST(Lint, AnOracleThatDoesNotCompileDoesNotLoad) {
  const Definition definition;
  definition.change("oracle.cpp", kOracle, "const double product =", "const double product");
  const auto checks = lint(definition.path());
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_NE(checks[0].what.find("oracle does not compile"), std::string::npos) << checks[0].what;
}

TEST(Lint, StatementThatForgetsAParameter) {
  const Definition definition;
  definition.write(
      "statement.md",
      "`x` becomes `y`, weighted; shifted.\n");  // words that only contain the names do not count
  expect_failure(definition, "statement", "does not mention w, shift");
}

TEST(Lint, NoStatement) {
  const Definition definition;
  std::filesystem::remove(definition.path() / "statement.md");
  expect_failure(definition, "statement", "cannot");
}

TEST(Lint, HintsMayBeLeftOutButNotBeHalfThere) {
  const Definition definition;
  const auto checks = lint(definition.path());
  EXPECT_TRUE(passes(checks));
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(),
                          [](const LintCheck& c) { return c.name == "hints" && c.state == State::kNotRun; }));
  definition.write("hints.md", "## Hint 1\na\n");
  expect_failure(definition, "hints", "1 hints, not 3");
}

TEST(Lint, CostThatIsNegativeAtASizeThatIsDrawn) {
  const Definition definition;
  definition.change("problem.yaml", kYaml, "flops: 2 * rows * cols", "flops: 2 * cols * (rows - 2)");
  expect_failure(definition, "hidden sizes", "cost: flops is ");
}

TEST(Lint, ARunThatDoesNotFitAStudentsCard) {
  const Definition definition;
  definition.change("problem.yaml", kYaml, "rows: 4096, cols: 1024", "rows: 400000, cols: 1024");
  expect_failure(definition, "memory", "more than the 8 GB of a student's card");
}

TEST(Lint, HiddenSizesThatAKernelCouldList) {
  const Definition definition;
  definition.change("problem.yaml", kYaml, "rows: {range: [1, 60]}, cols: {range: [1, 60]}",
                    "rows: {one_of: [3, 8]}, cols: {one_of: [17, 32]}");
  expect_failure(definition, "hidden sizes", "only 4 different sizes");
}

TEST(Lint, HiddenSizesThatNeverFitTheCaps) {
  const Definition definition;
  definition.change("problem.yaml", kYaml, "rows: {range: [1, 60]}",
                    "rows: {range: [1000000000, 1000000060]}");
  expect_failure(definition, "hidden sizes", "no sizes of `scaled` under");
}

TEST(Lint, CostThatHidesHowMuchIsAllocated) {
  const Definition definition;
  std::string yaml = kYaml;
  yaml.replace(yaml.find("bytes: 4 * (2 * rows * cols + cols)"), 35, "bytes: rows");
  yaml.replace(yaml.find("flops: 2 * rows * cols"), 22, "flops: rows");
  definition.change("problem.yaml", yaml, "rows: {range: [1, 60]}, cols: {range: [1, 60]}",
                    "rows: {range: [1, 60]}, cols: {range: [3000000, 4000000]}");
  expect_failure(definition, "hidden sizes", "four times the cap");
}

TEST(Lint, ToleranceThatLetsLowerPrecisionPass) {
  const Definition definition;
  definition.change("problem.yaml", kYaml, "rtol: 1.0e-5, atol: 1.0e-6", "rtol: 1.0e-3, atol: 1.0e-3");
  expect_failure(definition, "tolerance", "passes gate one: y = operands rounded to tf32 or f16");
}

TEST(Lint, OracleWithoutAUsableScale) {
  const Definition definition;
  definition.change("oracle.cpp", kOracle, "scale[i] = std::fabs(product)", "scale[i] = -std::fabs(product)");
  expect_failure(definition, "tolerance", "with scale -");
}

TEST(Lint, InputsThatMakeTheAnswerTrivial) {
  const Definition definition;
  std::string yaml = kYaml;
  yaml.replace(yaml.find("shape: [cols], python"), 21, "shape: [cols], init: {choice: [1]}, python");
  yaml.replace(yaml.find("value: 0.5"), 10, "value: 0");
  definition.write("problem.yaml", yaml);
  definition.change("reference.py", testing::kReference, "self.w + 0.5", "self.w");
  expect_failure(definition, "triviality", "y = a copy of x");
}

TEST(Lint, AReasonExcusesWhatPasses) {
  const Definition definition;
  std::string yaml = kYaml + "because: {copy: \"the weights are one in this exercise\"}\n";
  yaml.replace(yaml.find("shape: [cols], python"), 21, "shape: [cols], init: {choice: [1]}, python");
  yaml.replace(yaml.find("value: 0.5"), 10, "value: 0");
  definition.write("problem.yaml", yaml);
  definition.change("reference.py", testing::kReference, "self.w + 0.5", "self.w");
  const auto checks = lint(definition.path());
  EXPECT_TRUE(passes(checks));
  for (const LintCheck& check : checks)
    if (check.name == "triviality") {
      EXPECT_NE(check.what.find("because: the weights are one"), std::string::npos) << check.what;
    }
}

TEST(Lint, BaselineThatComputesSomethingElse) {
  const Definition definition;
  definition.change("baseline.cu", kBaseline, "+ shift", "- shift");
  expect_failure(definition, "baseline", "WRONG: wrong result");
}

TEST(Lint, BaselineThatDoesNotBuild) {
  const Definition definition;
  definition.change("baseline.cu", kBaseline, "x[i] * w", "x[i] ** w");
  expect_failure(definition, "baseline", "does not build: ");
}

TEST(Lint, NoReference) {
  const Definition definition;
  std::filesystem::remove(definition.path() / "reference.py");
  expect_failure(definition, "reference", "there is no reference.py");
}

/// Tests check_reference() alone: python3 with the small PyTorch of these tests, python3 without PyTorch, and
/// no python3.
class Reference : public ::testing::Test {
 protected:
  static LintCheck check(const Definition& definition, const std::string& python_path) {
    Resources resources = test::suite_resources();
    const std::filesystem::path tools = definition.path().parent_path() / "tools",
                                scratch = definition.path().parent_path() / "scratch";
    std::filesystem::create_directories(tools);
    std::filesystem::create_directories(scratch);
    const Problem problem = load_problem(definition.path()).value();
    const Oracle oracle = load_oracle(problem, resources).value();
    if (const auto python = find_program("python3", resources.path_variable);
        python && !python_path.empty()) {
      EXPECT_TRUE(write_file_atomic(tools / "python3",
                                    "#!/bin/sh\nPYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" + python_path +
                                        "' exec '" + python->string() + "' \"$@\"\n",
                                    0755));
    }
    resources.path_variable = tools.string();
    return check_reference(problem, oracle, resources, scratch).value();
  }
  static bool has_python() {
    return find_program("python3", test::suite_resources().path_variable).has_value();
  }
  const std::string torch_ = std::string(CAPSTONE_SOURCES) + "/tests/analysis/lint/small_torch";
};

TEST_F(Reference, WithoutPythonItIsNotRun) {
  const LintCheck found = check(Definition(), "");
  EXPECT_EQ(found.state, State::kNotRun);
  EXPECT_EQ(found.what, "no python3 on PATH has PyTorch");
}

TEST_F(Reference, WithoutPyTorchItIsNotRun) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const Definition definition;
  // A module that cannot be imported comes before any that could be.
  const std::filesystem::path broken = definition.path().parent_path() / "broken";
  std::filesystem::create_directories(broken);
  ASSERT_TRUE(write_file_atomic(broken / "torch.py", "raise ImportError('no torch')\n"));
  const LintCheck found = check(definition, broken.string());
  EXPECT_EQ(found.state, State::kNotRun);
  EXPECT_EQ(found.what, "PyTorch cannot be imported: no torch");
}

TEST_F(Reference, ThatAgreesPasses) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const LintCheck found = check(Definition(), torch_);
  EXPECT_EQ(found.state, State::kOk) << found.what;
  EXPECT_EQ(found.what, "agrees with the oracle at 2 sizes");
}

TEST_F(Reference, ThatComputesSomethingElseIsNamedWithTheFirstElement) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const Definition definition;
  definition.change("reference.py", testing::kReference, "+ 0.5", "+ 0.25");
  const LintCheck found = check(definition, torch_);
  EXPECT_EQ(found.state, State::kFailed);
  EXPECT_NE(found.what.find("at rows=3, cols=17: y[0, 0] is "), std::string::npos) << found.what;
}

TEST_F(Reference, AScalarThatForwardTakesIsPassed) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const Definition definition;
  definition.change("problem.yaml", kYaml, "value: 0.5}", "value: 0.5, python: forward}");
  definition.change("reference.py", testing::kReference, "forward(self, x):\n        return x * self.w + 0.5",
                    "forward(self, x, shift):\n        return x * self.w + shift");
  const LintCheck found = check(definition, torch_);
  EXPECT_EQ(found.state, State::kOk) << found.what;
}

TEST_F(Reference, NumbersThatLookEqualComeWithTheirDifference) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const Definition definition;
  definition.change("reference.py", testing::kReference, "+ 0.5", "+ 0.50000001");
  const LintCheck found = check(definition, torch_);
  EXPECT_EQ(found.state, State::kFailed);
  EXPECT_NE(found.what.find("; they differ by 1e-08, and "), std::string::npos) << found.what;
}

TEST_F(Reference, ThatFailsIsQuoted) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const Definition definition;
  definition.change("reference.py", testing::kReference, "x * self.w + 0.5", "x * self.weight");
  const LintCheck found = check(definition, torch_);
  EXPECT_EQ(found.state, State::kFailed);
  EXPECT_NE(found.what.find("AttributeError"), std::string::npos) << found.what;
}

TEST(Lint, AFolderThatIsNotThere) {
  auto checks = lint_problem("/nowhere/at/all", test::suite_resources(), [](const std::string&) {});
  ASSERT_FALSE(checks);
  EXPECT_EQ(checks.error().what, "no such folder");
}

std::vector<std::string> shipped() {
  std::vector<std::string> ids;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(CAPSTONE_SOURCES) / "problems"))
    if (std::filesystem::exists(entry.path() / "problem.yaml")) ids.push_back(entry.path().filename());
  std::sort(ids.begin(), ids.end());
  return ids;
}

class ShippedProblem : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Lint, ShippedProblem, ::testing::ValuesIn(shipped()),
                         [](const auto& info) { return info.param; });

TEST_P(ShippedProblem, PassesItsOwnLint) {
  for (const LintCheck& check : lint(std::filesystem::path(CAPSTONE_SOURCES) / "problems" / GetParam()))
    EXPECT_NE(check.state, State::kFailed)
        << check.name << ": " << check.what << "\n  --> " << check.where << "\n  hint: " << check.hint;
}

}  // namespace
}  // namespace capstone
