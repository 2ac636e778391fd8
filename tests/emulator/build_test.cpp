// What build_emulated() says about sources that cannot become a program.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "harness/base/text.h"
#include "harness/runtime/build/cuda.h"
#include "harness/runtime/build/precompiled.h"
#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

const std::string kHead = "#include <cuda_runtime.h>\n#include <cstdint>\n";
const std::string kLaunch =
    "extern \"C\" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream)";

TEST(Build, SecondBuildOfTheSameSourceComesFromTheCache) {
  const std::string source =
      kHead + "__global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }\n" + kLaunch +
      " { k<<<1, 32, 0, stream>>>(x, y); }\n";
  ASSERT_TRUE(build(source).result.ok);
  const EmulatedArtifact again = build_afresh(source);
  EXPECT_TRUE(again.result.cached);
  EXPECT_TRUE(std::filesystem::exists(again.program));
}

// Two students' copies of one kernel, or a project that was moved, are built once.
TEST(Build, ACopyElsewhereComesFromTheCache) {
  const std::string source = kHead + "__global__ void k(float* y, float* z) { y[threadIdx.x] = 41; }\n" +
                             kLaunch + " {\n  k<<<1, 32, 0, stream>>>(nullptr, y);  // crashes\n}\n";
  ASSERT_TRUE(build_afresh(source, 900, BuildVariant::kFast, "-here").result.ok);
  const EmulatedArtifact copy = build_afresh(source, 900, BuildVariant::kFast, "-there");
  EXPECT_TRUE(copy.result.cached);
  Workbench bench(copy.program, {1}, 32);
  const Json answer = bench.run();
  EXPECT_EQ(answer.value("file", ""), "kernel.cu") << answer;
  EXPECT_EQ(answer.value("line", 0), 3) << answer;
}

TEST(Build, HeadersEndWhereTheSourceBegins) {
  const std::string begin = "# 0 \"kernel.cu\"\n", rest = "# 1 \"kernel.cu\"\nint a;\n";
  const std::string headers = "# 0 \"<built-in>\"\n# 1 \"/usr/include/x.h\" 1 3 4\nint x;\n";
  const auto parts = split_headers(begin + headers + rest, "kernel.cu");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->begin, begin);
  EXPECT_EQ(parts->headers, headers);
  EXPECT_EQ(parts->rest, rest);
  EXPECT_EQ(included_first(kHead), (std::vector<std::string>{"cuda_runtime.h", "cstdint"}));
}

// nvcc checks a kernel that is judged on a CPU. ptxas knows Hopper's and Blackwell's own instructions only
// for the targets that end in "a".
TEST(NvccCheck, TakesWhatOnlyHopperOrOnlyBlackwellHas) {
  if (!find_toolkit(test_resources())) GTEST_SKIP() << "no nvcc here";
  const std::map<std::string, std::string> instructions{{"hopper", "wgmma.fence.sync.aligned;"},
                                                        {"blackwell", "tcgen05.wait::ld.sync.aligned;"}};
  for (const auto& [name, instruction] : instructions) {
    const std::filesystem::path source =
        std::filesystem::path(CAPSTONE_TEST_CACHE) / ("nvcc-" + name) / "kernel.cu";
    std::filesystem::create_directories(source.parent_path());
    std::ofstream(source) << kHead << "__global__ void k(float* y) { asm volatile(\"" << instruction
                          << "\"); *y = 1; }\n"
                          << kLaunch << " { k<<<1, 128, 0, stream>>>(y); }\n";
    const Problem problem = vector_problem();
    BuildRequest request;
    request.source = source;
    request.problem = &problem;
    request.resources = &test_resources();
    const auto check = check_with_nvcc(request);
    ASSERT_TRUE(check) << render(check.error());
    EXPECT_EQ(check->why_not, "") << name << "\n" << check->log;
    EXPECT_FALSE(check->error) << name << "\n" << check->log;
    EXPECT_NE(check->version, "") << name;
  }
}

// What lies next to a source is in no other source's headers.
TEST(Build, AFileOfTheSourcesFolderIsNoHeaderOfOthers) {
  for (const std::string own : {"./math.h", "cuda_fp16.h"})
    EXPECT_FALSE(split_headers(
        "# 0 \"k.cu\"\n# 0 \"<built-in>\"\n# 1 \"" + own + "\" 1\nint x;\n# 1 \"k.cu\"\nint a;\n", "k.cu"))
        << own;
}

// The headers are compiled when they are wanted for the second time; the third source reads the result.
TEST(Build, HeadersAreCompiledOnceForManySources) {
  for (const int value : {71, 72, 73}) {
    const std::string source = kHead +
                               "__global__ void k(float* y) {\n  y[threadIdx.x] = " + std::to_string(value) +
                               ";\n}\n" + kLaunch + " { k<<<1, 32, 0, stream>>>(y); }\n";
    EXPECT_EQ(evaluate(source, {1}, 32), std::vector<float>(32, static_cast<float>(value)));
  }
  std::uintmax_t largest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test_resources().cache / "emulated/objects"))
    if (entry.path().extension() == ".gch") largest = std::max(largest, entry.file_size());
  EXPECT_GT(largest, std::uintmax_t{1} << 20);
  const EmulatedArtifact wrong =
      build(kHead + "__global__ void k(float* y) {\n  y[0] = undeclared_74;\n}\n" + kLaunch + " {}\n");
  ASSERT_TRUE(wrong.result.first_error);
  EXPECT_EQ(wrong.result.first_error->line, 4);
  EXPECT_NE(wrong.result.first_error->text.find("undeclared_74"), std::string::npos);
}

/// The options of the judge's compilation that do not depend on the machine, without those about warnings.
std::vector<std::string> options_of(const EmulatedArtifact& artifact) {
  const std::set<std::string> machine = {"-march=native", "-fcf-protection=none",
                                         "-DCAPSTONE_EMULATOR_UCONTEXT=1"};
  std::vector<std::string> options;
  const std::string& command = artifact.result.command;
  for (const std::string& word : split(command.substr(command.find("capstone-rewrite")), ' ')) {
    if (word == "-x") break;
    if (word.starts_with("-") && !word.starts_with("-W") && word != "-w" && !machine.contains(word))
      options.push_back(word);
  }
  return options;
}

// The emulator's driver repeats them, because it works without capstone.
TEST(Build, TheDriverOfTheEmulatorAloneCompilesWithTheSameOptions) {
  const std::string source =
      kHead + "__global__ void k(float* y) { y[0] = 1; }\n" + kLaunch + " { k<<<1, 1, 0, stream>>>(y); }\n";
  const std::map<BuildVariant, std::string> checks = {
      {BuildVariant::kFast, ""}, {BuildVariant::kAsan, "memory"}, {BuildVariant::kInstrumented, "races"}};
  for (const auto& [variant, check] : checks) {
    ProcessSpec driver;
    driver.argv = {"/bin/bash", CAPSTONE_SHARE "/harness/emulator/capstone-emulate.in", "--check", check,
                   "--print-flags"};
    const auto printed = run_process(driver);
    ASSERT_TRUE(printed && printed->ok()) << (printed ? printed->err : render(printed.error()));
    std::vector<std::string> alone = split(trim(printed->out), '\n');
    std::erase(alone, "-w");
    EXPECT_EQ(alone, options_of(build(source, 900, variant))) << check;
  }
}

TEST(Build, StandardHeadersMayFollowCudasMacros) {
  // libstdc++ writes __attribute__((__noinline__)), a word that is a macro in CUDA.
  const std::string source =
      kHead + "#include <filesystem>\n#include <memory>\n#include <thread>\n" +
      "__device__ __noinline__ float twice(float v) { return 2 * v; }\n" +
      "__global__ void k(const float* x, float* y) { y[threadIdx.x] = twice(x[threadIdx.x]); }\n" + kLaunch +
      " { auto keep = std::make_shared<int>(32); k<<<1, *keep, 0, stream>>>(x, y); }\n";
  const EmulatedArtifact artifact = build(source);
  EXPECT_TRUE(artifact.result.ok) << artifact.result.log;
}

TEST(Build, CompileErrorIsAtTheUsersLine) {
  const std::string source = kHead + "__global__ void k(float* y) {\n  __shared__ float s[32], t[8];\n" +
                             "  s[0] = undeclared_name;  // here\n  y[0] = s[0];\n}\n" + kLaunch +
                             " { k<<<1, 1>>>(y); }\n";
  const EmulatedArtifact artifact = build(source);
  ASSERT_FALSE(artifact.result.ok);
  ASSERT_TRUE(artifact.result.first_error);
  EXPECT_TRUE(artifact.not_judgeable.empty());
  EXPECT_EQ(artifact.result.first_error->line, line_of(source, "// here"));
  EXPECT_TRUE(artifact.result.first_error->file.ends_with("kernel.cu"));
  EXPECT_NE(artifact.result.first_error->text.find("undeclared_name"), std::string::npos);
}

TEST(Build, ErrorAfterALaunchKeepsItsLine) {
  const std::string source =
      kHead + "__global__ void k(float* y, int a) { y[0] = a; }\n" + kLaunch +
      " {\n  k<<<dim3(1,\n          1),\n      32>>>(y,\n            3);\n  nonsense;  // here\n}\n";
  const EmulatedArtifact artifact = build(source);
  ASSERT_TRUE(artifact.result.first_error);
  EXPECT_EQ(artifact.result.first_error->line, line_of(source, "// here"));
}

TEST(Build, WrongKernelArgumentsAreOneErrorAtTheLaunch) {
  const std::string source = kHead + "__global__ void k(float* y, int a) { y[0] = a; }\n" + kLaunch +
                             " {\n  k<<<1, 1>>>(y);  // here\n}\n";
  const EmulatedArtifact artifact = build(source);
  ASSERT_TRUE(artifact.result.first_error);
  EXPECT_EQ(artifact.result.first_error->line, line_of(source, "// here"));
  EXPECT_NE(artifact.result.first_error->text.find("too few arguments"), std::string::npos)
      << artifact.result.first_error->text;
}

TEST(Build, MissingLaunchIsNamed) {
  const EmulatedArtifact artifact = build(kHead + "__global__ void k(float* y) { y[0] = 1; }\n");
  ASSERT_FALSE(artifact.result.ok);
  ASSERT_TRUE(artifact.result.first_error);
  EXPECT_EQ(artifact.result.first_error->text, "the file defines no extern \"C\" void launch(...)");
  EXPECT_NE(artifact.result.log.find("const float* x"), std::string::npos) << artifact.result.log;
}

TEST(Build, DifferentSignatureOfLaunchNamesTheExpectedOne) {
  const EmulatedArtifact artifact =
      build(kHead + "extern \"C\" void launch(const float* x, float* y, int n, cudaStream_t stream) {}\n");
  ASSERT_FALSE(artifact.result.ok);
  ASSERT_TRUE(artifact.result.first_error);
  EXPECT_NE(artifact.result.first_error->text.find("differs from problem/launch.h"), std::string::npos)
      << artifact.result.first_error->text;
  EXPECT_NE(artifact.result.first_error->text.find("void* workspace"), std::string::npos)
      << artifact.result.first_error->text;
  EXPECT_EQ(artifact.result.first_error->line, 3);
}

TEST(Build, TensorMemoryIsNotJudgeableAtItsLine) {
  const std::string source = kHead +
                             "__global__ void k(float* y) {\n  asm "
                             "volatile(\"tcgen05.fence::after_thread_sync;\\n\" ::: \"memory\");\n}\n" +
                             kLaunch + " { k<<<1, 128>>>(y); }\n";
  const EmulatedArtifact artifact = build(source);
  EXPECT_FALSE(artifact.result.ok);
  EXPECT_NE(artifact.not_judgeable.find("kernel.cu:4: "), std::string::npos) << artifact.not_judgeable;
  EXPECT_NE(artifact.not_judgeable.find(
                "Blackwell tensor memory (sm_100a) instruction 'tcgen05.fence::after_thread_sync'"),
            std::string::npos)
      << artifact.not_judgeable;
}

TEST(Build, AssemblyBehindAnArchitectureGuardObeysTheRequest) {
  const std::string source = kHead +
                             "__global__ void k(const float* x, float* y) {\n#if __CUDA_ARCH__ >= 900\n" +
                             "  asm volatile(\"tcgen05.fence::after_thread_sync;\" ::: \"memory\");\n#else\n "
                             " y[threadIdx.x] = x[threadIdx.x];\n#endif\n}\n" +
                             kLaunch + " { k<<<1, 64>>>(x, y); }\n";
  EXPECT_FALSE(build(source, 900).not_judgeable.empty());
  EXPECT_TRUE(build(source, 800).result.ok);
}

TEST(Build, TmaOfImagesIsNotJudgeable) {
  const EmulatedArtifact artifact =
      build(kHead +
            "__global__ void k(float* y) { asm "
            "volatile(\"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::"
            "complete_tx::bytes [%0], [%1, {%2, %2, %2}], [%0], {%3};\" :: \"r\"(0), \"l\"(y), \"r\"(0), "
            "\"h\"((short)0)); }\n" +
            kLaunch + " { k<<<1, 1>>>(y); }\n");
  EXPECT_NE(artifact.not_judgeable.find("TMA"), std::string::npos) << artifact.not_judgeable;
}

TEST(Build, KernelThatAnArchitectureGuardEmptiesIsNotJudgeable) {
  const std::string source = kHead +
                             "__global__ void k(const float* x, float* y) {\n#if __CUDA_ARCH__ >= 1000\n"
                             "  y[threadIdx.x] = x[threadIdx.x];\n#endif\n}\n" +
                             kLaunch + " { k<<<1, 64>>>(x, y); }\n";
  const Json answer = failure_of(source);
  EXPECT_EQ(answer.value("kind", ""), "not_judgeable") << answer;
  EXPECT_EQ(answer.value("line", 0), 3) << answer;
  // A kernel that is empty because it is not written yet is only wrong.
  const EmulatedArtifact stub =
      build(kHead + "__global__ void k(const float* x, float* y) {\n  // TODO\n\n}\n" + kLaunch +
            " { k<<<1, 64>>>(x, y); }\n");
  Workbench bench(stub.program, std::vector<float>(64, 1.f), 64);
  EXPECT_TRUE(bench.run().value("ok", false));
}

/// The request does not say which architecture.
EmulatedArtifact build_for_any(const std::string& source) { return build(source, 0); }

TEST(Build, AKernelThatSm90EmptiesIsBuiltForSm80AndSaysSo) {
  const std::string source = kHead +
                             "__global__ void k(const float* x, float* y) {\n#if __CUDA_ARCH__ < 900\n"
                             "  y[threadIdx.x] = x[threadIdx.x] + __CUDA_ARCH__;\n#endif\n}\n" +
                             kLaunch + " { k<<<1, 64>>>(x, y); }\n";
  const EmulatedArtifact artifact = build_for_any(source);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  EXPECT_TRUE(artifact.arch_note.starts_with("judged as sm_80: as sm_90, ")) << artifact.arch_note;
  EXPECT_NE(artifact.arch_note.find(": an architecture guard"), std::string::npos) << artifact.arch_note;
  Workbench bench(artifact.program, std::vector<float>(64, 1.f), 64);
  const Json answer = bench.run();
  EXPECT_TRUE(answer.value("ok", false)) << answer;
  EXPECT_EQ(bench.y(), std::vector<float>(64, 801.f));
}

TEST(Build, AnInstructionThatOnlySm90NeedsIsAvoidedAsSm80) {
  const std::string source =
      kHead +
      "__global__ void hopper(float* y) {\n#if __CUDA_ARCH__ >= 900\n"
      "  asm volatile(\"tcgen05.mma.ws;\" ::: \"memory\");\n  y[0] = 9;\n#endif\n}\n"
      "__global__ void ampere(float* y) { y[threadIdx.x] = 8; }\n" +
      kLaunch +
      " {\n  cudaDeviceProp p; cudaGetDeviceProperties(&p, 0);\n  if (p.major >= 9) hopper<<<1, 64>>>(y); "
      "else ampere<<<1, 64>>>(y);\n}\n";
  const EmulatedArtifact artifact = build_for_any(source);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  EXPECT_NE(artifact.arch_note.find("tcgen05"), std::string::npos) << artifact.arch_note;
  Workbench bench(artifact.program, std::vector<float>(64, 1.f), 64);
  EXPECT_TRUE(bench.run().value("ok", false));
  EXPECT_EQ(bench.y(), std::vector<float>(64, 8.f));
}

TEST(Build, KernelsForBothArchitecturesStayOnSm90) {
  const std::string source =
      kHead +
      "__global__ void hopper(float* y) {\n#if __CUDA_ARCH__ >= 900\n  y[threadIdx.x] = 9;\n#endif\n}\n"
      "__global__ void ampere(float* y) {\n#if __CUDA_ARCH__ < 900\n  y[threadIdx.x] = 8;\n#endif\n}\n" +
      kLaunch +
      " {\n  cudaDeviceProp p; cudaGetDeviceProperties(&p, 0);\n  if (p.major >= 9) hopper<<<1, 64>>>(y); "
      "else ampere<<<1, 64>>>(y);\n}\n";
  const EmulatedArtifact artifact = build_for_any(source);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  EXPECT_EQ(artifact.arch_note, "");
  Workbench bench(artifact.program, std::vector<float>(64, 1.f), 64);
  EXPECT_TRUE(bench.run().value("ok", false));
  EXPECT_EQ(bench.y(), std::vector<float>(64, 9.f));
}

TEST(Build, TensorMemoryIsBuiltForSm100AndSaysThatItNeverRan) {
  const std::string source = kHead +
                             "__global__ void k(const float* x, float* y) {\n  asm "
                             "volatile(\"tcgen05.fence::after_thread_sync;\" ::: \"memory\");\n"
                             "  y[threadIdx.x] = x[threadIdx.x] + __CUDA_ARCH__;\n}\n" +
                             kLaunch + " { k<<<1, 64>>>(x, y); }\n";
  const EmulatedArtifact artifact = build_for_any(source);
  ASSERT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  EXPECT_TRUE(artifact.arch_note.starts_with("judged as sm_100: as sm_90, ")) << artifact.arch_note;
  EXPECT_TRUE(artifact.arch_note.ends_with("; tcgen05 is emulated from the ISA; never run on hardware here"))
      << artifact.arch_note;
  Workbench bench(artifact.program, std::vector<float>(64, 1.f), 64);
  EXPECT_TRUE(bench.run().value("ok", false));
  EXPECT_EQ(bench.y(), std::vector<float>(64, 1001.f));
}

TEST(Build, WhatNoArchitectureCanRunIsExplainedForSm90) {
  const std::string source = kHead +
                             "__global__ void k(float* y) {\n  asm "
                             "volatile(\"tcgen05.mma.ws;\" ::: \"memory\");\n}\n" +
                             kLaunch + " { k<<<1, 64>>>(y); }\n";
  const EmulatedArtifact artifact = build_for_any(source);
  EXPECT_FALSE(artifact.result.ok);
  EXPECT_NE(artifact.not_judgeable.find("tcgen05"), std::string::npos);
  EXPECT_EQ(artifact.arch_note, "");
}

TEST(Build, LibraryHeadersAreNotJudgeableWhetherInstalledOrNot) {
  for (const char* header :
       {"cublas_v2.h", "cub/cub.cuh", "thrust/sort.h", "cudnn.h", "cuda/annotated_ptr"}) {
    const EmulatedArtifact artifact = build(kHead + "#include <" + header + ">\n" + kLaunch + " {}\n");
    EXPECT_NE(artifact.not_judgeable.find("kernel.cu:3: library header"), std::string::npos)
        << header << ": " << artifact.not_judgeable << artifact.result.log;
  }
}

TEST(Build, AMisspeltHeaderBelowCudaIsTheUsersMistake) {
  const EmulatedArtifact artifact = build(kHead + "#include <cuda/std/string_views>\n" + kLaunch + " {}\n");
  EXPECT_FALSE(artifact.result.ok);
  EXPECT_EQ(artifact.not_judgeable, "");
  EXPECT_NE(artifact.result.log.find("No such file"), std::string::npos) << artifact.result.log;
}

TEST(Build, AKernelThatIsABareAddressToTheLastIsNotJudgeable) {
  const EmulatedArtifact artifact =
      build(kHead +
            "__global__ void k(float* y) { *y = 1; }\nconst void* const kKernels[] = {reinterpret_cast<const "
            "void*>(k)};\n" +
            kLaunch +
            " {\n  cudaLaunchConfig_t config = {};\n  void* arguments[] = {&y};\n  "
            "cudaLaunchKernelExC(&config, kKernels[0], arguments);\n}\n");
  EXPECT_NE(artifact.not_judgeable.find("cudaLaunchKernelExC"), std::string::npos)
      << artifact.not_judgeable << artifact.result.log;
}

TEST(Build, UnknownRuntimeCallIsNotJudgeable) {
  const std::string source = kHead + kLaunch +
                             " {\n  cudaGraphConditionalHandle handle;\n  "
                             "cudaGraphConditionalHandleCreate(&handle, nullptr, 0, 0);  "
                             "// here\n}\n";
  const EmulatedArtifact artifact = build(source);
  EXPECT_NE(artifact.not_judgeable.find("CUDA API call 'cudaGraphConditionalHandleCreate'"),
            std::string::npos)
      << artifact.not_judgeable << artifact.result.log;
  EXPECT_NE(artifact.not_judgeable.find(":" + std::to_string(line_of(source, "// here")) + ": "),
            std::string::npos)
      << artifact.not_judgeable;
}

TEST(Build, TestDriverWithItsOwnMainDoesNotReplaceTheWorker) {
  const auto y =
      evaluate(kHead + "__global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }\n" +
                   kLaunch + " { k<<<1, 4>>>(x, y); }\nint main() { return 3; }\n",
               {1, 2, 3, 4}, 4);
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4}));
}

TEST(Build, TheBanksOfSharedMemoryAreSetForAKernelTemplate) {
  const auto y = evaluate(
      kHead + "template <int N> __global__ void k(float* y) { *y = N; }\n" + kLaunch +
          " { cudaFuncSetSharedMemConfig(k<4>, cudaSharedMemBankSizeEightByte); k<4><<<1, 1>>>(y); }\n",
      {1}, 1);
  EXPECT_EQ(y, std::vector<float>{4});
}

// A loop without an end of its own lets others run, but not while the compiler computes it.
TEST(Build, ALoopMayBeInAConstantExpression) {
  const auto y =
      evaluate(kHead +
                   "__host__ __device__ constexpr int gcd(int a, int b) {\n  while (true) {\n"
                   "    if (b == 0) return a;\n    const int c = a % b;\n    a = b, b = c;\n  }\n}\n"
                   "__global__ void k(float* y) { constexpr int g = gcd(12, 18); *y = g; }\n" +
                   kLaunch + " { k<<<1, 1>>>(y); }\n",
               {1}, 1);
  EXPECT_EQ(y, std::vector<float>{6});
}

TEST(Build, MinOfTwoIntsIsCudasAndNotALibrarys) {
  const auto y =
      evaluate(kHead +
                   "namespace library {\ntemplate <class A, class B>\n__host__ __device__ constexpr "
                   "auto min(const A& a, const B& b) { return a < b ? a : b; }\n}\n"
                   "using namespace library;\n"
                   "__global__ void k(float* y) { const int a = 3; *y = min(a, 2); }\n" +
                   kLaunch + " { k<<<1, 1>>>(y); }\n",
               {1}, 1);
  EXPECT_EQ(y, std::vector<float>{2});
}

TEST(Build, MissingSourceIsAnError) {
  const Problem problem = vector_problem();
  BuildRequest request;
  request.problem = &problem;
  request.source = "/nonexistent/kernel.cu";
  request.resources = &test_resources();
  EXPECT_FALSE(build_emulated(request).has_value());
}

TEST(Build, NoHeadersNamesTheScriptThatFetchesThem) {
  Resources bare = test_resources();
  bare.ignore_toolkit = true;
  bare.cache = std::filesystem::path(CAPSTONE_TEST_CACHE) / "empty";
  const auto headers = find_cuda_headers(bare);
  ASSERT_FALSE(headers);
  EXPECT_NE(headers.error().hint.find("fetch_cuda_headers.sh"), std::string::npos);
  EXPECT_EQ(headers.error().code, ExitCode::kEnvironment);
}

TEST(Build, NoCutlassNamesTheScriptThatFetchesIt) {
  Resources bare = test_resources();
  bare.cache = std::filesystem::path(CAPSTONE_TEST_CACHE) / "empty";
  const auto headers = find_cutlass_headers(bare);
  ASSERT_FALSE(headers);
  EXPECT_NE(headers.error().hint.find("fetch_cuda_headers.sh --cutlass"), std::string::npos);
  EXPECT_EQ(headers.error().code, ExitCode::kEnvironment);
}

}  // namespace
}  // namespace capstone::test
