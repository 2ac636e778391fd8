#include "harness/project/stub.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

Parameter tensor(const std::string& name, Role role, DType dtype, std::vector<std::string> shape) {
  Parameter parameter;
  parameter.name = name;
  parameter.role = role;
  parameter.dtype = dtype;
  for (auto& dimension : shape) parameter.shape.push_back({dimension});
  return parameter;
}

Parameter scalar(const std::string& name, DType dtype) {
  Parameter parameter = tensor(name, Role::kScalar, dtype, {});
  parameter.value = Expression{"1"};
  return parameter;
}

// Every dtype and role, and sizes with the names that the stub would choose for itself.
Problem awkward() {
  Problem problem;
  problem.id = "awkward";
  problem.title = "ends in a backslash \\\nand goes on";
  problem.signature = {tensor("a", Role::kInput, DType::kF16, {"blocks", "element"}),
                       tensor("b", Role::kParameter, DType::kBF16, {"element"}),
                       tensor("c", Role::kInput, DType::kE4M3, {"blocks / 2"}),
                       tensor("d", Role::kInput, DType::kE5M2, {"blocks"}),
                       tensor("e", Role::kInput, DType::kI32, {"blocks"}),
                       tensor("f", Role::kInput, DType::kI64, {"blocks"}),
                       tensor("g", Role::kInout, DType::kU8, {"blocks", "element + 1", "elements"}),
                       tensor("h", Role::kOutput, DType::kF32, {"blocks"}),
                       scalar("first_kernel", DType::kF32),
                       scalar("n", DType::kI32)};
  problem.symbols = {"blocks", "element", "elements"};
  return problem;
}

Problem with_prepare() {
  Problem problem;
  problem.id = "prepared";
  problem.title = "Prepared";
  problem.signature = {tensor("w", Role::kParameter, DType::kF32, {"n"}),
                       tensor("y", Role::kOutput, DType::kF16, {"n ^ 2"})};
  problem.symbols = {"n"};
  problem.prepare = true;
  return problem;
}

TEST(Stub, DefinesExactlyWhatTheHeaderDeclares) {
  const Problem problem = awkward();
  const std::string header = launch_header(problem), stub = stub_kernel(problem);
  const std::size_t at = header.find("extern \"C\" void launch(");
  const std::string declaration = header.substr(at, header.find(");", at) + 1 - at);
  EXPECT_NE(stub.find(declaration + " {"), std::string::npos) << stub;
}

TEST(Stub, TeachesWhereToBegin) {
  const std::string stub = stub_kernel(awkward());
  EXPECT_NE(stub.find("problem/statement.md"), std::string::npos);
  EXPECT_NE(stub.find("nothing was written to\n// `g` [blocks, element + 1, elements], `h` [blocks]"),
            std::string::npos)
      << stub;
  EXPECT_NE(stub.find("const int64_t elements_ = blocks * (element + 1) * elements;"), std::string::npos)
      << stub;
}

TEST(Stub, ATitleCannotBreakOutOfItsComment) {
  const std::string stub = stub_kernel(awkward());
  const auto lines = split(stub, '\n');
  EXPECT_TRUE(lines.at(0).starts_with("// ")) << lines[0];
  EXPECT_FALSE(lines[0].ends_with('\\'));
  EXPECT_EQ(lines.at(1), "//");
}

TEST(Stub, AShapeThatIsNotPlainArithmeticIsLeftToTheStudent) {
  const std::string stub = stub_kernel(with_prepare());
  EXPECT_EQ(stub.find("n ^ 2;"), std::string::npos) << "in C++ that is an exclusive or";
  EXPECT_NE(stub.find("compute it here"), std::string::npos);
  EXPECT_NE(stub.find("prepared_bytes(int64_t n) {"), std::string::npos) << stub;
}

// nvcc decides what "compiles" means; without it, the checks above are the test.
class StubCompiles : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> catalogue() {
  std::vector<std::string> ids{"awkward", "prepared"};
  if (auto problems = load_catalogue(CAPSTONE_PROBLEMS))
    for (const Problem& problem : *problems) ids.push_back(problem.id);
  return ids;
}

TEST_P(StubCompiles, WithoutAWarning) {
  if (std::string(CAPSTONE_NVCC).empty()) GTEST_SKIP() << "no nvcc on this machine";
  Problem problem = GetParam() == "awkward"    ? awkward()
                    : GetParam() == "prepared" ? with_prepare()
                                               : find_problem(CAPSTONE_PROBLEMS, GetParam()).value();
  Scratch scratch;
  put(scratch / "kernel.cu", stub_kernel(problem));
  // The header declares the same functions: an extern "C" function with another signature is an error.
  put(scratch / "launch.h", launch_header(problem));
  ProcessSpec spec;
  spec.argv = {CAPSTONE_NVCC, "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-Xcompiler=-Wall",
               "-include",    "launch.h",   "-I.",         "-ptx",    "-o",           "kernel.ptx",
               "kernel.cu"};
  spec.cwd = scratch.path();
  auto result = run_process(spec);
  ASSERT_TRUE(result) << render(result.error());
  EXPECT_TRUE(result->ok()) << result->err << result->out << slurp(scratch / "kernel.cu");
}

INSTANTIATE_TEST_SUITE_P(Catalogue, StubCompiles, ::testing::ValuesIn(catalogue()),
                         [](const auto& info) { return info.param; });

TEST(StubModule, IsTheReferenceAndAPatternInTheLanguage) {
  Problem problem;
  problem.title = "Matrix product";
  problem.folder = fs::path(testing::TempDir()) / ("capstone-stub-module-" + std::to_string(::getpid()));
  ASSERT_TRUE(make_folders(problem.folder));
  ASSERT_TRUE(write_file_atomic(problem.folder / "reference.py",
                                "\"\"\"The specification.\nMore.\"\"\"\n\nimport torch\n\nn = 4\n\n\nclass "
                                "Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n\n\n"
                                "def get_inputs():\n    return []\n"));
  for (const std::string& language : python_languages()) {
    const auto module = stub_module(problem, language);
    ASSERT_TRUE(module) << render(module.error());
    EXPECT_NE(module->find("class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x"),
              std::string::npos)
        << *module;
    EXPECT_NE(module->find("import torch\n\nn = 4\n"), std::string::npos) << *module;
    EXPECT_EQ(module->find("get_inputs"), std::string::npos) << *module;
    EXPECT_EQ(module->find("The specification"), std::string::npos) << *module;
    ProcessSpec spec;  // Python reads it
    spec.argv = {"python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"};
    spec.input = *module;
    const auto parsed = run_process(spec);
    ASSERT_TRUE(parsed);
    EXPECT_TRUE(parsed->ok()) << parsed->err << *module;
  }
  const auto none = stub_module(problem, "fortran");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().hint, "languages: triton, tilelang, cute");
  fs::remove_all(problem.folder);
}

}  // namespace
}  // namespace capstone
