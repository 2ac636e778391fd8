// `capstone lab`: from the list to a lab that is passed.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class LabCommand : public CliTest {
 protected:
  fs::path made(const std::string& id) const {
    const Outcome outcome = capstone({"lab", id});
    EXPECT_EQ(outcome.code, 0) << outcome;
    return home_ / id;
  }
  static Json progress(const fs::path& lab) { return Json::parse(slurp(lab / "lab.json")); }
  static std::string rung(const std::string& path) {
    return slurp(fs::path(CAPSTONE_SOURCE_DIR) / "reference_kernels" / path);
  }
};

TEST_F(LabCommand, ListsTheLabsBySessionAtOnce) {
  const Outcome listed = capstone({"lab"});
  ASSERT_EQ(listed.code, 0) << listed;
  EXPECT_TRUE(says(listed.out, "L3 memory\nL3-1  A reduction tree"));
  EXPECT_TRUE(says(listed.out, "\nW1 FlashAttention\nW1-1  "));
  EXPECT_TRUE(says(listed.out, "0 of 27 passed\nnext: capstone lab L2-1\n"));
  for (std::size_t from = 0, to; (to = listed.out.find('\n', from)) != std::string::npos; from = to + 1)
    EXPECT_LE(to - from, 80u) << listed.out.substr(from, to - from);
  const Json all = Json::parse(capstone({"lab", "--format", "json"}).out);
  EXPECT_EQ(all.size(), 27u);
  EXPECT_EQ(all[0]["id"], "L2-1");
  EXPECT_EQ(all[0]["state"], "");
}

TEST_F(LabCommand, ExerciseFailsUntilItIsWrittenAndThePassIsRecorded) {
  const fs::path lab = made("L2-1");
  EXPECT_TRUE(says(slurp(lab / "README.md"), "# Lab L2-1: One thread for each element"));
  const Outcome untouched = capstone({"lab"}, {.cwd = lab});
  EXPECT_EQ(untouched.code, 1) << untouched;
  EXPECT_TRUE(says(untouched.out, "L2-1: WRONG: wrong result: nothing written"));
  EXPECT_TRUE(says(untouched.out, "2 TODOs are left in kernel.cu"));
  EXPECT_FALSE(progress(lab).contains("passed"));

  spit(lab / "kernel.cu", "int x = y;\n");
  const Outcome broken = capstone({"lab"}, {.cwd = lab});
  EXPECT_EQ(broken.code, 1) << broken;
  EXPECT_TRUE(says(broken.out, "L2-1 does not compile: "));

  spit(lab / "kernel.cu", rung("L2_cuda_model/vector_add/01_one_element.cu"));
  const Outcome right = capstone({"lab", "check", "L2-1"});
  EXPECT_EQ(right.code, 0) << right;
  EXPECT_TRUE(says(right.out, "L2-1: PASS\nnext: cd .. && capstone lab L2-2\n"));
  EXPECT_EQ(progress(lab)["passed"]["source_sha256"].get<std::string>().size(), 64u);
  const Outcome listed = capstone({"lab", "list"}, {.cwd = lab});
  EXPECT_TRUE(says(listed.out, "1 of 27 passed\nnext: capstone lab L2-2\n"));
}

TEST_F(LabCommand, RightResultsAreNotEnoughWhereTheLabLimitsACount) {
  const fs::path lab = made("L3-3");
  const Outcome conflicts = capstone({"lab"}, {.cwd = lab});
  EXPECT_EQ(conflicts.code, 1) << conflicts;
  EXPECT_TRUE(says(conflicts.out,
                   "L3-3: the results are right, but 16.5 times the ideal wavefronts (at most 1.05)\n"
                   "  --> kernel.cu:"));
  EXPECT_TRUE(says(conflicts.out, "hint: the lanes of a warp must touch different banks"));
  EXPECT_FALSE(progress(lab).contains("passed"));
  const Json verdict = Json::parse(capstone({"lab", "check", "--format", "json"}, {.cwd = lab}).out);
  EXPECT_EQ(verdict["passed"], false);
  EXPECT_EQ(verdict["limits"][1]["value"], 16.5);

  spit(lab / "kernel.cu", rung("L3_memory/transpose/03_padded.cu"));
  const Outcome padded = capstone({"lab"}, {.cwd = lab});
  EXPECT_EQ(padded.code, 0) << padded;
  EXPECT_TRUE(
      says(padded.out, "L3-3: PASS, 4 sectors per request (at most 4.1), 1 times the ideal wavefronts"));
}

TEST_F(LabCommand, AKernelInALabIsTriedAndExplainedWithoutNamingTheProblem) {
  const fs::path lab = made("L2-1");
  spit(lab / "kernel.cu", rung("L2_cuda_model/vector_add/01_one_element.cu"));
  const Outcome tried = capstone({"try", "kernel.cu", "--hidden", "0", "--quick"}, {.cwd = lab});
  EXPECT_EQ(tried.code, 0) << tried;
  const Outcome explained = capstone({"explain", "kernel.cu"}, {.cwd = lab});
  EXPECT_TRUE(says(explained.out, "kernel.cu of vector_add at n=")) << explained;
}

TEST_F(LabCommand, MissingBarrierFailsALab) {
  const fs::path lab = made("L2-3");
  std::string text = rung("L2_cuda_model/rgb_to_gray/02_shared.cu");
  const std::string barrier = "__syncthreads();";
  spit(lab / "kernel.cu", text.erase(text.find(barrier), barrier.size()));
  const Outcome raced = capstone({"lab"}, {.cwd = lab});
  EXPECT_EQ(raced.code, 1) << raced;
  EXPECT_FALSE(progress(lab).contains("passed"));
}

TEST_F(LabCommand, HintsComeOneByOneAndAreCounted) {
  const fs::path lab = made("L4-1");
  EXPECT_EQ(capstone({"lab", "hint", "2"}, {.cwd = lab}).code, 2) << "1 comes first";
  EXPECT_TRUE(says(capstone({"lab", "hint"}, {.cwd = lab}).out, "hint 1: "));
  EXPECT_TRUE(says(capstone({"lab", "hint"}, {.cwd = lab}).out, "hint 2: "));
  EXPECT_TRUE(says(capstone({"lab", "hint", "1"}, {.cwd = lab}).out, "hint 1: "));
  EXPECT_EQ(progress(lab)["hints"], 2);
  EXPECT_TRUE(says(capstone({"lab", "hint"}, {.cwd = lab}).out, "that was the last hint"));
  EXPECT_EQ(capstone({"lab", "hint", "4"}, {.cwd = lab}).code, 2);
}

TEST_F(LabCommand, GivingUpShowsTheRungAndIsRecorded) {
  const fs::path lab = made("L4-1");
  const Outcome shown = capstone({"lab", "--give-up"}, {.cwd = lab});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "  float sum = 0;\n"));
  EXPECT_EQ(slurp(lab / "solution.cu"), rung("L4_gemm_ladder_one/sgemm/01_naive.cu"));
  EXPECT_TRUE(progress(lab).contains("given_up"));
  EXPECT_TRUE(says(capstone({"lab", "list"}).out, "gave up"));

  spit(lab / "kernel.cu", slurp(lab / "solution.cu"));
  EXPECT_EQ(capstone({"lab"}, {.cwd = lab}).code, 0);
  const Outcome listed = capstone({"lab", "list"}, {.cwd = lab});
  EXPECT_TRUE(says(listed.out, "passed*"));
  EXPECT_TRUE(says(listed.out, "1 of 27 passed (* after the solution was shown)"));
}

TEST_F(LabCommand, NothingIsOverwritten) {
  const fs::path lab = made("L2-1");
  spit(lab / "kernel.cu", "mine\n");
  const Outcome again = capstone({"lab", "L2-1"});
  EXPECT_EQ(again.code, 2) << again;
  EXPECT_TRUE(says(again.err, "a lab was begun there"));
  EXPECT_EQ(slurp(lab / "kernel.cu"), "mine\n");
  fs::create_directory(home_ / "other");
  spit(home_ / "other/notes.txt", "mine\n");
  EXPECT_TRUE(says(capstone({"lab", "L2-1", "other"}).err, "this folder is not empty"));
  EXPECT_TRUE(says(capstone({"lab", "L2-1", "my second"}).out, "next: cd 'my second' && capstone lab"));
}

TEST_F(LabCommand, MistakesAreAnsweredWithWhatToDo) {
  EXPECT_TRUE(says(capstone({"lab", "L4"}).err, "labs of L4: L4-1, L4-2, L4-3"));
  EXPECT_TRUE(says(capstone({"lab", "X1-1"}).err, "hint: "));
  const Outcome nowhere = capstone({"lab", "check"});
  EXPECT_EQ(nowhere.code, 2) << nowhere;
  EXPECT_TRUE(says(nowhere.err, "this is not the folder of a lab"));
  EXPECT_TRUE(says(nowhere.err, "capstone lab L2-1"));
  EXPECT_TRUE(says(capstone({"lab", "--give-up"}).err, "this is not the folder of a lab"));
  const fs::path lab = made("L2-1");
  fs::remove(lab / "kernel.cu");
  const Outcome gone = capstone({"lab"}, {.cwd = lab});
  EXPECT_EQ(gone.code, 2) << gone;
  EXPECT_TRUE(says(gone.err, "kernel.cu"));
  EXPECT_TRUE(says(gone.err, "hint: "));
}

}  // namespace
}  // namespace capstone::cli_test
