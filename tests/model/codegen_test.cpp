#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/model/problem.h"
#include "tests/model/scratch.h"

namespace capstone {
namespace {

using testing::kDefinition;
using testing::Scratch;

Problem shipped(const std::string& id) {
  auto problem = load_problem(fs::path(CAPSTONE_PROBLEMS) / id);
  if (!problem) throw std::runtime_error(render(problem.error()));
  return *problem;
}

Problem every_dtype(bool prepare) {
  Scratch scratch;
  std::string text = kDefinition;
  if (prepare) text = replace_all(text, "prepare: false", "prepare: true");
  text = replace_all(text, "{name: kind,  role: input,     dtype: f32, ",
                     "{name: kind,  role: input,     dtype: e4m3, ");
  text = replace_all(text, "  - {name: state,",
                     "  - {name: ints, role: parameter, dtype: int4x2, shape: [rows, 2*cols],\n"
                     "     init: {integer: {min: -8, max: 7}}}\n"
                     "  - {name: powers, role: input, dtype: e8m0, shape: [rows], init: {choice: [1, 2]}}\n"
                     "  - {name: codes, role: output, dtype: e2m1x2, shape: [rows, cols]}\n"
                     "  - {name: state,");
  scratch.write("problem.yaml", text);
  auto problem = load_problem(scratch.path());
  if (!problem) throw std::runtime_error(render(problem.error()));
  return *problem;
}

std::string golden(const std::string& name) {
  std::ifstream file(fs::path(CAPSTONE_GOLDEN) / name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LaunchHeader, BiasGeluLayernormIsGolden) {
  EXPECT_EQ(launch_header(shipped("bias_gelu_layernorm")), golden("bias_gelu_layernorm.launch.h"));
}
TEST(LaunchHeader, EveryDTypeWithPrepareIsGolden) {
  EXPECT_EQ(launch_header(every_dtype(true)), golden("every_dtype.launch.h"));
}
TEST(AdapterSource, BiasGeluLayernormIsGolden) {
  EXPECT_EQ(adapter_source(shipped("bias_gelu_layernorm")), golden("bias_gelu_layernorm.adapter.cpp"));
}
TEST(AdapterSource, EveryDTypeWithPrepareIsGolden) {
  EXPECT_EQ(adapter_source(every_dtype(true)), golden("every_dtype.adapter.cpp"));
}
TEST(DescribeContract, BiasGeluLayernormIsGolden) {
  EXPECT_EQ(describe_contract(shipped("bias_gelu_layernorm")), golden("bias_gelu_layernorm.contract.txt"));
}

TEST(LaunchHeader, IncludesOnlyWhatTheTypesNeed) {
  const std::string plain = launch_header(shipped("softmax")), rich = launch_header(every_dtype(false));
  EXPECT_EQ(plain.find("cuda_fp16.h"), std::string::npos);
  EXPECT_EQ(plain.find("prepared"), std::string::npos);
  EXPECT_EQ(plain.find("cuda_fp4.h"), std::string::npos);
  for (const char* name : {"cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuda_fp4.h"})
    EXPECT_NE(rich.find(name), std::string::npos);
}

TEST(DescribeContract, SaysHowElementsArePacked) {
  const std::string text = describe_contract(every_dtype(false));
  EXPECT_NE(
      text.find("int4x2 [rows, 2*cols]          integers -8 to 7  (two a byte, the first in the low half)"),
      std::string::npos)
      << text;
}

TEST(DescribeContract, KeepsTheExpectedFightToItself) {
  const Problem problem = shipped("softmax");
  const std::string text = describe_contract(problem);
  EXPECT_EQ(text.find(problem.expect.substr(0, 20)), std::string::npos);
  EXPECT_EQ(text.find(problem.edge.substr(0, 20)), std::string::npos);
}

/// Compiles the adapter with a candidate and a main(), runs the program and returns its output.
std::string run_with_adapter(const Problem& problem, const std::string& candidate,
                             const std::string& main_body) {
  Scratch scratch;
  const auto adapter = scratch.write("adapter.cpp", adapter_source(problem));
  const auto program = scratch.path() / "program";
  const auto source =
      scratch.write("main.cpp",
                    "#include <cstddef>\n#include <cstdint>\n#include <cstdio>\nstruct CUstream_st;\n"
                    "extern \"C\" void capstone_call(const void* const*, void*, void*, void*);\n"
                    "extern \"C\" size_t capstone_workspace_bytes(const void* const*);\n" +
                        candidate + "\nint main() {\n" + main_body + "\n}\n");
  ProcessSpec compile;
  compile.argv = {"g++", "-std=c++17",     "-Wall",         "-Wextra",       "-Werror",
                  "-o",  program.string(), source.string(), adapter.string()};
  const auto built = run_process(compile);
  if (!built || !built->ok()) return "does not build: " + (built ? built->err : built.error().what);
  ProcessSpec run;
  run.argv = {program.string()};
  const auto result = run_process(run);
  return result && result->ok() ? result->out : "does not run";
}

const char* const kSoftmaxCall = R"(
  float x = 2, y = 0;
  const float* px = &x;
  float* py = &y;
  int64_t rows = 3, cols = 1000000000000;
  const void* slots[] = {&px, &py, &rows, &cols};
  char scratch = 0;
  capstone_call(slots, &scratch, nullptr, nullptr);
  std::printf("%g %zu", y, capstone_workspace_bytes(slots));)";

TEST(AdapterSource, CallsLaunchWithItsRealTypes) {
  const std::string out =
      run_with_adapter(shipped("softmax"),
                       "extern \"C\" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* "
                       "w, CUstream_st*) {\n"
                       "  *y = *x + (rows == 3) + 10 * (cols == 1000000000000) + 100 * (w != nullptr);\n}",
                       kSoftmaxCall);
  EXPECT_EQ(out, "113 0");  // no workspace_bytes: zero
}

TEST(AdapterSource, AsksTheCandidateForItsWorkspace) {
  const std::string out = run_with_adapter(
      shipped("softmax"),
      "extern \"C\" void launch(const float*, float*, int64_t, int64_t, void*, CUstream_st*) {}\n"
      "extern \"C\" size_t workspace_bytes(int64_t rows, int64_t cols) { return rows + (cols > 1); }",
      kSoftmaxCall);
  EXPECT_EQ(out, "0 4");
}

TEST(AdapterSource, ScalarsTravelInTheirOwnType) {
  const std::string out =
      run_with_adapter(shipped("bias_gelu_layernorm"),
                       "extern \"C\" void launch(const float*, const float*, const float*, const float*, "
                       "const float*, float*, float eps,\n"
                       "                       int64_t rows, int64_t cols, void*, CUstream_st*) {\n"
                       "  std::printf(\"%g %d %d\", eps, int(rows), int(cols));\n}",
                       "float* p = nullptr; float eps = 1e-5f; int64_t rows = 7, cols = 9;\n"
                       "const void* slots[] = {&p, &p, &p, &p, &p, &p, &eps, &rows, &cols};\n"
                       "capstone_call(slots, nullptr, nullptr, nullptr);");
  EXPECT_EQ(out, "1e-05 7 9");
}

TEST(AdapterSource, EveryDTypeCompilesAlone) {
  for (bool prepare : {false, true}) {
    Scratch scratch;
    const auto source = scratch.write("adapter.cpp", adapter_source(every_dtype(prepare)));
    ProcessSpec compile;
    compile.argv = {"g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", source.string()};
    const auto built = run_process(compile);
    ASSERT_TRUE(built);
    EXPECT_TRUE(built->ok()) << built->err;
  }
}

}  // namespace
}  // namespace capstone
