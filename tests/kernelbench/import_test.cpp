// Files in KernelBench's form become problems that the judge can use; files that cannot are refused with the
// reason.
#include "harness/kernelbench/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "harness/base/files.h"
#include "harness/correctness/cases.h"
#include "harness/judge/reference_oracle.h"
#include "harness/runtime/python/python.h"
#include "tests/resources.h"

namespace capstone {
namespace {

constexpr const char* kHead = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n";

constexpr const char* kLinear = R"(
class Model(nn.Module):
    """A product, a bias, and what is below zero cut off."""
    def __init__(self, in_features, out_features, slope):
        super().__init__()
        self.fc = nn.Linear(in_features, out_features)
        self.norm = nn.BatchNorm1d(out_features)
        self.drop = nn.Dropout(0.5)
        self.slope = slope

    def forward(self, x, factor):
        return self.drop(F.leaky_relu(self.norm(self.fc(x)), self.slope)) * factor

batch_size = 1024 * 1024
in_features = out_features = 512
slope = 0.1

def get_inputs():
    return [torch.rand(batch_size, in_features), 2.5]

def get_init_inputs():
    return [in_features, out_features, slope]
)";

class KernelBenchImport : public testing::Test {
 protected:
  void SetUp() override {
    if (auto python = find_python("auto", resources_); !python)
      GTEST_SKIP() << python.error().what << " (" << python.error().where << ")";
    folder_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::error_code code;
    fs::remove_all(folder_, code);
  }

  Result<ImportedProblem> import(const std::string& model) const {
    const fs::path file = folder_ / "level2" / "7_Thing.py";
    EXPECT_TRUE(make_folders(file.parent_path()));
    EXPECT_TRUE(write_file_atomic(file, kHead + model));
    return import_kernelbench({kernelbench_file(file, 0), folder_ / "problem", "auto", 8e9}, resources_,
                              [](const std::string&) {});
  }

  Measurement judged(const Problem& problem, const std::string& name, const std::string& source) const {
    EXPECT_TRUE(write_file_atomic(folder_ / name, source));
    JudgeRequest request;
    request.problem = &problem;
    request.candidates = {{"human", folder_ / name}};
    request.options.backend = Backend::kEmulated;
    request.options.hidden_cases = 1;
    request.options.quick = true;
    auto measurements = judge(request, resources_, [](const std::string&) {});
    EXPECT_TRUE(measurements) << render(measurements.error());
    return measurements ? measurements->front() : Measurement{};
  }

  std::string reference() const { return read_file(folder_ / "problem" / "reference.py").value(); }

  Resources resources_ = test::suite_resources();
  fs::path folder_;
};

std::string first_problem(const Measurement& m) {
  if (m.build.first_error) return m.build.first_error->text;
  return m.first_failure() ? m.first_failure()->problem : std::string();
}

bool notes_say(const ImportedProblem& imported, const std::string& part) {
  return std::any_of(imported.notes.begin(), imported.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST_F(KernelBenchImport, FindsSignatureSizesAndWhatFitsTheCard) {
  const auto imported = import(kLinear);
  ASSERT_TRUE(imported) << render(imported.error());
  const Problem& p = imported->problem;
  EXPECT_EQ(p.id, "kb2_7_thing");
  EXPECT_EQ(p.tier, 2);
  EXPECT_TRUE(p.oracle_is_reference);
  std::vector<std::string> names;
  for (const Parameter& parameter : p.signature) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "factor", "fc_weight", "fc_bias", "norm_weight",
                                             "norm_bias", "norm_running_mean", "norm_running_var", "y"}));
  EXPECT_EQ(p.find("factor")->role, Role::kScalar);
  EXPECT_EQ(p.find("factor")->python, "forward");
  EXPECT_EQ(p.find("norm_running_var")->python, "norm.running_var");
  EXPECT_EQ(p.symbols, (std::vector<std::string>{"batch_size", "in_features", "out_features"}));
  EXPECT_EQ(shape_at(*p.find("fc_weight"), p.measure).value(), (std::vector<std::int64_t>{512, 512}));
  EXPECT_DOUBLE_EQ(p.tolerance.rtol, 1e-4);
  EXPECT_NEAR(cost_at(p, p.measure)->flops, 2.0 * double(size_of(p.measure, "batch_size")) * 512 * 512,
              1e6);
  EXPECT_FALSE(p.vary.empty());
  EXPECT_LT(size_of(p.measure, "batch_size"), 1024 * 1024);
  EXPECT_TRUE(notes_say(*imported, "shrunk: batch_size 1048576 → "));
  EXPECT_TRUE(notes_say(*imported, "Dropout (drop) is off here"));
  EXPECT_TRUE(notes_say(*imported, "BatchNorm uses its running statistics here"));

  // Judged by the reference itself: a copy of it is correct, in Python and with the parameters matched only
  // by their order. Less is not.
  const Measurement copy = judged(p, "copy.py", reference() + "\nModelNew = Model\n");
  EXPECT_EQ(copy.gate_one, GateOne::kPassed) << first_problem(copy);
  const Measurement without_norm = judged(p, "wrong.py", std::string(kHead) + R"(
class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, slope):
        super().__init__()
        self.fc = nn.Linear(in_features, out_features)
        self.norm = nn.BatchNorm1d(out_features)

    def forward(self, x, factor):
        return F.leaky_relu(self.fc(x), 0.1) * factor
)");
  EXPECT_EQ(without_norm.gate_one, GateOne::kWrong)
      << "statistics of a fresh BatchNorm are 0 and 1: ignoring them must show";
}

// At the sizes that are tried first, several divisions match all extents; the size at which they differ
// decides.
TEST_F(KernelBenchImport, ExtentsBehindStridesAreExactAtEverySize) {
  const auto imported = import(R"(
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, kernel_size=4, stride=3, padding=1)
        self.pool = nn.AvgPool2d(kernel_size=7)

    def forward(self, x, z):
        return self.conv(x), self.pool(z)


batch_size = 4
height = 96
length = 110


def get_inputs():
    return [torch.rand(batch_size, 4, height, height), torch.rand(batch_size, 4, length, length)]


def get_init_inputs():
    return []
)");
  ASSERT_TRUE(imported) << render(imported.error());
  const Problem& p = imported->problem;
  std::vector<const Parameter*> outputs;
  for (const Parameter& parameter : p.signature)
    if (parameter.is_written()) outputs.push_back(&parameter);
  ASSERT_EQ(outputs.size(), 2u);
  for (std::int64_t extent = 8; extent < 200; ++extent) {
    const Sizes sizes{{"batch_size", 2}, {"height", extent}, {"length", extent}};
    ASSERT_EQ(shape_at(*outputs[0], sizes).value(),
              (std::vector<std::int64_t>{2, 8, (extent + 2 - 4) / 3 + 1, (extent + 2 - 4) / 3 + 1}));
    ASSERT_EQ(shape_at(*outputs[1], sizes).value(),
              (std::vector<std::int64_t>{2, 4, extent / 7, extent / 7}));
  }
}

TEST_F(KernelBenchImport, WhatIsTooLargeShrinksEvenlyAndItsCostHasOneTermAKind) {
  const fs::path file = folder_ / "level3" / "2_Wide.py";
  ASSERT_TRUE(make_folders(file.parent_path()));
  ASSERT_TRUE(write_file_atomic(file, std::string(kHead) + R"(
class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.a = nn.Linear(width, hidden[0])
        self.b = nn.Linear(hidden[0], 2 * hidden[1])
        self.c = nn.Linear(2 * hidden[1], 2 * hidden[1])

    def forward(self, x):
        return self.c(torch.relu(self.b(torch.relu(self.a(x)))))


batch_size = 8
width = 16384
hidden = [32768, 16384]


def get_inputs():
    return [torch.rand(batch_size, width)]


def get_init_inputs():
    return [width, hidden]
)"));
  const auto imported = import_kernelbench({kernelbench_file(file, 0), folder_ / "problem", "auto", 3e9},
                                           resources_, [](const std::string&) {});
  ASSERT_TRUE(imported) << render(imported.error());
  const Problem& p = imported->problem;
  std::int64_t bytes = 0, smallest = 1 << 30, largest = 0;
  for (const auto& [name, value] : p.measure) {
    if (name == "batch_size") continue;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  EXPECT_LE(largest, 4 * smallest) << to_string(p.measure);
  for (const Parameter& parameter : p.signature) {
    const auto shape = shape_at(parameter, p.measure).value();
    bytes += std::accumulate(shape.begin(), shape.end(), std::int64_t{4}, std::multiplies<>());
  }
  EXPECT_DOUBLE_EQ(cost_at(p, p.measure)->bytes, double(bytes));
  EXPECT_NE(read_file(folder_ / "problem" / "problem.yaml").value().find("16 * hidden_1^2"),
            std::string::npos);
}

TEST_F(KernelBenchImport, ACudaKernelIsJudgedByTheReferenceInFloat64) {
  const auto imported = import(R"(
class Model(nn.Module):
    def forward(self, x, mask, target):
        return torch.cumsum(x * mask, dim=1) + target.unsqueeze(1)

batch_size = 256
input_shape = (2048,)

def get_inputs():
    x = torch.randn(batch_size, *input_shape)
    return [x, torch.randint(0, 2, x.shape).bool(), torch.randint(0, 10, (batch_size,))]

def get_init_inputs():
    return []
)");
  ASSERT_TRUE(imported) << render(imported.error());
  const Problem& p = imported->problem;
  EXPECT_EQ(p.find("mask")->dtype, DType::kU8);
  EXPECT_EQ(p.find("mask")->python, "bool");
  EXPECT_EQ(p.find("target")->dtype, DType::kI64);
  EXPECT_EQ(std::get<InitInteger>(p.find("target")->init).max, 9);
  EXPECT_EQ(p.symbols, (std::vector<std::string>{"batch_size", "input_shape_0"}));
  EXPECT_NE(reference().find("input_shape_0 = 2048\ninput_shape = (input_shape_0,)"), std::string::npos)
      << reference();
  EXPECT_TRUE(notes_say(*imported, "integer inputs"));
  auto source = [](const std::string& first) {
    return "__global__ void rows(const float* x, const uint8_t* mask, const int64_t* target, float* y, "
           "int64_t n, int64_t cols) {\n"
           "  int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;\n  if (row >= n) return;\n  "
           "float sum = 0;\n"
           "  for (int64_t i = 0; i < cols; ++i) {\n    if (" +
           first +
           "mask[row * cols + i]) sum += x[row * cols + i];\n    y[row * cols + i] = sum + target[row];\n  "
           "}\n}\n"
           "extern \"C\" void launch(const float* x, const uint8_t* mask, const int64_t* target, float* y, "
           "int64_t batch_size, int64_t input_shape_0, void*, cudaStream_t stream) {\n"
           "  rows<<<(batch_size + 31) / 32, 32, 0, stream>>>(x, mask, target, y, batch_size, "
           "input_shape_0);\n}\n";
  };
  const Measurement right = judged(p, "right.cu", source(""));
  EXPECT_EQ(right.gate_one, GateOne::kPassed) << first_problem(right);
  const Measurement wrong = judged(p, "wrong.cu", source("i > 0 && "));
  EXPECT_EQ(wrong.gate_one, GateOne::kWrong);
}

TEST_F(KernelBenchImport, StructuredInputsKeepTheirStructureAndTiedConstantsGoTogether) {
  const auto imported = import(R"(
class Model(nn.Module):
    def forward(self, a, b):
        return torch.triu(a @ b)

N = 1024
M = 1024

def get_inputs():
    return [torch.triu(torch.rand(N, N)), torch.triu(torch.rand(M, N))]

def get_init_inputs():
    return []
)");
  ASSERT_TRUE(imported) << render(imported.error());
  const Problem& p = imported->problem;
  EXPECT_EQ(p.symbols, std::vector<std::string>{"N"});
  EXPECT_EQ(std::get<InitGenerator>(p.find("a")->init).name, "upper_triangular");
  EXPECT_NE(reference().find("M = N"), std::string::npos);
  const Measurement copy = judged(p, "copy.py", reference() + "\nModelNew = Model\n");
  EXPECT_EQ(copy.gate_one, GateOne::kPassed) << first_problem(copy);
}

TEST_F(KernelBenchImport, AConstantOutputIsCalledDegenerate) {
  const auto imported = import(R"(
class Model(nn.Module):
    def forward(self, x):
        y = torch.max(x, dim=1, keepdim=True).values
        return F.gelu(y - y.mean(dim=1, keepdim=True))

batch_size = 64

def get_inputs():
    return [torch.rand(batch_size, 128)]

def get_init_inputs():
    return []
)");
  ASSERT_TRUE(imported) << render(imported.error());
  EXPECT_TRUE(notes_say(*imported, "degenerate: output 0 is the same number everywhere"));
  EXPECT_TRUE(
      notes_say(*imported, "degenerate: gate one cannot distinguish y = all zeros from the correct answer"));
  EXPECT_TRUE(imported->problem.because.contains("zeros"));
}

TEST_F(KernelBenchImport, WithoutConstantsEveryCaseHasTheTimedSize) {
  const auto imported = import(R"(
class Model(nn.Module):
    def forward(self, x):
        return x.mean()

def get_inputs():
    return [torch.rand(33, 7)]

def get_init_inputs():
    return []
)");
  ASSERT_TRUE(imported) << render(imported.error());
  EXPECT_TRUE(imported->problem.symbols.empty());
  EXPECT_TRUE(imported->problem.signature.back().shape.empty()) << "one number, no dimension";
  EXPECT_TRUE(notes_say(*imported, "none of its constants can be varied"));
  const Measurement copy = judged(imported->problem, "copy.py", reference() + "\nModelNew = Model\n");
  EXPECT_EQ(copy.gate_one, GateOne::kPassed) << first_problem(copy);
}

TEST_F(KernelBenchImport, WhatCannotBeJudgedSaysWhyInOneLine) {
  const std::string tail =
      "\n\nbatch_size = 8\n\ndef get_inputs():\n    return [torch.rand(batch_size, 16)]\n\ndef "
      "get_init_inputs():\n    return []\n";
  const std::string model = "class Model(nn.Module):\n    def forward(self, x):\n        ";
  std::vector<std::pair<std::string, std::string>> cases{
      {model + "return F.dropout(x, 0.5, training=True)" + tail,
       "forward() gives different results for the same inputs when it is called again"},
      {model + "return x.relu_()" + std::string(tail).replace(tail.find("torch.rand("), 11, "torch.randn("),
       "forward() changes its own input (x)"},
      {model + "return x, None" + tail, "forward() returns a NoneType among its outputs"},
      {model + "return x.no_such_method()" + tail,
       "AttributeError: 'Tensor' object has no attribute 'no_such_method'"},
      {model + "return x\n", "the file defines no get_inputs"},
      {"class Model(:\n", "it is not valid Python: line 5"},
      {"import no_such_module\n" + model + "return x" + tail,
       "ModuleNotFoundError: No module named 'no_such_module'"},
  };
  // At its own sizes it needs 64 GB; its fault already shows at small ones.
  cases.push_back(
      {model + "return F.no_such_function(x)\n\nn = 131072\n\ndef get_inputs():\n    return [torch.rand(n, "
               "n)]\n\ndef get_init_inputs():\n    return []\n",
       "AttributeError: module 'torch.nn.functional' has no attribute 'no_such_function' (this is PyTorch "});
  for (const auto& [text, why] : cases) {
    const auto imported = import(text);
    ASSERT_FALSE(imported) << text;
    EXPECT_NE(imported.error().what.find(why), std::string::npos) << imported.error().what;
    EXPECT_EQ(imported.error().code, ExitCode::kUsage);
    EXPECT_EQ(imported.error().what.find('\n'), std::string::npos);
  }
}

TEST_F(KernelBenchImport, VariationsThatTheReferenceCannotBeJudgedByOnAreLeftOutWithTheirReason) {
  const auto with = [this](const std::string& result, const std::string& input) {
    return import("class Model(nn.Module):\n    def forward(self, x):\n        return " + result +
                  "\n\nn = 64\n\ndef get_inputs():\n    return [" + input +
                  "]\n\ndef get_init_inputs():\n    return []\n");
  };
  const auto why = [](const ImportedProblem& imported, const std::string& name) {
    const auto found = imported.problem.outside_domain.find(name);
    return found == imported.problem.outside_domain.end() ? std::string() : found->second;
  };
  const std::string infinite = "the reference gives NaN or infinity there",
                    refused = "the reference raises an exception there";
  // Every variation works.
  const auto relu = with("torch.relu(x)", "torch.randn(n, 500)");
  ASSERT_TRUE(relu) << render(relu.error());
  EXPECT_TRUE(relu->problem.outside_domain.empty());
  EXPECT_FALSE(notes_say(*relu, "left out of the checks"));
  // A logarithm has a domain: normals plus six stay inside, normals times ten do not.
  const auto log = with("torch.log(x + 6)", "torch.randn(n, 500)");
  ASSERT_TRUE(log) << render(log.error());
  EXPECT_EQ(why(*log, "x10"), infinite);
  EXPECT_EQ(why(*log, "heavy_tails"), infinite);
  EXPECT_EQ(why(*log, "offset"), "");
  EXPECT_EQ(why(*log, "sign_flip"), "");
  EXPECT_TRUE(notes_say(*log,
                        "left out of the checks: inputs with the first below -128, with heavy tails, times "
                        "ten (the reference gives NaN or infinity there)"));
  EXPECT_EQ(judged(log->problem, "log.py", reference() + "\nModelNew = Model\n").gate_one, GateOne::kPassed);
  // A product of a thousand factors overflows; an exception refuses; for large arguments of a sine, rounding
  // takes the whole tolerance.
  const auto product = with("torch.prod(x * 0.1 + 1, dim=1)", "torch.randn(n, 1000)");
  ASSERT_TRUE(product) << render(product.error());
  EXPECT_EQ(why(*product, "offset"), infinite);
  EXPECT_EQ(judged(product->problem, "product.py", reference() + "\nModelNew = Model\n").gate_one,
            GateOne::kPassed);
  const auto probability = with(
      "F.binary_cross_entropy(x * 0.01 + 0.5, torch.zeros_like(x), reduction='none')", "torch.randn(n, 500)");
  ASSERT_TRUE(probability) << render(probability.error());
  EXPECT_EQ(why(*probability, "heavy_tails"), refused);
  const auto sine = with("torch.sin(30 * x)", "torch.randn(n, 500)");
  ASSERT_TRUE(sine) << render(sine.error());
  EXPECT_TRUE(why(*sine, "x10").ends_with("of the tolerance there")) << why(*sine, "x10");
  EXPECT_EQ(why(*sine, "sign_flip"), "");
  const auto logarithm = with("torch.log(x)", "torch.rand(n, 500)");
  ASSERT_TRUE(logarithm) << render(logarithm.error());
  EXPECT_TRUE(logarithm->problem.outside_domain.empty())
      << "uniform inputs have a domain of their own: they are never varied";
}

// KernelBench's candidates are copies of the problem's file, including its constants, and derive values from
// them.
TEST_F(KernelBenchImport, WhatACandidateDerivesFromTheProblemsConstantsFollowsTheSizes) {
  const std::string head = R"(
import math

N = 1024
M = 1024
input_shape = (512, 8)
STRIDE = 2
)";
  const std::string tail = R"(
def get_inputs():
    return [torch.randn(N, M), torch.randn(*input_shape)]

def get_init_inputs():
    return [N]
)";
  const auto imported = import(head + R"(
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, a, b):
        return self.fc(a) * M ** -0.5, b.sum(0) / input_shape[0] * STRIDE
)" + tail);
  ASSERT_TRUE(imported) << render(imported.error());
  EXPECT_EQ(imported->problem.symbols, (std::vector<std::string>{"N", "input_shape_0", "input_shape_1"}))
      << "M goes with N";
  // At the top level, in a default argument, in the constructor; each in a copy of the original file.
  const std::string honest = head + R"(
BLOCK = N // 4
SCALE = 1.0 / math.sqrt(M)
ROWS, COLS = input_shape

class ModelNew(nn.Module):
    def __init__(self, n, quarter=M // 4):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.quarter = quarter
        self.scale = N ** -0.5

    def forward(self, a, b):
        assert a.shape[0] == N and N // 4 == self.quarter == BLOCK and abs(self.scale - SCALE) < 1e-9
        parts = [self.fc(a[i * BLOCK:min(N, (i + 1) * BLOCK)]) for i in range((N + BLOCK - 1) // BLOCK)]
        return torch.cat(parts) * SCALE, torch.einsum('rc->c', b.view(ROWS, COLS)) / ROWS * STRIDE
)" + tail;
  const Measurement right = judged(imported->problem, "right.py", kHead + honest);
  EXPECT_EQ(right.gate_one, GateOne::kPassed) << first_problem(right);
  // A constant of the candidate that only looks like one of the problem's keeps its value.
  std::string own = honest;
  own.replace(own.find("STRIDE = 2"), 10, "STRIDE = 3");
  EXPECT_EQ(judged(imported->problem, "own.py", kHead + own).gate_one, GateOne::kWrong);
}

TEST_F(KernelBenchImport, AReferenceThatTakesTooMuchMemoryIsNotTheCandidatesFault) {
  const auto imported = import(R"(
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

batch_size = 64

def get_inputs():
    return [torch.rand(batch_size, 128)]

def get_init_inputs():
    return []
)");
  ASSERT_TRUE(imported) << render(imported.error());
  std::string text = reference();
  text.replace(text.find("torch.relu(x)"), 13, "x + torch.empty(1 << 50)");
  ASSERT_TRUE(write_file_atomic(folder_ / "problem" / "reference.py", text));
  const Problem problem = load_problem(folder_ / "problem").value();
  const Oracle oracle = load_oracle(problem, resources_).value();
  const auto prepared = prepare_case(problem, {"case", problem.check.front(), 1, Battery::kPlain}, oracle, 0);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, ExitCode::kEnvironment);
  EXPECT_TRUE(prepared.error().what.starts_with(
      "the reference cannot be computed in float64: out of memory: RuntimeError: "))
      << prepared.error().what;
  EXPECT_TRUE(prepared.error().where.ends_with("reference.py:8")) << prepared.error().where;
  EXPECT_TRUE(prepared.error().hint.starts_with("use a machine with more memory, or smaller sizes"))
      << prepared.error().hint;
}

TEST_F(KernelBenchImport, WithoutPyTorchItIsTheEnvironmentsFault) {
  Resources none = resources_;
  none.path_variable = testing::TempDir();
  const fs::path file = folder_ / "1_x.py";
  ASSERT_TRUE(make_folders(folder_));
  ASSERT_TRUE(write_file_atomic(file, kLinear));
  const auto imported = import_kernelbench({kernelbench_file(file, 1), folder_ / "problem", "auto", 8e9},
                                           none, [](const std::string&) {});
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().what, "no python3 on PATH has PyTorch");
  EXPECT_EQ(imported.error().code, ExitCode::kEnvironment);
}

}  // namespace
}  // namespace capstone
