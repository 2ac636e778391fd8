// Contestants in Python, from the file to the verdict, on the CPU. Skipped where no python3 on PATH has PyTorch.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

constexpr const char* kRight = R"(import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        e = torch.exp(x - x.amax(dim=-1, keepdim=True))
        return e / e.sum(dim=-1, keepdim=True)
)";

class PythonContestant : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    const Json rows = Json::parse(capstone({"doctor", "--format", "json"}, {.patience = std::chrono::seconds(110)}).out, nullptr, false);
    for (const Json& row : rows)
      if (row.value("what", "") == "PyTorch" && row.value("state", "") != "ok") GTEST_SKIP() << row.value("found", "");
  }
  /// Importing PyTorch takes its time on a busy machine.
  Outcome measure(const fs::path& root, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"measure", "--backend", "emulated", "--hidden", "0"});
    return capstone(std::move(more), {.cwd = root, .patience = std::chrono::seconds(110)});
  }
  fs::path project_in_python(const std::string& source) const {
    const fs::path root = project("project", {}, "softmax");
    spit(root / "human" / "kernel.py", source);
    return root;
  }
};

TEST_F(PythonContestant, IsJudgedLikeAnyKernelAndNeverTimedOnTheCpu) {
  const fs::path root = project_in_python(kRight);
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 0) << measured;
  EXPECT_TRUE(says(measured.out, "PASS"));
  EXPECT_TRUE(says(measured.out, "PyTorch on the CPU"));
  EXPECT_TRUE(says(measured.out, "host tier: a Python process cannot be recorded"));
  const auto judged = records(root, "measurement");
  ASSERT_EQ(judged.size(), 1u);
  const Json& body = judged[0]["body"];
  EXPECT_EQ(body.value("source", ""), "human/kernel.py");
  EXPECT_FALSE(body.contains("measured") && !body["measured"].is_null()) << body.dump();
  expect_ledger_intact(root);
}

TEST_F(PythonContestant, AnExceptionIsOneLineWithItsPlaceAndTheTracebackOnRequest) {
  const fs::path root = project_in_python("import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x.nothing\n");
  Outcome brief = measure(root);
  EXPECT_EQ(brief.code, 1) << brief;
  EXPECT_TRUE(says(brief.out, "AttributeError: 'Tensor' object has no attribute 'nothing'"));
  EXPECT_TRUE(says(brief.out, "human/kernel.py:6"));
  EXPECT_TRUE(says(brief.out, "hint: --verbose shows the whole traceback"));
  EXPECT_EQ(brief.out.find("Traceback"), std::string::npos) << brief;
  EXPECT_TRUE(says(measure(root, {"--verbose"}).out, "Traceback (most recent call last)"));
}

TEST_F(PythonContestant, ComesOutOfAModelsReply) {
  const fs::path root = project("project", {}, "softmax");
  Outcome added = capstone({"llm", "add", "-", "--model", "m", "--backend", "emulated", "--hidden", "0"},
                           {.cwd = root, .input = "Here it is:\n\n```python\n" + std::string(kRight) + "```\n", .patience = std::chrono::seconds(110)});
  EXPECT_EQ(added.code, 0) << added;
  EXPECT_TRUE(says(added.err, "code: a Python block with ModelNew"));
  EXPECT_EQ(slurp(root / "llm" / "attempt-1" / "kernel.py"), kRight);
}

TEST_F(PythonContestant, WithoutPyTorchItIsNotJudgeableHere) {
  const fs::path root = project_in_python(kRight);
  Outcome measured = measure(root, {"--python", "/bin/true"});
  EXPECT_EQ(measured.code, 3) << measured;
  EXPECT_TRUE(says(measured.both(), "this is no Python that runs"));
}

TEST_F(PythonContestant, ExplainTakesCudaAlone) {
  Outcome explained = capstone({"explain"}, {.cwd = project_in_python(kRight)});
  EXPECT_EQ(explained.code, 3) << explained;
  EXPECT_TRUE(says(explained.err, "this contestant is a Python file: only CUDA kernels are explained and profiled"));
}

}  // namespace
}  // namespace capstone::cli_test
