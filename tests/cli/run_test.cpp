// `capstone run`: whole CUDA programs on the CPU.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Run : public CliTest {
 protected:
  Outcome run(const std::string& source, std::vector<std::string> words = {}) {
    spit(home_ / "program.cu", source);
    words.insert(words.begin(), {"run", "program.cu"});
    return capstone(words, {.cwd = home_});
  }
};

TEST_F(Run, PassesOutputArgumentsAndExitCodeThrough) {
  const Outcome outcome =
      run("#include <cstdio>\n__global__ void k(int* p) { *p = 42; }\n"
          "int main(int argc, char** argv) { int *d, h; cudaMalloc(&d, 4); k<<<1, 1>>>(d); cudaMemcpy(&h, d, "
          "4, cudaMemcpyDeviceToHost);\n"
          "  printf(\"%d %s\\n\", h, argv[1]); fprintf(stderr, \"aside\\n\"); return 7; }\n",
          {"--", "word"});
  EXPECT_EQ(outcome.code, 7) << outcome;
  EXPECT_EQ(outcome.out, "42 word\n");
  EXPECT_TRUE(says(outcome.err, "aside"));
}

TEST_F(Run, UndefinedBehaviourFailsAProgramThatDoesNotNotice) {
  const Outcome outcome =
      run("__global__ void k() {\n  __shared__ int s[4];\n  s[threadIdx.x + 4] = 1;\n}\nint main() { k<<<1, "
          "4>>>(); }\n");
  EXPECT_EQ(outcome.code, 1) << outcome;
  EXPECT_TRUE(says(outcome.err, "undefined behaviour"));
  EXPECT_TRUE(says(outcome.err, "kernel k launched at program.cu:5"));
}

TEST_F(Run, CheckRacesNamesBothLines) {
  const std::string racy =
      "__global__ void k(float* y) {\n  __shared__ float s[64];\n  s[threadIdx.x] = threadIdx.x;\n  "
      "y[threadIdx.x] = s[63 - threadIdx.x];\n}\n"
      "int main() { float* y; cudaMalloc(&y, 256); k<<<1, 64>>>(y); return cudaDeviceSynchronize(); }\n";
  const Outcome outcome = run(racy, {"--check", "races"});
  EXPECT_EQ(outcome.code, 1) << outcome;
  EXPECT_TRUE(says(outcome.err, "race on shared memory `s`"));
  EXPECT_TRUE(says(outcome.err, "program.cu:3"));
  EXPECT_TRUE(says(outcome.err, "program.cu:4"));
  EXPECT_EQ(run(racy, {"--check", "everything"}).code, 2);
}

TEST_F(Run, WhatTheCpuCannotRunIsNamed) {
  const Outcome outcome =
      run("__global__ void k() {\n  asm volatile(\"tcgen05.mma.ws;\");\n}\nint main() { "
          "k<<<1, 4>>>(); }\n");
  EXPECT_EQ(outcome.code, 3) << outcome;
  EXPECT_TRUE(says(outcome.err, "program.cu:2"));
  EXPECT_TRUE(says(outcome.err, "tcgen05"));
}

TEST_F(Run, AProgramThatDoesNotCompileSaysWhere) {
  const Outcome outcome = run("int main() {\n  return nothing;\n}\n");
  EXPECT_EQ(outcome.code, 1) << outcome;
  EXPECT_TRUE(says(outcome.err, "program.cu:2"));
}

TEST_F(Run, HeadersElsewhereAndMacrosAreNamed) {
  fs::create_directories(home_ / "common");
  spit(home_ / "common" / "scale.h", "__device__ inline int scaled(int x) { return FACTOR * x; }\n");
  const std::string source =
      "#include <cstdio>\n#include \"scale.h\"\n__global__ void k() { printf(\"%d\\n\", scaled(7)); }\nint "
      "main() { k<<<1, 1>>>(); return cudaDeviceSynchronize(); }\n";
  const Outcome without = run(source);
  EXPECT_EQ(without.code, 1) << without;
  EXPECT_TRUE(says(without.err, "program.cu:2"));
  EXPECT_TRUE(says(without.err, "add other header folders with -I"));
  const Outcome with = run(source, {"-I", "common", "-D", "FACTOR=6"});
  EXPECT_EQ(with.code, 0) << with;
  EXPECT_EQ(with.out, "42\n");
}

TEST_F(Run, AProgramMayHaveSeveralSources) {
  fs::create_directories(home_ / "parts");
  spit(home_ / "parts" / "kernels.h",
       "__global__ void twice(int* p);\n__device__ int scaled(int x);\nint host_side(int x);\n");
  spit(home_ / "parts" / "twice.cu",
       "#include \"kernels.h\"\n__device__ int scaled(int x) { return 2 * x; }\nstatic int offset = 1;\n"
       "__global__ void twice(int* p) { __shared__ int s; s = *p; *p = scaled(s); }\n"
       "int host_side(int x) { return x + offset; }\n");
  const std::string source =
      "#include <cstdio>\n#include \"parts/kernels.h\"\nstatic int offset = 5;\n"
      "__global__ void more(int* p) { __shared__ int s; s = *p; *p = scaled(s); }\n"
      "int main() { int* p; cudaMallocManaged(&p, 4); *p = 3; twice<<<1, 1>>>(p); more<<<1, 1>>>(p);\n"
      "  cudaDeviceSynchronize(); printf(\"%d\\n\", host_side(*p) + offset); }\n";
  for (const std::string check : {"", "races", "memory"}) {
    std::vector<std::string> words = {"--source", "parts/twice.cu"};
    if (!check.empty()) words.insert(words.end(), {"--check", check});
    const Outcome outcome = run(source, words);
    EXPECT_EQ(outcome.code, 0) << check << outcome;
    EXPECT_EQ(outcome.out, "18\n") << check;
  }
  spit(home_ / "parts" / "twice.cu", "#include \"kernels.h\"\nint host_side(int x) { return y; }\n");
  const Outcome wrong = run(source, {"-s", "parts/twice.cu"});
  EXPECT_EQ(wrong.code, 1) << wrong;
  EXPECT_TRUE(says(wrong.err, "parts/twice.cu:2")) << wrong;
}

TEST_F(Run, AFailedAssertOfTheHostDoesNotHideARace) {
  const Outcome outcome =
      run("#include <cassert>\n__global__ void k(float* y) {\n  __shared__ float s[64];\n  s[threadIdx.x] = "
          "threadIdx.x;\n  y[threadIdx.x] = s[63 - threadIdx.x];\n}\n"
          "int main() { float* y; cudaMallocManaged(&y, 256); k<<<1, 64>>>(y); cudaDeviceSynchronize();\n  "
          "assert(y[0] == 64);\n}\n",
          {"--check", "races"});
  EXPECT_EQ(outcome.code, 1) << outcome;
  EXPECT_TRUE(
      says(outcome.err, "program.cu:8: the host program stopped itself: assertion failed: y[0] == 64"));
  EXPECT_TRUE(says(outcome.err, "race on shared memory `s`"));
}

TEST_F(Run, AnEndlessProgramIsStopped) {
  const Outcome outcome = run("int main() { for (volatile int i = 0;; i = 1) {} }\n", {"--timeout", "1"});
  EXPECT_EQ(outcome.code, 1) << outcome;
  EXPECT_TRUE(says(outcome.err, "did not end within 1 s"));
}

}  // namespace
}  // namespace capstone::cli_test
