// Commands that only answer: fast, complete, and in JSON where JSON is offered.
#include <cstdlib>

#include "harness/base/files.h"
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using Answer = CliTest;

TEST_F(Answer, HelpNamesEveryCommandAndTheExitCodes) {
  Outcome help = capstone({"--help"});
  for (const char* word : {"problems", "init", "predict", "measure", "explain", "llm", "report", "check",
                           "submit", "ledger", "doctor", "grade", "run", "completion"})
    EXPECT_TRUE(says(help.out, word));
  EXPECT_TRUE(says(help.out, "Exit codes: 0 done"));
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(capstone({}).code, 0) << "no words at all are answered with the help";
  EXPECT_TRUE(says(capstone({"--version"}).out, "capstone "));
}

TEST_F(Answer, ProblemsListsAndShowsEveryOne) {
  Outcome list = capstone({"problems"});
  int problems = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(CAPSTONE_SOURCE_DIR) / "problems")) {
    if (!fs::exists(entry.path() / "problem.yaml")) continue;
    const std::string id = entry.path().filename();
    ++problems;
    EXPECT_TRUE(says(list.out, id));
    Outcome shown = capstone({"problems", "show", id});
    EXPECT_EQ(shown.code, 0) << shown;
    EXPECT_TRUE(says(shown.out, "extern \"C\" void launch("));
    EXPECT_TRUE(says(shown.out, "rungs to start from (--from): 01_")) << id;
  }
  EXPECT_GE(problems, 4);
}

TEST_F(Answer, ProblemsRecommendsByLevelAndInterest) {
  const Outcome shown = capstone({"problems", "--recommend", "--level", "usual", "--interest", "norm"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "layernorm"));
  EXPECT_TRUE(says(shown.out, "norm: in id"));
  const Outcome none = capstone({"problems", "--interest", "chess"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(says(none.err, "no graded problem of tier 2 is about chess"));
}

TEST_F(Answer, ProblemsAssignsACohortAsATable) {
  std::string roster = "name,id,level\n";
  for (int i = 0; i < 30; ++i) roster += "student " + std::to_string(i) + "," + std::to_string(i) + ",\n";
  ASSERT_TRUE(write_file_atomic(home_ / "roster.csv", roster + "Ada,a1,team\n"));
  const Outcome assigned = capstone({"problems", "--assign", "roster.csv"});
  ASSERT_EQ(assigned.code, 0) << assigned;
  EXPECT_TRUE(says(assigned.out, "name,id,problem,tier,because"));
  EXPECT_TRUE(says(assigned.err, "31 people, "));
  EXPECT_TRUE(says(assigned.err, "at most 2 on one problem"));
}

TEST_F(Answer, CompletionsAreAcceptedByTheShell) {
  Outcome script = capstone({"completion", "bash"});
  ASSERT_EQ(script.code, 0) << script;
  Outcome checked = program({"bash", "-n"}, {.input = script.out});
  EXPECT_EQ(checked.code, 0) << checked;
  // And it completes: the words of `capstone llm`.
  Outcome completed = program(
      {"bash", "-c",
       script.out + "\nCOMP_WORDS=(capstone llm pr); COMP_CWORD=2; _capstone; echo \"${COMPREPLY[@]}\""});
  EXPECT_TRUE(says(completed.out, "prompt"));
  for (const char* shell : {"zsh", "fish"}) EXPECT_EQ(capstone({"completion", shell}).code, 0) << shell;
}

TEST_F(Answer, DoctorSaysWhatThereIsAndWhatIsMissing) {
  Outcome text = capstone({"doctor"});
  EXPECT_TRUE(text.code == 0 || text.code == 3) << text;
  for (const char* what :
       {"NVIDIA GPU", "nvcc", "CUDA headers", "CUTLASS headers", "g++", "isolation", "gnuplot", "cache"})
    EXPECT_TRUE(says(text.out, what));
  Outcome json = capstone({"doctor", "--format", "json"});
  EXPECT_EQ(json.code, text.code);
  for (const Json& row : Json::parse(json.out)) EXPECT_FALSE(row["state"].get<std::string>().empty());
}

TEST_F(Answer, JsonIsJsonWhereverItIsOffered) {
  fs::path root = project("project", "02");
  const std::vector<std::vector<std::string>> questions{
      {"problems"},
      {"problems", "show", "sgemm"},
      {"predict", "memory"},
      {"measure", "--backend", "emulated", "--hidden", "0"},
      {"explain", "--size", "rows=4,cols=64"},
      {"llm", "add", "-", "--model", "m", "--backend", "emulated", "--hidden", "0"},
      {"check"},
      {"ledger"},
      {"doctor"}};
  std::string reply = "```cuda\n" + slurp(root / "human" / "kernel.cu") + "```\n";
  for (std::vector<std::string> question : questions) {
    std::string name = question.front();
    question.insert(question.end(), {"--format", "json"});
    Outcome answer = capstone(question, {.cwd = root, .input = reply});
    EXPECT_EQ(answer.code, name == "check" ? 1 : 0) << name << ": " << answer;
    EXPECT_FALSE(Json::parse(answer.out, nullptr, false).is_discarded()) << name << ": " << answer;
  }
  expect_ledger_intact(root);
}

TEST_F(Answer, FailedVerdictIsJsonToo) {
  fs::path root = project_with(kernel("", "  int broken = ;"));
  Outcome answer = measure(root, {"--format", "json"});
  EXPECT_EQ(answer.code, 1) << answer;
  Json measurements = Json::parse(answer.out, nullptr, false);
  ASSERT_TRUE(measurements.is_array()) << answer;
  EXPECT_EQ(measurements[0]["build"]["first_error"]["line"], kLaunchLine + 1);
}

}  // namespace
}  // namespace capstone::cli_test
