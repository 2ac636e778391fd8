// Candidates in Python, from the file to the verdict, on the CPU. Skipped where no python3 on PATH has
// PyTorch.
#include "harness/base/files.h"
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

class PythonCandidate : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    const Json rows =
        Json::parse(capstone({"doctor", "--format", "json"}, {.patience = std::chrono::seconds(110)}).out,
                    nullptr, false);
    for (const Json& row : rows)
      if (row.value("what", "") == "PyTorch" && row.value("state", "") != "ok")
        GTEST_SKIP() << row.value("found", "");
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

TEST_F(PythonCandidate, IsJudgedLikeAnyKernelAndNeverTimedOnTheCpu) {
  const fs::path root = project_in_python(kRight);
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 0) << measured;
  EXPECT_TRUE(says(measured.out, "PASS"));
  EXPECT_TRUE(says(measured.out, "PyTorch on the CPU"));
  EXPECT_TRUE(says(measured.out, "in-process: a Python process cannot be recorded"));
  const auto judged = records(root, "measurement");
  ASSERT_EQ(judged.size(), 1u);
  const Json& body = judged[0]["body"];
  EXPECT_EQ(body.value("source", ""), "human/kernel.py");
  EXPECT_FALSE(body.contains("measured") && !body["measured"].is_null()) << body.dump();
  expect_ledger_intact(root);
}

TEST_F(PythonCandidate, AnExceptionIsOneLineWithItsPlaceAndTheTracebackOnRequest) {
  const fs::path root = project_in_python(
      "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return "
      "x.nothing\n");
  Outcome brief = measure(root);
  EXPECT_EQ(brief.code, 1) << brief;
  EXPECT_TRUE(says(brief.out, "AttributeError: 'Tensor' object has no attribute 'nothing'"));
  EXPECT_TRUE(says(brief.out, "human/kernel.py:6"));
  EXPECT_TRUE(says(brief.out, "hint: --verbose shows the whole traceback"));
  EXPECT_EQ(brief.out.find("Traceback"), std::string::npos) << brief;
  EXPECT_TRUE(says(measure(root, {"--verbose"}).out, "Traceback (most recent call last)"));
  const auto judged = records(root, "measurement");
  ASSERT_FALSE(judged.empty());
  EXPECT_TRUE(says(judged[0]["body"]["cases"][0].value("traceback", ""), "in forward\n    return x.nothing"));
}

TEST_F(PythonCandidate, InALanguageThatIsNotInstalledIsNotTheKernelsFault) {
  const fs::path root = project_in_python(std::string("import cutlass.cute as cute\n") + kRight);
  const Outcome measured = measure(root);
  if (measured.code == 0) GTEST_SKIP() << "CuTe-DSL is installed here";
  EXPECT_EQ(measured.code, 3) << measured;
  EXPECT_TRUE(says(measured.out, "NOT JUDGEABLE"));
  EXPECT_TRUE(says(measured.out, "No module named 'cutlass'"));
  EXPECT_TRUE(says(measured.out, "hint: install CuTe-DSL for "));
  EXPECT_TRUE(says(measured.out, "--python-path DIR"));
}

TEST_F(PythonCandidate, MemoryThatRunsOutIsTheKernelsFaultInOneLine) {
  const std::string head =
      "import torch\n\n\nclass OutOfMemoryError(RuntimeError):\n    pass\n\n\nclass "
      "ModelNew(torch.nn.Module):\n    def forward(self, x):\n        ";
  const fs::path root = project_in_python(head + "return x + torch.empty(1 << 50)\n");
  Outcome host = measure(root);
  EXPECT_EQ(host.code, 1) << host;
  EXPECT_TRUE(says(host.out, "CRASH: out of memory: RuntimeError: "));
  EXPECT_TRUE(says(host.out, "human/kernel.py:10"));
  EXPECT_TRUE(says(host.out, "hint: use smaller intermediate tensors, or a machine with more memory"));
  EXPECT_EQ(host.out.find("Traceback"), std::string::npos) << host;
  EXPECT_TRUE(
      says(records(root, "measurement").back()["body"]["cases"][0].value("traceback", ""), "in forward"));
  EXPECT_TRUE(says(measure(root, {"--verbose"}).out, "Traceback (most recent call last)"));
  // As PyTorch says it on a GPU; and Python's own, which has no words.
  spit(root / "human" / "kernel.py",
       head + "raise OutOfMemoryError('CUDA out of memory. Tried to allocate 20.00 GiB')\n");
  EXPECT_TRUE(
      says(measure(root).out,
           "CRASH: out of GPU memory: OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB\n"));
  spit(root / "human" / "kernel.py", head + "return [0] * (1 << 60)\n");
  EXPECT_TRUE(says(measure(root).out, "CRASH: out of memory: MemoryError\n"));
}

TEST_F(PythonCandidate, ComesOutOfAModelsReply) {
  const fs::path root = project("project", {}, "softmax");
  Outcome added = capstone({"llm", "add", "-", "--model", "m", "--backend", "emulated", "--hidden", "0"},
                           {.cwd = root,
                            .input = "Here it is:\n\n```python\n" + std::string(kRight) + "```\n",
                            .patience = std::chrono::seconds(110)});
  EXPECT_EQ(added.code, 0) << added;
  EXPECT_TRUE(says(added.err, "code: a Python block with ModelNew"));
  EXPECT_EQ(slurp(root / "llm" / "attempt-1" / "kernel.py"), kRight);
}

TEST_F(PythonCandidate, WithoutPyTorchItIsNotJudgeableHere) {
  const fs::path root = project_in_python(kRight);
  Outcome measured = measure(root, {"--python", "/bin/true"});
  EXPECT_EQ(measured.code, 3) << measured;
  EXPECT_TRUE(says(measured.both(), "this is no Python that runs"));
}

// A python3 whose PyTorch is not there, or not what this machine needs; it runs where no PyTorch is
// installed, too.
class APythonOfItsOwn : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    python_ = find_program("python3", "/usr/local/bin:/usr/bin:/bin").value_or(fs::path()).string();
    if (python_.empty()) GTEST_SKIP() << "no python3";
  }
  /// A program that starts it: `how` stands before and behind the name of python3.
  std::string starting(const std::string& before, const std::string& behind) const {
    const fs::path file = home_ / "python3";
    spit(file, "#!/bin/sh\n" + before + " exec " + python_ + " " + behind + " \"$@\"\n");
    fs::permissions(file, fs::perms::owner_all);
    return file.string();
  }
  std::string with_torch(const std::string& source) const {
    fs::create_directories(home_ / "packages" / "torch");
    spit(home_ / "packages" / "torch" / "version.py", "__version__ = '2.11.0+cu130'\n");
    spit(home_ / "packages" / "torch" / "__init__.py", source);
    return starting("PYTHONPATH=" + (home_ / "packages").string(), "");
  }
  fs::path candidate() const {
    const fs::path root = project("project", {}, "softmax");
    spit(root / "human" / "kernel.py", kRight);
    return root;
  }
  std::string python_;
};

TEST_F(APythonOfItsOwn, WithoutPyTorchSaysWhereToGetIt) {
  const fs::path root = candidate();
  Outcome measured = measure(root, {"--python", starting("", "-S")});
  EXPECT_EQ(measured.code, 3) << measured;
  EXPECT_TRUE(says(measured.out, " has no PyTorch"));
  EXPECT_TRUE(says(measured.out, "hint: install it there (https://pytorch.org/get-started)"));
  EXPECT_TRUE(says(measured.out, "next: do what the hint says"));
}

TEST_F(APythonOfItsOwn, WhosePyTorchLacksALibraryIsNotTheKernelsFault) {
  const fs::path root = candidate();
  const std::string python = with_torch("raise OSError('libcudnn.so.9: cannot open shared object file')\n");
  Outcome measured = measure(root, {"--python", python});
  EXPECT_EQ(measured.code, 3) << measured;
  EXPECT_TRUE(says(
      measured.out,
      "NOT JUDGEABLE: PyTorch cannot be imported: OSError: libcudnn.so.9: cannot open shared object file\n"));
  EXPECT_TRUE(says(measured.out, "hint: repair it for "));
  EXPECT_EQ(measured.out.find("Traceback"), std::string::npos) << measured;
  EXPECT_TRUE(says(records(root, "measurement").back()["body"]["cases"][0].value("traceback", ""),
                   "OSError: libcudnn.so.9"));
  EXPECT_TRUE(
      says(measure(root, {"--python", python, "--verbose"}).out, "Traceback (most recent call last)"));
  Outcome machine = capstone({"doctor"}, {.env = {{"PATH", home_.string() + ":/usr/bin:/bin"}}});
  EXPECT_TRUE(says(machine.out, "which cannot be imported"));
  spit(home_ / "1_x.py", "class Model: pass\n");
  Outcome imported = capstone({"init", "--kernelbench", "1_x.py", "other", "--python", python});
  EXPECT_EQ(imported.code, 3) << imported;
  EXPECT_TRUE(says(imported.err, "error: PyTorch cannot be imported: OSError: libcudnn.so.9"));
  EXPECT_TRUE(says(imported.err, "hint: repair it there"));
}

TEST_F(APythonOfItsOwn, WhosePyTorchIsBrokenIsSaidOnceForAllCandidates) {
  fs::create_directories(home_ / "problems" / "level1");
  fs::create_directories(home_ / "solutions");
  for (const char* name : {"1_x.py", "2_y.py"}) {
    spit(home_ / "problems" / "level1" / name, "class Model: pass\n");
    spit(home_ / "solutions" / name, kRight);
  }
  const std::string python = with_torch("raise OSError('libcudnn.so.9: cannot open shared object file')\n");
  Outcome ran = capstone({"kernelbench", "run", "--problems", "problems", "--solutions", "solutions", "--out",
                          "out", "--backend", "emulated", "--python", python});
  EXPECT_EQ(ran.code, 3) << ran;
  EXPECT_TRUE(says(ran.err, "error: PyTorch cannot be imported: OSError: libcudnn.so.9"));
  EXPECT_EQ(ran.err.find("not judged"), std::string::npos) << ran;
  EXPECT_FALSE(fs::exists(home_ / "out" / "records.jsonl"));
}

TEST_F(PythonCandidate, ExplainTakesCudaAlone) {
  Outcome explained = capstone({"explain"}, {.cwd = project_in_python(kRight)});
  EXPECT_EQ(explained.code, 3) << explained;
  EXPECT_TRUE(
      says(explained.err, "this candidate is a Python file: only CUDA kernels are explained and profiled"));
}

TEST_F(CliTest, ExportKernelNamesWhatItCannotTake) {
  spit(home_ / "kernel.py", kRight);
  spit(home_ / "mine.cu", "int mine;\n");
  for (const auto& [words, code, said] : std::vector<std::tuple<std::vector<std::string>, int, const char*>>{
           {{"no.py", "--problem", "softmax"}, 2, "no such Python file"},
           {{"kernel.py"}, 2, "which problem does this kernel solve?"},
           {{"kernel.py", "--problem", "softmax", "--arch", "h100"}, 2, "no such architecture: h100"},
           {{"kernel.py", "--problem", "softmax", "--out", "mine.cu"}, 2, "is not an exported kernel"}}) {
    std::vector<std::string> command{"export", "kernel"};
    command.insert(command.end(), words.begin(), words.end());
    const Outcome refused = capstone(command, {.cwd = home_});
    EXPECT_EQ(refused.code, code) << refused;
    EXPECT_TRUE(says(refused.err, said)) << refused;
  }
  EXPECT_EQ(slurp(home_ / "mine.cu"), "int mine;\n");
}

TEST_F(PythonCandidate, ExportedIsTritonAlone) {
  spit(home_ / "kernel.py", kRight);
  const Outcome refused = capstone({"export", "kernel", "kernel.py", "--problem", "softmax"},
                                   {.cwd = home_, .patience = std::chrono::seconds(110)});
  if (says(refused.err, "CUDA Toolkit")) GTEST_SKIP() << refused.err;
  EXPECT_EQ(refused.code, 1) << refused;
  EXPECT_TRUE(says(refused.err, "kernel.py does not import triton")) << refused;
  EXPECT_FALSE(fs::exists(home_ / "launch.cu"));
}

}  // namespace
}  // namespace capstone::cli_test
