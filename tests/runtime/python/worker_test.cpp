// The Python worker on the CPU: the reference of every problem as an arm, and candidates in Python, right and
// wrong ones.
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/gate_one.h"
#include "harness/judge/judge.h"
#include "harness/judge/python_candidate.h"
#include "harness/judge/reference_oracle.h"
#include "harness/runtime/python/arms.h"
#include "harness/runtime/python/runner.h"
#include "tests/resources.h"

namespace capstone {
namespace {

Problem problem_of(const std::string& id) {
  return load_problem(fs::path(CAPSTONE_SOURCES) / "problems" / id).value();
}

class Torch : public testing::Test {
 protected:
  void SetUp() override {
    auto python = find_python("auto", resources_);
    if (!python) GTEST_SKIP() << python.error().what << " (" << python.error().where << ")";
    python_ = *python;
  }

  /// Judges `source` as a candidate, without hidden sizes.
  Measurement judged(const std::string& id, const std::string& source) {
    const fs::path file =
        fs::path(testing::TempDir()) /
        (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".py");
    EXPECT_TRUE(write_file_atomic(file, source));
    const Problem problem = problem_of(id);
    JudgeRequest request;
    request.problem = &problem;
    request.candidates = {{"human", file}};
    request.options.backend = Backend::kEmulated;
    request.options.hidden_cases = 0;
    auto measurements = judge(request, resources_, [](const std::string&) {});
    EXPECT_TRUE(measurements) << render(measurements.error());
    return measurements ? measurements->front() : Measurement{};
  }

  const Resources resources_ = test::suite_resources();
  Python python_;
};

std::string first_problem(const Measurement& m) {
  if (m.build.first_error) return m.build.first_error->text;
  return m.first_failure() ? m.first_failure()->problem : std::string();
}

// ---- arms

TEST_F(Torch, EagerIsRightWhereverItsTypesExistOnTheCpu) {
  const Sandbox trusted = Sandbox::none(resources_, "trusted");
  for (const char* id :
       {"sgemm", "bias_gelu_layernorm", "conv_bias_scale_relu", "histogram", "rgb_to_gray", "transpose"}) {
    const Problem problem = problem_of(id);
    const Oracle oracle = load_oracle(problem, resources_).value();
    PythonWork work;
    work.problem = &problem;
    work.resources = &resources_;
    work.python = &python_;
    work.builds = resources_.cache / "arms";
    MemfdArena arena;
    GateOneSetup setup{&problem,
                       &oracle,
                       &arena,
                       {""},
                       [&] { return start_python(work, trusted); },
                       std::chrono::seconds(60),
                       std::chrono::seconds(60),
                       [](const std::string&) {},
                       "eager"};
    std::vector<CasePlan> plans;
    for (std::size_t i = 0; i < 2; ++i) plans.push_back({"check", problem.check[i], 7 + i, Battery::kPlain});
    plans.push_back(
        plans.front());  // the first sizes again: the module is made anew, the tensors lie where they lay
    Measurement m;
    ASSERT_TRUE(gate_one(setup, bind_cases(problem, plans).value(), m));
    EXPECT_EQ(m.gate_one, GateOne::kPassed) << id << ": " << first_problem(m);
    EXPECT_EQ(m.cases.size(), 3u) << id;
  }
}

// With the parent that has imported PyTorch, and several workers of it alive at once.
TEST_F(Torch, ForkedArmsAreRightToo) {
  const Sandbox trusted = Sandbox::none(resources_, "trusted");
  const Problem problem = problem_of("bias_gelu_layernorm");
  const Oracle oracle = load_oracle(problem, resources_).value();
  PythonWork work{&problem, &resources_, &python_, "eager", {}, resources_.cache / "arms", false, {}};
  work.parent = start_python_parent(work, trusted);
  ASSERT_TRUE(work.parent);
  const auto forked = work.parent->fork(
      {"--device", "cpu", "--precision", "fp32", "--reference", (problem.folder / "reference.py").string()},
      WorkerLimits{});
  ASSERT_TRUE(forked) << forked.error().what << " " << forked.error().where;
  for (int arm = 0; arm < 2; ++arm) {
    MemfdArena arena;
    GateOneSetup setup{&problem,
                       &oracle,
                       &arena,
                       {""},
                       [&] { return start_python(work, trusted); },
                       std::chrono::seconds(60),
                       std::chrono::seconds(60),
                       [](const std::string&) {},
                       "eager"};
    Measurement m;
    ASSERT_TRUE(
        gate_one(setup, bind_cases(problem, {{"one", problem.check[1], 3, Battery::kPlain}}).value(), m));
    EXPECT_EQ(m.gate_one, GateOne::kPassed) << first_problem(m);
  }
}

TEST_F(Torch, AParameterMayBeTheTransposeOfTheModules) {
  const fs::path folder = fs::path(testing::TempDir()) / "sgemm";
  std::error_code code;
  fs::remove_all(folder, code);
  fs::copy(fs::path(CAPSTONE_SOURCES) / "problems" / "sgemm", folder, fs::copy_options::recursive);
  std::string yaml = read_file(folder / "problem.yaml").value();
  const std::string before = "{name: b, role: input,  dtype: f32, shape: [k, n], init";
  const std::size_t at = yaml.find(before);
  ASSERT_NE(at, std::string::npos);
  yaml.replace(at, before.size(),
               "{name: b, role: parameter, python: fc.weight.T, dtype: f32, shape: [k, n], init");
  ASSERT_TRUE(write_file_atomic(folder / "problem.yaml", yaml));
  ASSERT_TRUE(write_file_atomic(folder / "reference.py", R"(import torch.nn as nn

m, k, n = 4096, 4096, 4096


class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.fc = nn.Linear(k, n, bias=False)

    def forward(self, a):
        return self.fc(a)


def get_init_inputs():
    return [k, n]
)"));
  const Problem problem = load_problem(folder).value();
  const Oracle oracle = load_oracle(problem, resources_).value();
  const Sandbox trusted = Sandbox::none(resources_, "trusted");
  PythonWork work{&problem, &resources_, &python_, "eager", {}, resources_.cache / "arms", false, {}};
  MemfdArena arena;
  GateOneSetup setup{&problem,
                     &oracle,
                     &arena,
                     {"", ""},
                     [&] { return start_python(work, trusted); },
                     std::chrono::seconds(60),
                     std::chrono::seconds(60),
                     [](const std::string&) {},
                     "eager"};
  Measurement m;
  // Twice at the same sizes with other values: the copy follows the judge's tensor.
  const auto cases = bind_cases(problem, {{"one", problem.check[1], 3, Battery::kPlain},
                                          {"two", problem.check[1], 4, Battery::kPlain}});
  ASSERT_TRUE(gate_one(setup, cases.value(), m));
  EXPECT_EQ(m.gate_one, GateOne::kPassed) << first_problem(m);
}

TEST_F(Torch, TheLabelSaysWhatRunsAndInWhichPrecision) {
  const Problem problem = problem_of("sgemm");
  PythonWork work{&problem, &resources_, &python_, "eager", {}, resources_.cache / "arms", false, {}};
  auto runner = start_python(work, Sandbox::none(resources_, "trusted"));
  ASSERT_TRUE(runner) << runner.error().what;
  const std::string label = (*runner)->hello().value("label", "");
  EXPECT_TRUE(label.starts_with("PyTorch ")) << label;
  EXPECT_TRUE(label.ends_with(" eager, TF32 off")) << label;
}

TEST_F(Torch, AnArmThatTheProblemLacksIsNamed) {
  const Problem problem = problem_of("sgemm");
  PythonWork work{&problem, &resources_, &python_, "sdpa-flash", {}, resources_.cache / "arms", false, {}};
  auto runner = start_python(work, Sandbox::none(resources_, "trusted"));
  ASSERT_FALSE(runner);
  EXPECT_EQ(runner.error().report_kind, kNoSuchArm);
  EXPECT_EQ(runner.error().what,
            "the problem's reference.py defines no class Sdpa, which the arm sdpa-flash runs");
}

// As much of PyTorch as is asked before anything runs, on a machine with a GPU.
TEST(WrongBuildOfPyTorch, IsTheEnvironmentsFaultInOneLineWithAHint) {
  const Resources resources = test::suite_resources();
  const fs::path folder = fs::path(testing::TempDir()) / "wrong_build",
                 real = find_program("python3", "/usr/local/bin:/usr/bin:/bin").value_or(fs::path());
  if (real.empty()) GTEST_SKIP() << "no python3";
  ASSERT_TRUE(make_folders(folder / "torch"));
  ASSERT_TRUE(write_file_atomic(folder / "python3", "#!/bin/sh\nPYTHONPATH=" + folder.string() + " exec " +
                                                        real.string() + " \"$@\"\n"));
  fs::permissions(folder / "python3", fs::perms::owner_all);
  ASSERT_TRUE(write_file_atomic(folder / "candidate.py", "raise RuntimeError('is not loaded')\n"));
  struct Build {
    std::string version, cuda, sees, said;
  };
  const std::vector<Build> builds{
      {"2.11.0+cpu", "None", "False", "PyTorch 2.11.0+cpu sees no GPU: it is a build without CUDA"},
      {"2.11.0+cu130", "'13.0'", "False", "PyTorch 2.11.0+cu130 sees no GPU: it is built for CUDA 13.0"},
      {"2.4.0+cu118", "'11.8'", "True",
       "PyTorch 2.4.0+cu118, a build for CUDA 11.8, cannot use this GPU: RuntimeError: CUDA error: no kernel "
       "image is available for execution on the device"}};
  for (const Build& build : builds) {
    ASSERT_TRUE(write_file_atomic(folder / "torch" / "version.py",
                                  "__version__ = '" + build.version + "'\ncuda = " + build.cuda + "\n"));
    ASSERT_TRUE(write_file_atomic(folder / "torch" / "__init__.py",
                                  "from . import cuda, version\nfrom .version import __version__\n\n\ndef "
                                  "set_grad_enabled(on):\n    pass\n\n\ndef zeros(n, device):\n"
                                  "    raise RuntimeError('CUDA error: no kernel image is available for "
                                  "execution on the device\\nFor debugging …')\n"));
    ASSERT_TRUE(
        write_file_atomic(folder / "torch" / "cuda.py",
                          "def is_available():\n    return " + build.sees + "\n\n\ndef init():\n    pass\n"));
    const Python python = find_python((folder / "python3").string(), resources).value();
    EXPECT_EQ(python.torch, build.version);
    const Problem problem = problem_of("sgemm");
    PythonWork work{&problem, &resources, &python, "eager", {}, resources.cache / "arms", true, {}};
    const auto arm = start_python(work, Sandbox::none(resources, "trusted"));
    ASSERT_FALSE(arm);
    EXPECT_EQ(arm.error().report_kind, kNoPyTorch);
    EXPECT_EQ(arm.error().what, build.said);
    EXPECT_TRUE(arm.error().hint.starts_with("install a build for this ")) << arm.error().hint;
    // No candidate is to blame.
    work.candidate = folder / "candidate.py";
    Measurement m;
    const auto loaded = load_candidate(work, Sandbox::none(resources, "trusted"), m);
    ASSERT_TRUE(loaded);
    EXPECT_EQ(*loaded, nullptr);
    EXPECT_EQ(m.gate_one, GateOne::kNotJudgeable);
    EXPECT_EQ(first_problem(m), build.said);
    EXPECT_EQ(m.cases.front().traceback.empty(), build.sees == "False") << m.cases.front().traceback;
  }
}

TEST_F(Torch, AGpuThatPyTorchDoesNotSeeIsSaid) {
  const Problem problem = problem_of("sgemm");
  PythonWork work{&problem, &resources_, &python_, "eager", {}, resources_.cache / "arms", true, {}};
  auto runner = start_python(work, Sandbox::none(resources_, "trusted"));
  if (runner) GTEST_SKIP() << "there is a GPU here";
  EXPECT_EQ(runner.error().report_kind, kNoPyTorch);
  EXPECT_NE(runner.error().what.find("sees no GPU"), std::string::npos) << runner.error().what;
  EXPECT_NE(runner.error().hint.find("--python"), std::string::npos);
}

// ---- a library's arm

class LibraryArm : public Torch {
 protected:
  /// softmax with two libraries more: one that is there, one that is not.
  void SetUp() override {
    Torch::SetUp();
    if (IsSkipped()) return;
    problem_ = problem_of("softmax");
    const fs::path folder = fs::path(testing::TempDir()) / "library-arm";
    std::error_code code;
    fs::remove_all(folder, code);
    fs::copy(problem_.folder, folder);
    ASSERT_TRUE(write_file_atomic(folder / "reference.py", read_file(folder / "reference.py").value() + R"(

class Library_rows(nn.Module):
    @staticmethod
    def library():
        import json
        return f"rows {json.__name__} 1.2"

    def forward(self, x):
        exponentials = torch.exp(x - x.amax(dim=-1, keepdim=True))
        return exponentials / exponentials.sum(dim=-1, keepdim=True)


class Library_absent(Library_rows):
    @staticmethod
    def library():
        import no_such_library_anywhere
        return no_such_library_anywhere.__version__


class Library_nameless(Library_rows):
    library = None
)"));
    problem_.folder = folder;
  }

  StartedRunner start(const std::string& arm) {
    work_ = {&problem_, &resources_, &python_, arm, {}, resources_.cache / "arms", false, {}};
    return start_python(work_, Sandbox::none(resources_, "trusted"));
  }

  Problem problem_;
  PythonWork work_;
};

TEST_F(LibraryArm, RunsAndHasTheLibrarysNameAndVersionInItsLabel) {
  const auto runner = start("lib:rows");
  ASSERT_TRUE(runner) << runner.error().what;
  const std::string label = (*runner)->hello().value("label", "");
  EXPECT_NE(label.find("rows json 1.2"), std::string::npos) << label;
  EXPECT_TRUE(label.starts_with("PyTorch ")) << label;
  const Oracle oracle = load_oracle(problem_of("softmax"), resources_).value();
  MemfdArena arena;
  GateOneSetup setup{&problem_,
                     &oracle,
                     &arena,
                     {""},
                     [&] { return start("lib:rows"); },
                     std::chrono::seconds(60),
                     std::chrono::seconds(60),
                     [](const std::string&) {},
                     "lib:rows"};
  Measurement m;
  ASSERT_TRUE(
      gate_one(setup, bind_cases(problem_, {{"one", problem_.check[1], 3, Battery::kPlain}}).value(), m));
  EXPECT_EQ(m.gate_one, GateOne::kPassed) << first_problem(m);
}

TEST_F(LibraryArm, ThatIsNotInstalledOrNotDefinedIsSaidByName) {
  const auto said = [&](const std::string& arm) {
    const auto runner = start(arm);
    EXPECT_FALSE(runner) << arm;
    if (runner) return std::string();
    EXPECT_EQ(runner.error().report_kind, kNoSuchArm) << arm;
    return runner.error().what;
  };
  EXPECT_EQ(said("lib:absent"), "not installed: absent (No module named 'no_such_library_anywhere')");
  EXPECT_NE(said("lib:other").find("defines no class Library_other"), std::string::npos);
  EXPECT_NE(said("lib:nameless").find("static method library()"), std::string::npos);
}

TEST(ArmsOfAProblem, EagerFirstThenWhatItNames) {
  Problem problem;
  problem.baselines = {{"native"}};
  EXPECT_EQ(python_arms_of(problem), (std::vector<std::string>{"eager", "compile"}));
  problem.baselines = {{"eager"}, {"sdpa-flash"}, {"compile"}, {"native"}};
  EXPECT_EQ(python_arms_of(problem), (std::vector<std::string>{"eager", "sdpa-flash", "compile"}));
  problem.baselines = {{"eager"}, {"compile"}, {"lib:fa3"}};
  EXPECT_EQ(python_arms_of(problem), (std::vector<std::string>{"eager", "compile", "lib:fa3"}));
}

// ---- finding one

TEST(FindPython, AFolderWithoutOneAndAProgramThatIsNone) {
  Resources resources = test::suite_resources();
  resources.path_variable = testing::TempDir();
  auto none = find_python("auto", resources);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "no python3 on PATH has PyTorch");
  EXPECT_EQ(none.error().code, ExitCode::kEnvironment);
  auto wrong = find_python("/bin/true", test::suite_resources());
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().what.starts_with("this is no Python that runs")) << wrong.error().what;
  auto missing = find_python("/nowhere/python3", test::suite_resources());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().what, "no such Python: /nowhere/python3");
}

// ---- candidates

constexpr const char* kHead = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n";

TEST_F(Torch, ACandidateThatIsRightPasses) {
  const Measurement m = judged("bias_gelu_layernorm", std::string(kHead) + R"(
class ModelNew(nn.Module):
    def __init__(self, cols, eps=1.0e-5):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(cols))
        self.norm = nn.LayerNorm(cols, eps=eps)

    def forward(self, x, residual):
        z = x + self.bias
        y = residual + 0.5 * z * (1 + torch.erf(z * 0.7071067811865476))
        mean = y.mean(-1, keepdim=True)
        centred = y - mean
        return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + self.norm.eps) * self.norm.weight + self.norm.bias
)");
  EXPECT_EQ(m.gate_one, GateOne::kPassed) << first_problem(m);
  EXPECT_EQ(m.gate_two, GateTwo::kNotJudged);
  EXPECT_EQ(m.execution, Execution::kInProcess);
  EXPECT_FALSE(m.measured) << "times of PyTorch on the CPU say nothing and must not be shown";
}

TEST_F(Torch, ParametersOfOtherNamesAreMatchedByOrder) {
  const Measurement m = judged("conv_bias_scale_relu", std::string(kHead) + R"(
class ModelNew(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.s = nn.Parameter(torch.zeros(c_out))
        self.w = nn.Parameter(torch.zeros(c_out, c_in, 3, 3))
        self.b = nn.Parameter(torch.zeros(c_out))

    def forward(self, x):
        return torch.relu(F.conv2d(x, self.w, self.b, padding=1) * self.s.view(1, -1, 1, 1))
)");
  EXPECT_EQ(m.gate_one, GateOne::kPassed) << first_problem(m);
}

TEST_F(Torch, AParameterThatIsMissingIsNamed) {
  const Measurement m = judged("bias_gelu_layernorm", std::string(kHead) + R"(
class ModelNew(nn.Module):
    def __init__(self, cols, eps=1.0e-5):
        super().__init__()
        self.norm = nn.LayerNorm(cols, eps=eps)

    def forward(self, x, residual):
        return self.norm(residual + F.gelu(x))
)");
  EXPECT_EQ(m.gate_one, GateOne::kCrashed);
  EXPECT_EQ(
      first_problem(m),
      "AttributeError: ModelNew has no parameter bias; the problem's Model has bias, norm.weight, norm.bias");
}

TEST_F(Torch, WhatItKeepsFromTheConstructorIsStale) {
  const Measurement m = judged("conv_bias_scale_relu", std::string(kHead) + R"(
class ModelNew(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.scale = nn.Parameter(torch.ones(c_out))
        self.packed = self.conv.weight.detach().clone()

    def forward(self, x):
        return torch.relu(F.conv2d(x, self.packed, self.conv.bias, padding=1) * self.scale.view(1, -1, 1, 1))
)");
  EXPECT_EQ(m.gate_one, GateOne::kWrong) << first_problem(m);
}

TEST_F(Torch, AnExceptionHasItsLineAndItsTraceback) {
  const Measurement m = judged("softmax", std::string(kHead) + R"(
class ModelNew(nn.Module):
    def forward(self, x):
        return x.no_such_method()
)");
  EXPECT_EQ(m.gate_one, GateOne::kCrashed);
  ASSERT_TRUE(m.first_failure());
  EXPECT_EQ(m.first_failure()->problem, "AttributeError: 'Tensor' object has no attribute 'no_such_method'");
  EXPECT_TRUE(m.first_failure()->where.ends_with(".py:7")) << m.first_failure()->where;
  EXPECT_NE(m.first_failure()->traceback.find("Traceback (most recent call last)"), std::string::npos);
}

TEST_F(Torch, WhatDoesNotLoadIsABuildFailureAtItsLine) {
  const Measurement syntax = judged("softmax", "import torch\nclass ModelNew(:\n");
  EXPECT_EQ(syntax.gate_one, GateOne::kBuildFailed);
  ASSERT_TRUE(syntax.build.first_error);
  EXPECT_EQ(syntax.build.first_error->line, 2);
  const Measurement nothing = judged("softmax", "import torch\n");
  EXPECT_EQ(nothing.gate_one, GateOne::kBuildFailed);
  EXPECT_NE(first_problem(nothing).find("defines no class ModelNew"), std::string::npos)
      << first_problem(nothing);
}

TEST_F(Torch, WhatNeedsAGpuIsNotJudgeableOnTheCpu) {
  const Measurement m = judged("softmax", std::string(kHead) + R"(
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x.cuda(), -1)
)");
  EXPECT_EQ(m.gate_one, GateOne::kNotJudgeable) << first_problem(m);
}

// A row's softmax by one thread, as an extension. `launch`: how; `begin`: of the function.
std::string softmax_extension(const std::string& launch, const std::string& begin = "") {
  return std::string(kHead) + R"py(
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
__global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float most = -INFINITY, sum = 0;
  for (int i = 0; i < cols; ++i) most = fmaxf(most, x[row * cols + i]);
  for (int i = 0; i < cols; ++i) sum += expf(x[row * cols + i] - most);
  for (int i = 0; i < cols; ++i) y[row * cols + i] = expf(x[row * cols + i] - most) / sum;
}
torch::Tensor softmax(torch::Tensor x) {
)py" + begin + R"py(
  TORCH_CHECK(x.is_cuda(), "x must be on the GPU");
  auto y = torch::empty_like(x);
  const int rows = x.size(0), cols = x.size(1);
)py" + launch +
         R"py(
  return y;
}
"""
extension = load_inline("rows", cpp_sources="torch::Tensor softmax(torch::Tensor x);", cuda_sources=source,
                        functions=["softmax"])

class ModelNew(nn.Module):
    def forward(self, x):
        assert x.is_cuda
        return extension.softmax(x.contiguous())
)py";
}

TEST_F(Torch, AnExtensionWithCudaCodeRunsInTheEmulator) {
  const Measurement m = judged("softmax", softmax_extension("softmax_rows<<<(rows + 63) / 64, 64>>>"
                                                            "(x.data_ptr<float>(), y.data_ptr<float>(), rows, cols);"));
  EXPECT_EQ(m.gate_one, GateOne::kPassed) << first_problem(m);
  EXPECT_EQ(m.environment.at("device"), "CPU (PyTorch; extensions in the emulator)");
}

TEST_F(Torch, AnExtensionThatIsWrongIsFound) {
  const Measurement rows = judged("softmax", softmax_extension("softmax_rows<<<(rows + 63) / 64, 64>>>"
                                                               "(x.data_ptr<float>(), y.data_ptr<float>(), rows - 1, cols);"));
  EXPECT_NE(rows.gate_one, GateOne::kPassed);
  const Measurement bounds = judged("softmax", softmax_extension("softmax_rows<<<(rows + 63) / 64, 64>>>"
                                                                 "(x.data_ptr<float>(), y.data_ptr<float>(), rows + 9999, cols);"));
  EXPECT_EQ(bounds.gate_one, GateOne::kUndefined) << first_problem(bounds);
  EXPECT_NE(first_problem(bounds).find("out of bounds"), std::string::npos) << first_problem(bounds);
}

TEST_F(Torch, WhatAnExtensionLacksHereIsNamed) {
  const Measurement lacks = judged("softmax", softmax_extension("y = torch::softmax(x, 1);"));
  EXPECT_EQ(lacks.gate_one, GateOne::kNotJudgeable);
  EXPECT_NE(first_problem(lacks).find("rows.cu:16: the stand-in for PyTorch has no softmax()"), std::string::npos)
      << first_problem(lacks);
  const Measurement wrong = judged("softmax", softmax_extension("y = x", "  return nothing;"));
  EXPECT_EQ(wrong.gate_one, GateOne::kBuildFailed);
  EXPECT_NE(first_problem(wrong).find("rows.cu:12:"), std::string::npos) << first_problem(wrong);
}

TEST_F(Torch, OutputsOfAnotherShapeTypeOrNumberAreWrong) {
  auto softmax = [&](const std::string& result) {
    return judged("softmax", std::string(kHead) +
                                 "class ModelNew(nn.Module):\n    def forward(self, x):\n        y = "
                                 "torch.softmax(x, -1)\n        return " +
                                 result + "\n");
  };
  const Measurement shape = softmax("y.t()"), type = softmax("y.double()"), number = softmax("y, y");
  for (const Measurement* m : {&shape, &type, &number})
    EXPECT_EQ(m->gate_one, GateOne::kWrong) << first_problem(*m);
  EXPECT_EQ(first_problem(type), "y has the type torch.float64, the problem says torch.float32");
  EXPECT_EQ(first_problem(number), "forward() returns 2 tensors, the problem has 1 outputs");
}

// prepare() runs before forward(), knows the parameters of the case alone, and again for other parameters.
TEST_F(Torch, ACandidateRepacksItsParametersInPrepare) {
  const std::string model = std::string(kHead) + R"(
class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.codes = nn.Parameter(torch.zeros(n, k // 2, dtype=torch.uint8), requires_grad=False)
        self.scales = nn.Parameter(torch.zeros(n, k // 128, dtype=torch.bfloat16))

    def prepare(self):
        codes = self.codes ^ 0x88  # signed: the top bit flipped is code + 8
        levels = torch.stack((codes & 15, codes >> 4), dim=-1).flatten(1).float() - 8
        self.weight = (levels.view(*self.scales.shape, 128) * self.scales.float()[..., None]).flatten(1).t()

    def forward(self, x):
        return (x.float() @ self.weight).bfloat16()
)";
  const Measurement m = judged("w4a16_gemm", model);
  EXPECT_EQ(m.gate_one, GateOne::kPassed) << first_problem(m);

  const Measurement once = judged("w4a16_gemm", replace_all(model, "def prepare(self):", R"(def prepare(self):
        if hasattr(self, "weight"):
            return)"));
  EXPECT_NE(once.gate_one, GateOne::kPassed) << "the first sizes come twice, with other parameters";
}

TEST_F(Torch, ACandidateWithoutAPyTorchIsNotJudgeable) {
  const fs::path file = fs::path(testing::TempDir()) / "alone.py";
  ASSERT_TRUE(write_file_atomic(file, "class ModelNew: pass\n"));
  const Problem problem = problem_of("softmax");
  JudgeRequest request;
  request.problem = &problem;
  request.candidates = {{"human", file}};
  request.options.backend = Backend::kEmulated;
  request.options.hidden_cases = 0;
  request.options.python = "/usr/bin/false";
  auto measurements = judge(request, resources_, [](const std::string&) {});
  ASSERT_TRUE(measurements) << render(measurements.error());
  EXPECT_EQ(measurements->front().gate_one, GateOne::kNotJudgeable);
}

}  // namespace
}  // namespace capstone
